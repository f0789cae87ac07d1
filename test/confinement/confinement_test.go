//go:build slurm

package confinement

import (
	"context"
	"flag"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

var versions = flag.String("slurm", strings.Join(images.Versions, ","), "the Slurm versions to test")

// forEachVersion runs a test with each version of Slurm.
func forEachVersion(t *testing.T, test func(t *testing.T, version string)) {
	t.Helper()
	for version := range strings.SplitSeq(*versions, ",") {
		t.Run(version, func(t *testing.T) { test(t, version) })
	}
}

// cgroupConf returns the cgroup.conf with or without confinement. Without it, pods choose their own, as when a cluster
// changes.
func cgroupConf(confined bool) string {
	if confined {
		return slurmconf.CgroupsEnabled
	}
	return slurmconf.IncludePodCgroup
}

// configure makes slurmctld run with the configuration of a NodeSet.
func configure(t *testing.T, slurm *slurmnet.Cluster, set *slinkyv1beta1.NodeSet, confined bool) {
	t.Helper()
	contribution, node, err := clusterconf.NodeSet(set)
	if err != nil {
		t.Fatal(err)
	}
	document, err := slurmconf.Build(slurmconf.Cluster{
		Name: "slurmnet", Hosts: []slurmconf.Host{{Name: "slurmctld"}}, Port: 6817, SlurmUser: "slurm", MaxNodeCount: 100,
		NodeSets: []slurmconf.NodeSet{contribution}, Confined: confined, Contain: true,
		Accounting: &slurmconf.Endpoint{Host: "slurmdbd", Port: 6819},
	})
	if err != nil {
		t.Fatal(err)
	}
	files := clusterconf.NewFiles(node.HasDevices())
	files[clusterconf.CgroupFile] = cgroupConf(confined)
	document = clusterconf.AddClean(document, files)
	files[slurmconf.FileName] = document.Render()
	for name, content := range files {
		slurm.Slurmctld.Write(t, slurmconf.Directory+"/"+name, content)
	}
	slurm.Login.MustRun(t, "scontrol", "reconfigure")
}

// waitIdle waits until the machine's Slurm node is idle.
func waitIdle(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	slurm.WaitFor(t, "the machine's slurmd", func(ctx context.Context) error {
		if output, err := p.machine.Run(ctx, "[ ! -f /run/slurmd.exit ] || cat /run/slurmd.log"); err != nil || output != "" {
			t.Fatalf("slurmd has exited: %v\n%s", err, output)
		}
		output, err := slurm.Run(ctx, "sinfo", "--noheader", "--nodes="+p.machine.Name, "--format=%T")
		if err == nil && strings.TrimSpace(output) != "idle" {
			err = fmt.Errorf("it is %q", output)
		}
		return err
	})
}

// waitFree waits until the machine's Slurm node has no jobs left. It does not wait for the state idle: after the last
// job, Slurm may show another one, such as planned, although the next job starts at once.
func waitFree(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	slurm.WaitFor(t, "the end of all jobs on the machine", func(ctx context.Context) error {
		output, err := slurm.Run(ctx, "squeue", "--noheader", "--nodelist="+p.machine.Name)
		if err == nil && strings.TrimSpace(output) != "" {
			err = fmt.Errorf("it has %s", output)
		}
		return err
	})
	if node := slurm.Login.MustRun(t, "scontrol", "show", "node", p.machine.Name); !strings.Contains(node, "State=IDLE") {
		t.Log(node)
	}
	if log := p.machine.MustRun(t, "[ ! -f /run/slurmd.exit ] || cat /run/slurmd.log"); log != "" {
		t.Fatalf("slurmd has exited: %s", log)
	}
}

// users is a script that adds two users.
const users = `
echo alice:x:2000:2000::/tmp:/bin/sh >>/etc/passwd
echo alice:x:2000: >>/etc/group
echo bob:x:2001:2000::/tmp:/bin/sh >>/etc/passwd
`

// The words that run a command as a user who is not root: alice or bob.
var (
	asUser = []string{"setpriv", "--reuid=2000", "--regid=2000", "--clear-groups"}
	asBob  = []string{"setpriv", "--reuid=2001", "--regid=2000", "--clear-groups"}
)

// submit submits a job of a user and returns its number.
func submit(t *testing.T, slurm *slurmnet.Cluster, script string, options ...string) string {
	t.Helper()
	return submitAs(t, slurm, asUser, script, options...)
}

func submitAs(t *testing.T, slurm *slurmnet.Cluster, user []string, script string, options ...string) string {
	t.Helper()
	words := append(append([]string{}, user...), "sbatch", "--parsable", "--partition=gpu", "--chdir=/tmp")
	words = append(append(words, options...), "--wrap="+script)
	return slurm.Login.MustRun(t, words...)
}

// waitState waits until a job has a state.
func waitState(t *testing.T, slurm *slurmnet.Cluster, job, want string) {
	t.Helper()
	slurm.WaitFor(t, "job "+job+" to be "+want, func(ctx context.Context) error {
		output, err := slurm.Run(ctx, "scontrol", "show", "job", "--oneliner", job)
		if err == nil && !strings.Contains(output, "JobState="+want+" ") {
			err = fmt.Errorf("%s", output)
		}
		return err
	})
}

func start(t *testing.T, version string, opts slurmnet.MachineOptions) (*slurmnet.Cluster, *slurmnet.Machine) {
	t.Helper()
	slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Accounting: true})
	for _, host := range []*slurmnet.Daemon{slurm.Login, slurm.Slurmctld} {
		host.MustRun(t, "sh", "-c", users)
	}
	opts.Name, opts.Programs = "gpu-0", programs(t)
	machine := slurm.StartMachine(t, opts)
	machine.MustRun(t, users+"echo 'alice:*:20000::::::' >>/etc/shadow")
	return slurm, machine
}

func TestJobsAreConfined(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		testJobs(t, version, false)
	})
}

func TestJobsAreConfinedWithCgroupV1(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		testJobs(t, version, true)
	})
}

func testJobs(t *testing.T, version string, v1 bool) {
	t.Helper()
	slurm, machine := start(t, version, slurmnet.MachineOptions{CgroupV1: v1})
	set := newNodeSet(slinkyv1beta1.CgroupAccessRemount)
	configure(t, slurm, set, true)
	p := newPod(t, machine, set)
	p.v1 = v1
	p.start(t, slurm)
	waitIdle(t, slurm, p)
	for name, check := range map[string]func(*testing.T, *slurmnet.Cluster, *pod){
		"a job cannot take more memory than it asked for":     checkOwnLimit,
		"jobs together cannot take the pod's memory":          checkPodLimit,
		"no job can ask for more memory than the pod has":     checkRequest,
		"jobs run on different cores":                         checkCores,
		"a job has only its own devices":                      checkDevices,
		"processes end with their job":                        checkDaemons,
		"files in shared memory end with the user's last job": checkSharedMemory,
		"an ssh session belongs to the job":                   checkSSH,
		"the container has given up the preparation's rights": checkPrivileges,
	} {
		t.Run(name, func(t *testing.T) {
			check(t, slurm, p)
			waitFree(t, slurm, p)
		})
	}
}

// A privileged container sees the cgroups of its Kubernetes node, and must leave all but its own alone.
func TestJobsAreConfinedInPrivilegedContainers(t *testing.T) {
	forEachVersion(t, func(t *testing.T, version string) {
		t.Helper()
		slurm, machine := start(t, version, slurmnet.MachineOptions{})
		set := newNodeSet(slinkyv1beta1.CgroupAccessPrivileged)
		configure(t, slurm, set, true)
		p := newPod(t, machine, set)
		p.start(t, slurm)
		waitIdle(t, slurm, p)
		checkOwnLimit(t, slurm, p)
		checkDevices(t, slurm, p)
		checkDaemons(t, slurm, p)
		if others := machine.MustRun(t, "ls -d /sys/fs/cgroup/*/"); strings.TrimSpace(others) != "/sys/fs/cgroup/kubepods/" {
			t.Errorf("the machine has the cgroups %s", others)
		}
	})
}

// hog is a script that takes some megabytes of memory.
func hog(megabytes int) string {
	return fmt.Sprintf("dd if=/dev/zero of=/dev/null bs=%dM count=1", megabytes)
}

// output returns what a job has printed. Messages of Slurm itself are only logged.
func output(t *testing.T, p *pod, name string) string {
	t.Helper()
	var printed []string
	for line := range strings.Lines(p.machine.MustRun(t, "cat /volumes/tmp/"+name)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "slurmstepd") {
			t.Logf("%s: %s", name, line)
			continue
		}
		printed = append(printed, line)
	}
	return strings.Join(printed, "\n")
}

func checkOwnLimit(t *testing.T, slurm *slurmnet.Cluster, _ *pod) {
	t.Helper()
	// dd keeps its buffer until the pipe is closed.
	neighbour := submit(t, slurm, "dd if=/dev/zero bs=50M count=1 | sleep 60", "--mem=100", "--acctg-freq=5",
		"--output=/tmp/neighbour")
	waitState(t, slurm, neighbour, "RUNNING")
	greedy := submit(t, slurm, hog(300), "--mem=100", "--output=/tmp/hog")
	waitState(t, slurm, greedy, "OUT_OF_MEMORY")
	// The largest process in the cgroups of this job is slurmstepd.
	many := submit(t, slurm, "for i in $(seq 40); do (dd if=/dev/zero bs=4M count=1 | sleep 1000) & done; sleep 5", "--mem=100",
		"--output=/tmp/hogs")
	waitState(t, slurm, many, "OUT_OF_MEMORY")
	waitState(t, slurm, neighbour, "COMPLETED")
	slurm.WaitFor(t, "the jobs in the accounting", func(ctx context.Context) error {
		rows, err := slurm.Run(ctx, "sacct", "--allusers", "--noheader", "--parsable2", "--format=JobID,State,MaxRSS")
		if err != nil {
			return err
		}
		used := regexp.MustCompile(`(?m)^` + neighbour + `\.batch\|COMPLETED\|(\d+)K$`).FindStringSubmatch(rows)
		if !strings.Contains(rows, greedy+".batch|OUT_OF_MEMORY|") || used == nil {
			return fmt.Errorf("%s", rows)
		}
		if kilobytes, _ := strconv.Atoi(used[1]); kilobytes < 50<<10 || kilobytes > 100<<10 {
			t.Fatalf("MaxRSS of a job with 50 MiB is %d KiB", kilobytes)
		}
		return nil
	})
}

// checkPodLimit lets two jobs take all the memory that Slurm has, at the same time.
func checkPodLimit(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	memory := slurm.Login.MustRun(t, "sinfo", "--noheader", "--nodes="+p.machine.Name, "--format=%m")
	megabytes, err := strconv.Atoi(memory)
	if err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for range 2 {
		jobs = append(jobs, submit(t, slurm, hog(megabytes), fmt.Sprintf("--mem=%d", megabytes/2), "--output=/tmp/hog"))
	}
	for _, job := range jobs {
		waitState(t, slurm, job, "OUT_OF_MEMORY")
	}
	if log := p.machine.MustRun(t, "cat /run/slurmd.exit 2>/dev/null || true"); log != "" {
		t.Errorf("slurmd has exited: %s", log)
	}
}

func checkRequest(t *testing.T, slurm *slurmnet.Cluster, _ *pod) {
	t.Helper()
	words := append(append([]string{}, asUser...), "sbatch", "--partition=gpu", "--chdir=/tmp", "--mem=512", "--wrap=true")
	if output, err := slurm.Run(t.Context(), words...); err == nil ||
		!strings.Contains(err.Error(), "Memory specification can not be satisfied") {
		t.Errorf("%s, %v", output, err)
	}
}

func checkCores(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	const script = "grep Cpus_allowed_list /proc/self/status; sleep 20"
	var jobs []string
	for i := range 2 {
		jobs = append(jobs, submit(t, slurm, script, "--mem=100", fmt.Sprintf("--output=/tmp/cores%d", i)))
	}
	for _, job := range jobs {
		waitState(t, slurm, job, "COMPLETED")
	}
	first, second := output(t, p, "cores0"), output(t, p, "cores1")
	if first == second || strings.ContainsAny(first+second, "-,") {
		t.Errorf("the jobs had the cores %q and %q", first, second)
	}
}

func checkDevices(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	const script = `for gpu in 0 1; do (exec </dev/nvidia$gpu) 2>&1; done | sed "s/.*: //"; echo >/dev/null; ` +
		`echo "device $CUDA_VISIBLE_DEVICES, GPU $SLURM_JOB_GPUS"; sleep 10`
	const own, others = "No such device or address", "Operation not permitted"
	var jobs []string
	for i, gres := range []string{"gpu:1", "gpu:1", "none"} {
		jobs = append(jobs, submit(t, slurm, script, "--mem=100", "--gres="+gres, "--overcommit", "--oversubscribe",
			fmt.Sprintf("--output=/tmp/gpu%d", i)))
	}
	for _, job := range jobs {
		waitState(t, slurm, job, "COMPLETED")
	}
	with := []string{output(t, p, "gpu0"), output(t, p, "gpu1")}
	slices.Sort(with) // Slurm may give either GPU to either job
	want := []string{own + "\n" + others + "\ndevice 0, GPU 0", others + "\n" + own + "\ndevice 0, GPU 1"}
	if !slices.Equal(with, want) {
		t.Errorf("the jobs with a GPU found %q, want %q", with, want)
	}
	if without, want := output(t, p, "gpu2"), others+"\n"+others+"\ndevice , GPU"; without != want {
		t.Errorf("the job without a GPU found %q, want %q", without, want)
	}
}

func checkDaemons(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	job := submit(t, slurm, "setsid sleep 4321 >/dev/null 2>&1 & sleep 1", "--mem=100", "--output=/tmp/daemons")
	waitState(t, slurm, job, "COMPLETED")
	if left := p.machine.MustRun(t, "pgrep -f 'sleep 4321' || true"); left != "" {
		t.Errorf("process %s has survived its job", left)
	}
}

func checkSharedMemory(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	const leave = "mkdir -m 0700 /dev/shm/$(id -un)$SLURM_JOB_ID; dd if=/dev/zero of=/dev/shm/$(id -un)$SLURM_JOB_ID/left bs=1M count=9"
	left := func(ctx context.Context) (string, error) {
		return p.machine.Run(ctx, "ls /proc/$(pgrep -x slurmd | head -1)/root/dev/shm")
	}
	waitLeft := func(owners ...string) {
		t.Helper()
		slices.Sort(owners) // as ls does
		slurm.WaitFor(t, fmt.Sprintf("files in shared memory to be %q", owners), func(ctx context.Context) error {
			names, err := left(ctx)
			if err == nil && !slices.Equal(strings.Fields(names), owners) {
				err = fmt.Errorf("there are %q", names)
			}
			return err
		})
	}
	longer := submit(t, slurm, leave+"; sleep 1000", "--mem=100", "--output=/tmp/longer")
	waitState(t, slurm, longer, "RUNNING")
	waitLeft("alice" + longer)
	second := submit(t, slurm, leave, "--mem=100", "--output=/dev/null")
	waitState(t, slurm, second, "COMPLETED")
	waitState(t, slurm, submitAs(t, slurm, asBob, leave, "--mem=100", "--output=/dev/null"), "COMPLETED")
	waitLeft("alice"+longer, "alice"+second) // the longer job might use both
	slurm.Login.MustRun(t, "scancel", longer)
	waitLeft()
}

func checkSSH(t *testing.T, slurm *slurmnet.Cluster, p *pod) {
	t.Helper()
	slurm.Login.MustRun(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/key")
	p.machine.Write(t, "/etc/authorized_keys_alice", slurm.Login.MustRun(t, "cat", "/root/key.pub"))
	ssh := func(ctx context.Context, command string) (string, error) {
		return slurm.Login.Run(ctx, "ssh", "-i", "/root/key", "-o", "StrictHostKeyChecking=no", "-o", "BatchMode=yes",
			"alice@"+p.machine.Name, command)
	}
	if _, err := ssh(t.Context(), "true"); err == nil || !strings.Contains(err.Error(), "no active jobs on this node") {
		t.Errorf("login without a job: %v", err)
	}
	job := submit(t, slurm, "sleep 1000", "--mem=100", "--output=/dev/null")
	waitState(t, slurm, job, "RUNNING")
	var session string
	slurm.WaitFor(t, "login to the job", func(ctx context.Context) error {
		var err error
		session, err = ssh(ctx, "cat /proc/self/cgroup; setsid sleep 4322 >/dev/null 2>&1 </dev/null & sleep 0.1")
		return err
	})
	if !strings.Contains(session, "/step_extern/") {
		t.Errorf("the session is in the cgroup %q", session)
	}
	if _, err := ssh(t.Context(), hog(300)); err == nil {
		t.Error("the session is not limited to the job's memory")
	}
	slurm.Login.MustRun(t, "scancel", job)
	waitState(t, slurm, job, "CANCELLED")
	slurm.WaitFor(t, "the session's processes to end", func(ctx context.Context) error {
		left, err := p.machine.Run(ctx, "pgrep -f 'sleep 4322' || true")
		if err == nil && strings.TrimSpace(left) != "" {
			err = fmt.Errorf("process %s", left)
		}
		return err
	})
}

func checkPrivileges(t *testing.T, _ *slurmnet.Cluster, p *pod) {
	t.Helper()
	status := p.machine.MustRun(t, "grep -E 'CapBnd|NoNewPrivs' /proc/$(pgrep -x slurmd | head -1)/status")
	fields := strings.Fields(status)
	bounding, err := strconv.ParseUint(fields[1], 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	given := uint64(1<<unix.CAP_SYS_ADMIN | 1<<unix.CAP_SETPCAP)
	if p.v1 {
		given = 1 << unix.CAP_SETPCAP // slurmd needs SYS_ADMIN to limit devices
	}
	if bounding&given != 0 || !strings.HasSuffix(status, "1") {
		t.Errorf("slurmd has %q", status)
	}
}
