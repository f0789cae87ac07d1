package operator

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
)

// podSpecs lets cached pods share the parts of their specs that are equal. All pods of a revision have the same
// containers and volumes, which would take most of the memory of a large NodeSet. Objects in the cache are never
// changed, so they can be shared.
type podSpecs struct {
	mu    sync.Mutex
	known map[string]*corev1.Pod // the first pod of each namespace and revision
}

// maxKnownSpecs limits the revisions that are remembered. More of them only cost memory.
const maxKnownSpecs = 1000

// shareSpecs shares the specs of pods that a transformation keeps.
func shareSpecs(next toolscache.TransformFunc) toolscache.TransformFunc {
	specs := &podSpecs{known: map[string]*corev1.Pod{}}
	return func(object any) (any, error) {
		kept, err := next(object)
		if pod, ok := kept.(*corev1.Pod); ok && err == nil {
			specs.share(pod)
		}
		return kept, err
	}
}

// share replaces parts of a pod by those of an earlier one that are equal.
func (s *podSpecs) share(pod *corev1.Pod) {
	revision := pod.Labels[appsv1.ControllerRevisionHashLabelKey]
	if revision == "" {
		return
	}
	known := s.first(pod.Namespace+"/"+revision, pod)
	if known == pod {
		return
	}
	own, other := &pod.Spec, &known.Spec
	shareEach(&own.Containers, other.Containers)
	shareEach(&own.InitContainers, other.InitContainers)
	shareEach(&own.Volumes, other.Volumes)
	shareEach(&own.Tolerations, other.Tolerations)
	share(&own.Affinity, other.Affinity)
	share(&own.TopologySpreadConstraints, other.TopologySpreadConstraints)
	share(&own.SecurityContext, other.SecurityContext)
	share(&own.NodeSelector, other.NodeSelector)
	share(&pod.Annotations, known.Annotations)
	share(&pod.OwnerReferences, known.OwnerReferences)
}

// first returns the first pod with a key, which is the given one if there is none yet.
func (s *podSpecs) first(key string, pod *corev1.Pod) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.known[key]
	if known == nil {
		if len(s.known) >= maxKnownSpecs {
			clear(s.known)
		}
		known = pod
		s.known[key] = pod
	}
	return known
}

// shareEach replaces a list by an equal one, or its elements by equal ones.
func shareEach[T any](own *[]T, known []T) {
	if share(own, known) {
		return
	}
	for i := range min(len(*own), len(known)) {
		share(&(*own)[i], known[i])
	}
}

// share replaces a value by another one if they are equal.
func share[T any](own *T, known T) bool {
	equal := equality.Semantic.DeepEqual(*own, known)
	if equal {
		*own = known
	}
	return equal
}
