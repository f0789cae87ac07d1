//go:build integration

package operator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// A readinessWorld has a cluster with one custom resource of each kind, all of which are ready.
type readinessWorld struct {
	*world
	loads   *workloads
	sampler *sampler
	objects map[string]client.Object // the custom resources by kind
}

// daemons are the daemons in the pods of each kind.
var daemons = map[string]naming.Daemon{
	"Controller": naming.Slurmctld, "NodeSet": naming.Slurmd, "LoginSet": naming.Login, "Accounting": naming.Slurmdbd,
	"RestApi": naming.Slurmrestd,
}

func newReadinessWorld(t *testing.T) *readinessWorld {
	t.Helper()
	w := &readinessWorld{world: newWorld(t)}
	kubelet := w.startKubelet(t)
	w.loads = w.startWorkloads(t, kubelet.nodeName)
	w.sampler = w.startSampler(t)
	stop := w.acceptEverything(t, func(live *corev1.ConfigMap) {
		for _, backup := range slurmctldAddresses[1:] {
			w.setAgentAt(backup, agentWith(live))
		}
	})
	t.Cleanup(stop)
	controller, accounting := newController("slurm"), newAccounting()
	accounting.Name = "books"
	controller.Spec.AccountingRef = &slinkyv1beta1.ObjectReference{Name: "books"}
	w.objects = map[string]client.Object{
		"Controller": controller, "Accounting": accounting, "RestApi": newRestAPI(), "NodeSet": newNodeSet(2),
		"LoginSet": newLoginSet(), "Token": newToken("alice"),
	}
	w.create(t,
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "database"}, StringData: map[string]string{"password": "before"},
		},
		&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"jwt_hs256.key": jwtKey(1)},
		})
	for _, object := range w.objects {
		w.create(t, object)
	}
	key := &corev1.Secret{}
	w.eventually(t, "books-auth-jwths256", key, func() error { return nil })
	w.slurm.SetKey(key.Data["jwt_hs256.key"])
	w.settle(t)
	return w
}

// settle waits until everything is ready, and the operator has written all that it knows.
func (w *readinessWorld) settle(t *testing.T) {
	t.Helper()
	finish := func() {
		for kind := range sampled {
			w.sampler.finishes(t, kind)
		}
	}
	finish()
	w.waitUntilQuiet(t, quiet)
	finish()
}

// quiet is longer than the interval in which the operator queries agents.
const quiet = 1500 * time.Millisecond

// now returns the number of the last change in the API server.
func (w *readinessWorld) now(t *testing.T) int64 {
	t.Helper()
	list := &corev1.ConfigMapList{}
	if err := w.List(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	return numberOf(list.ResourceVersion)
}

// uids returns the UIDs of the pods of a kind.
func (w *readinessWorld) uids(t *testing.T, kind string) map[types.UID]bool {
	t.Helper()
	pods, selector := &corev1.PodList{}, client.MatchingLabels(naming.Selector(daemons[kind], sampled[kind]))
	if err := w.List(t.Context(), pods, selector); err != nil {
		t.Fatal(err)
	}
	uids := map[types.UID]bool{}
	for i := range pods.Items {
		uids[pods.Items[i].UID] = true
	}
	return uids
}

// A change is one that a user makes, to the spec of a custom resource or to an object that it references.
type change struct {
	kind, name string
	// patch is for the spec; if it is empty, apply makes the change.
	patch string
	apply func(t *testing.T, w *readinessWorld)
	// pods is how many pods there are afterwards, and replaces is true if none from before the change is among them.
	// Others are further kinds whose pods the change replaces.
	pods     int
	replaces bool
	others   []string
	// holds is about everything else that must be true then.
	holds func(t *testing.T, w *readinessWorld) func(ctx context.Context, at string) error
}

// changes returns all changes, in this order: later ones depend on the number of pods.
func changes() []change {
	const annotated = `{"template":{"metadata":{"annotations":{"example.com/changed":"yes"}}}}`
	return []change{
		{kind: "LoginSet", name: "image", patch: `{"login":{"image":"example.com/login:2"}}`, pods: 2, replaces: true},
		{kind: "LoginSet", name: "template", patch: annotated, pods: 2, replaces: true},
		{kind: "LoginSet", name: "configuration", patch: `{"extraSshdConfig":"PrintMotd yes"}`, pods: 2, replaces: true},
		{kind: "LoginSet", name: "authorized keys", patch: `{"rootSshAuthorizedKeys":"ssh-ed25519 BBBB other"}`, pods: 2,
			holds: touched("LoginSet", "loginset.slinky.slurm.net/authorized-keys-hash")},
		{kind: "LoginSet", name: "more replicas", patch: `{"replicas":3}`, pods: 3},
		{kind: "LoginSet", name: "fewer replicas", patch: `{"replicas":1}`, pods: 1},
		{kind: "LoginSet", name: "host keys", pods: 1, replaces: true,
			apply: func(t *testing.T, w *readinessWorld) {
				t.Helper()
				w.patch(t, secretNamed("login-ssh-host-keys"), `{"data":{"ssh_host_rsa_key":null}}`)
			}},
		{kind: "RestApi", name: "image", patch: `{"slurmrestd":{"image":"example.com/slurmrestd:2"}}`, pods: 1,
			replaces: true},
		{kind: "RestApi", name: "template", patch: annotated, pods: 1, replaces: true},
		{kind: "RestApi", name: "more replicas", patch: `{"replicas":2}`, pods: 2},
		{kind: "RestApi", name: "fewer replicas", patch: `{"replicas":1}`, pods: 1},
		{kind: "RestApi", name: "certificate", pods: 1,
			apply: func(t *testing.T, w *readinessWorld) {
				t.Helper()
				if err := w.Delete(t.Context(), secretNamed("slurm-restapi-tls")); err != nil {
					t.Fatal(err)
				}
			}, holds: touched("RestApi", "restapi.slinky.slurm.net/certificate-hash")},
		{kind: "RestApi", name: "configuration of its Controller", pods: 1, replaces: true,
			apply: func(t *testing.T, w *readinessWorld) {
				t.Helper()
				w.patch(t, w.objects["Controller"], `{"spec":{"extraConf":"MessageTimeout=60"}}`)
			}},
		{kind: "Accounting", name: "image", patch: `{"slurmdbd":{"image":"example.com/slurmdbd:2"}}`, pods: 1,
			replaces: true},
		{kind: "Accounting", name: "template", patch: annotated, pods: 1, replaces: true},
		{kind: "Accounting", name: "configuration", patch: `{"extraConf":"DebugLevel=debug"}`, pods: 1, replaces: true},
		{kind: "Accounting", name: "password", pods: 1, replaces: true,
			apply: func(t *testing.T, w *readinessWorld) {
				t.Helper()
				w.patch(t, secretNamed("database"), `{"stringData":{"password":"after"}}`)
			}},
		{kind: "NodeSet", name: "image", patch: `{"slurmd":{"image":"example.com/slurmd:2"}}`, pods: 2, replaces: true},
		{kind: "NodeSet", name: "template", patch: annotated, pods: 2, replaces: true},
		{kind: "NodeSet", name: "configuration", patch: `{"extraConf":"Weight=7"}`, pods: 2, replaces: true},
		{kind: "NodeSet", name: "GRES that slurmctld does not know yet", pods: 2, replaces: true,
			patch: `{"slurmd":{"resources":{"limits":{"nvidia.com/gpu":"2"}}}}`},
		{kind: "NodeSet", name: "partition", patch: `{"partition":{"enabled":true,"config":"MaxTime=1-0"}}`, pods: 2,
			holds: inForceAt("PartitionName=gpu Nodes=gpu MaxTime=1-0")},
		{kind: "NodeSet", name: "a parameter of the partition less", patch: `{"partition":{"config":""}}`, pods: 2,
			holds: notInForceAt("MaxTime=1-0")},
		{kind: "NodeSet", name: "no partition", patch: `{"partition":{"enabled":false}}`, pods: 2,
			holds: notInForceAt("PartitionName=gpu")},
		{kind: "NodeSet", name: "more replicas", patch: `{"replicas":3}`, pods: 3},
		{kind: "NodeSet", name: "fewer replicas", patch: `{"replicas":1}`, pods: 1},
		{kind: "NodeSet", name: "key of its cluster", pods: 1, replaces: true,
			others: []string{"LoginSet", "Accounting", "Controller"},
			apply: func(t *testing.T, w *readinessWorld) {
				t.Helper()
				key := &corev1.Secret{}
				w.get(t, "books-auth-slurm", key)
				w.create(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "copy"}, Data: key.Data})
				w.patch(t, w.objects["Accounting"], `{"spec":{"slurmKeyRef":{"name":"copy","key":"slurm.key"}}}`)
			}},
		{kind: "Controller", name: "image", patch: `{"slurmctld":{"image":"example.com/slurmctld:2"}}`, pods: 1,
			replaces: true},
		{kind: "Controller", name: "template", patch: annotated, pods: 1, replaces: true},
		{kind: "Controller", name: "configuration", patch: `{"extraConf":"MessageTimeout=60\nMaxArraySize=5000"}`, pods: 1,
			holds: inForceAt("MaxArraySize=5000")},
		{kind: "Controller", name: "a backup", patch: `{"ha":{"enabled":true,"backups":1}}`, pods: 2, replaces: true,
			holds: inForceAt("SlurmctldHost=slurm-controller-1")},
		{kind: "Controller", name: "more backups", patch: `{"ha":{"backups":2}}`, pods: 3,
			holds: inForceAt("SlurmctldHost=slurm-controller-2")},
		{kind: "Controller", name: "fewer backups", patch: `{"ha":{"backups":1}}`, pods: 2},
		{kind: "Token", name: "lifetime", patch: `{"lifetime":"2h"}`, holds: signedAt(jwtKey(1), 2*time.Hour)},
	}
}

// From the moment of a change, no version of a custom resource says that the change is done before the last pod runs
// the new state, so that kubectl wait and the health checks of GitOps tools do not end early.
func TestNoStatusSaysDoneBeforeTheLastPodRunsTheNewState(t *testing.T) {
	t.Parallel()
	w := newReadinessWorld(t)
	for _, each := range changes() {
		t.Run(each.kind+", "+each.name, func(t *testing.T) { w.sample(t, each) })
	}
	t.Run("Token, key", func(t *testing.T) { w.sampleKey(t) })
	t.Run("lost connection to slurmrestd", func(t *testing.T) { w.sampleLoss(t) })
}

// sample makes a change while no pod of a workload changes, lets the operator say all that it has to say about it, and
// checks all versions from the first on that says that the change is not done.
func (w *readinessWorld) sample(t *testing.T, made change) {
	t.Helper()
	wanted := want{daemon: daemons[made.kind], pods: made.pods}
	if made.replaces {
		wanted.before = w.uids(t, made.kind)
	}
	if made.holds != nil {
		wanted.holds = made.holds(t, w)
	}
	kinds := map[string]want{made.kind: wanted}
	for _, kind := range made.others {
		before := w.uids(t, kind)
		kinds[kind] = want{daemon: daemons[kind], pods: len(before), before: before}
	}
	w.loads.hold(true)
	since := w.now(t)
	if made.patch != "" {
		w.patch(t, w.objects[made.kind], `{"spec":%s}`, made.patch)
	} else {
		made.apply(t, w)
	}
	first := map[string]int64{}
	for kind := range kinds {
		first[kind] = w.sampler.begins(t, kind, since)
	}
	w.waitUntilQuiet(t, quiet)
	w.loads.hold(false)
	w.settle(t)
	for kind, each := range kinds {
		w.sampler.check(t, kind, first[kind], each)
	}
}

// sampleKey changes the key of the Token. The Token is signed again in the reconcile that sees the change, so it is
// always ready.
func (w *readinessWorld) sampleKey(t *testing.T) {
	t.Helper()
	since := w.now(t)
	w.patch(t, secretNamed("key"), `{"data":{"jwt_hs256.key":%q}}`, base64.StdEncoding.EncodeToString(jwtKey(2)))
	secret := &corev1.Secret{}
	w.eventually(t, "alice-jwt-alice", secret, func() error { return signedBy(secret, jwtKey(2)) })
	w.settle(t)
	if len(w.sampler.after("Token", since)) == 0 {
		t.Fatal("the status does not show that the Token was signed again")
	}
	w.sampler.check(t, "Token", since, want{holds: signedAt(jwtKey(2), 2*time.Hour)(t, w)})
}

// sampleLoss changes a NodeSet and the Controller while slurmrestd does not answer.
func (w *readinessWorld) sampleLoss(t *testing.T) {
	t.Helper()
	lost := map[string]int64{}
	since := w.now(t)
	w.slurm.Inject(slurmtest.Fault{Respond: slurmtest.Hang})
	for _, kind := range []string{"Controller", "NodeSet"} {
		lost[kind] = w.sampler.begins(t, kind, since)
	}
	set := newNodeSet(2)
	w.patch(t, set, `{"spec":{"replicas":2}}`)
	w.patch(t, w.objects["Controller"], `{"spec":{"extraConf":"MessageTimeout=60\nSchedulerType=sched/builtin"}}`)
	w.eventually(t, set.Name, set, func() error {
		if set.Status.ObservedGeneration != set.Generation {
			return errors.New("the change is not observed")
		}
		return nil
	})
	live := &corev1.ConfigMap{}
	w.eventually(t, "slurm-config", live, func() error { return hasLine(live, "SchedulerType=sched/builtin") })
	w.waitUntilQuiet(t, quiet)
	for kind, number := range lost {
		for _, each := range w.sampler.after(kind, number) {
			if each.done {
				t.Errorf("%s says that it is done without a connection to Slurm:\n%s", kind, each.text)
			}
		}
	}
	w.slurm.ClearFaults()
	w.settle(t)
	w.sampler.check(t, "NodeSet", lost["NodeSet"], want{daemon: naming.Slurmd, pods: 2})
	w.sampler.check(t, "Controller", lost["Controller"], want{holds: inForceAt("SchedulerType=sched/builtin")(t, w)})
}

// touched requires that all pods of a kind were touched for the new content of a mounted file, so that their kubelets
// update it.
func touched(kind, annotation string) func(*testing.T, *readinessWorld) func(context.Context, string) error {
	return func(t *testing.T, w *readinessWorld) func(context.Context, string) error {
		t.Helper()
		former := map[string]bool{"": true}
		before, err := w.sampler.podsAt(t.Context(), kind, strconv.FormatInt(w.now(t), 10), daemons[kind])
		if err != nil {
			t.Fatal(err)
		}
		for i := range before {
			former[before[i].Annotations[annotation]] = true
		}
		return func(ctx context.Context, at string) error {
			pods, failure := w.sampler.podsAt(ctx, kind, at, daemons[kind])
			for i := range pods {
				if former[pods[i].Annotations[annotation]] {
					return fmt.Errorf("pod %s was not touched", pods[i].Name)
				}
			}
			return failure
		}
	}
}

// inForceAt requires that slurmctld runs with a configuration that has a line. The agents of this world apply what they
// find, so the configuration must exist.
func inForceAt(line string) func(*testing.T, *readinessWorld) func(context.Context, string) error {
	return func(_ *testing.T, w *readinessWorld) func(context.Context, string) error {
		return func(ctx context.Context, at string) error {
			all := &corev1.ConfigMapList{}
			if err := w.unobserved.List(ctx, all, w.sampler.exactly(at)); err != nil {
				return err
			}
			for i := range all.Items {
				if live := &all.Items[i]; live.Name == "slurm-config" {
					return hasLine(live, line)
				}
			}
			return errors.New("there is no configuration")
		}
	}
}

// notInForceAt requires that slurmctld runs with a configuration without a text.
func notInForceAt(text string) func(*testing.T, *readinessWorld) func(context.Context, string) error {
	return func(t *testing.T, w *readinessWorld) func(context.Context, string) error {
		t.Helper()
		inForce := inForceAt(text)(t, w)
		return func(ctx context.Context, at string) error {
			if inForce(ctx, at) == nil {
				return fmt.Errorf("slurm.conf has %s", text)
			}
			return nil
		}
	}
}

func hasLine(live *corev1.ConfigMap, line string) error {
	if !strings.Contains(live.Data["slurm.conf"], line) {
		return fmt.Errorf("slurm.conf does not have %s", line)
	}
	return nil
}

func jwtKey(each byte) []byte { return bytes.Repeat([]byte{each}, 32) }

func secretNamed(name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// signedAt requires that the Token's Secret has a token that is signed with a key, for a lifetime.
func signedAt(key []byte,
	lifetime time.Duration) func(*testing.T, *readinessWorld) func(context.Context, string) error {
	return func(_ *testing.T, w *readinessWorld) func(context.Context, string) error {
		return func(ctx context.Context, at string) error {
			all := &corev1.SecretList{}
			if err := w.unobserved.List(ctx, all, w.sampler.exactly(at)); err != nil {
				return err
			}
			for i := range all.Items {
				if secret := &all.Items[i]; secret.Name == "alice-jwt-alice" {
					token, err := jwt.Parse(key, string(secret.Data[slinkyv1beta1.TokenKey]))
					if err == nil && token.Expires.Sub(token.Issued) != lifetime {
						err = fmt.Errorf("its lifetime is %s", token.Expires.Sub(token.Issued))
					}
					return err
				}
			}
			return errors.New("there is no Secret")
		}
	}
}
