package loginset

import (
	"encoding/json"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	applyappsv1 "k8s.io/client-go/applyconfigurations/apps/v1"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	applypolicyv1 "k8s.io/client-go/applyconfigurations/policy/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/images/slurm"
	"github.com/slurm-operator/slurm-operator/internal/applyconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
)

// desired holds the objects that a LoginSet should own.
type desired struct {
	hosts, service *applycorev1.ServiceApplyConfiguration
	configuration  *applycorev1.ConfigMapApplyConfiguration
	deployment     *applyappsv1.DeploymentApplyConfiguration
	// budget is nil if there should be none.
	budget *applypolicyv1.PodDisruptionBudgetApplyConfiguration
}

// build builds the children of a LoginSet. Its errors are *invalid: mistakes in the spec.
func build(scope *scope, images naming.Images) (desired, error) {
	set := scope.set
	labels, selector := naming.Labels(naming.Login, set.Name), naming.Selector(naming.Login, set.Name)
	service, err := applyconf.Service{
		Name: naming.LoginSet(set.Name), Namespace: set.Namespace, Labels: labels, Selector: selector,
		Port: set.Spec.Service.Port, PortName: portName,
	}.Merge(set.Spec.Service.ServiceTemplate)
	if err != nil {
		return desired{}, &invalid{err}
	}
	configuration := sshdConfig(set, sshd.PrivateKeys(scope.hostKeys))
	deployment, err := deployment(scope, images, digest(scope, configuration))
	if err != nil {
		return desired{}, &invalid{err}
	}
	children := desired{
		hosts: applyconf.Service{
			Name: naming.LoginHosts(set.Name), Namespace: set.Namespace, Labels: labels, Selector: selector,
			Port: naming.PortSSH, PortName: portName,
		}.Headless(),
		service: service,
		configuration: applycorev1.ConfigMap(naming.LoginConfiguration(set.Name), set.Namespace).WithLabels(labels).
			WithData(map[string]string{
				sshdConfigFile: configuration, authorizedKeysFile: set.Spec.RootSSHAuthorizedKeys, startFile: slurm.Login,
			}),
		deployment: deployment,
	}
	if *set.Spec.Replicas > 1 {
		children.budget = applypolicyv1.PodDisruptionBudget(naming.LoginSet(set.Name), set.Namespace).
			WithLabels(labels).
			WithSpec(applypolicyv1.PodDisruptionBudgetSpec().
				WithMaxUnavailable(intstr.FromInt32(1)).
				WithSelector(applymetav1.LabelSelector().WithMatchLabels(selector)))
	}
	return children, nil
}

func deployment(scope *scope, images naming.Images, digest string) (*applyappsv1.DeploymentApplyConfiguration, error) {
	set := scope.set
	template, err := podtemplate.Merge(podTemplate(scope, image(set, images), digest), set.Spec.Template,
		podtemplate.Part{Container: loginContainer, Fragment: set.Spec.Login},
		podtemplate.Part{Container: initContainer, Fragment: set.Spec.Initconf})
	if err != nil {
		return nil, err
	}
	podtemplate.Size(&template.Spec, initContainer)
	resolveNodes(scope, &template.Spec)
	pod, err := applyconf.PodTemplate(template)
	if err != nil {
		return nil, err
	}
	return applyappsv1.Deployment(naming.LoginSet(set.Name), set.Namespace).
		WithLabels(naming.Merge(set.Spec.Template.Metadata.Labels, naming.Labels(naming.Login, set.Name))).
		WithAnnotations(naming.MergeAnnotations(set.Spec.Template.Metadata.Annotations, nil)).
		WithSpec(applyappsv1.DeploymentSpec().
			WithReplicas(*set.Spec.Replicas).
			WithSelector(applymetav1.LabelSelector().WithMatchLabels(naming.Selector(naming.Login, set.Name))).
			WithStrategy(strategy(set.Spec.Strategy)).
			WithTemplate(pod)), nil
}

// maxSearches is Kubernetes' limit for the search list of a pod.
const maxSearches = 32

// resolveNodes makes the short names of the cluster's Slurm nodes resolve in a pod, after the user's search domains.
func resolveNodes(scope *scope, spec *corev1.PodSpec) {
	if scope.clusterDomain == "" {
		return
	}
	if spec.DNSConfig == nil {
		spec.DNSConfig = &corev1.PodDNSConfig{}
	}
	domain := naming.WorkerDomain(scope.set.Namespace, scope.set.Spec.ControllerRef.Name, scope.clusterDomain)
	config := spec.DNSConfig
	if len(config.Searches) < maxSearches && !slices.Contains(config.Searches, domain) {
		config.Searches = append(config.Searches, domain)
	}
}

// strategy returns a complete strategy, without fields for the API server to default: a defaulted field has no owner,
// would stay when the user chooses Recreate, and make that invalid.
func strategy(chosen appsv1.DeploymentStrategy) *applyappsv1.DeploymentStrategyApplyConfiguration {
	if chosen.Type == appsv1.RecreateDeploymentStrategyType {
		return applyappsv1.DeploymentStrategy().WithType(chosen.Type)
	}
	rolling := applyappsv1.RollingUpdateDeployment().WithMaxSurge(intstr.FromString("25%")).
		WithMaxUnavailable(intstr.FromString("25%"))
	if chosen.RollingUpdate != nil && chosen.RollingUpdate.MaxSurge != nil {
		rolling.WithMaxSurge(*chosen.RollingUpdate.MaxSurge)
	}
	if chosen.RollingUpdate != nil && chosen.RollingUpdate.MaxUnavailable != nil {
		rolling.WithMaxUnavailable(*chosen.RollingUpdate.MaxUnavailable)
	}
	return applyappsv1.DeploymentStrategy().WithType(appsv1.RollingUpdateDeploymentStrategyType).
		WithRollingUpdate(rolling)
}

// image returns the image of the login container. The init container uses it too, so that a site with its own image
// needs no other.
func image(set *slinkyv1beta1.LoginSet, images naming.Images) string {
	var login corev1.Container
	if err := json.Unmarshal(set.Spec.Login.Raw, &login); err == nil && login.Image != "" {
		return login.Image
	}
	return images.For(naming.Login)
}
