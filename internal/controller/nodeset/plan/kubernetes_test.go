package plan_test

import (
	"fmt"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

// kubernetes is the API server and the kubelets. It has all versions of each object; the operator's cache shows one of
// them.
type kubernetes struct {
	set             history[plan.Set]
	pods            map[string]*history[object]
	names           []string // of all pods that ever existed, sorted
	kubernetesNodes map[string]*history[plan.KubernetesNode]
	kubelets        map[string]*container // by the pod's UID
	// pvcs has, by pod name, the UID of the pod that last used its PVC.
	pvcs   map[string]string
	faulty map[string]fault // by revision
	uids   int
}

// A fault is what is wrong with a revision.
type fault uint8

const (
	works fault = iota
	neverStarts
	crashes
	neverRegisters
)

func (f fault) String() string {
	return [...]string{"works", "has no image", "crashes", "never registers"}[f]
}

// A history is the versions of an object; nil while it did not exist.
type history[T any] struct {
	versions []*T
	seen     int // the version that the operator's cache shows, counted from one
}

func (h *history[T]) put(version *T) { h.versions = append(h.versions, version) }

func (h *history[T]) newest() *T { return at(h.versions, len(h.versions)) }

func (h *history[T]) cached() *T { return at(h.versions, h.seen) }

func at[T any](versions []*T, index int) *T {
	if index == 0 {
		return nil
	}
	return versions[index-1]
}

// An object is a pod in the API server.
type object struct {
	plan.Pod
	resourceVersion int
}

// A container is the actual state of a pod on its Kubernetes node.
type container struct {
	running, everRan, ended bool
	started, ready          time.Time
}

// pod returns the newest version of a pod; nil if there is none.
func (w *world) pod(name string) *object {
	if versions := w.kube.pods[name]; versions != nil {
		return versions.newest()
	}
	return nil
}

// podsThat returns the pods that match a condition, sorted by name.
func (w *world) podsThat(is func(*object, *container) bool) []*object {
	var found []*object
	for _, name := range w.kube.names {
		if pod := w.pod(name); pod != nil && is(pod, w.kube.kubelets[pod.UID]) {
			found = append(found, pod)
		}
	}
	return found
}

// write stores a new version of a pod.
func (w *world) write(pod *object, edit func(*object)) {
	next := *pod
	edit(&next)
	next.resourceVersion = w.tickCount()
	w.kube.pods[pod.Name].put(&next)
}

func (w *world) tickCount() int {
	w.tick()
	return w.count
}

// create handles a request to create a pod, as the API server does.
func (w *world) create(pod plan.Pod) error {
	if w.pod(pod.Name) != nil {
		return fmt.Errorf("pod %s already exists", pod.Name)
	}
	if w.kube.pods[pod.Name] == nil {
		w.kube.pods[pod.Name] = &history[object]{}
		w.kube.names = sorted(w.kube.pods)
	}
	w.kube.uids++
	pod.UID, pod.Created, pod.Unscheduled = fmt.Sprintf("pod-%d", w.kube.uids), w.now, true
	w.kube.kubelets[pod.UID] = &container{}
	w.kube.pods[pod.Name].put(&object{pod, w.tickCount()})
	w.kube.pvcs[pod.Name] = pod.UID
	return nil
}

// terminationGrace is the grace period of pods.
const terminationGrace = 30 * time.Second

// remove handles a request to delete a pod, as the API server does.
func (w *world) remove(pod *object) {
	w.write(pod, func(next *object) { next.Terminating, next.Terminates = true, w.now.Add(terminationGrace) })
	if pod.Unscheduled || pod.Exited {
		w.terminate(w.pod(pod.Name))
	}
}

// terminate kills the processes of a pod and removes its object.
func (w *world) terminate(pod *object) {
	w.stop(pod.UID)
	w.kube.pods[pod.Name].put(nil)
	delete(w.kube.kubelets, pod.UID)
}

// stop kills the processes of a pod, jobs included.
func (w *world) stop(uid string) {
	box := w.kube.kubelets[uid]
	box.running, box.started, box.ready = false, time.Time{}, time.Time{}
	for _, job := range w.slurm.jobs {
		for node, on := range job.pods {
			if on == uid {
				job.pods[node] = "" // no process is left
			}
		}
	}
}

// schedule binds a pod to a Kubernetes node.
func (w *world) schedule(pod *object, kubernetesNode string) {
	w.note("kubernetes: %s is scheduled to %s", pod.Name, kubernetesNode)
	w.write(pod, func(next *object) { next.Unscheduled, next.KubernetesNode = false, kubernetesNode })
}

// start starts the slurmd of a pod.
func (w *world) start(pod *object) {
	box := w.kube.kubelets[pod.UID]
	w.note("kubernetes: %s starts", pod.Name)
	box.everRan = true
	if w.kube.faulty[pod.Revision] == crashes {
		return
	}
	box.running, box.started, box.ready = true, w.now, w.now
}

// report writes the kubelet's state of a pod to the API server.
func (w *world) report(pod *object) {
	box := w.kube.kubelets[pod.UID]
	w.write(pod, func(next *object) {
		next.EverRan, next.Started, next.ReadySince = box.everRan, box.started, box.ready
		next.Exited, next.Failing = box.ended, ""
		switch fault := w.kube.faulty[pod.Revision]; {
		case fault == neverStarts:
			next.Failing = "ImagePullBackOff"
		case fault == crashes && box.everRan:
			next.Failing = "CrashLoopBackOff"
		}
	})
}

// unreported reports whether the API server does not have the kubelet's state of a pod yet.
func unreported(pod *object, box *container) bool {
	return !pod.Unscheduled &&
		(pod.EverRan != box.everRan || !pod.Started.Equal(box.started) || !pod.ReadySince.Equal(box.ready) ||
			pod.Exited != box.ended)
}

// startable reports whether a kubelet can start a pod.
func (w *world) startable(pod *object, box *container) bool {
	fault := w.kube.faulty[pod.Revision]
	return !pod.Unscheduled && !pod.Terminating && !box.running && !box.ended && fault != neverStarts &&
		(fault != crashes || !box.everRan)
}

// runKubernetes runs the scheduler and the kubelets until nothing is left to do.
func (w *world) runKubernetes() {
	for _, pod := range w.podsThat(func(pod *object, _ *container) bool { return pod.Unscheduled && !pod.Terminating }) {
		w.schedule(pod, w.kubernetesNodeFor(pod))
	}
	for _, pod := range w.podsThat(w.startable) {
		w.start(pod)
	}
	for _, pod := range w.podsThat(func(pod *object, _ *container) bool { return pod.Terminating }) {
		w.note("kubernetes: %s is removed", pod.Name)
		w.terminate(pod)
	}
	for _, pod := range w.podsThat(unreported) {
		w.report(pod)
	}
}

func (w *world) kubernetesNodeFor(pod *object) string {
	if pod.KubernetesNode != "" {
		return pod.KubernetesNode
	}
	return fmt.Sprintf("m%d", 1+pod.Ordinal%3)
}

// advance moves an object in the operator's cache some versions ahead, at most to the newest.
func advance[T any](h *history[T], steps int) { h.seen = min(h.seen+steps, len(h.versions)) }

// syncCache brings the operator's cache up to date.
func (w *world) syncCache() {
	const all = 1 << 30
	advance(&w.kube.set, all)
	for _, pod := range w.kube.pods {
		advance(pod, all)
	}
	for _, kubernetesNode := range w.kube.kubernetesNodes {
		advance(kubernetesNode, all)
	}
}
