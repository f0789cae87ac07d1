package cluster

import "testing"

func TestRefusedLinesAreMappedToExtraConf(t *testing.T) {
	const extraConf = "SlurmdTimeout=30\nSchedulerTpye=sched/backfill\n"
	for detail, want := range map[string]string{
		"slurm.conf line 22: SchedulerTpye=sched/backfill\nParsing error at unrecognized key: SchedulerTpye": "spec.extraConf line 2: SchedulerTpye=sched/backfill\n" +
			"Parsing error at unrecognized key: SchedulerTpye",
		"slurm.conf line 3: MaxNodeCount=2": "slurm.conf line 3: MaxNodeCount=2",
		"slurmctld gave no reason":          "slurmctld gave no reason",
	} {
		if got := inExtraConf(detail, extraConf); got != want {
			t.Errorf("inExtraConf(%q) = %q, want %q", detail, got, want)
		}
	}
}
