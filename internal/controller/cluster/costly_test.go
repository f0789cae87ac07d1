package cluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A cluster is a scope that goes through reconciles, in which everything that is started succeeds.
type cluster struct{ *scope }

// newCluster returns a cluster with a configuration in force and no job.
func newCluster(t *testing.T) cluster {
	t.Helper()
	c := cluster{newScope(func(s *scope) {
		s.controller.Spec.ExtraConf = "PartitionName=all Nodes=ALL\n"
		s.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}}
		s.pods[0].Spec.Volumes = []corev1.Volume{onClaim("slurm-controller-state")}
		s.pods[0].Status.Phase = corev1.PodRunning
		s.nodes = &slurm.Snapshot{}
	})}
	for range 2 { // begin, promote
		c.reconcile(t)
	}
	return c
}

// newClosedCluster returns a cluster whose partitions are closed for a costly change, before slurmctld has loaded that.
func newClosedCluster(t *testing.T) cluster {
	t.Helper()
	c := newCluster(t)
	c.apply()
	c.controller.Spec.ExtraConf += "SelectType=select/linear\n"
	for range 2 { // begin, promote
		c.reconcile(t)
	}
	c.expect(t, tres, true)
	return c
}

// reconcile makes a plan and carries it out. Slurm is queried as in observeJobs.
func (c cluster) reconcile(t *testing.T) plan {
	t.Helper()
	c.jobFree = awaitsJobs(c.scope) && !isBusy(c.nodes)
	next := decide(c.scope)
	switch next.stage {
	case begin:
		validateWith(next.candidate.hash, &validation.Report{Outcome: validation.Accepted})(c.scope)
	case promote:
		live, err := promotedConfigMap(c.scope, &next)
		if err != nil {
			t.Fatal(err)
		}
		c.promoted, c.validation = promotedOf(live.Data, live.Annotations), nil
	case notBuilt, validating, refused, validationFailed, settled:
	}
	return next
}

// apply makes slurmctld run with the promoted configuration.
func (c cluster) apply() {
	c.agents["slurm-controller-0"] = agent.Report{
		FilesHash: c.promoted.hash, RunningHash: c.promoted.hash, CheckedAt: start, RunningSince: start.Add(-time.Hour),
	}
}

// runs sets the jobs.
func (c cluster) runs(jobs int) {
	c.nodes = &slurm.Snapshot{}
	if jobs > 0 {
		c.nodes.Queue = slurm.Queue{Running: jobs, Loads: map[string]slurm.Load{
			"gpu-0": {Running: jobs, Job: 7, Until: start.Add(time.Hour)},
		}}
	}
}

// inForce returns the value of a key, and whether the partitions are closed.
func (c cluster) running(key string) (value string, closed bool) {
	document := c.promoted.document()
	value, _ = document.Get(key)
	return value, strings.Contains(document.Render(), "State=DOWN")
}

func (c cluster) expect(t *testing.T, value string, closed bool) {
	t.Helper()
	if is, isClosed := c.running("SelectType"); is != value || isClosed != closed {
		t.Fatalf("SelectType=%s, closed: %t; want %s, %t", is, isClosed, value, closed)
	}
}

const tres, linear = "select/cons_tres", "select/linear"

// A setting whose change costs jobs changes when no job runs and none can start.
func TestCostlySettingsWaitUntilNoJobRuns(t *testing.T) {
	c := newCluster(t)
	c.apply()
	c.controller.Spec.ExtraConf += "SelectType=select/linear\n"
	c.runs(3)
	c.reconcile(t)
	c.expect(t, tres, false)
	message := waitingMessage(c.scope, candidate{waiting: []string{"SelectType"}})
	for _, text := range []string{"3 jobs on 1 nodes, the last until ", "change-despite-jobs=SelectType"} {
		if !strings.Contains(message, text) {
			t.Errorf("without %q: %s", text, message)
		}
	}

	c.runs(0)
	if next := c.reconcile(t); next.stage != begin || !strings.Contains(
		next.candidate.change.files[slurmconf.FileName], linear) {
		t.Fatalf("stage %d: the change is not validated first", next.stage)
	}
	c.expect(t, tres, false)
	c.reconcile(t)
	c.expect(t, tres, true)
	c.reconcile(t)
	c.expect(t, tres, true) // slurmctld does not run with closed partitions yet
	c.apply()
	c.reconcile(t)
	c.expect(t, linear, true)
	c.apply()
	recent := c.agents["slurm-controller-0"]
	recent.RunningSince = start.Add(-time.Second)
	c.agents["slurm-controller-0"] = recent
	c.reconcile(t)
	c.expect(t, linear, true) // slurmds may not have followed yet
	c.apply()
	c.reconcile(t)
	c.expect(t, linear, false)
	c.apply()
	if next := c.reconcile(t); next.stage != settled || len(next.candidate.waiting) > 0 {
		t.Errorf("stage %d, waiting: %s", next.stage, next.candidate.waiting)
	}
}

// A job that starts before the partitions are closed keeps the setting, and opens the partitions again.
func TestJobThatStartsBeforeAChangeIsKept(t *testing.T) {
	c := newClosedCluster(t)
	c.apply()
	c.runs(1)
	if next := c.reconcile(t); next.stage != promote || !slices.Equal(next.candidate.waiting, []string{"SelectType"}) {
		t.Errorf("stage %d, waiting: %s", next.stage, next.candidate.waiting)
	}
	c.expect(t, tres, false)
}

// A key that waits and is new in a release: slurmctld forgets the releases of its slurmds at the reconfigure that
// closes the partitions, until they register again.
func TestNewKeyFollowsClosedPartitions(t *testing.T) {
	c := newCluster(t)
	c.controller.Spec.JobConfinement = slinkyv1beta1.JobConfinementNone
	c.promoted.files[slurmconf.FileName] = "PartitionName=all Nodes=ALL\n"
	c.slurmVersion = "26.05.5"
	node := &slurm.Node{Name: "gpu-0", Version: "26.05.5", State: slurm.StateIdle}
	c.nodes.Nodes = []*slurm.Node{node}
	c.controller.Spec.ExtraConf += "PrologFlags=Contain\nNamespaceType=namespace/linux\n"
	for range 4 { // everything else first, then closed partitions: each is validated and promoted
		c.reconcile(t)
		c.apply()
	}
	if namespaces, closed := c.running("NamespaceType"); namespaces != "" || !closed {
		t.Fatalf("NamespaceType=%s, closed: %t", namespaces, closed)
	}
	node.Version = ""
	recent := c.agents["slurm-controller-0"]
	recent.RunningSince = start.Add(-time.Second)
	c.agents["slurm-controller-0"] = recent
	c.reconcile(t)
	if namespaces, closed := c.running("NamespaceType"); namespaces != "" || !closed {
		t.Fatalf("before the slurmds have registered again: NamespaceType=%s, closed: %t", namespaces, closed)
	}
	node.Version = "26.05.5"
	c.reconcile(t)
	if namespaces, closed := c.running("NamespaceType"); namespaces == "" || !closed {
		t.Errorf("NamespaceType=%s, closed: %t", namespaces, closed)
	}
}

// Partitions are not closed for a change that slurmctld refuses, and are opened when the change is taken back.
func TestPartitionsAreClosedOnlyForAValidChange(t *testing.T) {
	c := newCluster(t)
	c.apply()
	c.controller.Spec.ExtraConf += "SelectType=select/linear\n"
	next := decide(c.scope)
	validateWith(next.candidate.hash, &validation.Report{Outcome: validation.Refused, Detail: "no"})(c.scope)
	if next := c.reconcile(t); next.stage != refused {
		t.Errorf("stage %d", next.stage)
	}
	c.expect(t, tres, false)

	c.validation = nil
	for range 2 {
		c.reconcile(t)
	}
	c.expect(t, tres, true)
	c.controller.Spec.ExtraConf = "PartitionName=all Nodes=ALL\n"
	c.reconcile(t)
	c.expect(t, tres, false)
}

// Partitions that are closed for a change open again if the next configuration cannot follow.
func TestPartitionsOpenWhenTheChangeCannotFollow(t *testing.T) {
	for name, change := range map[string]func(c cluster){
		"a mistake in the spec":          func(c cluster) { c.controller.Spec.ExtraConf = "SlurmUser=nobody\n" },
		"another change":                 func(c cluster) { c.controller.Spec.ExtraConf += "MessageTimeout=20\n" },
		"a reference that is missing":    func(c cluster) { c.missing = []string{"Accounting a does not exist"} },
		"an image that is not validated": func(c cluster) { c.image = "other" },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.controller.Spec.ExtraConf += "PartitionName=old Nodes=ALL State=DRAIN MaxTime=60\n"
			for range 2 {
				c.reconcile(t)
			}
			c.apply()
			before := c.promoted
			c.controller.Spec.ExtraConf += "SelectType=select/linear\n"
			for range 2 {
				c.reconcile(t)
			}
			c.expect(t, tres, true)
			change(c)
			if next := c.reconcile(t); !next.reopens {
				t.Errorf("stage %d, %v", next.stage, next.problem)
			}
			if diff := cmp.Diff(before, c.promoted, cmp.AllowUnexported(promoted{}, leftOut{})); diff != "" {
				t.Errorf("the configuration before and after (-want +got):\n%s", diff)
			}
		})
	}
}

// After a costly change, partitions open only when all slurmds have made it, whatever changes meanwhile.
func TestPartitionsStayClosedUntilSlurmdsHaveFollowed(t *testing.T) {
	for name, extraConf := range map[string]string{
		"a mistake in the spec": "SlurmUser=nobody\n",
		"another change":        "PartitionName=all Nodes=ALL\nSelectType=select/linear\nMessageTimeout=20\n",
	} {
		t.Run(name, func(t *testing.T) {
			c := newClosedCluster(t)
			c.apply()
			c.reconcile(t)
			c.expect(t, linear, true)
			c.controller.Spec.ExtraConf = extraConf
			for range 2 {
				next := c.reconcile(t)
				c.expect(t, linear, true) // slurmctld does not run with it
				if after := next.requeueAfter(c.scope); after == 0 || after > waitInterval {
					t.Errorf("the next reconcile is after %s", after)
				}
				if message := configurationCondition(c.scope, next).Message; next.problem != nil &&
					!strings.Contains(message, "no job starts") {
					t.Errorf("the condition says: %s", message)
				}
			}
			c.apply()
			for range 2 {
				c.reconcile(t)
			}
			c.expect(t, linear, false)
		})
	}
}

// Slurm is silent while slurmctld loads the configuration with closed partitions. That does not open them at once.
func TestPartitionsStayClosedWhileSlurmctldLoads(t *testing.T) {
	c := newClosedCluster(t)
	c.nodes = nil
	if next := c.reconcile(t); next.requeueAfter(c.scope) != applyInterval {
		t.Errorf("the next reconcile is after %s", next.requeueAfter(c.scope))
	}
	c.expect(t, tres, true)
	c.apply()
	c.reconcile(t)
	c.expect(t, tres, false) // Slurm has been silent for long
}

// A cluster that another operator has taken meanwhile is left alone.
func TestPartitionsOfForeignClusterAreNotOpened(t *testing.T) {
	c := newClosedCluster(t)
	c.statefulSet = &appsv1.StatefulSet{}
	if next := decide(c.scope); next.problem == nil || next.problem.Reason != slinkyv1beta1.ReasonNotTakenOver {
		t.Errorf("stage %d, problem %v", next.stage, next.problem)
	}
}

// Lines of nodes wait until no job runs, or these nodes are drained.
func TestNodeLinesWaitForJobs(t *testing.T) {
	node := func(name string, flags slurm.Flags) *slurm.Node {
		return &slurm.Node{Name: name, State: slurm.StateIdle, Flags: flags}
	}
	c := newCluster(t)
	c.controller.Spec.ExtraConf += "NodeName=bm[1-2] CPUs=4\n"
	for range 2 {
		c.reconcile(t)
	}
	c.apply()
	c.runs(1)
	c.nodes.NodesAsOf, c.nodes.JobsAsOf = start, start
	c.nodes.Nodes = []*slurm.Node{
		node("bm1", slurm.FlagDrain), node("bm2", 0), node("dynamic", slurm.FlagDynamicNorm),
	}
	c.controller.Spec.ExtraConf = "PartitionName=all Nodes=ALL\nNodeName=bm2 CPUs=8\nNodeName=dynamic CPUs=2\n"
	lines := func(t *testing.T, want string) {
		t.Helper()
		for range 2 {
			c.reconcile(t)
		}
		c.apply()
		if conf := c.promoted.files[slurmconf.FileName]; !strings.Contains(conf, want) {
			t.Errorf("without %q:\n%s", want, conf)
		}
	}
	lines(t, "NodeName=bm[1-2] CPUs=4\n")
	if strings.Contains(c.promoted.files[slurmconf.FileName], "NodeName=dynamic") {
		t.Error("a node that has registered without a line gets one")
	}
	if !c.awaitsLines() {
		t.Error("the nodes are not queried again")
	}
	message := waitingMessage(c.scope, c.reconcile(t).candidate)
	for _, text := range []string{"update 'nodename=bm[1-2]' state=drain", "delete 'nodename=dynamic'"} {
		if !strings.Contains(message, text) {
			t.Errorf("without %q: %s", text, message)
		}
	}
	c.drained = c.nodes
	lines(t, "NodeName=bm2 CPUs=4\n")
	if c.awaitsLines() {
		t.Error("the nodes are queried for nothing")
	}
	c.controller.Annotations = map[string]string{slinkyv1beta1.AnnotationChangeDespiteJobs: "nodename"}
	lines(t, "NodeName=bm2 CPUs=8\n")
}

// slurmctld does not close partitions that keep their state.
func TestPartitionsThatKeepTheirStateAreNotClosed(t *testing.T) {
	c := newCluster(t)
	c.apply()
	c.controller.Spec.ExtraConf += "SelectType=select/linear\nReconfigFlags=KeepPartState\n"
	for range 4 {
		c.reconcile(t)
		c.apply()
		c.expect(t, tres, false)
	}
}

// An administrator may make the change at once, in words.
func TestCostlySettingsChangeDespiteJobs(t *testing.T) {
	c := newCluster(t)
	c.apply()
	c.runs(1)
	c.controller.Spec.ExtraConf += "SelectType=select/linear\n"
	c.controller.Annotations = map[string]string{slinkyv1beta1.AnnotationChangeDespiteJobs: "PrologFlags, SelectType"}
	for range 2 {
		c.reconcile(t)
	}
	c.expect(t, linear, false)
}

// slurmctld drops jobs above a lower MaxJobCount.
func TestMaxJobCountWaitsForTheEndOfAllJobs(t *testing.T) {
	c := newCluster(t)
	c.apply()
	c.controller.Spec.ExtraConf += "MaxJobCount=1000\n"
	for _, test := range []struct {
		pending int
		want    string
	}{{1, "10000"}, {0, "1000"}} {
		c.nodes = &slurm.Snapshot{Queue: slurm.Queue{Pending: test.pending}}
		for range 2 {
			c.reconcile(t)
		}
		c.apply()
		if is, _ := c.running("MaxJobCount"); is != test.want && (is != "" || test.want != "10000") {
			t.Errorf("%d jobs: MaxJobCount=%s, want %s", test.pending, is, test.want)
		}
		next := c.reconcile(t)
		message := waitingMessage(c.scope, next.candidate)
		if said := strings.Contains(message, "until there is no job"); said != (test.want == "10000") {
			t.Errorf("%d jobs: said: %t", test.pending, said)
		}
	}
}

// A slurmctld whose state no PVC keeps is replaced when no job runs and none can start.
func TestSlurmctldWithoutPVCIsReplacedWithoutJobs(t *testing.T) {
	c := newCluster(t)
	c.apply()
	c.controller.Spec.Persistence.Enabled = new(false)
	c.claim, c.pods[0].Spec.Volumes = "", nil
	c.statefulSet = ranWithout()
	c.statefulSet.Status.UpdateRevision = "next"
	c.statefulSet.Spec.Template.Annotations[slinkyv1beta1.GroupName+"/template-hash"] = "next"
	c.pods[0].Labels = map[string]string{appsv1.ControllerRevisionHashLabelKey: "former"}
	replaced := func(want bool) {
		t.Helper()
		if got := replaceable(c.scope) != nil; got != want {
			t.Errorf("replaceable: %t", got)
		}
	}
	c.runs(1)
	c.reconcile(t)
	replaced(false)
	c.runs(0)
	for range 2 {
		c.reconcile(t)
		replaced(false)
	}
	c.apply()
	c.reconcile(t)
	c.expect(t, tres, true)
	replaced(true)
	c.pods[0].Labels[appsv1.ControllerRevisionHashLabelKey] = "next"
	c.pods[0].Annotations = c.statefulSet.Spec.Template.Annotations
	c.reconcile(t)
	c.expect(t, tres, false)

	// A pod in which slurmctld never started has no state.
	c.runs(1)
	c.pods[0].Labels[appsv1.ControllerRevisionHashLabelKey], c.pods[0].Annotations = "former", nil
	c.pods[0].Status.Phase = corev1.PodPending
	replaced(true)
}
