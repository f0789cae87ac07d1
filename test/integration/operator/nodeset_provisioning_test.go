//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// provisioningClass is the class of the ProvisioningRequests in tests. Nothing but the tests answers them.
const provisioningClass = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"

// newProvisioningWorld creates an elastic NodeSet that asks for room before it creates pods.
func newProvisioningWorld(t *testing.T, maxReplicas int32) *nodeWorld {
	t.Helper()
	w := newElasticWorld(t, maxReplicas)
	w.patch(t, w.set, `{"spec":{"elastic":{"startTimeout":"10m","provisioning":{"className":%q,`+
		`"parameters":{"ValidUntilSeconds":"600"}}}}}`, provisioningClass)
	return w
}

// installProvisioningRequests installs the CRD of ProvisioningRequests.
func installProvisioningRequests(t *testing.T) {
	t.Helper()
	options := envtest.CRDInstallOptions{Paths: []string{"testdata/provisioningrequests.yaml"}, ErrorIfPathMissing: true}
	if _, err := envtest.InstallCRDs(server.Config, options); err != nil {
		t.Fatal(err)
	}
}

// request waits until there is a single ProvisioningRequest, and returns it.
func (w *nodeWorld) request(t *testing.T) *provisioning.Request {
	t.Helper()
	list := &provisioning.RequestList{}
	w.until(t, "a ProvisioningRequest", func(ctx context.Context) error {
		err := w.List(ctx, list)
		if err == nil && len(list.Items) != 1 {
			err = fmt.Errorf("there are %d", len(list.Items))
		}
		return err
	})
	return &list.Items[0]
}

// answer sets a condition of a ProvisioningRequest to True.
func (w *nodeWorld) answer(t *testing.T, request *provisioning.Request, kind, message string) {
	t.Helper()
	patch := fmt.Appendf(nil, `{"status":{"conditions":[{"type":%q,"status":"True","reason":"Test","message":%q,`+
		`"lastTransitionTime":%q}]}}`, kind, message, time.Now().UTC().Format(time.RFC3339))
	if err := w.Status().Patch(t.Context(), request, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
}

// requestIsGone waits until there is no ProvisioningRequest.
func (w *nodeWorld) requestIsGone(t *testing.T) {
	t.Helper()
	w.until(t, "the deletion of the ProvisioningRequest", func(ctx context.Context) error {
		list := &provisioning.RequestList{}
		err := w.List(ctx, list)
		if err == nil && len(list.Items) > 0 {
			err = fmt.Errorf("there is %s, with %+v", list.Items[0].Name, list.Items[0].Status)
		}
		return err
	})
}

// Without the CRD, pods are created as if nothing was asked for, and the status says so. It is not
// parallel because another test, which is, installs the CRD in the API server that they share.
func TestElasticNodeSetWorksWithoutProvisioningRequests(t *testing.T) {
	w := newProvisioningWorld(t, 2)
	w.is(t, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue, slinkyv1beta1.ReasonInvalidSpec)
	job := w.submit(t, 2, "sleep 1")
	w.jobIs(t, job, "COMPLETED")
	w.hasPods(t)
	w.is(t, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue, slinkyv1beta1.ReasonInvalidSpec)
	w.waitUntilIdle(t)
}

func TestElasticNodeSetRequestsCapacity(t *testing.T) {
	t.Parallel()
	installProvisioningRequests(t)
	w := newProvisioningWorld(t, 4)
	w.ready(t)
	first := w.submit(t, 2, forever)
	request := w.request(t)
	wanted := provisioning.Spec{
		ClassName: provisioningClass, Parameters: map[string]string{"ValidUntilSeconds": "600"},
		PodSets: []provisioning.PodSet{{Template: provisioning.Reference{Name: "gpu"}, Count: 2}},
	}
	if diff := cmp.Diff(wanted, request.Spec); diff != "" {
		t.Errorf("the request is (-want +got):\n%s", diff)
	}
	template := &corev1.PodTemplate{}
	w.get(t, "gpu", template)
	if limit := template.Template.Spec.Containers[0].Resources.Limits.Cpu(); limit.Value() != 2 {
		t.Errorf("the pods of the PodTemplate have %s CPUs", limit)
	}
	w.waitUntilIdle(t)
	w.hasPods(t)
	w.eventually(t, w.set.Name, w.set, func() error {
		return says(w.set, slinkyv1beta1.ConditionReady, "wait for ProvisioningRequest "+request.Name)
	})

	w.answer(t, request, provisioning.ConditionProvisioned, "there is room")
	w.hasPods(t, "gpu-0", "gpu-1")
	pod := &corev1.Pod{}
	w.get(t, "gpu-1", pod)
	if pod.Annotations[provisioning.AnnotationRequest] != request.Name ||
		pod.Annotations[provisioning.AnnotationClass] != provisioningClass {
		t.Errorf("the annotations of the pod are %v", pod.Annotations)
	}
	w.requestIsGone(t)
	w.jobIs(t, first, "RUNNING")
	w.cancelJob(t, first)

	second := w.submit(t, 4, "sleep 1")
	w.answer(t, w.request(t), provisioning.ConditionFailed, "not enough machines")
	w.jobIs(t, second, "PENDING")
	w.is(t, slinkyv1beta1.ConditionCapacityUnavailable, metav1.ConditionTrue, slinkyv1beta1.ReasonUnschedulable)
	w.node(t, "gpu-3", "closed", func(node *slurm.Node) bool { return node.DrainedByUs() && node.PoweredOff() })
	w.requestIsGone(t)
	w.hasPods(t)
	w.eventually(t, w.set.Name, w.set, func() error {
		return says(w.set, slinkyv1beta1.ConditionCapacityUnavailable, "not enough machines")
	})
	if failure := w.set.Status.Elastic.ProvisioningFailure; !strings.Contains(failure, "not enough machines") {
		t.Errorf("the failure in the status is %q", failure)
	}
	w.waitUntilIdle(t)
}

// The spec stops asking for room while the operator is down: only what is in Kubernetes tells the next one of requests.
func TestProvisioningRequestFromBeforeARestartIsWithdrawn(t *testing.T) {
	t.Parallel()
	installProvisioningRequests(t)
	w := newProvisioningWorld(t, 2)
	w.ready(t)
	job := w.submit(t, 2, "sleep 1")
	w.request(t)
	w.waitUntilIdle(t)
	w.stopManager()
	w.patch(t, w.set, `{"spec":{"elastic":{"provisioning":null}}}`)
	defer w.run(t, countWrites(server.Config, &w.writes))()
	w.requestIsGone(t)
	w.jobIs(t, job, "COMPLETED")
}

// says returns an error unless the message of a condition contains a text.
func says(set *slinkyv1beta1.NodeSet, kind, text string) error {
	for _, is := range set.Status.Conditions {
		if is.Type == kind && strings.Contains(is.Message, text) {
			return nil
		}
	}
	return errors.New("no condition " + kind + " says: " + text)
}
