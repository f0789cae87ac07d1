package review

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// Controllers reviews Controllers.
var Controllers = Reviewer[*slinkyv1beta1.Controller]{
	Spec: func(controller *slinkyv1beta1.Controller) any {
		return []any{controller.Spec, clusterconf.DespiteJobs(controller)}
	},
	References: controllerReferences,
	Cluster:    func(controller *slinkyv1beta1.Controller) string { return controller.Name },
	Faults:     controllerFaults,
	Cautions:   controllerCautions,
	Changes:    controllerChanges,
}

// noConfiguration is the effect of a missing object that a Controller references.
const noConfiguration = "slurmctld keeps the configuration that it has, or does not start"

func controllerReferences(controller *slinkyv1beta1.Controller) []Reference {
	spec := &controller.Spec
	var references []Reference
	if spec.AccountingRef != nil {
		references = append(references,
			named("spec.accountingRef.name", AccountingKind, spec.AccountingRef.Name, noConfiguration))
	}
	references = append(references, secretKey("spec.slurmKeyRef", spec.SlurmKeyRef, noConfiguration)...)
	references = append(references, secretKey("spec.jwtKeyRef", spec.JWTKey(), noConfiguration)...)
	references = append(references, configMapKey("spec.jwksKeyRef", spec.JWKSKeyRef, noConfiguration)...)
	for _, group := range clusterconf.Groups(controller) {
		for i, file := range group.References {
			references = append(references,
				named(fmt.Sprintf("%s[%d].name", group.Field, i), ConfigMapKind, file.Name, noConfiguration))
		}
	}
	if !spec.External {
		references = append(references, lookUp(ConfigMapKind, naming.Configuration(controller.Name)))
	}
	switch claim := spec.Persistence.ExistingClaim; {
	case naming.StateClaim(controller) == "":
	case claim != "":
		references = append(references,
			named("spec.persistence.existingClaim", ClaimKind, claim, "slurmctld does not start"))
	default:
		references = append(references, lookUp(ClaimKind, naming.StateClaim(controller)))
	}
	return references
}

func controllerFaults(controller *slinkyv1beta1.Controller, found Found) []Finding {
	spec := &controller.Spec
	var findings []Finding
	if err := clusterconf.CheckName(controller); err != nil {
		findings = append(findings, find("spec.clusterName", "", "%v", err))
	}
	if modes := spec.Persistence.AccessModes; spec.HA.Enabled && spec.Persistence.ExistingClaim == "" &&
		len(modes) > 0 && !shared(modes) {
		findings = append(findings, find("spec.persistence.accessModes", fmt.Sprint(modes),
			"with spec.ha.enabled slurmctlds on several Kubernetes nodes share the saved state; use ReadWriteMany, and a "+
				"storage class that has it"))
	}
	return append(findings, extraConfFaults(controller, found)...)
}

func shared(modes []corev1.PersistentVolumeAccessMode) bool {
	return slices.Contains(modes, corev1.ReadWriteMany)
}

func controllerCautions(controller *slinkyv1beta1.Controller, found Found) []Finding {
	if controller.Spec.External {
		return externalCautions(controller)
	}
	findings := configurationCautions(controller, found)
	claim := as[*corev1.PersistentVolumeClaim](found, ClaimKind, naming.StateClaim(controller))
	if controller.Spec.HA.Enabled && claim != nil && !shared(claim.Spec.AccessModes) {
		findings = append(findings, find("spec.ha.enabled", "true",
			"PVC %s of the saved state has access modes %v, so a backup on another Kubernetes node cannot start; "+
				"copy the state to a ReadWriteMany PVC and name it in spec.persistence.existingClaim",
			claim.Name, claim.Spec.AccessModes))
	}
	if hostNetwork(controller.Spec.Template) {
		findings = append(findings, find("spec.template.spec.hostNetwork", "true",
			"the pod then has the host name of its Kubernetes node, which is not that of a SlurmctldHost, and "+
				"slurmctld does not start; remove it"))
	}
	if controller.Spec.JobConfinement == slinkyv1beta1.JobConfinementNone {
		findings = append(findings, find("spec.jobConfinement", string(controller.Spec.JobConfinement),
			"a job that exceeds the memory of its pod ends slurmd and all other jobs on the node; use Cgroups unless slurmd "+
				"pods may not have the privileges for it"))
	}
	limit, nodes := controller.Spec.MaxNodeCount, controller.Status.Nodes
	if limit != nil && nodes != nil && nodes.Total > *limit {
		findings = append(findings, find("spec.maxNodeCount", strconv.Itoa(int(*limit)),
			"%d nodes are registered, and slurmctld would drop those beyond the limit, so it stays at their number; "+
				"remove nodes first", nodes.Total))
	}
	return findings
}

// externalCautions returns warnings about fields that have no effect.
func externalCautions(controller *slinkyv1beta1.Controller) []Finding {
	const message = "it has no effect while spec.external is true, because slurmctld has a configuration of its " +
		"own; put it there, and remove it here"
	var findings []Finding
	if controller.Spec.ExtraConf != "" {
		findings = append(findings, find("spec.extraConf", "", message))
	}
	for _, group := range clusterconf.Groups(controller) {
		if len(group.References) > 0 {
			findings = append(findings, find(group.Field, "", message))
		}
	}
	return findings
}

// hostNetwork reports whether the pods of a template use the host network.
func hostNetwork(template slinkyv1beta1.PodTemplate) bool {
	var spec struct {
		HostNetwork bool `json:"hostNetwork"`
	}
	return !template.Spec.IsZero() && json.Unmarshal(template.Spec.Raw, &spec) == nil && spec.HostNetwork
}
