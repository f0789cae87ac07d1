// Package worker builds the slurmd pods of a NodeSet: values in, objects out.
//
// Template builds what all pods of a NodeSet have in common; a revision consists of nothing else. It does not depend on
// other Slurm nodes, partitions or slurm.conf, because slurmd fetches its configuration from slurmctld: changes to them
// replace no pods. Pod adds to a template what differs between pods: name, Kubernetes node and volumes.
//
// slurmd gets the name of its Slurm node as an argument. It is also the pod's host name, except with hostNetwork. There
// is a startup probe, which succeeds once slurmd listens, and no other: a failing readiness probe would have no effect
// on the Slurm node, whose state is up to Slurm, and a liveness probe that restarts the container would kill all jobs.
package worker

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A Set is the input for all pods of a NodeSet.
type Set struct {
	NodeSet    *slinkyv1beta1.NodeSet
	Controller *slinkyv1beta1.Controller
	Images     naming.Images
	// SlurmKey selects the cluster's auth/slurm key.
	SlurmKey slinkyv1beta1.SecretKeyReference
	// ClusterDomain is the DNS domain of the Kubernetes cluster, such as cluster.local. Without it, pods do not resolve
	// each other's short names.
	ClusterDomain string
	// SlurmUser is the ID that slurmctld runs as.
	SlurmUser int64
	// Confined is true if slurmd confines jobs with cgroups.
	Confined bool
}

// annotationGres holds the part of gres.conf about a pod's devices, which is mounted as a file.
const annotationGres = "nodeset." + slinkyv1beta1.GroupName + "/gres-conf"

// Template returns the pod template of a NodeSet. Errors are shown to the user and name the field of the spec.
func Template(set Set) (corev1.PodTemplateSpec, error) {
	if set.NodeSet.Spec.Elastic != nil && set.Controller.Spec.External {
		return corev1.PodTemplateSpec{}, invalid.New("spec.elastic",
			"slurmctld runs outside Kubernetes, and the operator cannot add the records of elastic nodes to its slurm.conf; "+
				"create a NodeSet with replicas instead")
	}
	node, err := nodeconf.Of(set.NodeSet)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	template, err := podtemplate.Merge(operatorTemplate(set, node), set.NodeSet.Spec.Template,
		podtemplate.Part{Container: nodeconf.Container, Fragment: set.NodeSet.Spec.Slurmd})
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	podtemplate.Size(&template.Spec, helperContainer)
	template.Spec.Hostname = "" // only a prefix; Pod sets the host name
	template.Spec.Tolerations = tolerate(template.Spec.Tolerations)
	if set.Controller.Spec.External {
		template.Annotations[annotationExternal] = "true"
	}
	for i := range template.Spec.Containers {
		allowEscalation(template.Spec.Containers[i].SecurityContext)
	}
	return template, nil
}

// annotationExternal marks a pod whose slurmctld runs outside Kubernetes, and survives deletion of its Controller.
const annotationExternal = slinkyv1beta1.GroupName + "/external-controller"

// tolerate adds tolerations, so that Kubernetes does not evict a pod whose kubelet has been unreachable for five
// minutes. That eviction ignores PodDisruptionBudgets, and jobs keep running without a kubelet. Pods also run on
// Kubernetes nodes that another operator has reserved for slurmd. The user's own tolerations of these taints take
// precedence.
func tolerate(tolerations []corev1.Toleration) []corev1.Toleration {
	for _, taint := range []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
		{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		{Key: slinkyv1beta1.TaintWorker},
	} {
		if !slices.ContainsFunc(tolerations, func(toleration corev1.Toleration) bool { return toleration.Key == taint.Key }) {
			taint.Operator = corev1.TolerationOpExists
			tolerations = append(tolerations, taint)
		}
	}
	return tolerations
}

// allowEscalation unsets allowPrivilegeEscalation=false if the user grants privileges that Kubernetes rejects together
// with it.
func allowEscalation(security *corev1.SecurityContext) {
	if security == nil {
		return
	}
	privileged := security.Privileged != nil && *security.Privileged
	if privileged || security.Capabilities != nil && slices.Contains(security.Capabilities.Add, "SYS_ADMIN") {
		security.AllowPrivilegeEscalation = nil
	}
}

// operatorTemplate returns the operator's part of the template.
func operatorTemplate(set Set, node nodeconf.Node) corev1.PodTemplateSpec {
	nodeSet := set.NodeSet
	labels := naming.Labels(naming.Slurmd, nodeSet.Name)
	labels[naming.LabelController] = nodeSet.Spec.ControllerRef.Name
	labels[slinkyv1beta1.LabelScalingMode] = string(scalingMode(nodeSet))
	if nodeSet.Spec.Elastic != nil {
		labels[naming.LabelElastic] = "true"
	}
	annotations := map[string]string{
		"kubectl.kubernetes.io/default-container": nodeconf.Container,
		podtemplate.AnnotationCgroupConf:          slurmconf.CgroupsDisabled,
	}
	if set.Confined {
		annotations[podtemplate.AnnotationCgroupConf] = slurmconf.CgroupsEnabled
	}
	if node.HasDevices() {
		annotations[annotationGres] = node.GresConf(deviceDirectory)
	}
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations},
		Spec: corev1.PodSpec{
			Subdomain:                    naming.WorkerHosts(nodeSet.Spec.ControllerRef.Name),
			AutomountServiceAccountToken: new(false),
			EnableServiceLinks:           new(false),
			Containers:                   []corev1.Container{slurmdContainer(set, node)},
			Volumes:                      volumes(set.SlurmKey),
		},
	}
	addSSH(&template, nodeSet)
	template.Spec.InitContainers = append(template.Spec.InitContainers,
		podtemplate.HelperContainer(helperContainer, set.Images.Operator, helperNames(set)...))
	template.Spec.Volumes = append(template.Spec.Volumes, podtemplate.HelperVolume())
	if set.ClusterDomain != "" {
		domain := naming.WorkerDomain(nodeSet.Namespace, nodeSet.Spec.ControllerRef.Name, set.ClusterDomain)
		template.Spec.DNSConfig = &corev1.PodDNSConfig{Searches: []string{domain}}
	}
	if !nodeSet.Spec.OversubscribeNode {
		template.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: onePerNode()}
	}
	return template
}

// onePerNode schedules at most one slurmd pod of a namespace to each Kubernetes node.
//
// Kubernetes' own scheduler benchmarks with 5,000 Kubernetes nodes require 60 such pods per second, 85 with the
// equivalent spread constraint, and 270 without either. The difference does not justify a spread constraint, which
// ignores pods that do not have it themselves, and pods that are terminating.
func onePerNode() *corev1.PodAntiAffinity {
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

// slurmdArgs returns the arguments of slurmd: it starts as a dynamic node (-Z) that fetches its configuration, and as
// just booted (-b), so that slurmctld notices at once that the jobs of an earlier pod with the same name are lost.
//
// The slurmd of an elastic NodeSet has a record in slurm.conf, which describes it. With -Z it would not start.
func slurmdArgs(set Set, node nodeconf.Node) []string {
	if set.NodeSet.Spec.Elastic != nil {
		return []string{"-D", "-b", "--conf-server", strings.Join(naming.ControllerEndpoints(set.Controller), ",")}
	}
	return []string{
		"-D", "-b", "-Z",
		"--conf-server", strings.Join(naming.ControllerEndpoints(set.Controller), ","),
		"--conf", node.Conf(),
	}
}
