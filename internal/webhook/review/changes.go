package review

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
)

// A difference is the value of a field before and after a change.
type difference struct {
	field         string
	before, after any
}

// changed returns the fields that differ, as one text; empty if none does.
func changed(differences ...difference) string {
	var fields []string
	for _, each := range differences {
		if differ(each.before, each.after) {
			fields = append(fields, each.field)
		}
	}
	return strings.Join(fields, ", ")
}

func differ(before, after any) bool { return !equality.Semantic.DeepEqual(before, after) }

func controllerChanges(before, after *slinkyv1beta1.Controller, found Found) []Finding {
	was, is := &before.Spec, &after.Spec
	findings := append(clusterChanges(before, after, found), policyChanges(was, is)...)
	if is.External && !was.External {
		return append(findings, find("spec.external", "true",
			"slurmctld of StatefulSet %s keeps running, but the operator no longer manages it; delete the "+
				"StatefulSet when the other slurmctld has taken over",
			naming.Controller(after.Name)))
	}
	if was.External && !is.External {
		if naming.StateClaim(after) == "" {
			return append(findings, find("spec.external", "false",
				"a new slurmctld starts here, which knows no job of the external one; drain all nodes first, or their "+
					"jobs are lost"))
		}
		return append(findings, find("spec.external", "false",
			"a new slurmctld starts here, which knows the jobs of the external one only if PVC %s has its state; fill "+
				"it first, as docs/migrate.md says, or drain all nodes", naming.StateClaim(after)))
	}
	if is.External {
		return findings
	}
	switch from, to := naming.StateClaim(before), naming.StateClaim(after); {
	case from != "" && to != "" && from != to:
		findings = append(findings, find("spec.persistence", "",
			"slurmctld is replaced, and does not start from PVC %s unless that holds the state that PVC %s has; "+
				"copy it there first, or put the old value back", to, from))
	case from != to:
		findings = append(findings, find("spec.persistence", "",
			"slurmctld starts from another volume when no job runs, and knows nothing of jobs that wait; put the "+
				"old value back to keep them"))
	case differ(was.Persistence.PersistentVolumeClaimSpec, is.Persistence.PersistentVolumeClaimSpec) &&
		found.Objects[Target{ClaimKind, to}].Object != nil:
		findings = append(findings, find("spec.persistence", "",
			"PVC %s is created once and not changed after that, so this has no effect; change the PVC itself, as "+
				"far as its storage class allows", to))
	}
	if fields := strings.Join(podshape.Changed(podshape.OfController(was), podshape.OfController(is)),
		", "); fields != "" {
		effect := "slurmctld's pod is replaced; commands wait for some seconds, and running jobs go on"
		if !clusterconf.KeepsState(before, after) {
			effect = "slurmctld's pod is replaced when no job runs, because the new one does not have its state " +
				"(spec.persistence), and jobs end with that; to replace it now, and lose jobs, delete the pod"
		}
		findings = append(findings, find(fields, "", "%s", effect))
	}
	findings = append(findings, controllerCosts(before, after, found)...)
	if was.AccountingRef != nil && differ(was.AccountingRef, is.AccountingRef) {
		findings = append(findings,
			find("spec.accountingRef", "",
				"the history of jobs, users and limits stays in the database of Accounting %s; put the old value back "+
					"if that is not intended",
				was.AccountingRef.Name))
	}
	return findings
}

// policyChanges warns that a changed policy revokes nothing.
func policyChanges(was, is *slinkyv1beta1.ControllerSpec) []Finding {
	if is.TokenPolicy == nil || !differ(was.TokenPolicy, is.TokenPolicy) {
		return nil
	}
	return []Finding{find("spec.tokenPolicy", "",
		"the Secrets of Tokens that it forbids are deleted, but tokens that were read from them stay valid until they "+
			"expire; rotate the JWT key to revoke all, as docs/keys.md says")}
}

// clusterChanges returns warnings about changes that affect every node of a cluster: the key, and the hosts of
// slurmctld.
func clusterChanges(before, after *slinkyv1beta1.Controller, found Found) []Finding {
	var findings []Finding
	was, is := slurmKey(before, found), slurmKey(after, found)
	if was != nil && is != nil && *was != *is {
		fields := changed(
			difference{"spec.slurmKeyRef", before.Spec.SlurmKeyRef, after.Spec.SlurmKeyRef},
			difference{"spec.accountingRef", before.Spec.AccountingRef, after.Spec.AccountingRef},
		)
		findings = append(findings, find(fields, is.Name,
			"daemons with different keys refuse each other: unless this Secret holds the key that the cluster runs "+
				"with, no configuration is applied any more; docs/keys.md describes how to change a key"))
	} else if slices.Equal(naming.ControllerEndpoints(before), naming.ControllerEndpoints(after)) {
		return nil
	}
	pods := 0
	for i := range found.NodeSets {
		pods += int(found.NodeSets[i].Status.Replicas)
	}
	if pods > 0 {
		fields := changed(
			difference{"spec.external", before.Spec.External, after.Spec.External},
			difference{"spec.externalConfig", before.Spec.ExternalConfig, after.Spec.ExternalConfig},
			difference{"spec.ha", before.Spec.HA, after.Spec.HA},
			difference{"spec.slurmKeyRef", before.Spec.SlurmKeyRef, after.Spec.SlurmKeyRef},
			difference{"spec.accountingRef", before.Spec.AccountingRef, after.Spec.AccountingRef},
		)
		findings = append(findings, find(fields, "",
			"slurmd pods are created with the key and the hosts of the cluster: all %d are replaced, each when its "+
				"jobs have ended, and so are login pods, with the sessions in them", pods))
	}
	return findings
}

// slurmKey returns the auth/slurm key of a cluster; nil if it comes from an Accounting that was not found.
func slurmKey(controller *slinkyv1beta1.Controller, found Found) *slinkyv1beta1.SecretKeyReference {
	var accounting *slinkyv1beta1.Accounting
	if reference := controller.Spec.AccountingRef; reference != nil && controller.Spec.SlurmKeyRef == nil {
		if accounting = as[*slinkyv1beta1.Accounting](found, AccountingKind, reference.Name); accounting == nil {
			return nil
		}
	}
	return new(naming.ControllerKeys(controller, accounting).Slurm)
}

func nodeSetChanges(before, after *slinkyv1beta1.NodeSet, found Found) []Finding {
	was, is := &before.Spec, &after.Spec
	var findings []Finding
	pods := after.Status.Replicas
	if fields := changed(
		difference{"spec.scalingMode", was.ScalingMode, is.ScalingMode},
		difference{"spec.ordinalPadding", was.OrdinalPadding, is.OrdinalPadding},
	); fields != "" && pods > 0 {
		findings = append(findings, find(fields, "",
			"pods and their Slurm nodes get other names when they are re-created, and do not find the PVCs of the "+
				"old ones; existing pods keep their names until then; create another NodeSet to avoid a mix"))
	}
	if fields := strings.Join(podshape.Changed(podshape.OfNodeSet(was), podshape.OfNodeSet(is)), ", "); fields != "" &&
		pods > 0 {
		findings = append(findings,
			find(fields, "", "%d pods are of an older revision: %s", pods, rollout(is, found.Now)))
	}
	findings = append(findings, nodeSetCosts(before, after, found)...)
	if len(is.VolumeClaimTemplates) == 0 {
		return findings
	}
	policy := func(policy slinkyv1beta1.PVCRetentionPolicyType) bool { return policy == slinkyv1beta1.DeletePVC }
	wasPolicy, isPolicy := was.PersistentVolumeClaimRetentionPolicy, is.PersistentVolumeClaimRetentionPolicy
	if policy(isPolicy.WhenScaled) && !policy(wasPolicy.WhenScaled) {
		findings = append(findings, find("spec.persistentVolumeClaimRetentionPolicy.whenScaled", "Delete",
			"from now on the PVCs of a pod that is scaled in are deleted with their data; use Retain to keep them"))
	}
	if policy(isPolicy.WhenDeleted) && !policy(wasPolicy.WhenDeleted) {
		findings = append(findings, find("spec.persistentVolumeClaimRetentionPolicy.whenDeleted", "Delete",
			"the PVCs of all pods will be deleted with their data when this NodeSet is deleted; use Retain to keep them"))
	}
	return findings
}

// rollout describes how a changed template is rolled out.
func rollout(spec *slinkyv1beta1.NodeSetSpec, now time.Time) string {
	strategy := spec.UpdateStrategy
	switch strategy.Type {
	case slinkyv1beta1.OnDelete:
		return "each stays until it is deleted by hand"
	case slinkyv1beta1.ScheduledUpdate:
		if window := strategy.ScheduledUpdate; window != nil && window.StartTime != nil &&
			now.Before(window.StartTime.Time) {
			return fmt.Sprintf("they are replaced from %s on, each when its jobs have ended",
				window.StartTime.UTC().Format(time.RFC3339))
		}
		return "they are replaced in the window of spec.updateStrategy.scheduledUpdate, each when its jobs have ended"
	case slinkyv1beta1.RollingUpdate:
	}
	share := "25%"
	if rolling := strategy.RollingUpdate; rolling != nil && rolling.MaxUnavailable != nil {
		share = rolling.MaxUnavailable.String()
	}
	return fmt.Sprintf("each is drained and replaced when its jobs have ended, at most %s at a time", share)
}

func loginSetChanges(before, after *slinkyv1beta1.LoginSet, _ Found) []Finding {
	fields := strings.Join(podshape.Changed(podshape.OfLoginSet(&before.Spec), podshape.OfLoginSet(&after.Spec)), ", ")
	if fields == "" || after.Status.Replicas == 0 {
		return nil
	}
	return []Finding{
		find(fields, "", "all %d login pods are replaced, and sessions in them end; jobs go on", after.Status.Replicas),
	}
}

func accountingChanges(before, after *slinkyv1beta1.Accounting, _ Found) []Finding {
	was, is := &before.Spec, &after.Spec
	var findings []Finding
	if is.External && !was.External {
		findings = append(findings, find("spec.external", "true",
			"slurmdbd and its Service are deleted here, and clusters report to %s; what is in the database stays there", is.ExternalConfig.Host))
	}
	if was.StorageConfig != nil && is.StorageConfig != nil {
		if fields := changed(
			difference{"spec.storageConfig.host", was.StorageConfig.Host, is.StorageConfig.Host},
			difference{"spec.storageConfig.port", was.StorageConfig.Port, is.StorageConfig.Port},
			difference{"spec.storageConfig.database", was.StorageConfig.Database, is.StorageConfig.Database},
		); fields != "" {
			findings = append(findings,
				find(fields, "",
					"slurmdbd restarts on another database: the history of jobs, users and limits stays in %s on %s; "+
						"copy it first",
					was.StorageConfig.Database, was.StorageConfig.Host))
		}
	}
	if naming.AccountingKeys(before).Slurm != naming.AccountingKeys(after).Slurm {
		findings = append(findings, find("spec.slurmKeyRef", naming.AccountingKeys(after).Slurm.Name,
			"daemons with different keys refuse each other: unless this Secret holds the key that the clusters run "+
				"with, slurmdbd loses them; docs/keys.md describes how to change a key"))
	}
	return findings
}

func tokenChanges(before, after *slinkyv1beta1.Token, _ Found) []Finding {
	was, is := naming.TokenSecret(before), naming.TokenSecret(after)
	if was.Name == is.Name || before.Status.ExpiresAt == nil {
		return nil
	}
	fields := changed(
		difference{"spec.username", before.Spec.Username, after.Spec.Username},
		difference{"spec.secretRef", before.Spec.SecretRef, after.Spec.SecretRef},
	)
	return []Finding{find(fields, "",
		"the token moves to Secret %s, and Secret %s is deleted: change what reads it; the token of %s "+
			"in it is good until %s",
		is.Name, was.Name, before.Spec.Username, before.Status.ExpiresAt.UTC().Format(time.RFC3339))}
}
