package index

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// The references, named by the referring type and the referenced type.
var (
	RestAPIsByController = reference("controller", &slinkyv1beta1.RestApi{}, &slinkyv1beta1.RestApiList{},
		restAPIController)
	LoginSetsByController = reference("controller", &slinkyv1beta1.LoginSet{}, &slinkyv1beta1.LoginSetList{},
		loginSetController)
	NodeSetsByController = reference("controller", &slinkyv1beta1.NodeSet{}, &slinkyv1beta1.NodeSetList{},
		nodeSetController)
	// NodeSetsByMode finds the NodeSets with a scaling mode, of all namespaces.
	NodeSetsByMode = reference("mode", &slinkyv1beta1.NodeSet{}, &slinkyv1beta1.NodeSetList{},
		func(set *slinkyv1beta1.NodeSet) []string { return []string{string(set.Spec.ScalingMode)} })
	ControllersByAccounting = reference("accounting", &slinkyv1beta1.Controller{}, &slinkyv1beta1.ControllerList{},
		controllerAccounting)

	PodsByNodeSet        = reference("nodeset", &corev1.Pod{}, &corev1.PodList{}, podNodeSet)
	PodsByKubernetesNode = reference("kubernetes-node", &corev1.Pod{}, &corev1.PodList{}, podKubernetesNode)
	PodsBySlurmNode      = reference("slurmnode", &corev1.Pod{}, &corev1.PodList{}, podSlurmNode)

	ControllersBySecret = reference("secret", &slinkyv1beta1.Controller{}, &slinkyv1beta1.ControllerList{},
		controllerSecrets)
	AccountingsBySecret = reference("secret", &slinkyv1beta1.Accounting{}, &slinkyv1beta1.AccountingList{},
		accountingSecrets)
	LoginSetsBySecret = reference("secret", &slinkyv1beta1.LoginSet{}, &slinkyv1beta1.LoginSetList{}, loginSetSecrets)
	RestAPIsBySecret  = reference("secret", &slinkyv1beta1.RestApi{}, &slinkyv1beta1.RestApiList{}, restAPISecrets)
	TokensBySecret    = reference("secret", &slinkyv1beta1.Token{}, &slinkyv1beta1.TokenList{}, tokenSecrets)

	ControllersByConfigMap = reference("configmap", &slinkyv1beta1.Controller{}, &slinkyv1beta1.ControllerList{},
		controllerConfigMaps)
	AccountingsByConfigMap = reference("configmap", &slinkyv1beta1.Accounting{}, &slinkyv1beta1.AccountingList{},
		accountingConfigMaps)

	ControllersByClaim = reference("claim", &slinkyv1beta1.Controller{}, &slinkyv1beta1.ControllerList{},
		controllerClaim)
)

var all = []Index{
	RestAPIsByController, LoginSetsByController, NodeSetsByController, NodeSetsByMode, ControllersByAccounting,
	PodsByNodeSet, PodsByKubernetesNode, PodsBySlurmNode,
	ControllersBySecret, AccountingsBySecret, LoginSetsBySecret, RestAPIsBySecret, TokensBySecret,
	ControllersByConfigMap, AccountingsByConfigMap,
	ControllersByClaim,
}

// podKubernetesNode returns the Kubernetes node that a slurmd pod runs on. Kubernetes nodes have no namespace.
func podKubernetesNode(pod *corev1.Pod) []string {
	if _, slurmd := naming.Instance(naming.Slurmd, pod.Labels); !slurmd {
		return nil
	}
	return []string{pod.Spec.NodeName}
}

// podSlurmNode returns the Slurm node name of a slurmd pod.
func podSlurmNode(pod *corev1.Pod) []string {
	if _, slurmd := naming.Instance(naming.Slurmd, pod.Labels); !slurmd {
		return nil
	}
	return []string{pod.Labels[slinkyv1beta1.LabelPodHostname]}
}

func restAPIController(restAPI *slinkyv1beta1.RestApi) []string {
	return []string{restAPI.Spec.ControllerRef.Name}
}

func loginSetController(loginSet *slinkyv1beta1.LoginSet) []string {
	return []string{loginSet.Spec.ControllerRef.Name}
}

// podNodeSet returns the NodeSet that owns a pod, or for a pod without ownerReference the one in its labels.
func podNodeSet(pod *corev1.Pod) []string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if owner.Kind != "NodeSet" {
			return nil
		}
		return []string{owner.Name}
	}
	if set, slurmd := naming.Instance(naming.Slurmd, pod.Labels); slurmd {
		return []string{set}
	}
	return nil
}

func nodeSetController(nodeSet *slinkyv1beta1.NodeSet) []string {
	return []string{nodeSet.Spec.ControllerRef.Name}
}

func controllerAccounting(controller *slinkyv1beta1.Controller) []string {
	if controller.Spec.AccountingRef == nil {
		return nil
	}
	return []string{controller.Spec.AccountingRef.Name}
}

func controllerClaim(controller *slinkyv1beta1.Controller) []string {
	return []string{naming.StateClaim(controller), naming.ForeignStateClaim(controller.Name)}
}

// controllerSecrets returns no keys of the Accounting: their changes arrive through the Accounting.
func controllerSecrets(controller *slinkyv1beta1.Controller) []string {
	keys := naming.ControllerKeys(controller, nil)
	return append(naming.SecretNames(keys.JWTNames), keys.Slurm.Name)
}

func accountingSecrets(accounting *slinkyv1beta1.Accounting) []string {
	keys := naming.AccountingKeys(accounting)
	names := append(naming.SecretNames(keys.JWTNames), keys.Slurm.Name)
	storage := accounting.Spec.StorageConfig
	if storage == nil {
		return names
	}
	if storage.PasswordKeyRef != nil {
		names = append(names, storage.PasswordKeyRef.Name)
	}
	if tls := storage.TLS; tls != nil {
		if tls.CASecretRef != nil {
			names = append(names, tls.CASecretRef.Name)
		}
		if tls.ClientCertificateRef != nil {
			names = append(names, tls.ClientCertificateRef.Name)
		}
	}
	return names
}

// loginSetSecrets includes the host keys, which have no ownerReference.
func loginSetSecrets(loginSet *slinkyv1beta1.LoginSet) []string {
	names := []string{naming.LoginHostKeys(loginSet.Name)}
	if loginSet.Spec.SSSDConfRef != nil {
		names = append(names, loginSet.Spec.SSSDConfRef.Name)
	}
	return names
}

// restAPISecrets returns the Secret with the certificate, also if it is the operator's own.
func restAPISecrets(restAPI *slinkyv1beta1.RestApi) []string {
	return []string{naming.RestAPICertificate(restAPI)}
}

func tokenSecrets(token *slinkyv1beta1.Token) []string {
	if token.Spec.JWTKey() == nil {
		return nil
	}
	return naming.SecretNames(naming.JWTNames(*token.Spec.JWTKey()))
}

func controllerConfigMaps(controller *slinkyv1beta1.Controller) []string {
	var names []string
	for _, references := range [][]slinkyv1beta1.ObjectReference{
		controller.Spec.ConfigFileRefs, controller.Spec.PrologScriptRefs, controller.Spec.EpilogScriptRefs,
		controller.Spec.PrologSlurmctldScriptRefs, controller.Spec.EpilogSlurmctldScriptRefs,
	} {
		for _, reference := range references {
			names = append(names, reference.Name)
		}
	}
	if jwks := controller.Spec.JWKSKeyRef; jwks != nil {
		names = append(names, jwks.Name)
	}
	return names
}

func accountingConfigMaps(accounting *slinkyv1beta1.Accounting) []string {
	var names []string
	if jwks := accounting.Spec.JWKSKeyRef; jwks != nil {
		names = append(names, jwks.Name)
	}
	if storage := accounting.Spec.StorageConfig; storage != nil && storage.TLS != nil &&
		storage.TLS.CAConfigMapRef != nil {
		names = append(names, storage.TLS.CAConfigMapRef.Name)
	}
	return names
}
