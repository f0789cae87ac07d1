package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// stories are what typically happens to a NodeSet. Their logs are in testdata, one line for what happens and some for
// the plan, whenever it is another one.
var stories = map[string]struct {
	set  plan.Set
	tell func(w *world)
}{
	"scale-out": {plan.Set{}, func(w *world) {
		w.scale(5)
		w.settle()
	}},
	"scale-in": {plan.Set{Replicas: 5, Prune: plan.PruneAll}, func(w *world) {
		first, second := w.begin(time.Hour, "gpu-3"), w.begin(2*time.Hour, "gpu-4", "gpu-2", "gpu-1", "gpu-0")
		w.scale(3)
		w.settle()
		w.pass(10 * time.Minute)
		w.become(first, "COMPLETING")
		w.settle()
		w.become(first, "DONE")
		w.settle()
		w.become(second, "DONE")
		w.settle()
	}},
	"scale-in-reversed": {plan.Set{Replicas: 5}, func(w *world) {
		job := w.begin(time.Hour, "gpu-3", "gpu-2", "gpu-1", "gpu-0")
		w.scale(2)
		w.settle()
		w.scale(4)
		w.settle()
		w.become(job, "DONE")
		w.settle()
	}},
	"scale-in-that-wavers": {plan.Set{Replicas: 2}, func(w *world) {
		w.begin(0, "gpu-0")
		job := w.begin(time.Hour, "gpu-1")
		w.scale(1)
		w.settle()
		w.become(job, "DONE")
		_ = w.look(true)
		w.scale(2)
		w.seeAll()
		w.reconcile()
		job = w.begin(time.Hour, "gpu-1") // at once
		w.scale(1)
		w.seeAll()
		w.reconcile() // the last look was before
		w.settle()
		w.become(job, "DONE")
		w.settle()
	}},
	"rolling-update": {plan.Set{Replicas: 8, Update: plan.Update{MaxUnavailable: 2}, MinReady: 10 * time.Second},
		func(w *world) {
			long, short := w.begin(0, "gpu-0"), w.begin(time.Hour, "gpu-5", "gpu-6", "gpu-7")
			w.release(works)
			w.settle()
			w.become(short, "DONE")
			w.settle()
			w.become(long, "DONE")
			w.settle()
		}},
	"broken-revision": {plan.Set{Replicas: 4, Update: plan.Update{MaxUnavailable: 2}}, func(w *world) {
		w.release(crashes)
		w.settle()
		w.pass(5 * time.Minute)
		w.release(works)
		w.settle()
	}},
	"revision-that-never-registers": {plan.Set{Replicas: 3, Update: plan.Update{MaxUnavailable: 2}}, func(w *world) {
		w.release(neverRegisters)
		w.settle()
		w.release(works)
		w.settle()
	}},
	"admin-drain": {plan.Set{Replicas: 3, Update: plan.Update{MaxUnavailable: 2}}, func(w *world) {
		w.drain("gpu-0", "broken fan")
		w.release(works)
		w.settle()
		w.scale(2)
		w.settle()
		w.undrain("gpu-0")
		w.settle()
	}},
	"kubernetes-cordon": {plan.Set{Replicas: 3}, func(w *world) {
		w.cordon("m2", true)
		w.settle()
		w.cordon("m2", false)
		w.settle()
	}},
	"pod-cordon": {plan.Set{Replicas: 2}, func(w *world) {
		w.cordonPod("gpu-1", true)
		w.settle()
		w.release(works)
		w.settle()
		w.cordonPod("gpu-1", false)
		w.settle()
	}},
	"slurmctld-away": {plan.Set{Replicas: 3}, func(w *world) {
		job := w.begin(time.Hour, "gpu-2", "gpu-1")
		w.stopSlurmctld()
		w.scale(1)
		w.settle()
		w.pass(10 * time.Minute)
		w.endOutages()
		w.settle()
		w.become(job, "DONE")
		w.settle()
	}},
	"slurmctld-restarts-in-an-update": {plan.Set{Replicas: 4}, func(w *world) {
		job := w.begin(time.Hour, "gpu-1", "gpu-2", "gpu-3")
		w.release(works)
		w.settle()
		w.pass(10 * time.Minute)
		w.restart()
		w.seeAll()
		_ = w.look(true)
		w.reconcile() // while it has not heard of its nodes
		w.settle()
		w.become(job, "DONE")
		w.settle()
	}},
	"deletion": {plan.Set{Replicas: 2, Prune: plan.PruneAll}, func(w *world) {
		job := w.begin(time.Hour, "gpu-1")
		w.edit("the NodeSet is deleted", func(set *plan.Set) { set.Deleting = true })
		w.settle()
		w.become(job, "DONE")
		w.settle()
	}},
	"deletion-waived": {plan.Set{Replicas: 2}, func(w *world) {
		w.begin(0, "gpu-1")
		w.stopSlurmctld()
		w.edit("the NodeSet is deleted", func(set *plan.Set) { set.Deleting = true })
		w.settle()
		w.edit("its jobs may be lost", func(set *plan.Set) { set.Waived = true })
		w.settle()
	}},
	"daemonset": {plan.Set{DaemonSet: true}, func(w *world) {
		job := w.begin(time.Hour, "gpu-m2")
		w.want("m2", false)
		w.settle()
		w.become(job, "DONE")
		w.settle()
		w.want("m2", true)
		w.settle()
	}},
	"record-lost": {plan.Set{Replicas: 2}, func(w *world) {
		job := w.begin(time.Hour, "gpu-0")
		w.restart("gpu-1")
		w.seeAll()
		_ = w.look(true)
		w.reconcile() // while slurmctld does not know since when it runs
		w.settle()    // its slurmd does not register by itself
		w.become(job, "DONE")
		w.settle()
	}},
	"record-lost-and-back": {plan.Set{Replicas: 2}, func(w *world) {
		w.restart("gpu-1")
		w.scale(0)
		w.seeAll()
		_ = w.look(true)
		w.reconcile()
		w.register(w.pod("gpu-1")) // somebody has made it
		job := w.begin(time.Hour, "gpu-1")
		w.settle()
		w.become(job, "DONE")
		w.settle()
	}},
	"failing-node": {plan.Set{Replicas: 3, Update: plan.Update{MaxUnavailable: 2}}, func(w *world) {
		job := w.begin(time.Hour, "gpu-0")
		w.failing("gpu-0", "XID 79")
		w.cordonPod("gpu-0", true)
		w.settle()
		w.cordonPod("gpu-0", false)
		w.release(works)
		w.settle()
		w.become(job, "DONE")
		w.settle()
		w.undrain("gpu-0")
		w.settle()
	}},
	"taint-and-new-node-object": {plan.Set{DaemonSet: true}, func(w *world) {
		w.begin(time.Hour, "gpu-m1", "gpu-m2")
		w.taint("m1")
		w.forgetKubernetesNode("m2")
		w.settle()
		w.taint("m1")
		w.forgetKubernetesNode("m2")
		w.settle()
	}},
	"pod-ends": {plan.Set{Replicas: 1}, func(w *world) {
		w.endPod(w.pod("gpu-0"))
		w.settle()
	}},
}

func TestScenarios(t *testing.T) {
	for name, story := range stories {
		t.Run(name, func(t *testing.T) {
			w := newWorld(story.set)
			w.seeAll()
			w.settle()
			w.pass(time.Minute)
			w.trace = &strings.Builder{}
			story.tell(w)
			if len(w.broken) > 0 {
				w.fail(t, "the story has a bad end")
			}
			golden.Compare(t, name+".txt", w.trace.String())
		})
	}
}
