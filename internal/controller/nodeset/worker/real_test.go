//go:build slurm

package worker_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// asPod runs a command with the capabilities of the container, in directories with the owners and modes of volumes.
var asPod = []string{"/bin/sh", "-euc", `
mkdir -p /run/slurm /var/spool/slurmd /var/log/slurm
chown root:root /etc/slurm/slurm.key /run/slurm /var/spool/slurmd /var/log/slurm
chmod 0400 /etc/slurm/slurm.key
chmod 0777 /run/slurm /var/spool/slurmd /var/log/slurm /tmp /dev/shm
exec setpriv --no-new-privs --bounding-set="$CAPABILITIES" "$@"
`, "pod"}

// external returns a Controller whose endpoint is the test's slurmctld.
func external() *slinkyv1beta1.Controller {
	return &slinkyv1beta1.Controller{
		ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm"},
		Spec: slinkyv1beta1.ControllerSpec{
			External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "slurmctld", Port: 6817},
		},
	}
}

// start starts slurmd on a host as a pod of a NodeSet would; the Slurm node has the host's name.
func start(t *testing.T, host *slurmnet.Daemon, nodeSet *slinkyv1beta1.NodeSet) corev1.PodTemplateSpec {
	t.Helper()
	return startAs(t, host, host.Name, nodeSet)
}

// startAs is start for a Slurm node with another name than the host, as with hostNetwork.
func startAs(t *testing.T, host *slurmnet.Daemon, name string, nodeSet *slinkyv1beta1.NodeSet) corev1.PodTemplateSpec {
	t.Helper()
	template, err := worker.Template(worker.Set{NodeSet: nodeSet, Controller: external()})
	if err != nil {
		t.Fatal(err)
	}
	// Kubernetes would mount it from the annotation.
	host.Write(t, slurmconf.Directory+"/"+slurmconf.PodGresFile,
		template.Annotations["nodeset.slinky.slurm.net/gres-conf"])
	capabilities := []string{"-all"}
	for _, capability := range template.Spec.Containers[0].SecurityContext.Capabilities.Add {
		capabilities = append(capabilities, "+"+strings.ToLower(string(capability)))
	}
	args := append([]string{"/usr/bin/env", "CAPABILITIES=" + strings.Join(capabilities, ",")}, asPod...)
	for _, arg := range template.Spec.Containers[0].Args {
		// Kubernetes expands arguments this way.
		args = append(args, strings.ReplaceAll(strings.ReplaceAll(arg, "$(SLURM_OPERATOR_NODE)", name), "$$", "$"))
	}
	host.StartWith(t, args...)
	return template
}

// configure configures slurmctld for the NodeSets, as the controller of the Controller would.
func configure(t *testing.T, slurm *slurmnet.Cluster, nodeSets ...*slinkyv1beta1.NodeSet) {
	t.Helper()
	cluster := slurmconf.Cluster{
		Name: "slurmnet", Hosts: []slurmconf.Host{{Name: "slurmctld"}}, Port: 6817, SlurmUser: "slurm",
		MaxNodeCount: 100,
		ExtraConf:    "SlurmctldParameters=idle_on_node_suspend",
	}
	for _, nodeSet := range nodeSets {
		node, err := nodeconf.Of(nodeSet)
		if err != nil {
			t.Fatal(err)
		}
		cluster.NodeSets = append(cluster.NodeSets, slurmconf.NodeSet{Name: nodeSet.Name, Partition: new("")})
		cluster.GresTypes = append(cluster.GresTypes, node.GresTypes()...)
		cluster.Contain = cluster.Contain || nodeSet.Spec.SSH.Enabled
	}
	document, err := slurmconf.Build(cluster)
	if err != nil {
		t.Fatal(err)
	}
	slurm.Slurmctld.Write(t, slurmconf.Directory+"/"+slurmconf.FileName, document.Render())
	slurm.Slurmctld.Write(t, slurmconf.Directory+"/"+slurmconf.GresFile, slurmconf.IncludePodGres)
	slurm.Slurmctld.Write(t, slurmconf.Directory+"/"+slurmconf.PodGresFile, "")
	slurm.Login.MustRun(t, "scontrol", "reconfigure")
}

// idle waits until a Slurm node is idle, and returns its record.
func idle(t *testing.T, slurm *slurmnet.Cluster, node string) map[string]string {
	t.Helper()
	record := map[string]string{}
	slurm.WaitFor(t, node, func(ctx context.Context) error {
		output, err := slurm.Run(ctx, "scontrol", "show", "node", "--oneliner", node)
		if err != nil {
			return err
		}
		for field := range strings.FieldsSeq(output) {
			key, value, _ := strings.Cut(field, "=")
			record[key] = value
		}
		if record["State"] != "IDLE+DYNAMIC_NORM" {
			return fmt.Errorf("state %s: %s", record["State"], output)
		}
		return nil
	})
	return record
}

// TestRealSlurmAcceptsGeneratedPods starts slurmd as the pods would, on a slurmctld that was started without GRES.
func TestRealSlurmAcceptsGeneratedPods(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 3})
			gpu := nodeSet("gpu",
				`{"resources":{"limits":{"cpu":"1500m","memory":"2Gi","nvidia.com/gpu":"2","example.com/hca":"3"}}}`)
			gpu.Spec.Gres = []slinkyv1beta1.GresRule{{Resource: "example.com/hca", Gres: "hca"}}
			gpu.Spec.ExtraConf = "weight=7\nFeatures=fast,big # for some\nReason=\"$(HOME) a b\""
			slices := nodeSet("slices",
				`{"resources":{"limits":{"nvidia.com/mig-1g.10gb":"1","nvidia.com/mig-2g.20gb":"1"}}}`)
			plain := nodeSet("plain", "")
			for i, host := range slurm.Nodes {
				// The lower numbers are those of another pod's GPUs on the same Kubernetes node.
				if i == 0 {
					host.MustRun(t, "mknod", "/dev/nvidia5", "c", "1", "3")
					host.MustRun(t, "mknod", "/dev/nvidia10", "c", "1", "5")
				}
				host.Stop(t)
				slurm.Login.MustRun(t, "scontrol", "delete", "NodeName="+host.Name)
			}
			configure(t, slurm, gpu, slices, plain)
			template := start(t, slurm.Nodes[0], gpu)
			start(t, slurm.Nodes[1], slices)
			start(t, slurm.Nodes[2], plain)

			checkGPUs(t, slurm)
			checkSlices(t, slurm)
			record := idle(t, slurm, "node-2")
			if record["Gres"] != "(null)" || record["AvailableFeatures"] != "plain" || record["RealMemory"] == "1" {
				t.Errorf("unexpected record of the Slurm node without GRES: %v", record)
			}
			probe := template.Spec.Containers[0].StartupProbe.Exec.Command
			slurm.Nodes[0].MustRun(t, probe...)
			if _, err := slurm.Slurmctld.Run(t.Context(), probe...); err == nil {
				t.Error("the startup probe succeeds without a slurmd")
			}
			if log := slurm.Nodes[2].Logs(); strings.Contains(log, "fatal") {
				t.Errorf("fatal error in the log of slurmd on the Slurm node without GRES:\n%s", log)
			}
			modes := slurm.Nodes[2].MustRun(t, "stat", "--format=%a", "/tmp", "/dev/shm", "/run/slurm",
				"/var/spool/slurmd", "/var/log/slurm")
			if modes != "1777\n1777\n755\n755\n755" {
				t.Errorf("the modes of directories are %q", modes)
			}
		})
	}
}

func checkGPUs(t *testing.T, slurm *slurmnet.Cluster) {
	t.Helper()
	record := idle(t, slurm, "node-0")
	for key, want := range map[string]string{
		"CPUTot": "1", "RealMemory": "1899", "AvailableFeatures": "gpu,fast,big", "Gres": "gpu:2,hca:3", "Weight": "7",
		"Partitions": "gpu",
	} {
		if record[key] != want {
			t.Errorf("%s of the Slurm node with GPUs is %q, want %q", key, record[key], want)
		}
	}
	if got := slurm.Nodes[0].MustRun(t, "sh", "-c",
		"readlink /run/slurm/devices/*"); got != "/dev/nvidia5\n/dev/nvidia10" {
		t.Errorf("the linked devices are %q", got)
	}
	// Jobs run as another user than root.
	user := []string{
		"setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "srun", "--partition=gpu", "--chdir=/",
		"--mem=100",
	}
	script := `echo $(id -u) $CUDA_VISIBLE_DEVICES $ROCR_VISIBLE_DEVICES`
	for gres, want := range map[string]string{"gpu:1": "65534 0", "gpu:2": "65534 0,1", "hca:3": "65534"} {
		if got := slurm.Login.MustRun(t, append(user, "--gres="+gres, "sh", "-c", script)...); got != want {
			t.Errorf("srun --gres=%s printed %q, want %q", gres, got, want)
		}
	}
	got := slurm.Login.MustRun(t,
		append(user, "--ntasks=2", "--oversubscribe", "--overcommit", "--gres=gpu:2", "--tres-bind=gres/gpu:per_task:1",
			"sh", "-c", script)...)
	if got != "65534 0\n65534 1" && got != "65534 1\n65534 0" {
		t.Errorf("two tasks printed %q", got)
	}
}

func checkSlices(t *testing.T, slurm *slurmnet.Cluster) {
	t.Helper()
	record := idle(t, slurm, "node-1")
	if want := "gpu:1g.10gb:1,gpu:2g.20gb:1"; record["Gres"] != want {
		t.Errorf("Gres of the Slurm node with slices is %q, want %q", record["Gres"], want)
	}
	got := slurm.Login.MustRun(t, "srun", "--partition=slices", "--gres=gpu:2g.20gb:1", "sh", "-c",
		"echo $CUDA_VISIBLE_DEVICES")
	if got != "1" {
		t.Errorf("srun with a slice printed %q", got)
	}
}

// TestRealSlurmNodeIsNamedAfterItsPod starts slurmd on a host with another name, as in a pod with hostNetwork.
func TestRealSlurmNodeIsNamedAfterItsPod(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})
			host := slurm.Nodes[0]
			host.Stop(t)
			slurm.Login.MustRun(t, "scontrol", "delete", "NodeName="+host.Name)
			bare := nodeSet("bare", "")
			configure(t, slurm, bare)
			startAs(t, host, "bare-m1", bare)
			if record := idle(t, slurm, "bare-m1"); record["NodeHostName"] != host.Name {
				t.Errorf("unexpected record: %v", record)
			}
			if nodes := slurm.Login.MustRun(t, "sinfo", "--noheader", "--Node", "--format=%N"); strings.Contains(nodes,
				host.Name) {
				t.Errorf("Slurm also has a node with the host's name: %s", nodes)
			}
			if got := slurm.Login.MustRun(t, "srun", "--partition=bare", "--nodelist=bare-m1", "sh", "-c",
				"echo $SLURMD_NODENAME on $(hostname)"); got != "bare-m1 on "+host.Name {
				t.Errorf("a job printed %q", got)
			}
		})
	}
}
