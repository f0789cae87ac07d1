package slurmnet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/test/thread"
)

// stopTimeout is how long a daemon may take to exit after a signal.
const stopTimeout = 5 * time.Minute

// A Daemon is a host of the cluster and the daemon on it: an image in its own namespaces, like a container. Its files
// and its address survive its processes, so it can be stopped and started again.
type Daemon struct {
	// Name is the daemon's name and its host name.
	Name string

	sandbox *sandbox
	address string
	image   images.Unpacked
	args    []string // the command; empty for the image's own
	logPath string

	init     *process // the first process of the last start; nil before the first start
	stopping bool     // stopped by the test
}

// root returns the path of the daemon's root filesystem in the sandbox.
func (d *Daemon) root() string { return filepath.Join("/run/hosts", d.Name, "root") }

// Path returns the path of a file of the host, as seen from the test.
func (d *Daemon) Path(file string) string { return d.sandbox.path(d.root(), file) }

// setup returns the part of the sandbox's setup script that creates the host: network, root filesystem and devices.
func (d *Daemon) setup(index int) string {
	layers := slices.Clone(d.image.Layers)
	slices.Reverse(layers) // overlayfs expects the uppermost first
	return strings.NewReplacer(
		"NAME", d.Name, "PORT", fmt.Sprintf("port%d", index), "ADDRESS", d.sandbox.onLink(d.address),
		"LAYERS", strings.Join(layers, ":"), "ROOT", d.root(),
	).Replace(`
ip netns add NAME
ip link add PORT type veth peer name eth0 netns NAME
ip link set PORT master switch up
ip -n NAME link set lo up
ip -n NAME address add ADDRESS dev eth0
ip -n NAME link set eth0 up
mkdir -p /run/hosts/NAME/upper /run/hosts/NAME/work ROOT
mount -t overlay -o lowerdir=LAYERS,upperdir=/run/hosts/NAME/upper,workdir=/run/hosts/NAME/work overlay ROOT
mount -t tmpfs -o mode=0755 tmpfs ROOT/dev
for device in null zero full random urandom tty; do
    touch ROOT/dev/$device
    mount --bind /dev/$device ROOT/dev/$device
done
mkdir ROOT/dev/pts ROOT/dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts ROOT/dev/pts
ln -s pts/ptmx ROOT/dev/ptmx
ln -s /proc/self/fd ROOT/dev/fd
mount -t tmpfs -o mode=1777 tmpfs ROOT/dev/shm
`)
}

// Start starts the daemon. It does not wait until the daemon is ready: see Cluster.WaitReady.
func (d *Daemon) Start(tb testing.TB) {
	tb.Helper()
	if err := d.start(); err != nil {
		tb.Fatalf("starting %s: %v", d.Name, err)
	}
}

// StartWith starts the daemon with another command, under the same init. Later starts use the same command.
func (d *Daemon) StartWith(tb testing.TB, args ...string) {
	tb.Helper()
	d.args = args
	d.Start(tb)
}

func (d *Daemon) start() error {
	if d.running() {
		return errors.New("it is running")
	}
	// A change of user would clear the parent death signal, which kills the process with the test, so setpriv has to
	// keep it.
	const script = `
name=$1 root=$2 uid=$3 gid=$4
shift 4
echo "$name" >/proc/sys/kernel/hostname
mount -t proc none "$root/proc"
mount -t sysfs -o ro none "$root/sys"
exec chroot "$root" setpriv --reuid="$uid" --regid="$gid" --clear-groups --pdeathsig=keep "$@"
`
	// Later starts append to the log.
	log, err := os.OpenFile(d.logPath, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	args := d.args
	if len(args) == 0 {
		args = d.image.Config.Cmd
	}
	uid, gid, ok := strings.Cut(d.image.Config.User, ":")
	if !ok {
		return fmt.Errorf("the image's user is %q, want uid:gid", d.image.Config.User)
	}
	command := exec.CommandContext(context.Background(), "sh", slices.Concat(
		[]string{"-euc", script, "sh", d.Name, d.root(), uid, gid}, d.image.Config.Entrypoint, args)...)
	command.Stdout, command.Stderr = log, log
	command.Env = d.environment()
	command.SysProcAttr = first(0)
	d.stopping = false
	d.init, err = start(command, d.sandbox.path("run/netns", d.Name), d.sandbox.init.namespace("mnt"))
	return err
}

func (d *Daemon) environment() []string {
	return append([]string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}, d.image.Config.Env...)
}

func (d *Daemon) running() bool { return d.init != nil && d.init.running() }

// crashed reports whether the daemon has exited without being stopped.
func (d *Daemon) crashed() bool { return d.init != nil && !d.init.running() && !d.stopping }

// Stop sends SIGTERM to the daemon, like Kubernetes, and waits until it and everything it started has exited.
func (d *Daemon) Stop(tb testing.TB) {
	tb.Helper()
	d.end(tb, syscall.SIGTERM)
}

// Terminate sends SIGTERM to the daemon and reports whether it exits within the grace period.
func (d *Daemon) Terminate(tb testing.TB, grace time.Duration) bool {
	tb.Helper()
	d.stopping = true
	if err := d.init.command.Process.Signal(syscall.SIGTERM); err != nil {
		tb.Fatalf("signalling %s: %v", d.Name, err)
	}
	select {
	case <-d.init.ended:
		return true
	case <-time.After(grace):
		return false
	}
}

// Kill kills the daemon and everything it started, like a crash of its host.
func (d *Daemon) Kill(tb testing.TB) {
	tb.Helper()
	d.end(tb, syscall.SIGKILL)
}

func (d *Daemon) end(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if !d.running() {
		tb.Fatalf("%s is not running", d.Name)
	}
	d.stopping = true
	if err := d.init.command.Process.Signal(signal); err != nil {
		tb.Fatalf("signalling %s: %v", d.Name, err)
	}
	select {
	case <-d.init.ended:
	case <-time.After(stopTimeout):
		tb.Fatalf("%s did not exit within %s of %s", d.Name, stopTimeout, signal)
	}
}

// Pause freezes the daemon and everything it started: it keeps its connections and answers nothing.
func (d *Daemon) Pause(tb testing.TB) {
	tb.Helper()
	d.signalAll(tb, "STOP")
	// A thread stops only when it is scheduled, which on a busy computer can be after its next response.
	deadline := time.Now().Add(stopTimeout)
	for !d.frozen() {
		if time.Now().After(deadline) {
			tb.Fatalf("%s did not freeze within %s", d.Name, stopTimeout)
		}
		runtime.Gosched()
	}
}

// frozen reports whether all threads on the host, except those of its init, have stopped or exited.
func (d *Daemon) frozen() bool {
	root := fmt.Sprintf("/proc/%d/root/proc/", d.init.pid())
	threads, _ := filepath.Glob(root + "[0-9]*/task/[0-9]*/stat") // fails for a malformed pattern only
	return thread.AllStopped(slices.DeleteFunc(threads, func(path string) bool {
		return strings.HasPrefix(path, root+"1/") // the host's init
	}))
}

// Resume continues after Pause.
func (d *Daemon) Resume(tb testing.TB) {
	tb.Helper()
	d.signalAll(tb, "CONT")
}

// signalAll sends a signal to all processes of the host except its init.
func (d *Daemon) signalAll(tb testing.TB, signal string) {
	tb.Helper()
	if output, err := d.Run(tb.Context(), "sh", "-c", "kill -"+signal+" -1"); err != nil {
		tb.Fatalf("signalling %s: %v: %s", d.Name, err, output)
	}
}

// Run runs a command as root on the host of a running daemon and returns its stdout. The error of a failed command
// contains its stderr.
func (d *Daemon) Run(ctx context.Context, args ...string) (string, error) {
	if !d.running() {
		return "", fmt.Errorf("%s is not running", d.Name)
	}
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, "/usr/bin/env", args...)
	command.Stdout, command.Stderr = &stdout, &stderr
	command.Env, command.Dir = d.environment(), "/"
	// Processes that the command leaves behind must not block us by keeping its output open.
	command.WaitDelay = time.Second
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: d.root()}
	namespaces := []string{}
	for _, kind := range []string{"net", "uts", "ipc", "pid", "mnt"} {
		namespaces = append(namespaces, d.init.namespace(kind))
	}
	if err := run(command, namespaces...); err != nil {
		return stdout.String(), fmt.Errorf("%s on %s: %w: %s", strings.Join(args, " "), d.Name, err,
			strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// commandTimeout is how long a command of MustRun may take.
const commandTimeout = 5 * time.Minute

// MustRun runs a command like Run and returns its output without surrounding space. It fails the test if the command
// fails.
func (d *Daemon) MustRun(tb testing.TB, args ...string) string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), commandTimeout)
	defer cancel()
	output, err := d.Run(ctx, args...)
	if err != nil {
		tb.Fatal(err)
	}
	return strings.TrimSpace(output)
}

// Write writes a file on the host. An existing file keeps its owner and mode.
func (d *Daemon) Write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.MkdirAll(filepath.Dir(d.Path(path)), 0o755); err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(d.Path(path), []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}

// Logs returns everything that the daemon has printed so far.
func (d *Daemon) Logs() string {
	content, err := os.ReadFile(d.logPath)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
