package cluster

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestNewConfKeysWaitForOldSlurmds(t *testing.T) {
	const without, with = "ClusterName=e2e\n", "ClusterName=e2e\nMetricsType=metrics/openmetrics\n"
	nodes := func(versions ...string) *slurm.Snapshot {
		snapshot := &slurm.Snapshot{}
		for _, version := range versions {
			snapshot.Nodes = append(snapshot.Nodes, &slurm.Node{Version: version, State: slurm.StateIdle})
		}
		return snapshot
	}
	unregistered := func(state slurm.State, flags slurm.Flags) *slurm.Snapshot {
		return &slurm.Snapshot{
			Nodes: []*slurm.Node{{State: state, Flags: flags}, {Version: "26.05.5", State: slurm.StateIdle}},
		}
	}
	for name, test := range map[string]struct {
		release  string
		promoted string
		nodes    *slurm.Snapshot
		// running without a configuration in force: slurmctld is being restored, or the ConfigMap was deleted
		slurmds  int32
		on, wait bool
	}{
		"off in a release without the key": {
			release: "24.11.5", promoted: without, nodes: nodes("24.11.5"),
		},
		"on from the start": {release: "26.05.5", on: true},
		"waits for slurmds that run before the first configuration": {release: "26.05.5", slurmds: 2, wait: true},
		"waits for an old slurmd before the first configuration": {
			release: "26.05.5", slurmds: 2, nodes: nodes("26.05.5", "24.11.5"), wait: true,
		},
		"on when slurmds before the first configuration know the key": {
			release: "26.05.5", slurmds: 2, nodes: nodes("26.05.5"), on: true,
		},
		"waits for a slurmd that does not know the key": {
			release: "26.05.5", promoted: without, nodes: nodes("26.05.5", "24.11.5"), wait: true,
		},
		"waits until the nodes are known": {
			release: "26.05.5", promoted: without, wait: true,
		},
		"on when all slurmds know the key": {
			release: "26.05.5", promoted: without, nodes: nodes("26.05.5", "25.11.0"), on: true,
		},
		"waits for idle nodes until they register": {
			release: "26.05.5", promoted: without, nodes: unregistered(slurm.StateIdle, 0), wait: true,
		},
		"waits for nodes with jobs until they register": {
			release: "26.05.5", promoted: without, nodes: unregistered(slurm.StateMixed, 0), wait: true,
		},
		"waits for nodes that do not respond": {
			release: "26.05.5", promoted: without, nodes: unregistered(slurm.StateUnknown, slurm.FlagNotResponding),
			wait: true,
		},
		"does not wait for nodes that are down": {
			release: "26.05.5", promoted: without, nodes: unregistered(slurm.StateDown, slurm.FlagNotResponding),
			on: true,
		},
		"does not wait for FUTURE nodes": {
			release: "26.05.5", promoted: without, nodes: unregistered(slurm.StateFuture, 0), on: true,
		},
		"does not wait for powered-down nodes": {
			release: "26.05.5", promoted: without, nodes: unregistered(slurm.StateIdle, slurm.FlagPoweredDown),
			on: true,
		},
		"waits when the configuration in force is invalid": {
			release: "26.05.5", promoted: without + "Spoiled\n", nodes: nodes("24.11.5"), wait: true,
		},
		"waits for a release that cannot be parsed": {
			release: "26.05.5", promoted: without, nodes: nodes("new"), wait: true,
		},
		"stays on": {release: "26.05.5", promoted: with, on: true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(scope *scope) {
				scope.controller.Spec.Metrics.Enabled = true
				scope.slurmVersion, scope.nodes = test.release, test.nodes
				scope.nodeSets = []slinkyv1beta1.NodeSet{
					{
						ObjectMeta: metav1.ObjectMeta{Name: "compute"},
						Status:     slinkyv1beta1.NodeSetStatus{ReadyReplicas: test.slurmds},
					},
				}
				if test.promoted != "" {
					scope.promoted = &promoted{
						image: "new", files: map[string]string{slurmconf.FileName: test.promoted},
					}
				}
			})
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			wait := slices.Contains(candidate.held, "MetricsType")
			if on := strings.Contains(candidate.files[slurmconf.FileName], "MetricsType"); on != test.on ||
				wait != test.wait {
				t.Errorf("metrics are on: %t, are held back: %t", on, wait)
			}
		})
	}
}

func TestNewExtraConfKeysWaitForOldSlurmds(t *testing.T) {
	const earlier = "ClusterName=e2e\n"
	for name, test := range map[string]struct {
		release string
		node    string
		held    []string
	}{
		"all know them": {release: "26.05.5", node: "26.05.5"},
		"nodes are older": {
			release: "26.05.5", node: "24.11.5", held: []string{"PartitionName Topology", "PrologTimeout"},
		},
		"nodes are older, slurmctld is unknown": {
			node: "24.11.5", held: []string{"PartitionName Topology", "PrologTimeout"},
		},
		"slurmctld refuses them itself": {release: "24.11.5", node: "24.11.5"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(scope *scope) {
				scope.controller.Spec.ExtraConf = "PrologTimeout=9\nPartitionName=all Nodes=ALL Topology=tree\n"
				scope.slurmVersion = test.release
				scope.nodes = &slurm.Snapshot{Nodes: []*slurm.Node{{Version: test.node, State: slurm.StateMixed}}}
				scope.promoted = &promoted{image: "new", files: map[string]string{slurmconf.FileName: earlier}}
			})
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			conf := candidate.files[slurmconf.FileName]
			has := strings.Contains(conf, "PrologTimeout") && strings.Contains(conf, "Topology=tree")
			if !slices.Equal(candidate.held, test.held) || has != (test.held == nil) ||
				!strings.Contains(conf, "PartitionName=all Nodes=ALL") {
				t.Errorf("held back %q of\n%s", candidate.held, conf)
			}
			if message := heldMessage(candidate.held); (message != "") != (test.held != nil) ||
				!strings.Contains(message, strings.Join(test.held, ", ")) {
				t.Errorf("got message %q", message)
			}
		})
	}
}

func TestNodesAreUnknownWhileSlurmIsUnreachable(t *testing.T) {
	server := slurmtest.New(t, slurmtest.Release2605)
	server.AddNodes("compute-0")
	pool := slurm.NewPool(slurm.MirrorOptions{Fast: 10 * time.Millisecond, Slow: 10 * time.Millisecond})
	defer pool.Close()
	events := pool.Subscribe()
	defer events.Close()
	scope := newScope()
	key := slurm.Key{Namespace: scope.controller.Namespace, Name: scope.controller.Name}
	options := rest.Options{
		URL: server.URL, Token: func(context.Context) (string, error) { return server.Token("root"), nil },
	}
	dial := func() (slurm.Client, error) { return rest.New(options) }
	if err := pool.Set(key, slurm.Settings{Identity: "one", Dial: dial}); err != nil {
		t.Fatal(err)
	}
	session, _ := pool.Get(key)
	becomes := func(reachable bool) {
		t.Helper()
		for session.Status().Reachable != reachable {
			select {
			case <-events.Ready():
				events.Take()
			case <-time.After(5 * time.Minute):
				t.Fatalf("Slurm's reachability did not become %t", reachable)
			}
		}
	}
	known := func() bool {
		scope.nodes = nil
		if err := (&Reconciler{Pool: pool}).observeNodes(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
		return scope.nodes != nil
	}
	becomes(true)
	if !known() {
		t.Error("the nodes are unknown although Slurm answers")
	}
	server.StopController()
	becomes(false)
	if known() || !scope.hasOlderSlurmd("24.11") {
		t.Error("the nodes are still known although slurmctld does not answer")
	}
	server.StartController()
	becomes(true)
	if !known() {
		t.Error("the nodes are unknown although Slurm answers again")
	}
}

// A slurmctld that could not read the saved state, or not talk to the nodes, does not replace the running one.
func TestIncompatibleReleasesAreNotPromoted(t *testing.T) {
	running := func(release string) func(*scope) {
		return func(s *scope) { s.promoted.slurmVersion = release }
	}
	recorded := func(release string) func(*scope) {
		return func(s *scope) {
			s.statefulSet, s.state = ranWith("slurm-controller-state"), &corev1.PersistentVolumeClaim{}
			s.statefulSet.Annotations[annotationStateRelease] = release
		}
	}
	createPod := func(release string, slurmctld corev1.ContainerState) func(*scope) {
		return func(s *scope) {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}
			pod.Annotations = map[string]string{annotationVersion: release}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerSlurmctld, State: slurmctld}}
			s.pods = []corev1.Pod{pod}
		}
	}
	answers := func(release string) func(*scope) {
		return func(s *scope) {
			s.pods = []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}}
			s.agents["slurm-controller-0"] = agent.Report{SlurmVersion: release}
		}
	}
	slurmd := func(node slurm.Node) func(*scope) {
		return func(s *scope) { s.nodes = &slurm.Snapshot{Nodes: []*slurm.Node{&node}} }
	}
	for name, test := range map[string]struct {
		release string // in the new image
		changes []func(*scope)
		want    string // in the message
	}{
		"a newer series":   {"26.05.1", []func(*scope){running("25.11.3")}, ""},
		"three series on":  {"26.05.1", []func(*scope){running("24.11.3")}, ""},
		"an older patch":   {"26.05.1", []func(*scope){running("26.05.3")}, ""},
		"an older series":  {"25.05.3", []func(*scope){running("26.05.1")}, "set the image back"},
		"four series on":   {"26.05.1", []func(*scope){running("24.05.3")}, "upgrade to 25.11 first"},
		"an unknown state": {"26.05.1", []func(*scope){running("")}, ""},
		"a slurmctld that reports a later release than was validated": {"25.05.3", []func(*scope){running(""),
			answers("26.05.1")}, "set the image back"},
		"an older series, after the newer one never started": {"25.05.3", []func(*scope){running("26.05.1"),
			recorded("25.05.3"), createPod("26.05.1", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}})}, ""},
		"an older series, before any slurmctld has started": {"25.05.3", []func(*scope){running("26.05.1"),
			recorded("")}, ""},
		"an older series, after the newer one has started": {"25.05.3", []func(*scope){running("26.05.1"),
			recorded("25.05.3"), createPod("26.05.1", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})},
			"set the image back"},
		"an older series, after the pod of the newer one is gone": {"25.05.3", []func(*scope){running("25.05.1"),
			recorded("26.05.1")}, "set the image back"},
		"the series of a backup that was restored": {"25.05.3", []func(*scope){running("25.05.1"),
			recorded("26.05.1"), createPod("25.05.1", corev1.ContainerState{}), answers("25.05.1")}, ""},
		"a slurmd that it talks to": {"26.05.1", []func(*scope){running("25.11.3"),
			slurmd(slurm.Node{Name: "gpu-0", Version: "24.11.5", State: slurm.StateIdle})}, ""},
		"a slurmd that it does not talk to": {"26.05.1", []func(*scope){running("25.11.3"),
			slurmd(slurm.Node{Name: "gpu-0", Version: "24.05.5", State: slurm.StateIdle})}, "of node gpu-0"},
		"a node that was never there": {"26.05.1", []func(*scope){running("25.11.3"),
			slurmd(slurm.Node{Name: "gpu-0", State: slurm.StateFuture})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			changes := append([]func(*scope){promoteWith("", "old")}, test.changes...)
			hash := hashOf(t, newScope(changes...))
			scope := newScope(append(changes, validateWith(hash, &validation.Report{
				Outcome: validation.Accepted, SlurmVersion: test.release,
			}))...)
			scope.slurmVersion = releaseOf(scope)
			switch plan := decide(scope); {
			case test.want == "" && (plan.problem != nil || plan.stage != promote || plan.image != "new"):
				t.Errorf("not promoted: %+v", plan.problem)
			case test.want != "" && (plan.problem == nil || plan.image == "new" ||
				plan.problem.Reason != slinkyv1beta1.ReasonIncompatibleRelease ||
				!strings.Contains(plan.problem.Message, test.want)):
				t.Errorf("stage %d, image %s: %+v", plan.stage, plan.image, plan.problem)
			}
		})
	}
}

// The release of another operator's slurmctld is that of its image.
func TestTakeOverKeepsTheSeriesOrUpgrades(t *testing.T) {
	for image, want := range map[string]string{
		"example.com/slurmctld:25.11-ubuntu24.04":      "of release 25.11.0",
		"example.com/slurmctld:25.11.2@sha256:abcd":    "of release 25.11.2",
		"example.com:5000/slurmctld:25.05-rockylinux9": "",
		"example.com:5000/slurmctld:2.1":               "",
		"example.com:5000/slurmctld":                   "",
	} {
		scope := newScope(madeByOther, askForTakeOver)
		scope.statefulSet.Spec.Template.Spec.Containers[0].Image = image
		scope.slurmVersion = "25.05.3"
		if problem := releaseProblem(scope); want == "" && problem != nil ||
			want != "" && (problem == nil || !strings.Contains(problem.Message, want)) {
			t.Errorf("%s: %+v, want %q", image, problem, want)
		}
	}
}
