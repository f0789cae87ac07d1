//go:build slurm

package contract

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// realPower is a real cluster whose nodes have records in slurm.conf.
type realPower struct{ realSlurm }

func (r realPower) startSlurmd(t *testing.T, node string) {
	t.Helper()
	r.Nodes[slices.Index(both, node)].StartWith(t, "/usr/sbin/slurmd", "-D", "-b", "-N", node, "--conf-server",
		"slurmctld:6817")
}

func (r realPower) stopSlurmd(t *testing.T, node string) {
	t.Helper()
	r.Nodes[slices.Index(both, node)].Stop(t)
}

// powerConf returns the operator's own settings of power saving, with short timeouts.
func powerConf(t *testing.T) string {
	t.Helper()
	document, err := slurmconf.Build(slurmconf.Cluster{
		Name: "power", Hosts: []slurmconf.Host{{Name: "slurmctld"}}, SlurmUser: "slurm",
		PowerSaving: &slurmconf.PowerSaving{ResumeTimeout: 10 * 60e9},
		Records: []slurmconf.Record{{Nodes: both, Parameters: []slurmconf.Pair{
			{Key: "CPUs", Value: "2"}, {Key: "RealMemory", Value: "100"},
		}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{
		"NodeName", "ResumeProgram", "SuspendProgram", "SuspendTime", "ResumeTimeout", "ResumeRate", "SuspendRate",
		"SuspendExcStates", "TreeWidth", "SlurmctldParameters", "SchedulerParameters",
	}
	var conf strings.Builder
	conf.WriteString("SuspendTimeout=5\n")
	for line := range strings.Lines(document.Render()) {
		if key, _, _ := strings.Cut(line, "="); slices.Contains(wanted, key) {
			conf.WriteString(line)
		}
	}
	return conf.String()
}

func TestRealPower(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			cluster := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 2})
			target := realPower{realSlurm{cluster, version}}
			for _, node := range cluster.Nodes {
				node.Stop(t)
				target.command(t, "scontrol", "update", "nodename="+node.Name, "state=down", "reason=stopped")
				target.command(t, "scontrol", "delete", "nodename="+node.Name)
			}
			before, err := os.ReadFile(cluster.Slurmctld.Path("/etc/slurm/slurm.conf"))
			if err != nil {
				t.Fatal(err)
			}
			cluster.Slurmctld.Write(t, "/etc/slurm/slurm.conf", string(before)+powerConf(t))
			target.command(t, "scontrol", "reconfigure")
			runPower(t, target)
		})
	}
}
