package sharedmemory

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAbandoned(t *testing.T) {
	files := []file{{"alice", 2000}, {"bob", 3000}, {"root", 0}}
	tests := map[string]struct {
		jobs      []string
		processes []process
		want      map[int][]string
	}{
		"deletes everything of users after the last job": {
			processes: []process{{uid: 0}},
			want:      map[int][]string{2000: {"alice"}, 3000: {"bob"}},
		},
		"keeps the files of a user with another job": {
			jobs:      []string{"8"},
			processes: []process{{cgroup: "/a", job: "8"}, {uid: 2000, cgroup: "/a"}},
			want:      map[int][]string{3000: {"bob"}},
		},
		"keeps all files while a job may be anybody's": {
			jobs:      []string{"8", "9"},
			processes: []process{{cgroup: "/a", job: "8"}, {uid: 2000, cgroup: "/a"}, {cgroup: "/b", job: "9"}},
		},
		"keeps all files while a job is not seen": {
			jobs:      []string{"9"},
			processes: []process{{uid: 2000, cgroup: "/a"}},
		},
		"keeps all files while jobs have no cgroups": {
			jobs:      []string{"8"},
			processes: []process{{job: "8"}, {uid: 2000}},
		},
		"keeps the files of a user with a process outside of jobs": {
			processes: []process{{uid: 3000}},
			want:      map[int][]string{2000: {"alice"}},
		},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			got := abandoned(files, test.jobs, test.processes)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("abandoned files (-want +got):\n%s", diff)
			}
		})
	}
}

func TestListJobs(t *testing.T) {
	spool := t.TempDir()
	for _, name := range []string{
		"gpu-1_7.4294967292", "gpu-1_7.0", "gpu-1_8.4294967291", "gpu-10_9.0", "cred_state", "job00010", "gpu-1_x.0",
		"gpu-1_11",
	} {
		write(t, filepath.Join(spool, name), "")
	}
	got, err := listJobs(spool, "gpu-1", "7")
	if err != nil || !cmp.Equal(got, []string{"8"}) {
		t.Errorf("got jobs %v, %v, want 8", got, err)
	}
}

func TestListProcesses(t *testing.T) {
	proc := t.TempDir()
	for pid, is := range map[string]struct{ uid, cgroup, title string }{
		"1":  {"0", "0::/leaf\n", "slurmd\x00-D\x00"},
		"20": {"0", "0::/pod/gpu-0_slurmstepd.scope/s08XM7NEFMQ100/step_batch/slurm\n", "slurmstepd: [7.batch]\x00"},
		"21": {"2000", "0::/pod/gpu-0_slurmstepd.scope/s08XM7NEFMQ100/step_batch/user/task_0\n", "sleep\x00"},
		"30": {"3000", "11:memory:/slurm/uid_2000/job_71/step_batch\n10:cpu:/\n", "slurmstepd: [7.batch]\x00"},
	} {
		write(t, filepath.Join(proc, pid, "cgroup"), is.cgroup)
		write(t, filepath.Join(proc, pid, "cmdline"), is.title)
		write(t, filepath.Join(proc, pid, "status"), "Name:\tx\nUid:\t"+is.uid+"\t0\t0\t0\nGid:\t5\t5\t5\t5\n")
	}
	write(t, filepath.Join(proc, "40", "status"), "Uid:\t0\n") // ends while it is read
	write(t, filepath.Join(proc, "meminfo"), "")
	got, err := listProcesses(proc)
	const job = "/pod/gpu-0_slurmstepd.scope/s08XM7NEFMQ100"
	want := []process{{}, {0, job, "7"}, {2000, job, ""}, {3000, "/slurm/uid_2000/job_71", ""}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(process{})); diff != "" || err != nil {
		t.Errorf("%v, processes (-want +got):\n%s", err, diff)
	}
}

func TestCleanDeletesFilesOfTheUserWithoutJobs(t *testing.T) {
	self := os.Getuid()
	if self == 0 {
		self = 2000 // root's files stay
	}
	cleaner := Cleaner{Directory: t.TempDir(), Spool: t.TempDir(), Proc: t.TempDir(), Node: "gpu-0"}
	outside := t.TempDir()
	write(t, filepath.Join(outside, "kept"), "")
	write(t, filepath.Join(cleaner.Directory, "psm", "segment"), "data")
	if err := os.Symlink(outside, filepath.Join(cleaner.Directory, "psm", "link")); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		for _, path := range []string{cleaner.Directory, filepath.Dir(cleaner.Directory)} {
			if err := os.Chmod(path, 0o1777); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{"psm/segment", "psm/link", "psm"} {
			if err := os.Lchown(filepath.Join(cleaner.Directory, path), self, self); err != nil {
				t.Fatal(err)
			}
		}
	}
	socket := filepath.Join(cleaner.Spool, "gpu-0_8.0")
	write(t, socket, "")
	if err := cleaner.Clean("7"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(cleaner.Directory, "psm", "segment")); err != nil {
		t.Errorf("the file of a job that may still run: %v", err)
	}
	if err := os.Remove(socket); err != nil {
		t.Fatal(err)
	}
	if err := cleaner.Clean("7"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(cleaner.Directory, "psm")); !os.IsNotExist(err) {
		t.Errorf("the directory of the ended job was not deleted: %v", err)
	}
	if _, err := os.Stat(filepath.Join(outside, "kept")); err != nil {
		t.Errorf("the target of a link was deleted: %v", err)
	}
}

func TestProcessesOfThisMachineAreRead(t *testing.T) {
	got, err := readProcess("/proc/self")
	if err != nil || got.uid != os.Getuid() {
		t.Errorf("got %+v, %v, want user %d", got, err, os.Getuid())
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
