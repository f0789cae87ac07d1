// Package loginset runs login pods for each LoginSet: sshd for the users, and sackd, which provides configuration and
// credentials to Slurm's commands in the pod.
//
// Users identify a LoginSet by its host keys, so these are generated once, survive deletion of the LoginSet, and are
// the same in every pod. A pod has user sessions, so it is replaced only if necessary: authorized keys are read at each
// login and take effect in running pods; everything else is part of the pod template, or of a digest in it.
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

// annotationKeys on a pod is the hash of the authorized keys when it was last touched.
const annotationKeys = "loginset." + slinkyv1beta1.GroupName + "/authorized-keys-hash"

// A Reconciler reconciles LoginSets.
type Reconciler struct {
	Client   client.Client
	Children *child.Applier
	Status   *status.Writer
	Clock    clock.PassiveClock
	Images   naming.Images
}

// A scope is the state that one reconcile observes.
type scope struct {
	set *slinkyv1beta1.LoginSet
	// controller and accounting are nil if they do not exist.
	controller *slinkyv1beta1.Controller
	accounting *slinkyv1beta1.Accounting
	// slurmKey and sssdConf are nil if they do not exist.
	slurmKey, sssdConf []byte
	// hostKeys is nil until they are generated.
	hostKeys *corev1.Secret
	// deployment is nil if there is none yet.
	deployment *appsv1.Deployment
	// authorizedKeys are those in the ConfigMap that the pods mount.
	authorizedKeys string
	pods           []corev1.Pod
	now            time.Time
}

// Reconcile reconciles the pods and Services of one LoginSet.
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
		return nil, err // objects that it owns are garbage-collected
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

// slurmKeyRef returns the reference to the auth/slurm key of the cluster.
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
	return r.refreshAuthorizedKeys(ctx, scope)
}

// refreshAuthorizedKeys makes the kubelets update the authorized keys in running pods, by touching the pods. It waits
// until the operator's cache has the change: by then the kubelets have seen it too.
func (r *Reconciler) refreshAuthorizedKeys(ctx context.Context, scope *scope) error {
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
