package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// scenarios are typical sequences of events. Their traces are in testdata: a line per event, and the plan whenever it
// changes.
var scenarios = map[string]struct {
	set plan.Set
	run func(w *world)
}{
	"scale-out": {plan.Set{}, func(w *world) {
		w.scale(5)
		w.settle()
	}},
	"scale-in": {plan.Set{Replicas: 5, Prune: plan.PruneAll}, func(w *world) {
		first, second := w.startJob(time.Hour, "gpu-3"), w.startJob(2*time.Hour, "gpu-4", "gpu-2", "gpu-1", "gpu-0")
		w.scale(3)
		w.settle()
		w.pass(10 * time.Minute)
		w.setJobState(first, "COMPLETING")
		w.settle()
		w.setJobState(first, "DONE")
		w.settle()
		w.setJobState(second, "DONE")
		w.settle()
	}},
	"scale-in-reversed": {plan.Set{Replicas: 5}, func(w *world) {
		job := w.startJob(time.Hour, "gpu-3", "gpu-2", "gpu-1", "gpu-0")
		w.scale(2)
		w.settle()
		w.scale(4)
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
	}},
	"scale-in-reversed-and-repeated": {plan.Set{Replicas: 2}, func(w *world) {
		w.startJob(0, "gpu-0")
		job := w.startJob(time.Hour, "gpu-1")
		w.scale(1)
		w.settle()
		w.setJobState(job, "DONE")
		_ = w.poll(true)
		w.scale(2)
		w.syncCache()
		w.reconcile()
		job = w.startJob(time.Hour, "gpu-1") // before the next poll
		w.scale(1)
		w.syncCache()
		w.reconcile() // the last snapshot is older than the job
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
	}},
	"rolling-update": {plan.Set{Replicas: 8, Update: plan.Update{MaxUnavailable: 2}, MinReady: 10 * time.Second},
		func(w *world) {
			long, short := w.startJob(0, "gpu-0"), w.startJob(time.Hour, "gpu-5", "gpu-6", "gpu-7")
			w.release(works)
			w.settle()
			w.setJobState(short, "DONE")
			w.settle()
			w.setJobState(long, "DONE")
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
	"slurmctld-down": {plan.Set{Replicas: 3}, func(w *world) {
		job := w.startJob(time.Hour, "gpu-2", "gpu-1")
		w.stopSlurmctld()
		w.scale(1)
		w.settle()
		w.pass(10 * time.Minute)
		w.endOutages()
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
	}},
	"slurmctld-restart-during-update": {plan.Set{Replicas: 4}, func(w *world) {
		job := w.startJob(time.Hour, "gpu-1", "gpu-2", "gpu-3")
		w.release(works)
		w.settle()
		w.pass(10 * time.Minute)
		w.restart()
		w.syncCache()
		_ = w.poll(true)
		w.reconcile() // before the slurmds register again
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
	}},
	"deletion": {plan.Set{Replicas: 2, Prune: plan.PruneAll}, func(w *world) {
		job := w.startJob(time.Hour, "gpu-1")
		w.edit("deletion of the NodeSet", func(set *plan.Set) { set.Deleting = true })
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
	}},
	"deletion-waived": {plan.Set{Replicas: 2}, func(w *world) {
		w.startJob(0, "gpu-1")
		w.stopSlurmctld()
		w.edit("deletion of the NodeSet", func(set *plan.Set) { set.Deleting = true })
		w.settle()
		w.edit("deletion without drain", func(set *plan.Set) { set.Waived = true })
		w.settle()
	}},
	"daemonset": {plan.Set{DaemonSet: true}, func(w *world) {
		job := w.startJob(time.Hour, "gpu-m2")
		w.selectNode("m2", false)
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
		w.selectNode("m2", true)
		w.settle()
	}},
	"record-lost": {plan.Set{Replicas: 2}, func(w *world) {
		job := w.startJob(time.Hour, "gpu-0")
		w.restart("gpu-1")
		w.syncCache()
		_ = w.poll(true)
		w.reconcile() // while slurmctld does not report when it started
		w.settle()    // the slurmd of gpu-1 does not register by itself
		w.setJobState(job, "DONE")
		w.settle()
	}},
	"record-lost-and-restored": {plan.Set{Replicas: 2}, func(w *world) {
		w.restart("gpu-1")
		w.scale(0)
		w.syncCache()
		_ = w.poll(true)
		w.reconcile()
		w.register(w.pod("gpu-1")) // on request of an administrator
		job := w.startJob(time.Hour, "gpu-1")
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
	}},
	"failing-node": {plan.Set{Replicas: 3, Update: plan.Update{MaxUnavailable: 2}}, func(w *world) {
		job := w.startJob(time.Hour, "gpu-0")
		w.failing("gpu-0", "XID 79")
		w.cordonPod("gpu-0", true)
		w.settle()
		w.cordonPod("gpu-0", false)
		w.release(works)
		w.settle()
		w.setJobState(job, "DONE")
		w.settle()
		w.undrain("gpu-0")
		w.settle()
	}},
	"taint-and-new-node-object": {plan.Set{DaemonSet: true}, func(w *world) {
		w.startJob(time.Hour, "gpu-m1", "gpu-m2")
		w.taint("m1")
		w.toggleNodeObject("m2")
		w.settle()
		w.taint("m1")
		w.toggleNodeObject("m2")
		w.settle()
	}},
	"pod-exits": {plan.Set{Replicas: 1}, func(w *world) {
		w.exitPod(w.pod("gpu-0"))
		w.settle()
	}},
}

func TestScenarios(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			w := newWorld(scenario.set)
			w.syncCache()
			w.settle()
			w.pass(time.Minute)
			w.trace = &strings.Builder{}
			scenario.run(w)
			if len(w.broken) > 0 {
				w.fail(t, "the scenario violates invariants")
			}
			golden.Compare(t, name+".txt", w.trace.String())
		})
	}
}
