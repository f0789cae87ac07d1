//go:build e2e

package e2e_test

import (
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// TestCostlySettingWaits changes a setting below a running job that would lose the job. The setting waits, everything
// else takes effect, the partitions open again, and jobs run with the new setting.
func TestCostlySettingWaits(t *testing.T) {
	operator := startOperator(t)
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			const partition = "PartitionName=all Nodes=ALL Default=YES State=UP"
			set := startNodeSet(t, operator, version)
			running := set.startJob(t, "--partition=gpu", "--nodelist=gpu-0", "--mem=64M")
			set.setExtraConf(t, "SlurmdSpoolDir=/var/spool/slurmd/other\nMaxArraySize=2002\n"+partition)
			set.waitUntilLeftOut(t, "SlurmdSpoolDir stays as it was until no job runs")
			set.isConfigured(t, "MaxArraySize", "2002")
			set.isConfigured(t, "SlurmdSpoolDir", "/var/spool/slurmd")
			set.finishJob(t, running) // and it completes
			set.isConfigured(t, "SlurmdSpoolDir", "/var/spool/slurmd/other")
			set.configurationIs(t, "True|Applied")
			set.waitUntilAllIdle(t)
			t.Run("a job runs on all nodes", set.runsOnAllNodes)
		})
	}
}
