package slurmconf_test

import (
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestLocateFindsLineInExtraConf(t *testing.T) {
	const text = "# fairshare\nPriorityType=priority/multifactor\n\nPartitionName=debug \\\n  " +
		"Nodes=ALL\nSchedulerTpye=sched/backfill # a typo\n"
	for rendered, want := range map[string]int{
		"PriorityType=priority/multifactor": 2,
		"PartitionName=debug Nodes=ALL":     4,
		"SchedulerTpye=sched/backfill":      6,
		"ClusterName=slurm":                 0,
	} {
		if line, found := slurmconf.Locate(text, rendered); line != want || found != (want > 0) {
			t.Errorf("%s is in line %d, %t; want %d", rendered, line, found, want)
		}
	}
}
