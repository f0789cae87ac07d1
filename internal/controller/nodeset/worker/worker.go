// Package worker builds the slurmd pods of a NodeSet: values in, objects out.
//
// Template is what all pods of a set have in common, and all that a revision is made of. Nothing in it depends on the
// other nodes, on partitions or on slurm.conf, because slurmd fetches its configuration from slurmctld: no change of
// these replaces a pod. Pod adds to a template what tells one pod from another: its name, its place and its volumes.
//
// slurmd is told the name of its Slurm node, which is also the pod's host name unless the pod is on the host's network.
// Readiness is asked for until slurmd listens and never again: a probe that fails would change nothing about the node,
// whose state is Slurm's to tell, and a probe that restarts the container would end every job in it.
package worker

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
)

// A Set is what all pods of a NodeSet are made from.
type Set struct {
	NodeSet    *slinkyv1beta1.NodeSet
	Controller *slinkyv1beta1.Controller
	Images     naming.Images
	// SlurmKey selects the cluster's auth/slurm key.
	SlurmKey slinkyv1beta1.SecretKeyReference
	// ClusterDomain is the DNS domain of the Kubernetes cluster, such as cluster.local. Without it pods find each other
	// by long names only.
	ClusterDomain string
}

// annotationGres on a pod is the part of gres.conf about its devices, which it reads as a file.
const annotationGres = "nodeset." + slinkyv1beta1.GroupName + "/gres-conf"

// Template is what all pods of a set have in common. Its errors are for the user to read: they name the field of the
// spec.
func Template(set Set) (corev1.PodTemplateSpec, error) {
	node, err := nodeconf.Of(set.NodeSet)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	template, err := podtemplate.Merge(own(set, node), set.NodeSet.Spec.Template,
		podtemplate.Part{Container: nodeconf.Container, Fragment: set.NodeSet.Spec.Slurmd})
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	template.Spec.Hostname = "" // a prefix, which Pod completes
	template.Spec.Tolerations = outlast(template.Spec.Tolerations)
	if set.Controller.Spec.External {
		template.Annotations[annotationExternal] = "true"
	}
	for i := range template.Spec.Containers {
		permit(template.Spec.Containers[i].SecurityContext)
	}
	return template, nil
}

// annotationExternal on a pod says that its slurmctld runs outside Kubernetes, and so outlives its Controller.
const annotationExternal = slinkyv1beta1.GroupName + "/external-controller"

// outlast adds what keeps Kubernetes from evicting a pod when its kubelet has not been heard from for five minutes.
// That eviction asks no PodDisruptionBudget, and jobs go on without a kubelet. What the user says about these taints
// stays.
func outlast(tolerations []corev1.Toleration) []corev1.Toleration {
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if !slices.ContainsFunc(tolerations, func(toleration corev1.Toleration) bool { return toleration.Key == key }) {
			tolerations = append(tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
			})
		}
	}
	return tolerations
}

// permit takes back our ban on privilege escalation where the user grants what Kubernetes does not allow beside it.
func permit(security *corev1.SecurityContext) {
	if security == nil {
		return
	}
	privileged := security.Privileged != nil && *security.Privileged
	if privileged || security.Capabilities != nil && slices.Contains(security.Capabilities.Add, "SYS_ADMIN") {
		security.AllowPrivilegeEscalation = nil
	}
}

// own is the operator's part of the template.
func own(set Set, node nodeconf.Node) corev1.PodTemplateSpec {
	nodeSet := set.NodeSet
	labels := naming.Labels(naming.Slurmd, nodeSet.Name)
	labels[naming.LabelController] = nodeSet.Spec.ControllerRef.Name
	labels[slinkyv1beta1.LabelScalingMode] = string(scalingMode(nodeSet))
	annotations := map[string]string{"kubectl.kubernetes.io/default-container": nodeconf.Container}
	if node.HasDevices() {
		annotations[annotationGres] = node.GresConf(deviceDirectory)
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			Subdomain:                    naming.WorkerHosts(nodeSet.Spec.ControllerRef.Name),
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			Containers:                   []corev1.Container{slurmd(set, node)},
			Volumes:                      volumes(set.SlurmKey),
		},
	}
	addSSH(&template, nodeSet)
	if set.ClusterDomain != "" {
		domain := naming.WorkerDomain(nodeSet.Namespace, nodeSet.Spec.ControllerRef.Name, set.ClusterDomain)
		template.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{domain}}
	}
	if !nodeSet.Spec.OversubscribeNode {
		template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart()}
	}
	return template
}

// apart keeps slurmd pods of a namespace off each other's Kubernetes nodes.
//
// In Kubernetes' own measurements with 5,000 nodes the scheduler must place 60 such pods a second, and 85 with a spread
// constraint, which can do the same; without either 270. The difference does not make up for what a spread constraint
// leaves out: pods that do not have it themselves, and pods that are about to end.
func apart() *corev1.PodAntiAffinity {
	return &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey:   corev1.LabelHostname,
		LabelSelector: &metav1.LabelSelector{MatchLabels: naming.DaemonSelector(naming.Slurmd)},
	}}}
}

func scalingMode(nodeSet *slinkyv1beta1.NodeSet) slinkyv1beta1.ScalingMode {
	if nodeSet.Spec.ScalingMode == "" {
		return slinkyv1beta1.ScalingModeStatefulSet
	}
	return nodeSet.Spec.ScalingMode
}

// command is how slurmd is started: as a dynamic node (-Z) that fetches its configuration, and as one that was just
// booted (-b), so that slurmctld notices at once that jobs of an earlier pod of the same name are gone.
func command(set Set, node nodeconf.Node) []string {
	return []string{
		"/usr/sbin/slurmd", "-D", "-b", "-Z",
		"--conf-server", strings.Join(naming.ControllerEndpoints(set.Controller), ","),
		"--conf", node.Conf(),
	}
}
