package nodeset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/metric"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// Pods are billed between two reconciles, which can be hours apart.
func TestNodeSecondsGrowBetweenReconciles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		metrics, err := NewMetrics(registry)
		if err != nil {
			t.Fatal(err)
		}
		expect := func(jobs, idle int) {
			t.Helper()
			var want strings.Builder
			fmt.Fprintf(&want, "# HELP %s %s\n# TYPE %[1]s counter\n", metric.NodeSeconds.Name, metric.NodeSeconds.Help)
			for _, use := range []string{"closed", "idle", "jobs", "starting", "stopping", "unknown"} {
				fmt.Fprintf(&want, "%s{nodeset=\"gpu\",nodeset_namespace=\"hpc\",use=%q} %d\n", metric.NodeSeconds.Name, use,
					map[string]int{"jobs": jobs, "idle": idle}[use])
			}
			if err := testutil.GatherAndCompare(registry, strings.NewReader(want.String()),
				metric.NodeSeconds.Name); err != nil {
				t.Error(err)
			}
		}
		is := elasticNodes()
		is.set.Namespace = "hpc"
		is.snapshot.Slurm.Nodes[0].State = slurm.StateMixed
		metrics.bill.update(is)
		expect(0, 0)
		time.Sleep(time.Hour)
		expect(3600, 3600)
		is.snapshot.Pods[1].Unscheduled = true
		metrics.bill.update(is)
		time.Sleep(time.Minute)
		metrics.bill.update(is)
		expect(3660, 3600)
		metrics.forget(is.set)
		if err := testutil.GatherAndCompare(registry, strings.NewReader(""), metric.NodeSeconds.Name); err != nil {
			t.Error(err)
		}
	})
}

// A power-up is measured once, when the slurmd has registered.
func TestPowerUpIsSplitIntoPhases(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Metrics: metrics}
	is := elasticNodes()
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	powering := func(second int, flags slurm.Flags) {
		is.now = at(second)
		is.snapshot.Slurm.Nodes[0].Flags = flags
		r.measurePowerUps(is)
	}
	is.snapshot.Pods[0].Created, is.snapshot.Pods[0].Started = at(2), at(52)
	is.pods[0].Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Time{Time: at(12)},
	}}
	powering(0, slurm.FlagPoweringUp|slurm.FlagNotResponding)
	powering(30, slurm.FlagPoweringUp|slurm.FlagNotResponding)
	powering(55, 0)
	powering(60, 0)
	checkPhases(t, registry, map[string]float64{"create": 2, "schedule": 10, "start": 40, "register": 3, "": 55})
	// The operator was restarted after it had created the pod: the begin of the power-up is not known.
	r.powerUps.forget(is.set.UID)
	metrics.forget(is.set)
	powering(20, slurm.FlagPoweringUp|slurm.FlagNotResponding)
	powering(55, 0)
	checkPhases(t, registry, map[string]float64{"schedule": 10, "start": 40, "register": 3})
	// One that is given up is not measured.
	metrics.forget(is.set)
	powering(100, slurm.FlagPoweringUp|slurm.FlagNotResponding)
	powering(110, slurm.FlagPoweringDown)
	powering(120, 0)
	checkPhases(t, registry, map[string]float64{})
}

// checkPhases checks that each phase in want was observed once; the empty one is the whole power-up. The others have a
// series too, because Prometheus does not count the first observation of a series that was not there before.
func checkPhases(t *testing.T, registry *prometheus.Registry, want map[string]float64) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	got := map[string]float64{}
	for _, family := range families {
		if family.GetName() != metric.PowerUpDuration.Name && family.GetName() != metric.PowerUpPhase.Name {
			continue
		}
		for _, series := range family.GetMetric() {
			phase := ""
			for _, label := range series.GetLabel() {
				if label.GetName() == "phase" {
					phase = label.GetValue()
				}
			}
			all = append(all, phase)
			switch count := series.GetHistogram().GetSampleCount(); count {
			case 0:
			case 1:
				got[phase] = series.GetHistogram().GetSampleSum()
			default:
				t.Errorf("phase %q was observed %d times", phase, count)
			}
		}
	}
	slices.Sort(all)
	if diff := cmp.Diff([]string{"", "create", "register", "schedule", "start"}, all); diff != "" {
		t.Errorf("the phases (-want +got):\n%s", diff)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestUseOfPods(t *testing.T) {
	for name, test := range map[string]struct {
		pod    plan.Pod
		record slurm.Node
		want   string
	}{
		"idle":         {plan.Pod{}, slurm.Node{State: slurm.StateIdle}, "idle"},
		"with a job":   {plan.Pod{}, slurm.Node{State: slurm.StateMixed}, "jobs"},
		"draining":     {plan.Pod{}, slurm.Node{State: slurm.StateMixed, Flags: slurm.FlagDrain}, "jobs"},
		"drained":      {plan.Pod{}, slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagDrain}, "closed"},
		"down":         {plan.Pod{}, slurm.Node{State: slurm.StateDown}, "closed"},
		"powering up":  {plan.Pod{}, slurm.Node{State: slurm.StateMixed, Flags: slurm.FlagPoweringUp}, "starting"},
		"powered down": {plan.Pod{}, slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagPoweringDown}, "stopping"},
		"terminating":  {plan.Pod{Terminating: true}, slurm.Node{State: slurm.StateIdle}, "stopping"},
		"unregistered": {plan.Pod{SlurmNode: "gpu-9"}, slurm.Node{State: slurm.StateIdle}, "starting"},
	} {
		snapshot := &slurm.Snapshot{Nodes: []*slurm.Node{&test.record}}
		if got := uses[useOf(snapshot, &test.pod)]; got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	if got := uses[useOf(nil, &plan.Pod{})]; got != "unknown" {
		t.Errorf("without a snapshot: %s", got)
	}
}
