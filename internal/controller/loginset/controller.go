// Package loginset runs login pods for each LoginSet: sshd for the users, and sackd, from which Slurm's commands in the pod
// have their configuration and their credentials.
//
// Users meet a LoginSet through its host keys, so these are made once, outlive the LoginSet, and are the same in every
// pod. A pod holds people's sessions, so it is replaced only for what cannot be had otherwise: authorized keys are read
// at each login and take effect in the running pods; everything else that a pod is made of is part of its template, or
// of a digest in it.
package loginset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/child"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/retry"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// annotationKeys on a pod is the hash of the authorized keys for which it was last touched.
const annotationKeys = "loginset." + slinkyv1beta1.GroupName + "/authorized-keys-hash"

// A Reconciler reconciles LoginSets.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	Images   naming.Images
}

// A scope is what a reconcile observes.
type scope struct {
	set *slinkyv1beta1.LoginSet
	// controller and accounting are nil when there is none.
	controller *slinkyv1beta1.Controller
	accounting *slinkyv1beta1.Accounting
	// slurmKey and sssdConf are nil when there is none.
	slurmKey, sssdConf []byte
	// hostKeys is nil until they are made.
	hostKeys *corev1.Secret
	// deployment is nil until there is one.
	deployment *appsv1.Deployment
	// authorizedKeys are those that the ConfigMap of the pods has.
	authorizedKeys string
	pods           []corev1.Pod
	now            time.Time
}

// Reconcile brings the pods of one LoginSet, and what leads to them, in step with it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	scope, err := r.observe(ctx, request)
	if err != nil || scope == nil {
		return ctrl.Result{}, err
	}
	if verdict, blocked := obstacle(scope); blocked {
		return ctrl.Result{}, r.report(ctx, scope, verdict)
	}
	err = r.act(ctx, scope)
	if verdict, refused := refusal(err); refused {
		return retry.After(child.RetryRefusal, r.report(ctx, scope, verdict))
	}
	return ctrl.Result{}, errors.Join(err, r.report(ctx, scope, judge(scope, err)))
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	set, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.LoginSet{})
	if err != nil || set == nil {
		return nil, err // what it owns goes with it
	}
	scope := &scope{set: set, now: r.Clock.Now()}
	if scope.hostKeys, err = reference.Object(ctx, r.Client, set.Namespace, naming.LoginHostKeys(set.Name), &corev1.Secret{}); err != nil {
		return nil, err
	}
	if scope.deployment, err = reference.Object(ctx, r.Client, set.Namespace, naming.LoginSet(set.Name), &appsv1.Deployment{}); err != nil {
		return nil, err
	}
	configuration := slinkyv1beta1.ConfigMapKeyReference{Name: naming.LoginConfiguration(set.Name), Key: authorizedKeysFile}
	if scope.authorizedKeys, err = reference.ConfigMapValue(ctx, r.Client, set.Namespace, configuration); err != nil {
		return nil, err
	}
	if ref := set.Spec.SSSDConfRef; ref != nil {
		if scope.sssdConf, err = reference.SecretValue(ctx, r.Client, set.Namespace, *ref); err != nil {
			return nil, err
		}
	}
	if scope.pods, err = reference.Pods(ctx, r.Client, naming.Login, set); err != nil {
		return nil, err
	}
	return scope, r.observeController(ctx, scope)
}

func (r *Reconciler) observeController(ctx context.Context, scope *scope) (err error) {
	namespace := scope.set.Namespace
	scope.controller, err = reference.Object(ctx, r.Client, namespace, scope.set.Spec.ControllerRef.Name, &slinkyv1beta1.Controller{})
	if err != nil || scope.controller == nil {
		return err
	}
	if ref := scope.controller.Spec.AccountingRef; ref != nil {
		if scope.accounting, err = reference.Object(ctx, r.Client, namespace, ref.Name, &slinkyv1beta1.Accounting{}); err != nil {
			return err
		}
	}
	scope.slurmKey, err = reference.SecretValue(ctx, r.Client, namespace, scope.slurmKeyRef())
	return err
}

// slurmKeyRef selects the key that the cluster's daemons share.
func (s *scope) slurmKeyRef() slinkyv1beta1.SecretKeyReference {
	return naming.ControllerKeys(s.controller, s.accounting).Slurm
}

func (r *Reconciler) act(ctx context.Context, scope *scope) error {
	if scope.hostKeys == nil {
		made, err := sshd.NewHostKeys(scope.set.Namespace, naming.LoginHostKeys(scope.set.Name))
		if err != nil {
			return err
		}
		if err := r.Children.CreateOnce(ctx, made); err != nil {
			return err
		}
		scope.hostKeys = made
	}
	desired, err := build(scope, r.Images)
	if err != nil {
		return err
	}
	deployment := &appsv1.Deployment{}
	err = errors.Join(
		r.Children.Apply(ctx, scope.set, desired.hosts, &corev1.Service{}),
		r.Children.Apply(ctx, scope.set, desired.service, &corev1.Service{}),
		r.Children.Apply(ctx, scope.set, desired.configuration, &corev1.ConfigMap{}),
		r.Children.Apply(ctx, scope.set, desired.deployment, deployment),
		r.Children.ApplyBudget(ctx, scope.set, naming.LoginSet(scope.set.Name), desired.budget),
	)
	if err != nil {
		return err
	}
	scope.deployment = deployment
	return r.hurry(ctx, scope)
}

// hurry makes kubelets bring changed authorized keys to the pods that run. It waits until the change has come back to us: by then
// the kubelets have heard of it too.
func (r *Reconciler) hurry(ctx context.Context, scope *scope) error {
	keys := scope.set.Spec.RootSSHAuthorizedKeys
	if scope.authorizedKeys != keys {
		return nil
	}
	sum := sha256.Sum256([]byte(keys))
	current := hex.EncodeToString(sum[:8])
	for i := range scope.pods {
		pod := &scope.pods[i]
		if pod.Status.Phase != corev1.PodRunning || pod.Annotations[annotationKeys] == current {
			continue
		}
		if err := r.Children.Touch(ctx, pod, annotationKeys, current); err != nil {
			return err
		}
	}
	return nil
}
