//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// canary is a password that must appear in Secrets only.
const canary = "canary-in-the-mine"

func TestAccountingBecomesReadyWithItsDatabase(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	accounting := newAccounting()
	world.create(t, accounting)
	ready := func(is metav1.ConditionStatus, reason string) {
		t.Helper()
		world.accountingIs(t, accounting, slinkyv1beta1.ConditionReady, is, reason)
	}
	database := func(is metav1.ConditionStatus, reason string) {
		t.Helper()
		world.accountingIs(t, accounting, slinkyv1beta1.ConditionDatabaseReachable, is, reason)
	}
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReferenceNotFound)
	database(metav1.ConditionUnknown, slinkyv1beta1.ReasonReconciling)
	for name, size := range map[string]int{"slurm-auth-slurm/slurm.key": 1024, "slurm-auth-jwths256/jwt_hs256.key": 32} {
		name, key, _ := strings.Cut(name, "/")
		generated := &corev1.Secret{}
		world.get(t, name, generated)
		if len(generated.Data[key]) != size || len(generated.OwnerReferences) > 0 {
			t.Errorf("Secret %s has a key of %d bytes and the owners %v", name, len(generated.Data[key]),
				generated.OwnerReferences)
		}
	}

	password := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "database"}, StringData: map[string]string{"password": canary},
	}
	world.create(t, password)
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReconciling)
	set := &appsv1.StatefulSet{}
	for _, child := range []client.Object{set, &corev1.Service{}, &corev1.Secret{}} {
		world.get(t, "slurm-accounting", child)
		if !metav1.IsControlledBy(child, accounting) {
			t.Errorf("%T is owned by %v, so it would survive deletion of the Accounting", child,
				child.GetOwnerReferences())
		}
	}

	world.observed(t, set, "1")
	ready(metav1.ConditionFalse, slinkyv1beta1.ReasonPodsNotReady)
	address := "127.68.16.1"
	log := world.startHelper(t, address)
	pod := world.runSlurmdbd(t, address, "1")
	appendLog(t, log,
		"error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'pod' (using password: YES)")
	database(metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseAccessDenied)
	world.accountingIs(t, accounting, slinkyv1beta1.ConditionDegraded, metav1.ConditionTrue,
		slinkyv1beta1.ReasonDatabaseAccessDenied)
	appendLog(t, log, "error: mysql_real_connect failed: 2002 Can't connect to server on 'mariadb' (115)")
	database(metav1.ConditionFalse, slinkyv1beta1.ReasonDatabaseUnreachable)
	world.setReady(t, pod)
	database(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
	ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
	world.waitUntilIdle(t)

	t.Run("another password replaces the pod", func(t *testing.T) {
		before := set.Spec.Template.Annotations[naming.AnnotationConfiguration]
		world.patch(t, password, `{"stringData": {"password": %q}}`, canary+"-2")
		world.eventually(t, "slurm-accounting", set, func() error {
			if set.Spec.Template.Annotations[naming.AnnotationConfiguration] == before {
				return errors.New("the pod template has not changed")
			}
			return nil
		})
		files := &corev1.Secret{}
		world.get(t, "slurm-accounting", files)
		if !strings.Contains(string(files.Data["slurmdbd.conf"]), "StoragePass="+canary+"-2\n") {
			t.Error("slurmdbd.conf does not have the password")
		}
		ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReconciling)
		world.observed(t, set, "2")
		world.gone(t, pod.Name, &corev1.Pod{})
		ready(metav1.ConditionFalse, slinkyv1beta1.ReasonPodsNotReady)
		world.setReady(t, world.runSlurmdbd(t, address, "2"))
		ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
	})
	t.Run("a missing password is reported while slurmdbd keeps running", func(t *testing.T) {
		world.patch(t, password, `{"data": {"password": null}}`)
		ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReferenceNotFound)
		database(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
		world.patch(t, password, `{"stringData": {"password": %q}}`, canary+"-2")
		ready(metav1.ConditionTrue, slinkyv1beta1.ReasonAsExpected)
	})
	t.Run("the password is in Secrets only", func(t *testing.T) { world.scan(t) })
	t.Run("switching to an external slurmdbd deletes the children", func(t *testing.T) {
		world.patch(t, accounting,
			`{"spec": {"external": true, "externalConfig": {"host": "dbd.example"}, "slurmKeyRef": {"name": "slurm-auth-slurm", "key": "slurm.key"}}}`)
		ready(metav1.ConditionFalse, slinkyv1beta1.ReasonReconciling) // the pod still runs
		world.gone(t, "slurm-accounting", set)
		if err := world.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil { // as the garbage collector does
			t.Fatal(err)
		}
		ready(metav1.ConditionTrue, slinkyv1beta1.ReasonExternal)
		for _, child := range []client.Object{set, &corev1.Service{}, &corev1.Secret{}} {
			world.gone(t, "slurm-accounting", child)
		}
		world.get(t, "slurm-auth-slurm", &corev1.Secret{})
	})
}

// An impatient user changes the spec while slurmdbd converts its database: first its memory, then back to the release
// that worked.
func TestConvertingSlurmdbdIsReplacedWhenItHasStarted(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	accounting := newAccounting()
	world.create(t, accounting, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "database"}, StringData: map[string]string{"password": canary},
	})
	says := func(reason, word string) {
		t.Helper()
		world.eventually(t, accounting.Name, accounting, func() error {
			ready := meta.FindStatusCondition(accounting.Status.Conditions, slinkyv1beta1.ConditionReady)
			if ready == nil || ready.Reason != reason || !strings.Contains(ready.Message, word) {
				return fmt.Errorf("the condition is %+v", ready)
			}
			return nil
		})
	}
	template := func(set *appsv1.StatefulSet, changed func(corev1.Container) bool) {
		t.Helper()
		world.eventually(t, "slurm-accounting", set, func() error {
			if !changed(set.Spec.Template.Spec.Containers[0]) {
				return errors.New("the pod template has not changed")
			}
			return nil
		})
	}
	set := &appsv1.StatefulSet{}
	world.patch(t, accounting, `{"spec": {"slurmdbd": {"image": "slurmdbd:26.05"}}}`)
	template(set, func(container corev1.Container) bool { return container.Image == "slurmdbd:26.05" })
	world.observed(t, set, "1")
	address := "127.68.16.2"
	log := world.startHelper(t, address)
	pod := world.runSlurmdbd(t, address, "1")
	appendLog(t, log, "slurmdbd: pre-converting job table for linux")
	says(slinkyv1beta1.ReasonConvertingDatabase, "last step: pre-converting job table for linux")
	world.accountingIs(t, accounting, slinkyv1beta1.ConditionDatabaseReachable, metav1.ConditionTrue,
		slinkyv1beta1.ReasonConvertingDatabase)

	world.patch(t, accounting, `{"spec": {"slurmdbd": {"resources": {"limits": {"memory": "2Gi"}}}}}`)
	template(set, func(container corev1.Container) bool { return !container.Resources.Limits.Memory().IsZero() })
	world.observed(t, set, "2")
	says(slinkyv1beta1.ReasonConvertingDatabase, "replaced by one of the changed spec when it is done")
	appendLog(t, log, "slurmdbd: Conversion done: success!")
	says(slinkyv1beta1.ReasonConvertingDatabase, "last step: Conversion done: success!")
	world.patch(t, accounting, `{"spec": {"slurmdbd": {"image": "slurmdbd:25.11"}}}`)
	says(slinkyv1beta1.ReasonIncompatibleRelease, "slurmdbd 25.11 of image slurmdbd:25.11 is older than the database")
	world.patch(t, accounting, `{"spec": {"slurmdbd": {"image": "slurmdbd:26.05"}}}`)
	says(slinkyv1beta1.ReasonConvertingDatabase, "last step")
	before := pod.UID
	world.get(t, pod.Name, pod)
	if pod.UID != before || pod.DeletionTimestamp != nil {
		t.Error("the pod was replaced while slurmdbd converted its database")
	}

	appendLog(t, log, "slurmdbd: slurmdbd version 26.05.1 started")
	world.gone(t, pod.Name, pod)
	world.get(t, "slurm-accounting", set)
	if release := set.Annotations["accounting.slinky.slurm.net/database-release"]; release != "26.05.1" {
		t.Errorf("the recorded release is %q", release)
	}
}

// Kubernetes accepts a shorter grace period for a pod that is being deleted already. No kubelet deletes this one.
func TestTerminationOfSlurmdbdThatConvertsNothingIsShortened(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.create(t, newAccounting(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "database"}, StringData: map[string]string{"password": canary},
	})
	set := &appsv1.StatefulSet{}
	world.eventually(t, "slurm-accounting", set, func() error { return nil })
	world.observed(t, set, "1")
	pod := world.runSlurmdbd(t, "127.68.16.3", "1")
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "far"}}
	if err := world.SubResource("binding").Create(t.Context(), pod, binding); err != nil {
		t.Fatal(err)
	}
	world.get(t, pod.Name, pod)
	world.setReady(t, pod)
	if err := world.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	world.eventually(t, pod.Name, pod, func() error {
		if grace := pod.DeletionGracePeriodSeconds; grace == nil || *grace != 60 {
			return fmt.Errorf("the pod terminates until %v", pod.DeletionTimestamp)
		}
		return nil
	})
	if err := world.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

func TestAccountingChildrenAreRepairedAndKeepForeignFields(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	accounting := newAccounting()
	world.create(t, accounting, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "database"}, StringData: map[string]string{"password": canary},
	})
	set, files := &appsv1.StatefulSet{}, &corev1.Secret{}
	world.eventually(t, "slurm-accounting", set, func() error { return nil })
	world.get(t, "slurm-accounting", files)
	conf := string(files.Data["slurmdbd.conf"])

	world.patch(t, set, `{"metadata": {"annotations": {"example.com/mine": "yes"}}, "spec": {"replicas": 2}}`)
	world.patch(t, files, `{"stringData": {"slurmdbd.conf": "tampered with", "mine": "yes"}}`)
	world.eventually(t, "slurm-accounting", set, func() error {
		if *set.Spec.Replicas != 1 {
			return fmt.Errorf("%d replicas", *set.Spec.Replicas)
		}
		return nil
	})
	world.eventually(t, "slurm-accounting", files, func() error {
		if string(files.Data["slurmdbd.conf"]) != conf {
			return errors.New("slurmdbd.conf is not repaired")
		}
		return nil
	})
	if set.Annotations["example.com/mine"] != "yes" || string(files.Data["mine"]) != "yes" {
		t.Errorf("foreign fields were removed: %v, %d values", set.Annotations, len(files.Data))
	}
	world.waitUntilIdle(t)
}

func newAccounting() *slinkyv1beta1.Accounting {
	return &slinkyv1beta1.Accounting{ObjectMeta: metav1.ObjectMeta{Name: "slurm"}, Spec: slinkyv1beta1.AccountingSpec{
		StorageConfig: &slinkyv1beta1.StorageConfig{
			Host: "mariadb", Username: "slurm", PasswordKeyRef: &slinkyv1beta1.SecretKeyReference{
				Name: "database", Key: "password",
			},
		},
	}}
}

func (w *world) accountingIs(t *testing.T, accounting *slinkyv1beta1.Accounting, kind string, is metav1.ConditionStatus,
	reason string) {
	t.Helper()
	w.eventually(t, accounting.Name, accounting, func() error {
		return condition(accounting, accounting.Status.Conditions, kind, is, reason)
	})
}

// observed sets the StatefulSet's status as its controller would after observing the template.
func (w *world) observed(t *testing.T, set *appsv1.StatefulSet, revision string) {
	t.Helper()
	w.get(t, set.Name, set)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: set.Generation, Replicas: 1, UpdateRevision: revision}
	if err := w.Status().Update(t.Context(), set); err != nil {
		t.Fatal(err)
	}
}

// startHelper runs the helper of a slurmdbd pod at an address, with the generated key and a file as slurmdbd's log.
func (w *world) startHelper(t *testing.T, address string) (log string) {
	t.Helper()
	secret, key := &corev1.Secret{}, filepath.Join(t.TempDir(), "key")
	w.get(t, "slurm-auth-jwths256", secret)
	if err := os.WriteFile(key, secret.Data["jwt_hs256.key"], 0o600); err != nil {
		t.Fatal(err)
	}
	log = filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		ended <- slurmdbd.Run(ctx, slurmdbd.Options{
			Command: []string{"tail", "-f", log}, Listen: net.JoinHostPort(address, strconv.Itoa(naming.PortAgent)),
			Key: key, Log: io.Discard,
		})
	}()
	t.Cleanup(func() {
		appendLog(t, log, "slurmdbd version 26.05.1 started") // before, it is not terminated
		cancel()
		<-ended // always an error: tail is killed by a signal
	})
	return log
}

// appendLog adds a line to the log.
func appendLog(t *testing.T, log, line string) {
	t.Helper()
	file, err := os.OpenFile(log, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(line + "\n"); err != nil {
		t.Fatal(err)
	}
}

// runSlurmdbd creates the pod of the StatefulSet, running at an address and not ready.
func (w *world) runSlurmdbd(t *testing.T, address, revision string) *corev1.Pod {
	t.Helper()
	set := &appsv1.StatefulSet{}
	w.get(t, "slurm-accounting", set)
	labels := naming.Labels(naming.Slurmdbd, "slurm")
	labels[appsv1.ControllerRevisionHashLabelKey] = revision
	template := templateOf(set)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "slurm-accounting-0", Labels: labels, Annotations: template.Annotations,
			OwnerReferences: template.OwnerReferences,
		},
	}
	for _, container := range template.Spec.Containers {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: container.Name, Image: container.Image, StartupProbe: container.StartupProbe,
			ReadinessProbe: container.ReadinessProbe, Command: container.Command, Args: container.Args,
		})
	}
	pod.Spec.TerminationGracePeriodSeconds = template.Spec.TerminationGracePeriodSeconds
	w.create(t, pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}}
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func (w *world) setReady(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	if err := w.Status().Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
}

// scan checks that the canary is in no object but Secrets.
func (w *world) scan(t *testing.T) {
	t.Helper()
	for _, list := range []client.ObjectList{
		&slinkyv1beta1.AccountingList{}, &appsv1.StatefulSetList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{},
		&corev1.PodList{}, &eventsv1.EventList{},
	} {
		if err := w.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), canary) {
			t.Errorf("the password is in %T:\n%s", list, text)
		}
	}
}
