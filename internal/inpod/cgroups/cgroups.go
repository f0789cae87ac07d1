// Package cgroups prepares the cgroups of slurmd's container, so that slurmd can confine jobs in them.
//
// It runs before slurmd. A slurmd that cannot use cgroups as configured registers all the same, and then fails every
// job that it gets. So everything that slurmd will need is tried here first, and slurmd is started only if it works.
package cgroups

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Directory is where cgroups are mounted in containers.
const Directory = "/sys/fs/cgroup"

// Options say what slurmd will need.
type Options struct {
	// Remount makes cgroups writable that the container runtime has mounted read-only. It needs SYS_ADMIN.
	Remount bool
	// Devices is set if slurmd limits jobs to their devices.
	Devices bool
}

// A Version of cgroups.
type Version int

// Prepare prepares the cgroups that are mounted in a directory, for the calling thread. Its errors are for users, who
// see them in the status of the pod and of the NodeSet.
func Prepare(directory string, opts Options) (Version, error) {
	switch kind, err := filesystem(directory); {
	case err != nil:
		return 0, fmt.Errorf("%s: %w; %s", directory, err, remedy)
	case kind == unix.CGROUP2_SUPER_MAGIC:
		return 2, prepareV2(directory, opts)
	case isDirectory(filepath.Join(directory, "memory")):
		return 1, prepareV1(directory, opts)
	}
	return 0, fmt.Errorf("no cgroups are mounted in %s; %s", directory, remedy)
}

// remedy is what the user can do if cgroups cannot be used.
const remedy = "change spec.cgroupAccess of the NodeSet, or let jobs run unconfined with spec.jobConfinement: None of " +
	"the Controller"

func filesystem(path string) (int64, error) {
	var stat unix.Statfs_t
	err := unix.Statfs(path, &stat)
	return stat.Type, err
}

func isDirectory(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// controllers are those of cgroup v2 that slurmd enables for jobs.
var controllers = []string{"cpu", "cpuset", "memory"}

// leaf is the cgroup of slurmd and of all other processes of the container. A cgroup with processes cannot have
// controllers for its children, so none may stay in the container's own.
const leaf = "init"

func prepareV2(directory string, opts Options) error {
	if err := enterNamespace(directory); err != nil {
		return err
	}
	if err := makeWritable(directory, opts.Remount); err != nil {
		return err
	}
	if err := checkControllers(directory); err != nil {
		return err
	}
	home := filepath.Join(directory, leaf)
	if err := os.Mkdir(home, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("creating a cgroup: %w; %s", err, remedy)
	}
	if err := moveProcesses(directory, home); err != nil {
		return err
	}
	enable := "+" + strings.Join(controllers, " +")
	if err := os.WriteFile(filepath.Join(directory, "cgroup.subtree_control"), []byte(enable), 0); err != nil {
		return fmt.Errorf("enabling the controllers %s for jobs: %w; %s", strings.Join(controllers, ", "), err, remedy)
	}
	if opts.Devices {
		return tryDeviceFilter(home)
	}
	return nil
}

// Restore makes cgroups what they were when slurmd was started first, for the slurmd that this process is about to
// become. When it starts, slurmd moves all processes of its cgroup into a child of that, and itself into another one,
// next to the jobs. Slurm 24.11 does the same when it starts again from there, and then exits, because a cgroup with
// controllers for its children cannot have processes.
func Restore(directory string) error {
	if kind, err := filesystem(directory); err != nil || kind != unix.CGROUP2_SUPER_MAGIC {
		return err
	}
	home := filepath.Join(directory, leaf)
	if err := disableControllers(home); err != nil {
		return err
	}
	children, err := os.ReadDir(home)
	if err != nil {
		return err
	}
	for _, child := range children {
		if child.IsDir() {
			if err := moveProcesses(filepath.Join(home, child.Name()), home); err != nil {
				return err
			}
		}
	}
	return os.WriteFile(filepath.Join(home, "cgroup.procs"), []byte("0"), 0)
}

// disableControllers disables all controllers of the children of a cgroup, so that it can have processes.
func disableControllers(cgroup string) error {
	file := filepath.Join(cgroup, "cgroup.subtree_control")
	enabled, err := os.ReadFile(file)
	if err != nil || len(strings.Fields(string(enabled))) == 0 {
		return err
	}
	return os.WriteFile(file, []byte("-"+strings.Join(strings.Fields(string(enabled)), " -")), 0)
}

// enterNamespace makes the container's own cgroup the root of the mounted ones. Container runtimes do so, but leave
// privileged containers in the namespace of the Kubernetes node, where the root is that of all its cgroups.
func enterNamespace(directory string) error {
	content, err := os.ReadFile("/proc/thread-self/cgroup")
	if err != nil {
		return err
	}
	own := strings.TrimPrefix(strings.TrimSpace(string(content)), "0::")
	if own == "/" || own == "/"+leaf {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("creating a cgroup namespace for %s: %w; %s", own, err, remedy)
	}
	// The kernel mounts no file system over itself.
	err = unix.Unmount(directory, unix.MNT_DETACH)
	if err == nil {
		err = unix.Mount("cgroup2", directory, "cgroup2", mountFlags, "")
	}
	if err != nil {
		return fmt.Errorf("mounting the container's own cgroups: %w; %s", err, remedy)
	}
	return nil
}

func checkControllers(directory string) error {
	available, err := os.ReadFile(filepath.Join(directory, "cgroup.controllers"))
	if err != nil {
		return err
	}
	missing := slices.DeleteFunc(slices.Clone(controllers), func(name string) bool {
		return slices.Contains(strings.Fields(string(available)), name)
	})
	if len(missing) > 0 {
		return fmt.Errorf("the Kubernetes node does not delegate the cgroup controllers %s to pods (it delegates %s); "+
			"enable them for its kubelet, or %s",
			strings.Join(missing, ", "), strings.TrimSpace(string(available)), remedy)
	}
	return nil
}

// moveProcesses moves all processes from one cgroup to another. Processes that start meanwhile are in the next list.
func moveProcesses(from, to string) error {
	for {
		list, err := os.ReadFile(filepath.Join(from, "cgroup.procs"))
		if err != nil {
			return err
		}
		processes := strings.Fields(string(list))
		if len(processes) == 0 {
			return nil
		}
		for _, process := range processes {
			if process == "0" { // which would be this process
				return fmt.Errorf("%s has processes that are not those of this container; %s", from, remedy)
			}
			err := os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(process), 0)
			if err != nil && !errors.Is(err, unix.ESRCH) { // it has exited
				return fmt.Errorf("moving process %s to another cgroup: %w; %s", process, err, remedy)
			}
		}
	}
}

// hierarchies are those of cgroup v1 that slurmd uses.
var hierarchies = []string{"cpuacct", "cpuset", "devices", "freezer", "memory"}

func prepareV1(directory string, opts Options) error {
	for _, name := range hierarchies {
		path := filepath.Join(directory, name)
		if !isDirectory(path) {
			return fmt.Errorf("the Kubernetes node has no cgroup hierarchy %s; %s", name, remedy)
		}
		if err := makeWritable(path, opts.Remount); err != nil {
			return err
		}
	}
	if opts.Devices {
		if err := tryDeviceList(filepath.Join(directory, "devices", probe)); err != nil {
			return err
		}
	}
	// The container's cgroups are mounted as if they were the root, but the kernel reports their full path, which slurmd
	// does not find, unless that is the root of a namespace.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("creating a cgroup namespace: %w; %s", err, remedy)
	}
	return nil
}

// makeWritable checks that cgroups can be created in a directory, and remounts it if that is allowed.
func makeWritable(directory string, remount bool) error {
	err := tryCreate(directory)
	if err == nil {
		return nil
	}
	if !remount || !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("the container's cgroups are not writable: %w; %s", err, remedy)
	}
	if err := unix.Mount("", directory, "", unix.MS_REMOUNT|unix.MS_BIND|mountFlags, ""); err != nil {
		return fmt.Errorf("remounting %s writable: %w: the container lacks SYS_ADMIN, or a security module of the "+
			"Kubernetes node, such as AppArmor or SELinux, forbids it; %s", directory, err, remedy)
	}
	return tryCreate(directory)
}

// mountFlags are those with which container runtimes mount cgroups.
const mountFlags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// probe is the name of a cgroup that exists only for a moment.
const probe = "slurm-operator-probe"

func tryCreate(directory string) error {
	path := filepath.Join(directory, probe)
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Remove(path)
}
