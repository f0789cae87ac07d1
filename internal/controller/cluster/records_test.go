package cluster

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// withElastic makes the NodeSet gpu elastic.
func withElastic(maxReplicas int32, cpus string) func(*scope) {
	return func(s *scope) {
		withPartitions("cpu", "gpu")(s)
		gpu := &s.nodeSets[1].Spec
		gpu.Elastic = &slinkyv1beta1.NodeSetElastic{
			MaxReplicas: maxReplicas, StartTimeout: metav1.Duration{Duration: 5 * time.Minute},
		}
		gpu.RegistrationTimeout = metav1.Duration{Duration: 5 * time.Minute}
		gpu.ExtraConf = "CPUs=" + cpus + " RealMemory=1000 Gres=gpu:2"
	}
}

// records returns snapshots in which Slurm nodes have some flags.
func recordsWith(flags slurm.Flags, names ...string) *slurm.Snapshot {
	snapshot := &slurm.Snapshot{NodesAsOf: time.Now(), JobsAsOf: time.Now()}
	for _, name := range names {
		snapshot.Nodes = append(snapshot.Nodes, &slurm.Node{Name: name, State: slurm.StateIdle, Flags: flags})
	}
	return snapshot
}

func confOf(t *testing.T, scope *scope) (conf string, candidate candidate) {
	t.Helper()
	candidate, problem := build(scope)
	if problem != nil {
		t.Fatal(problem.Message)
	}
	return candidate.files[slurmconf.FileName], candidate
}

const off = slurm.FlagCloud | slurm.FlagPoweredDown

func TestElasticNodeSetHasRecords(t *testing.T) {
	scope := newScope(withElastic(3, "4"))
	conf, candidate := confOf(t, scope)
	for _, line := range []string{
		"NodeName=gpu-[0-2] State=CLOUD Features=gpu CPUs=4 RealMemory=1000 Gres=gpu:2\n", "ResumeTimeout=1200\n",
		"GresTypes=gpu\n",
	} {
		if !strings.Contains(conf, line) {
			t.Errorf("%q is missing in\n%s", line, conf)
		}
	}
	devices := "NodeName=gpu-[0-2] Name=gpu File=/run/slurm/devices/gpu[0-1]\n"
	if got := candidate.files[slurmconf.PodGresFile]; got != devices {
		t.Errorf("devices are %q", got)
	}
	fixed, _ := confOf(t, newScope(withPartitions("cpu", "gpu")))
	if strings.Contains(fixed, "Suspend") || strings.Contains(fixed, "NodeName") {
		t.Errorf("a cluster without elastic NodeSets has\n%s", fixed)
	}
}

// slurmctld requeues the jobs of a node whose record changes.
func TestRecordsChangeOnlyWhileDrained(t *testing.T) {
	scope := newScope(withElastic(2, "4"))
	promoteBuilt(t, scope)
	withElastic(1, "8")(scope)
	const changed = "NodeName=gpu-0 State=CLOUD Features=gpu CPUs=8"
	const kept = "NodeName=gpu-0 State=CLOUD Features=gpu CPUs=4"
	open := recordsWith(off, "gpu-0", "gpu-1")
	drained := recordsWith(off|slurm.FlagDrain, "gpu-0", "gpu-1")
	for name, test := range map[string]struct {
		before, after *slurm.Snapshot
		want          string
	}{
		"Slurm does not answer":                      {nil, nil, kept},
		"they are powered down, and open":            {open, open, kept},
		"they were drained after the jobs were read": {nil, drained, kept},
		"they have been drained":                     {drained, drained, changed},
		"a job is left": {drained, &slurm.Snapshot{
			Nodes: drained.Nodes, NodesAsOf: drained.NodesAsOf, JobsAsOf: drained.JobsAsOf,
			Queue: slurm.Queue{Loads: map[string]slurm.Load{"gpu-0": {Other: 1}, "gpu-1": {Other: 1}}},
		}, kept},
	} {
		t.Run(name, func(t *testing.T) {
			scope.drained, scope.nodes = test.before, test.after
			conf, candidate := confOf(t, scope)
			if !strings.Contains(conf, test.want) {
				t.Errorf("%q is missing in\n%s", test.want, conf)
			}
			if candidate.awaitsRecords != (test.want == kept) {
				t.Errorf("it waits: %t", candidate.awaitsRecords)
			}
		})
	}
}

// A slurmd that was started without a record exits if it finds one, with its jobs.
func TestNoRecordIsAddedForRunningSlurmd(t *testing.T) {
	scope := newScope(withPartitions("cpu", "gpu"))
	promoteBuilt(t, scope)
	withElastic(4, "4")(scope)
	scope.nodes = recordsWith(slurm.FlagDynamicNorm, "gpu-1")
	scope.dynamic = map[string]bool{"gpu-2": true}
	if conf, _ := confOf(t, scope); !strings.Contains(conf, "NodeName=gpu-[0,3] State=CLOUD") {
		t.Errorf("records are\n%s", conf)
	}
	scope.nodes = nil
	if conf, _ := confOf(t, scope); strings.Contains(conf, "NodeName=") {
		t.Errorf("while Slurm does not answer, records are\n%s", conf)
	}
}

func TestRecordsOfDeletedNodeSetStayUntilDrained(t *testing.T) {
	scope := newScope(withElastic(2, "4"))
	promoteBuilt(t, scope)
	withPartitions("cpu")(scope)
	scope.nodes = recordsWith(off, "gpu-0", "gpu-1")
	conf, candidate := confOf(t, scope)
	for _, line := range []string{"NodeName=gpu-[0-1] State=CLOUD", "ResumeTimeout=1200\n", "GresTypes=gpu\n"} {
		if !strings.Contains(conf, line) {
			t.Errorf("%q is missing in\n%s", line, conf)
		}
	}
	if candidate.files[slurmconf.PodGresFile] == "" {
		t.Error("their devices are not described any more")
	}
	scope.nodes = recordsWith(off|slurm.FlagDrain, "gpu-0", "gpu-1")
	scope.drained = scope.nodes
	if conf, _ := confOf(t, scope); strings.Contains(conf, "NodeName") || strings.Contains(conf, "Suspend") {
		t.Errorf("drained records stay in\n%s", conf)
	}
}

// A NodeSet that is no longer elastic gets pods without records.
func TestRecordsAreRemovedWithElastic(t *testing.T) {
	scope := newScope(withElastic(3, "4"))
	promoteBuilt(t, scope)
	withPartitions("cpu", "gpu")(scope)
	nodes := recordsWith(off|slurm.FlagDrain, "gpu-0", "gpu-1", "gpu-2")
	nodes.Nodes[0].Reason, nodes.Nodes[1].Reason = slurm.OurReason("update"), slurm.OurReason("update")
	nodes.Nodes[2].Reason = "broken fan"
	scope.nodes, scope.drained = nodes, nodes
	scope.recorded = map[string]bool{"gpu-1": true} // its pod still runs
	conf, candidate := confOf(t, scope)
	if !strings.Contains(conf, "NodeName=gpu-[1-2] State=CLOUD") || !candidate.awaitsRecords {
		t.Errorf("it waits %t; records are\n%s", candidate.awaitsRecords, conf)
	}
	scope.recorded, nodes.Nodes[2].Reason = nil, slurm.OurReason("update")
	if conf, _ := confOf(t, scope); strings.Contains(conf, "NodeName") {
		t.Errorf("records stay in\n%s", conf)
	}
}

func TestElasticNodeSetIsLeftOutIfPowerSavingIsTaken(t *testing.T) {
	scope := newScope(withElastic(2, "4"))
	scope.controller.Spec.ExtraConf = "SuspendTime=300"
	conf, candidate := confOf(t, scope)
	if len(candidate.leftOut) != 1 || !strings.Contains(candidate.leftOut[0].Detail, "SuspendTime") {
		t.Errorf("left out are %v", candidate.leftOut)
	}
	if !strings.Contains(conf, "SuspendTime=300\n") || strings.Contains(conf, "NodeName") {
		t.Errorf("it has\n%s", conf)
	}
}

// slurmctld refuses two lines about one node. So a node of the administrator gets the record of an elastic NodeSet only
// when its line may go, and a record that stays for its jobs keeps the administrator's line out.
func TestNodeHasOneLine(t *testing.T) {
	const line, record = "NodeName=gpu-0 CPUs=2\n", "NodeName=gpu-[0-1] State=CLOUD"
	drained := recordsWith(slurm.FlagDrain, "gpu-0")
	busy := &slurm.Snapshot{Nodes: []*slurm.Node{{Name: "gpu-0", State: slurm.StateMixed}}, Queue: slurm.Queue{
		Running: 1, Loads: map[string]slurm.Load{"gpu-0": {Running: 1}},
	}}
	t.Run("of the administrator, then of a NodeSet", func(t *testing.T) {
		scope := newScope(withPartitions("cpu", "gpu"), func(s *scope) { s.controller.Spec.ExtraConf = line })
		promoteBuilt(t, scope)
		scope.controller.Spec.ExtraConf = ""
		withElastic(2, "4")(scope)
		scope.nodes = busy
		if conf, _ := confOf(t, scope); !strings.Contains(conf, line) ||
			!strings.Contains(conf, "NodeName=gpu-1 State=CLOUD") {
			t.Errorf("while it has a job:\n%s", conf)
		}
		scope.nodes, scope.drained = drained, drained
		if conf, _ := confOf(t, scope); strings.Contains(conf, line) || !strings.Contains(conf, record) {
			t.Errorf("when it is drained:\n%s", conf)
		}
	})
	t.Run("of a NodeSet, then of the administrator", func(t *testing.T) {
		scope := newScope(withElastic(2, "4"))
		promoteBuilt(t, scope)
		scope.nodeSets = nil
		scope.controller.Spec.ExtraConf = line
		scope.nodes = busy
		if conf, _ := confOf(t, scope); strings.Contains(conf, line) || !strings.Contains(conf, record) {
			t.Errorf("while it has a job:\n%s", conf)
		}
		scope.nodes, scope.drained = drained, drained
		if conf, _ := confOf(t, scope); !strings.Contains(conf, line) || strings.Contains(conf, "CLOUD") {
			t.Errorf("when it is drained:\n%s", conf)
		}
	})
	t.Run("of the administrator, with the state CLOUD", func(t *testing.T) {
		scope := newScope(withElastic(2, "4"), func(s *scope) {
			s.controller.Spec.ExtraConf = "NodeName=bm1 State=CLOUD CPUs=2\n"
		})
		promoteBuilt(t, scope)
		scope.controller.Spec.ExtraConf = "NodeName=bm1 State=CLOUD CPUs=4\n"
		scope.nodes = &slurm.Snapshot{Nodes: []*slurm.Node{{Name: "bm1", State: slurm.StateMixed}}}
		if conf, _ := confOf(t, scope); !strings.Contains(conf, "NodeName=bm1 CPUs=2 State=CLOUD\n") ||
			strings.Contains(conf, "NodeName=bm1 CPUs=4") {
			t.Errorf("while it has a job:\n%s", conf)
		}
	})
}
