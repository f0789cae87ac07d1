package accounting

import (
	"context"
	"net"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/reference"
)

// A scope is the state that one reconcile observes.
type scope struct {
	accounting *slinkyv1beta1.Accounting
	images     naming.Images
	keys       naming.Keys
	// slurmKey and jwtKey are the Secrets of the keys; nil if they do not exist.
	slurmKey, jwtKey *corev1.Secret
	// password and jwks are empty if they do not exist.
	password, jwks string
	// tls are the contents of the files for TLS to the database, by name; nil without TLS. Those that do not exist are
	// empty.
	tls map[string][]byte
	// statefulSet is nil if there is none yet.
	statefulSet *appsv1.StatefulSet
	pods        []corev1.Pod
	// mayTakeOver is true if slurmdbd may be taken over from another operator.
	mayTakeOver bool
	// database is the report of the helper in the pod in which slurmdbd runs; nil if it has not answered.
	database *slurmdbd.Report
	now      time.Time
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	accounting, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.Accounting{})
	if err != nil || accounting == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	scope := &scope{
		accounting: accounting, images: r.Images, keys: naming.AccountingKeys(accounting), now: r.Clock.Now(),
	}
	if err := r.observeReferences(ctx, scope); err != nil {
		return nil, err
	}
	scope.statefulSet, err = reference.Object(ctx, r.Client, accounting.Namespace, naming.Accounting(accounting.Name),
		&appsv1.StatefulSet{})
	if err != nil {
		return nil, err
	}
	if scope.pods, err = reference.StatefulSetPods(ctx, r.Client, naming.Slurmdbd, accounting,
		naming.Accounting(accounting.Name), scope.statefulSet); err != nil {
		return nil, err
	}
	scope.database = queryDatabase(ctx, scope.pods, value(scope.jwtKey, scope.keys.JWT))
	return scope, r.observeControllers(ctx, scope)
}

// observeControllers reads whether a cluster that uses the Accounting is taken over from another operator.
func (r *Reconciler) observeControllers(ctx context.Context, scope *scope) error {
	if scope.statefulSet == nil || podtemplate.IsOwn(scope.statefulSet.Spec.Template.Annotations) {
		return nil
	}
	controllers := &slinkyv1beta1.ControllerList{}
	err := index.ControllersByAccounting.List(ctx, r.Client, client.ObjectKeyFromObject(scope.accounting), controllers)
	for i := range controllers.Items {
		scope.mayTakeOver = scope.mayTakeOver || clusterconf.MayTakeOver(&controllers.Items[i])
	}
	return err
}

// observeReferences reads the objects that the spec references.
func (r *Reconciler) observeReferences(ctx context.Context, scope *scope) (err error) {
	namespace, spec := scope.accounting.Namespace, scope.accounting.Spec
	if scope.slurmKey, err = reference.Object(ctx, r.Client, namespace, scope.keys.Slurm.Name,
		&corev1.Secret{}); err != nil {
		return err
	}
	found, jwtKey, err := reference.FirstSecretValue(ctx, r.Client, namespace, scope.keys.JWTNames...)
	if err != nil {
		return err
	}
	if jwtKey != nil {
		scope.keys.JWT = found
	}
	if scope.jwtKey, err = reference.Object(ctx, r.Client, namespace, scope.keys.JWT.Name,
		&corev1.Secret{}); err != nil {
		return err
	}
	if spec.JWKSKeyRef != nil {
		if scope.jwks, err = reference.ConfigMapValue(ctx, r.Client, namespace, *spec.JWKSKeyRef); err != nil {
			return err
		}
	}
	if spec.StorageConfig == nil || spec.StorageConfig.PasswordKeyRef == nil {
		return nil
	}
	password, err := reference.SecretValue(ctx, r.Client, namespace, *spec.StorageConfig.PasswordKeyRef)
	if err != nil {
		return err
	}
	scope.password = string(password)
	return r.observeTLS(ctx, scope, spec.StorageConfig.TLS)
}

// observeTLS reads the files for TLS to the database.
func (r *Reconciler) observeTLS(ctx context.Context, scope *scope, tls *slinkyv1beta1.StorageTLS) error {
	if tls == nil {
		return nil
	}
	scope.tls = map[string][]byte{}
	for _, source := range tlsSources(tls) {
		var content []byte
		var err error
		if source.secret != nil {
			content, err = reference.SecretValue(ctx, r.Client, scope.accounting.Namespace, *source.secret)
		} else {
			var text string
			text, err = reference.ConfigMapValue(ctx, r.Client, scope.accounting.Namespace, *source.configMap)
			content = []byte(text)
		}
		if err != nil {
			return err
		}
		scope.tls[source.file] = content
	}
	return nil
}

// queryDatabase queries the helper in the pod in which slurmdbd runs.
func queryDatabase(ctx context.Context, pods []corev1.Pod, key []byte) *slurmdbd.Report {
	pod := running(pods)
	if pod == nil {
		return nil
	}
	switch {
	case !podtemplate.AuthenticatesReports(pod):
		key = nil
	case len(key) == 0:
		return nil // no answer could be trusted
	}
	address := net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(naming.PortAgent))
	database, err := report.Fetch[slurmdbd.Report](ctx, address, slurmdbd.ReportPath, key)
	if err != nil {
		return nil // slurmdbd is starting or terminating, or has an old key, which the pod's status shows better
	}
	return &database
}
