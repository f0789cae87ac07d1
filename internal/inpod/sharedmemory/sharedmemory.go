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
	// cgroup is that of its job, which releases of Slurm name differently; empty if it is in none.
	cgroup string
	// job is the job of a slurmstepd; empty for other processes.
	job string
}

// abandoned returns the files of users who have neither a process nor a job on the node, by user. jobs are the jobs on
// the node, without the one that has ended.
func abandoned(files []file, jobs []string, processes []process) map[int][]string {
	running := map[int]bool{0: true}
	used := map[string]bool{}      // cgroups with processes of a user
	cgroups := map[string]string{} // by job
	for _, process := range processes {
		running[process.uid] = true
		used[process.cgroup] = used[process.cgroup] || process.uid != 0
		if process.job != "" {
			cgroups[process.job] = process.cgroup
		}
	}
	isUnknown := func(job string) bool { return cgroups[job] == "" || !used[cgroups[job]] }
	if slices.ContainsFunc(jobs, isUnknown) {
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
