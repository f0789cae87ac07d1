// Package naming is the one place for the names, labels, ports and paths that the operator gives to what it makes.
//
// Children carry the name of the object that they belong to and a word for what they are, such as slurm-restapi for the
// RestApi slurm. A LoginSet's children carry its bare name: it is what users type after ssh.
package naming

import (
	"cmp"
	"maps"
	"strconv"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Ports on which the daemons listen in their pods.
const (
	PortSlurmctld  = 6817
	PortSlurmd     = 6818
	PortSlurmdbd   = 6819
	PortSlurmrestd = 6820
	PortSSH        = 22
	// PortAgent is where the agent beside slurmctld tells which configuration runs.
	PortAgent = 6816
)

// A Daemon is what a pod is there for; it is the value of the label app.kubernetes.io/name.
type Daemon string

// The daemons.
const (
	Slurmctld  Daemon = "slurmctld"
	Slurmd     Daemon = "slurmd"
	Slurmdbd   Daemon = "slurmdbd"
	Slurmrestd Daemon = "slurmrestd"
	Login      Daemon = "login"
	// Validation are throwaway slurmctlds, which no Service may select.
	Validation Daemon = "slurmctld-trial"
)

// components are the values of the label app.kubernetes.io/component.
var components = map[Daemon]string{
	Slurmctld: "controller", Slurmd: "compute", Slurmdbd: "accounting", Slurmrestd: "restapi", Login: "login",
	Validation: "controller",
}

// Label keys that the operator puts on everything it makes.
const (
	labelName      = "app.kubernetes.io/name"
	labelInstance  = "app.kubernetes.io/instance"
	labelComponent = "app.kubernetes.io/component"
	labelPartOf    = "app.kubernetes.io/part-of"
	// LabelManagedBy marks what the operator made; its value is ManagedBy.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the operator's name, in labels and as the owner of fields.
	ManagedBy = "slurm-operator"
)

// AnnotationConfiguration on a pod template is the hash of the configuration that its pods start with: those that cannot
// reload it are replaced when it changes.
const AnnotationConfiguration = slinkyv1beta1.GroupName + "/configuration-hash"

// Labels are for everything that belongs to the daemon of one object.
func Labels(daemon Daemon, instance string) map[string]string {
	labels := Selector(daemon, instance)
	labels[labelComponent] = components[daemon]
	labels[labelPartOf] = "slurm"
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// Selector selects the pods of the daemon of one object. It never changes: selectors of workloads are immutable.
func Selector(daemon Daemon, instance string) map[string]string {
	return map[string]string{labelName: string(daemon), labelInstance: instance}
}

// Instance is the name of the object that the pod of a daemon belongs to. It returns false for everything else.
func Instance(daemon Daemon, labels map[string]string) (string, bool) {
	instance, found := labels[labelInstance]
	return instance, found && labels[labelName] == string(daemon) && labels[LabelManagedBy] == ManagedBy
}

// IsManaged reports whether labels are of an object that the operator makes, or of the pod of a daemon that it may take over.
func IsManaged(labels map[string]string) bool {
	if labels[LabelManagedBy] == ManagedBy {
		return true
	}
	_, daemon := components[Daemon(labels[labelName])]
	return daemon
}

// Merge puts the user's labels under the operator's own, which win: they select pods.
func Merge(user map[string]slinkyv1beta1.LabelValue, own map[string]string) map[string]string {
	merged := make(map[string]string, len(user)+len(own))
	for key, value := range user {
		merged[key] = string(value)
	}
	maps.Copy(merged, own)
	return merged
}

// Controller names the workload of a Controller, and the Service in front of it.
func Controller(controller string) string { return controller + "-controller" }

// StateClaim names the claim with the saved state of a Controller; empty when its state is not kept, or not here.
func StateClaim(controller *slinkyv1beta1.Controller) string {
	persistence := controller.Spec.Persistence
	if controller.Spec.External || persistence.Enabled != nil && !*persistence.Enabled {
		return ""
	}
	return cmp.Or(persistence.ExistingClaim, controller.Name+"-controller-state")
}

// Configuration names the ConfigMap with the configuration that slurmctld runs with, or starts with next.
func Configuration(controller string) string { return controller + "-config" }

// Candidate names the ConfigMap with the configuration that is being tried.
func Candidate(controller string) string { return controller + "-config-candidate" }

// ValidationPod names the pod that tries the configuration with a hash.
func ValidationPod(controller, hash string) string { return controller + "-trial-" + hash }

// Accounting names the workload of an Accounting, its Service and its Secret.
func Accounting(accounting string) string { return accounting + "-accounting" }

// AccountingPod names the pod of an Accounting.
func AccountingPod(accounting string) string { return Accounting(accounting) + "-0" }

// RestAPI names the workload of a RestApi, its Service and its ConfigMap.
func RestAPI(restAPI string) string { return restAPI + "-restapi" }

// LoginSet names the workload of a LoginSet and its Service.
func LoginSet(loginSet string) string { return loginSet }

// LoginHosts names the headless Service that gives each login pod a name in DNS.
func LoginHosts(loginSet string) string { return loginSet + "-hosts" }

// LoginConfiguration names the ConfigMap with the configuration of a LoginSet's sshd.
func LoginConfiguration(loginSet string) string { return loginSet + "-sshd" }

// LoginHostKeys names the Secret with the host keys of a LoginSet's sshd.
func LoginHostKeys(loginSet string) string { return loginSet + "-ssh-host-keys" }

// TokenSecret selects where a Token is kept.
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

// ClusterName is Slurm's name of the cluster.
func ClusterName(controller *slinkyv1beta1.Controller) string {
	if controller.Spec.ClusterName != "" {
		return controller.Spec.ClusterName
	}
	return controller.Namespace + "_" + controller.Name
}

// NodeSetHostKeys names the Secret with the host keys of the sshds of a NodeSet.
func NodeSetHostKeys(nodeSet string) string { return nodeSet + "-ssh-host-keys" }

// NodeSetPins names a ConfigMap with the Kubernetes nodes that ordinals of a NodeSet are pinned to.
func NodeSetPins(nodeSet string, shard int) string { return nodeSet + "-pins-" + strconv.Itoa(shard) }
