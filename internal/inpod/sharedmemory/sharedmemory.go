// Package sharedmemory deletes what jobs leave in /dev/shm of a slurmd pod.
//
// Files there are memory. While a job runs, they count as its own; afterwards they count as the pod's, until the pod is
// deleted: Slurm gives that memory to the next job, and when the jobs together exceed the limit of the pod, the kernel
// ends slurmd and all of them. So after each job, the files of users who have nothing left on the node are deleted.
//
// A user may have other jobs on the node, which need their files. From its start to its end, each job has a step there
// (PrologFlags=Contain), and slurmd has a socket for each step. As long as one of these jobs cannot be seen to be
// another user's, nothing is deleted. The next job that ends is the next chance.
package sharedmemory

import "slices"

// A file is an entry of /dev/shm.
type file struct {
	name string
	uid  int
}

// A process is a process of the pod.
type process struct {
	uid int
	job string // empty if it is in no job's cgroup
}

// abandoned returns the files of users who have neither a process nor a job on the node, by user. jobs are the jobs on
// the node, without the one that has ended.
func abandoned(files []file, jobs []string, processes []process) map[int][]string {
	owners := map[string]bool{} // jobs whose user is known
	running := map[int]bool{0: true}
	for _, process := range processes {
		running[process.uid] = true
		owners[process.job] = owners[process.job] || process.uid != 0
	}
	if slices.ContainsFunc(jobs, func(job string) bool { return !owners[job] }) {
		return nil
	}
	left := map[int][]string{}
	for _, file := range files {
		if !running[file.uid] {
			left[file.uid] = append(left[file.uid], file.name)
		}
	}
	return left
}
