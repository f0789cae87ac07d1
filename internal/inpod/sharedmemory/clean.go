package sharedmemory

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// A Cleaner deletes files of ended jobs.
type Cleaner struct {
	// Directory is that of shared memory, Spool that of slurmd's sockets, and Proc that of processes.
	Directory, Spool, Proc string
	// Node is the name of the Slurm node.
	Node string
}

// Clean deletes the files of users who have nothing left on the node, after a job has ended.
func (c Cleaner) Clean(job string) error {
	files, err := listFiles(c.Directory)
	if err != nil || len(files) == 0 {
		return err
	}
	// The jobs come after the files, so that every file is that of a listed job or of one that has ended.
	jobs, err := listJobs(c.Spool, c.Node, job)
	if err != nil {
		return err
	}
	processes, err := listProcesses(c.Proc)
	if err != nil {
		return err
	}
	left := abandoned(files, jobs, processes)
	var failed []error
	for _, uid := range slices.Sorted(maps.Keys(left)) {
		if err := remove(uid, c.Directory, left[uid]); err != nil {
			failed = append(failed, fmt.Errorf("deleting files of user %d: %w", uid, err))
		}
	}
	return errors.Join(failed...)
}

// remove deletes files as the user who owns them. Otherwise root could be led to files of others, and without the
// capabilities that it has on a host it could not delete directories that only their owner may read.
func remove(uid int, directory string, names []string) error {
	runtime.LockOSThread() // it is the thread that becomes another user
	defer runtime.UnlockOSThread()
	self := os.Geteuid()
	if err := actAs(uid); err != nil {
		return err
	}
	var failed []error
	for _, name := range names {
		failed = append(failed, os.RemoveAll(filepath.Join(directory, name)))
	}
	return errors.Join(append(failed, actAs(self))...)
}

// actAs makes the thread access files as a user. The system call returns the user before it, and no error, so only
// another call says whether it had an effect.
func actAs(uid int) error {
	_, _ = unix.SetfsuidRetUid(uid)
	now, err := unix.SetfsuidRetUid(-1)
	if err == nil && now != uid {
		err = fmt.Errorf("files are accessed as user %d; SETUID is needed to change that", now)
	}
	return err
}

// listFiles returns the entries of a directory. Those that are deleted meanwhile are left out.
func listFiles(directory string) ([]file, error) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return nil, err
	}
	files := make([]file, 0, len(entries))
	for _, entry := range entries {
		var stat unix.Stat_t
		err := unix.Lstat(filepath.Join(directory, entry.Name()), &stat)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", entry.Name(), err)
		}
		files = append(files, file{entry.Name(), int(stat.Uid)})
	}
	return files, nil
}

// listJobs returns the jobs that have a step on a node, except one. slurmd's sockets are named after node, job and
// step.
func listJobs(spool, node, except string) ([]string, error) {
	sockets, err := os.ReadDir(spool)
	if err != nil {
		return nil, err
	}
	var jobs []string
	for _, socket := range sockets {
		step, found := strings.CutPrefix(socket.Name(), node+"_")
		job, _, isStep := strings.Cut(step, ".")
		if _, err := strconv.ParseUint(job, 10, 32); found && isStep && err == nil && job != except {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

var (
	// jobCgroup matches the cgroup of a process of a job.
	jobCgroup = regexp.MustCompile(`:(/[^:\n]+)/step_`)
	// stepd matches the title of a slurmstepd.
	stepd = regexp.MustCompile(`^slurmstepd: \[(\d+)\.`)
	// realUID matches the user of a process. The owner of its directory would be root if it does not allow core dumps.
	realUID = regexp.MustCompile(`(?m)^Uid:\s+(\d+)`)
)

// listProcesses returns all processes. Those that end meanwhile are left out.
func listProcesses(proc string) ([]process, error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, err
	}
	var processes []process
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		found, err := readProcess(filepath.Join(proc, entry.Name()))
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ESRCH):
		case err != nil:
			return nil, fmt.Errorf("reading process %s: %w", entry.Name(), err)
		default:
			processes = append(processes, found)
		}
	}
	return processes, nil
}

func readProcess(directory string) (process, error) {
	status, err := os.ReadFile(filepath.Join(directory, "status"))
	if err != nil {
		return process{}, err
	}
	cgroup, err := os.ReadFile(filepath.Join(directory, "cgroup"))
	if err != nil {
		return process{}, err
	}
	uid := realUID.FindSubmatch(status)
	if uid == nil {
		return process{}, errors.New("its status has no user")
	}
	title, err := os.ReadFile(filepath.Join(directory, "cmdline"))
	if err != nil {
		return process{}, err
	}
	var found process
	if found.uid, err = strconv.Atoi(string(uid[1])); err != nil {
		return process{}, err
	}
	if match := jobCgroup.FindSubmatch(cgroup); match != nil {
		found.cgroup = string(match[1])
	}
	if match := stepd.FindSubmatch(title); match != nil && found.uid == 0 { // a user could imitate it
		found.job = string(match[1])
	}
	return found, nil
}
