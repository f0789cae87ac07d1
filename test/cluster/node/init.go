package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// initConfig is the configuration of a node's init.
type initConfig struct {
	Hostname string
	// Mounts maps the node's directories to the paths where its daemons expect them.
	Mounts map[string]string
	// Tmpfs are the paths that are empty after each power-on.
	Tmpfs   []string
	Daemons []daemon
}

type daemon struct {
	Name string
	Path string
	Args []string
	Env  []string
	Log  string
}

// restartDelay limits the load of a daemon that cannot start.
const restartDelay = time.Second

// Init is the first process of a node. It runs in new namespaces, sets up the node's host name and mounts, starts the
// daemons, and then reaps processes and restarts daemons that have exited. It returns only on an error.
func Init(configFile string) error {
	content, err := os.ReadFile(configFile)
	if err != nil {
		return err
	}
	var config initConfig
	if err := json.Unmarshal(content, &config); err != nil {
		return fmt.Errorf("reading %s: %w", configFile, err)
	}
	if os.Getpid() != 1 {
		return fmt.Errorf("a node's init must be the first process of its namespace, but is process %d", os.Getpid())
	}
	if err := unix.Sethostname([]byte(config.Hostname)); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if err := config.mount(); err != nil {
		return err
	}
	return config.supervise()
}

func (c initConfig) mount() error {
	// Nothing that is mounted here may propagate to the host.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	for source, target := range c.Mounts {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting %s at %s: %w", source, target, err)
		}
	}
	for _, target := range c.Tmpfs {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", target, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mounting an empty %s: %w", target, err)
		}
	}
	// Within the node, mounts must propagate between the kubelet and containers in both directions.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("sharing mounts within the node: %w", err)
	}
	return nil
}

func (c initConfig) supervise() error {
	running := map[int]daemon{}
	for _, daemon := range c.Daemons {
		pid, err := daemon.start()
		if err != nil {
			return err
		}
		running[pid] = daemon
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("waiting for processes: %w", err)
		}
		ended, isDaemon := running[pid]
		if !isDaemon {
			continue
		}
		delete(running, pid)
		fmt.Printf("%s exited (exit code %d, signal %d), restarting it\n", ended.Name, status.ExitStatus(),
			status.Signal())
		time.Sleep(restartDelay)
		if pid, err = ended.start(); err != nil {
			return err
		}
		running[pid] = ended
	}
}

// start does not use os/exec, because its Wait would compete with that of the init.
func (d daemon) start() (int, error) {
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	pid, err := syscall.ForkExec(d.Path, append([]string{d.Name}, d.Args...), &syscall.ProcAttr{
		Env:   append(os.Environ(), d.Env...),
		Files: []uintptr{0, log.Fd(), log.Fd()},
	})
	if err != nil {
		return 0, fmt.Errorf("starting %s: %w", d.Name, err)
	}
	return pid, nil
}
