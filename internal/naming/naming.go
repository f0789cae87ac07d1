// Package naming is the single source of the names, labels and ports of the objects that the operator creates.
//
// Children are named after their custom resource with a suffix for their purpose, such as slurm-restapi for the RestApi
// slurm. A LoginSet's children have no suffix, because users type the name after ssh.
package naming

import (
	"cmp"
	"maps"
	"strconv"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Ports on which the daemons listen in their pods.
const (
	PortSlurmctld  = 6817
	PortSlurmd     = 6818
	PortSlurmdbd   = 6819
	PortSlurmrestd = 6820
	PortSSH        = 22
	// PortAgent is where the agent next to slurmctld reports the running configuration.
	PortAgent = 6816
)

// A Daemon is the purpose of a pod and the value of its label app.kubernetes.io/name.
type Daemon string

// The daemons.
const (
	Slurmctld  Daemon = "slurmctld"
	Slurmd     Daemon = "slurmd"
	Slurmdbd   Daemon = "slurmdbd"
	Slurmrestd Daemon = "slurmrestd"
	Login      Daemon = "login"
	// Validation is a throwaway slurmctld in a validation run, which no Service may select.
	Validation Daemon = "slurmctld-trial"
)

// components are the values of the label app.kubernetes.io/component.
var components = map[Daemon]string{
	Slurmctld: "controller", Slurmd: "worker", Slurmdbd: "accounting", Slurmrestd: "restapi", Login: "login",
	Validation: "controller",
}

// Labels of all objects that the operator creates.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	// LabelManagedBy marks objects that the operator created; its value is ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the operator's name, in labels and as field owner.
	ManagedBy = "slurm-operator"
)

// HelperPath is the path of the operator's own program in Slurm's pods, where an init container installs it.
const HelperPath = "/opt/slurm-operator/slurm-operator"

// SlurmdPath is another name of the program, under which it starts slurmd; see package inpod/slurmd.
const SlurmdPath = "/opt/slurm-operator/slurmd"

// AnnotationConfiguration on a pod template is the hash of the configuration that its pods start with. Pods of daemons
// that cannot reload it are replaced when it changes.
const AnnotationConfiguration = slinkyv1beta1.GroupName + "/configuration-hash"

// Labels returns the labels of all objects of a custom resource's daemon.
func Labels(daemon Daemon, instance string) map[string]string {
	labels := Selector(daemon, instance)
	labels[labelComponent] = components[daemon]
	labels[labelPartOf] = "slurm"
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// Selector selects the pods of a custom resource's daemon. It never changes, because selectors of workloads are
// immutable.
func Selector(daemon Daemon, instance string) map[string]string {
	return map[string]string{labelName: string(daemon), labelInstance: instance}
}

// Managed selects the objects of a custom resource's daemon that the operator created. Unlike Labels, it never changes.
func Managed(daemon Daemon, instance string) map[string]string {
	labels := Selector(daemon, instance)
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// IsSelected reports whether the operator selects pods by a label.
func IsSelected(label string) bool {
	return label == labelName || label == labelInstance || label == LabelManagedBy
}

// Instance returns the name of the custom resource of a daemon's pod, and false for all other objects.
func Instance(daemon Daemon, labels map[string]string) (string, bool) {
	instance, found := labels[labelInstance]
	return instance, found && labels[labelName] == string(daemon) && labels[LabelManagedBy] == ManagedBy
}

// IsManaged reports whether labels are those of an object that the operator creates, or of a daemon's pod that it may
// adopt.
func IsManaged(labels map[string]string) bool {
	if labels[LabelManagedBy] == ManagedBy {
		return true
	}
	_, daemon := components[Daemon(labels[labelName])]
	return daemon
}

// Merge merges the user's labels with the operator's, which take precedence because they select pods.
func Merge(user map[string]slinkyv1beta1.LabelValue, own map[string]string) map[string]string {
	merged := make(map[string]string, len(user)+len(own))
	for key, value := range user {
		merged[key] = string(value)
	}
	maps.Copy(merged, own)
	return merged
}

// MergeAnnotations merges the user's annotations of a pod template with the operator's annotations of the workload that
// is made from it, which take precedence. Annotations that kubectl and Kubernetes' own controllers write to workloads
// stay on the template: both would write them again and again.
func MergeAnnotations(user, own map[string]string) map[string]string {
	merged := make(map[string]string, len(user)+len(own))
	for key, value := range user {
		if domain, _, _ := strings.Cut(key, "/"); domain != "kubectl.kubernetes.io" && domain != "deployment.kubernetes.io" {
			merged[key] = value
		}
	}
	maps.Copy(merged, own)
	return merged
}

// Controller returns the name of a Controller's workload, and of the Service in front of it.
func Controller(controller string) string { return controller + "-controller" }

// StateClaim returns the name of the PVC with a Controller's saved state; empty if it is not kept or slurmctld is
// external.
func StateClaim(controller *slinkyv1beta1.Controller) string {
	persistence := controller.Spec.Persistence
	if controller.Spec.External || persistence.Enabled != nil && !*persistence.Enabled {
		return ""
	}
	return cmp.Or(persistence.ExistingClaim, controller.Name+"-controller-state")
}

// ForeignStateClaim returns the name that other operators give to the PVC with a Controller's saved state.
func ForeignStateClaim(controller string) string { return "statesave-" + Controller(controller) + "-0" }

// Configuration returns the name of the ConfigMap with the configuration that slurmctld runs or starts with.
func Configuration(controller string) string { return controller + "-config" }

// Candidate returns the name of the ConfigMap with the configuration that is being validated.
func Candidate(controller string) string { return controller + "-config-candidate" }

// TakeOver returns the name of the ConfigMap with the configuration that ends a takeover.
func TakeOver(controller string) string { return controller + "-config-takeover" }

// ValidationPod returns the name of the pod of a validation run.
func ValidationPod(controller, hash string) string { return controller + "-trial-" + hash }

// Accounting returns the name of an Accounting's workload, Service and Secret.
func Accounting(accounting string) string { return accounting + "-accounting" }

// AccountingPod returns the name of an Accounting's pod.
func AccountingPod(accounting string) string { return Accounting(accounting) + "-0" }

// RestAPI returns the name of a RestApi's workload, Service and ConfigMap.
func RestAPI(restAPI string) string { return restAPI + "-restapi" }

// RestAPIHost returns the DNS name of a RestApi's Service that all pods of the cluster can resolve.
func RestAPIHost(restAPI *slinkyv1beta1.RestApi) string {
	return RestAPI(restAPI.Name) + "." + restAPI.Namespace + ".svc"
}

// RestAPICertificate returns the name of the Secret with the certificate that a RestApi's pods serve: the one that the
// spec names, or the operator's own.
func RestAPICertificate(restAPI *slinkyv1beta1.RestApi) string {
	if given := restAPI.Spec.TLS.CertificateRef; given != nil {
		return given.Name
	}
	return RestAPI(restAPI.Name) + "-tls"
}

// RestAPITrust returns the name of the ConfigMap with the certificates that clients of a RestApi trust.
func RestAPITrust(restAPI string) string { return RestAPI(restAPI) + "-ca" }

// LoginSet returns the name of a LoginSet's workload and Service.
func LoginSet(loginSet string) string { return loginSet }

// LoginHosts returns the name of the headless Service that gives the login pods a DNS name.
func LoginHosts(loginSet string) string { return loginSet + "-hosts" }

// LoginConfiguration returns the name of the ConfigMap with the configuration of a LoginSet's sshd.
func LoginConfiguration(loginSet string) string { return loginSet + "-sshd" }

// LoginHostKeys returns the name of the Secret with the host keys of a LoginSet's sshd.
func LoginHostKeys(loginSet string) string { return loginSet + "-ssh-host-keys" }

// TokenSecret returns the Secret and key that hold a Token's JWT.
func TokenSecret(token *slinkyv1beta1.Token) slinkyv1beta1.SecretKeyReference {
	reference := slinkyv1beta1.SecretKeyReference{
		Name: token.Name + "-jwt-" + token.Spec.Username, Key: slinkyv1beta1.TokenKey,
	}
	if chosen := token.Spec.SecretRef; chosen != nil {
		if chosen.Name != "" {
			reference.Name = chosen.Name
		}
		if chosen.Key != "" {
			reference.Key = chosen.Key
		}
	}
	return reference
}

// ClusterName returns Slurm's name of the cluster.
func ClusterName(controller *slinkyv1beta1.Controller) string {
	if controller.Spec.ClusterName != "" {
		return controller.Spec.ClusterName
	}
	return controller.Namespace + "_" + controller.Name
}

// NodeSetHostKeys returns the name of the Secret with the host keys of a NodeSet's sshds.
func NodeSetHostKeys(nodeSet string) string { return nodeSet + "-ssh-host-keys" }

// NodeSetPins returns the name of a ConfigMap with the Kubernetes nodes that ordinals of a NodeSet are pinned to.
func NodeSetPins(nodeSet string, shard int) string { return nodeSet + "-pins-" + strconv.Itoa(shard) }
