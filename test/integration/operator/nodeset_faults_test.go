//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// No unexpected response of slurmrestd may be taken for a drained node.
func TestUnexpectedResponsesDeleteNoPods(t *testing.T) {
	t.Parallel()
	tests := map[string]slurmtest.Responder{
		"errors with status 200": slurmtest.Answer(http.StatusOK,
			`{"nodes":[],"jobs":[],"last_update":{"set":true,"number":1},"errors":[{"error":"Unable to contact slurm controller"}]}`),
		"no content":           slurmtest.Answer(http.StatusNoContent, ""),
		"not found":            slurmtest.Answer(http.StatusNotFound, "not found"),
		"an internal error":    slurmtest.Answer(http.StatusInternalServerError, `{"errors":[{"error":"boom"}]}`),
		"garbage":              slurmtest.Answer(http.StatusOK, "<html>"),
		"a truncated response": slurmtest.Truncated(`{"nodes":[`),
		"no nodes member":      slurmtest.Answer(http.StatusOK, `{}`),
		"a closed connection":  slurmtest.Reset,
	}
	w := newNodeWorld(t, newNodeSet(2))
	w.runJob(t, "gpu-0", time.Hour)
	w.runJob(t, "gpu-1", time.Hour)
	for name, responder := range tests {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{"nodes", "jobs"} {
				w.slurm.Inject(slurmtest.Fault{Path: path, Respond: responder})
			}
			w.scale(t, 0)
			w.is(t, slinkyv1beta1.ConditionSlurmReachable, metav1.ConditionFalse,
				slinkyv1beta1.ReasonControllerNotReady)
			w.waitUntilIdle(t)
			w.hasPods(t, "gpu-0", "gpu-1")
			w.slurm.ClearFaults()
			w.scale(t, 2)
			w.ready(t)
		})
	}
}

// errKilled is returned to a manager for every request after the simulated kill.
var errKilled = errors.New("this manager was killed")

// killAt returns a configuration whose clients fail from the given write on, and a channel that is closed at that
// write.
func killAt(config *clientrest.Config, write int64) (*clientrest.Config, <-chan struct{}) {
	killed, writes := make(chan struct{}), new(atomic.Int64)
	failing := clientrest.CopyConfig(config)
	failing.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			if request.Method == http.MethodGet || strings.HasSuffix(request.URL.Path, "/events") {
				return next.RoundTrip(request)
			}
			switch count := writes.Add(1); {
			case count < write:
				return next.RoundTrip(request)
			case count == write:
				defer close(killed) // the write succeeds, but the manager does not get the response
				if response, err := next.RoundTrip(request); err == nil {
					response.Body.Close()
				}
			}
			return nil, errKilled
		})
	})
	return failing, killed
}

// An operator that is killed after any of its writes loses no job, and its successor completes the change.
func TestOperatorRecoversWhenKilledAtAnyWrite(t *testing.T) {
	t.Parallel()
	changes := map[string]struct {
		nodes  int32
		change func(*nodeWorld) string
	}{
		"scale-in": {4, func(*nodeWorld) string { return `{"spec":{"replicas":2}}` }},
		"update": {
			3, func(w *nodeWorld) string { return fmt.Sprintf(`{"spec":{"extraConf":"Weight=%d"}}`, w.set.Generation) },
		},
	}
	for name, test := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newNodeWorld(t, newNodeSet(test.nodes))
			busy := w.uids(t)["gpu-0"]
			w.runJob(t, "gpu-0", time.Hour)
			w.stopManager()
			for write := int64(1); ; write++ {
				w.patch(t, w.set, "%s", test.change(w))
				failing, killed := killAt(server.Config, write)
				stop := w.run(t, failing)
				died := w.converges(t, name, killed)
				stop()
				if uid := w.uids(t)["gpu-0"]; uid != busy {
					t.Fatalf("killed after write %d: the pod with the job is gone", write)
				}
				stop = w.run(t, server.Config)
				w.converges(t, name, nil)
				w.scale(t, test.nodes)
				w.converges(t, "scale-out", nil)
				stop()
				if !died {
					t.Logf("%s needs %d writes", name, write-1)
					return
				}
			}
		})
	}
}

// converges waits until a change is complete except for gpu-0, which has a job. It returns true if the manager was
// killed before.
func (w *nodeWorld) converges(t *testing.T, change string, killed <-chan struct{}) (died bool) {
	t.Helper()
	w.until(t, change, func(ctx context.Context) error {
		select {
		case <-killed:
			died = true
			return nil
		default:
		}
		if err := w.Get(ctx, client.ObjectKey{Name: w.set.Name}, w.set); err != nil {
			return err
		}
		is, pods := w.set.Status, int(*w.set.Spec.Replicas)
		names, err := w.pods(ctx)
		switch {
		case err != nil:
			return err
		case is.ObservedGeneration != w.set.Generation || len(names) != pods || int(is.ReadyReplicas) != pods ||
			!slices.Contains(names, "gpu-0"):
			return fmt.Errorf("pods %v, status %+v", names, is)
		case change == "update" && int(is.UpdatedReplicas) < pods-1:
			return fmt.Errorf("%d pods are up to date", is.UpdatedReplicas)
		}
		return nil
	})
	return died
}

// scratch is a PVC for each pod.
var scratch = []slinkyv1beta1.VolumeClaimTemplate{{
	Metadata: slinkyv1beta1.VolumeClaimMetadata{Name: "scratch"},
	Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		},
	},
}}

func TestPVCsFollowRetentionPolicy(t *testing.T) {
	t.Parallel()
	set := newNodeSet(3)
	set.Spec.VolumeClaimTemplates = scratch
	set.Spec.PersistentVolumeClaimRetentionPolicy.WhenScaled = slinkyv1beta1.DeletePVC
	w := newNodeWorld(t, set)
	owners := func(pod string) []string {
		claim := &corev1.PersistentVolumeClaim{}
		w.get(t, "scratch-"+pod, claim)
		var kinds []string
		for _, owner := range claim.OwnerReferences {
			kinds = append(kinds, owner.Kind)
		}
		return kinds
	}
	// An update keeps PVCs. There is no garbage collector here: it would delete the PVCs that have an owner.
	before := w.uids(t)
	w.patch(t, w.set, `{"spec":{"extraConf":"Weight=7"}}`)
	w.ready(t)
	if now := w.uids(t); now["gpu-2"] == before["gpu-2"] {
		t.Fatal("the pods were not replaced")
	}
	for pod := range before {
		if kinds := owners(pod); len(kinds) != 0 {
			t.Errorf("the PVC of %s is owned by %v", pod, kinds)
		}
	}
	w.scale(t, 2)
	w.hasPods(t, "gpu-0", "gpu-1")
	if kinds := owners("gpu-2"); !slices.Equal(kinds, []string{"Pod"}) {
		t.Errorf("the PVC of the pod that was scaled in is owned by %v", kinds)
	}
	if kinds := owners("gpu-1"); len(kinds) != 0 {
		t.Errorf("the PVC of a pod that stays is owned by %v", kinds)
	}
	w.patch(t, w.set, `{"spec":{"persistentVolumeClaimRetentionPolicy":{"whenDeleted":"Delete"}}}`)
	w.until(t, "PVCs owned by the NodeSet", func(context.Context) error {
		if kinds := owners("gpu-0"); !slices.Equal(kinds, []string{"NodeSet"}) {
			return fmt.Errorf("they are owned by %v", kinds)
		}
		return nil
	})
}

// Kubernetes keeps a deleted PVC while a scheduled pod uses it, but not for an unscheduled pod, which would then stay
// pending forever.
func TestDeletedPVCOfPendingPodIsRecreated(t *testing.T) {
	t.Parallel()
	set := newNodeSet(0)
	set.Spec.VolumeClaimTemplates = scratch
	set.Spec.Template.Spec.Raw = []byte(`{"schedulingGates":[{"name":"example.com/wait"}]}`)
	w := newNodeWorld(t, set)
	w.scale(t, 1)
	w.hasPods(t, "gpu-0")
	claim, pod := &corev1.PersistentVolumeClaim{}, &corev1.Pod{}
	w.get(t, "scratch-gpu-0", claim)
	before := claim.UID
	if err := w.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	w.patch(t, claim, `{"metadata": {"finalizers": null}}`) // as Kubernetes does when no pod uses the PVC
	w.get(t, "gpu-0", pod)
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: `persistentvolumeclaim "scratch-gpu-0" not found`,
	})
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	w.eventually(t, "scratch-gpu-0", claim, func() error {
		if claim.UID == before {
			return errors.New("it is still the old PVC")
		}
		return nil
	})
	w.patch(t, pod, `{"spec":{"schedulingGates":null}}`)
	w.ready(t)
}

func TestDaemonSetModeFollowsKubernetesNodes(t *testing.T) {
	t.Parallel()
	set := newNodeSet(7) // is ignored
	set.Spec.ScalingMode = slinkyv1beta1.ScalingModeDaemonSet
	w := &nodeWorld{world: newWorld(t), set: set}
	set.Spec.Template.Spec.Raw = fmt.Appendf(nil, `{"nodeSelector":{"world":%q}}`, w.namespace)
	w.start(t)
	first, second := w.kubelet.nodeName, w.namespace+"-second"
	w.hasPods(t, "gpu-"+first)
	kubernetesNode := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: second, Labels: map[string]string{"world": w.namespace}},
	}
	w.create(t, kubernetesNode)
	w.hasPods(t, "gpu-"+first, "gpu-"+second)
	w.ready(t)
	job := w.runJob(t, second, time.Hour)
	w.patch(t, kubernetesNode, `{"metadata":{"labels":{"world":null}}}`)
	w.is(t, slinkyv1beta1.ConditionScaledIn, metav1.ConditionFalse, slinkyv1beta1.ReasonDraining)
	w.hasPods(t, "gpu-"+first, "gpu-"+second)
	w.cancelJob(t, job)
	w.hasPods(t, "gpu-"+first)
	w.ready(t)
	if err := w.Delete(t.Context(), kubernetesNode); err != nil {
		t.Fatal(err)
	}
}
