//go:build slurm

package confinement

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// A pod is slurmd's container of a NodeSet's pod, run by runc on a machine as the kubelet would have it run.
type pod struct {
	machine   *slurmnet.Machine
	container corev1.Container
	template  corev1.PodTemplateSpec
	// writable mounts the cgroups writable, as a RuntimeClass can.
	writable bool
	// cores are the pod's own cores; empty if it shares all of them.
	cores string
	// v1 is true if the machine has cgroup v1.
	v1 bool
}

// paths on the machine
const (
	helperPath = "/machine/slurm-operator"
	runcPath   = "/machine/runc"
	bundle     = "/run/bundle"
)

// programs builds the operator, and returns what a machine needs besides its image.
func programs(t *testing.T) map[string]string {
	t.Helper()
	helper := filepath.Join(t.TempDir(), "slurm-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", helper, "../../cmd/slurm-operator")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{helperPath: helper, runcPath: runc}
}

// newNodeSet returns a NodeSet whose pods have a memory limit and two GPUs.
func newNodeSet(access slinkyv1beta1.CgroupAccess) *slinkyv1beta1.NodeSet {
	set := &slinkyv1beta1.NodeSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu"},
		Spec: slinkyv1beta1.NodeSetSpec{
			ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}, CgroupAccess: access,
			Partition: slinkyv1beta1.NodeSetPartition{Enabled: true},
		},
	}
	set.Spec.Slurmd.Raw = []byte(`{"resources":{"limits":{"cpu":"2","memory":"512Mi","nvidia.com/gpu":"2"}}}`)
	set.Spec.SSH.Enabled, set.Spec.SSH.ExtraSshdConfig = true, "AuthorizedKeysFile /etc/authorized_keys_%u"
	return set
}

// newPod returns the pod of a NodeSet on a machine.
func newPod(t *testing.T, machine *slurmnet.Machine, set *slinkyv1beta1.NodeSet) *pod {
	t.Helper()
	template, err := worker.Template(worker.Set{
		NodeSet: set, Confined: true, Controller: &slinkyv1beta1.Controller{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm"},
			Spec: slinkyv1beta1.ControllerSpec{
				External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "slurmctld", Port: 6817},
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(template.Spec.Containers,
		func(container corev1.Container) bool { return container.Name == "slurmd" })
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		log, err := machine.Run(ctx, "tail -n 20 /run/slurmd.log; cat /run/slurmd.exit")
		t.Logf("log and exit status of slurmd (%v):\n%s", err, log)
	})
	return &pod{
		machine: machine, template: template, container: template.Spec.Containers[at],
		writable: set.Spec.CgroupAccess != slinkyv1beta1.CgroupAccessRemount,
	}
}

// start starts the container in the background.
func (p *pod) start(t *testing.T, slurm *slurmnet.Cluster) {
	t.Helper()
	config, err := json.Marshal(p.config())
	if err != nil {
		t.Fatal(err)
	}
	key, err := os.ReadFile(slurm.Login.Path("/etc/slurm/slurm.key"))
	if err != nil {
		t.Fatal(err)
	}
	p.writeHostKeys(t)
	p.machine.Write(t, bundle+"/config.json", string(config))
	p.machine.Write(t, "/volumes/etc/"+slurmconf.PodGresFile, p.template.Annotations["nodeset.slinky.slurm.net/gres-conf"])
	p.machine.Write(t, "/volumes/etc/"+slurmconf.PodCgroupFile, p.template.Annotations[podtemplate.AnnotationCgroupConf])
	p.machine.MustRun(t, fmt.Sprintf(`
mkdir -p /rootfs /volumes/run /volumes/spool /volumes/log /volumes/tmp /volumes/helper /volumes/sshd
mountpoint -q /rootfs || mount --bind / /rootfs
cp %s /volumes/helper/slurm-operator
ln -f /volumes/helper/slurm-operator /volumes/helper/slurmd
printf %%b '%s' >/volumes/etc/slurm.key
chmod 0400 /volumes/etc/slurm.key
chmod 0777 /volumes/run /volumes/spool /volumes/log /volumes/tmp
cd %s
setsid sh -c '%s run slurmd >/run/slurmd.log 2>&1; echo $? >/run/slurmd.exit' >/dev/null 2>&1 </dev/null &
`, helperPath, octal(key), bundle, runcPath))
}

// writeHostKeys writes sshd's files, which Kubernetes mounts from a Secret and an annotation.
func (p *pod) writeHostKeys(t *testing.T) {
	t.Helper()
	keys, err := sshd.NewHostKeys("hpc", "keys")
	if err != nil {
		t.Fatal(err)
	}
	keys.Data["sshd_config"] = []byte(p.template.Annotations["nodeset.slinky.slurm.net/sshd-config"])
	for name, content := range keys.Data {
		p.machine.Write(t, "/volumes/ssh/"+name, string(content))
	}
}

// octal writes bytes in the notation of printf.
func octal(content []byte) string {
	var text strings.Builder
	for _, each := range content {
		fmt.Fprintf(&text, `\0%03o`, each)
	}
	return text.String()
}

// stop kills the container.
func (p *pod) stop(t *testing.T) {
	t.Helper()
	p.machine.MustRun(t, runcPath+` delete --force slurmd 2>/dev/null || true
while [ ! -f /run/slurmd.exit ]; do sleep 0.1; done
rm /run/slurmd.exit`)
}

type object = map[string]any

// config returns the container's configuration for runc, as containerd makes it from a pod.
func (p *pod) config() object {
	security := p.container.SecurityContext
	privileged := security.Privileged != nil && *security.Privileged
	capabilities := []string{}
	switch {
	case privileged:
		capabilities = allCapabilities()
	case security.Capabilities != nil:
		for _, capability := range security.Capabilities.Add {
			capabilities = append(capabilities, "CAP_"+string(capability))
		}
	}
	sets := object{"bounding": capabilities, "effective": capabilities, "permitted": capabilities}
	var args []string
	for _, arg := range slices.Concat(p.container.Command, p.container.Args) {
		arg = strings.ReplaceAll(arg, "$(SLURM_OPERATOR_NODE)", p.machine.Name)
		args = append(args, strings.ReplaceAll(arg, "$$", "$"))
	}
	namespaces := []object{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}
	resources := object{
		"memory": object{"limit": p.container.Resources.Limits.Memory().Value()},
		"devices": []object{
			{"allow": privileged, "access": "rwm"},
			{"allow": true, "type": "c", "major": gpuMajor, "minor": 0, "access": "rwm"},
			{"allow": true, "type": "c", "major": gpuMajor, "minor": 1, "access": "rwm"},
		},
	}
	if p.cores != "" {
		resources["cpu"] = object{"cpus": p.cores}
	}
	if !p.v1 {
		if !privileged { // containerd leaves privileged containers in the namespace of the Kubernetes node
			namespaces = append(namespaces, object{"type": "cgroup"})
		}
		resources["unified"] = object{"memory.oom.group": "1"}
	}
	return object{
		"ociVersion": "1.0.2", "hostname": p.machine.Name,
		"root": object{"path": "/rootfs", "readonly": true},
		"process": object{
			"args": args, "cwd": "/", "capabilities": sets, "user": object{"uid": 0, "gid": 0},
			"env":             []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
			"oomScoreAdj":     -997, // as the kubelet sets it for a guaranteed pod
			"noNewPrivileges": security.AllowPrivilegeEscalation != nil && !*security.AllowPrivilegeEscalation,
		},
		"mounts": p.mounts(privileged || p.writable),
		"linux": object{
			"cgroupsPath": "/kubepods/pod/slurmd",
			"namespaces":  namespaces, "devices": []object{gpu(0), gpu(1)}, "resources": resources,
		},
	}
}

// gpuMajor is the number of a device without a driver: a job that may open it is told that there is no such device, and
// one that may not, that this is not permitted.
const gpuMajor = 240

func gpu(number int) object {
	return object{
		"path": fmt.Sprintf("/dev/nvidia%d", number), "type": "c", "major": gpuMajor, "minor": number, "fileMode": 0o666,
	}
}

func allCapabilities() []string {
	return []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP",
		"CAP_NET_ADMIN", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_ADMIN", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_BPF",
	}
}

func (p *pod) mounts(writable bool) []object {
	cgroup := []string{"nosuid", "noexec", "nodev", "relatime", "ro"}
	if writable {
		cgroup[len(cgroup)-1] = "rw"
	}
	mounts := []object{
		{"destination": "/proc", "type": "proc", "source": "proc"},
		{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": []string{"nosuid", "mode=755"}},
		{"destination": "/dev/pts", "type": "devpts", "source": "devpts",
			"options": []string{"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}},
		{"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": []string{"mode=1777"}},
		{"destination": "/sys", "type": "sysfs", "source": "sysfs", "options": []string{"nosuid", "noexec", "nodev", "ro"}},
		{"destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup", "options": cgroup},
	}
	binds := map[string]string{
		"/etc/slurm": "/volumes/etc", "/run/slurm": "/volumes/run", slurmconf.SlurmdSpoolDir: "/volumes/spool",
		"/var/log/slurm": "/volumes/log", "/tmp": "/volumes/tmp", filepath.Dir(naming.HelperPath): "/volumes/helper",
		"/etc/ssh/nodeset": "/volumes/ssh", "/run/sshd": "/volumes/sshd",
	}
	for _, target := range slices.Sorted(maps.Keys(binds)) {
		mounts = append(mounts, object{
			"destination": target, "type": "bind", "source": binds[target], "options": []string{"rbind", "rw"},
		})
	}
	return mounts
}
