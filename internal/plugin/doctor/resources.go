package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// defaultClass is the annotation of the default StorageClass.
const defaultClass = "storageclass.kubernetes.io/is-default-class"

// unboundFor is how long a provisioner may take.
const unboundFor = 2 * time.Minute

// claims finds PVCs of the clusters that are lost, or not bound.
func claims(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.Claims.Items {
		claim := &s.Claims.Items[i]
		if !s.uses(claim) {
			continue
		}
		finding := Finding{
			Severity: Error, Check: "PVCPending", Object: "PersistentVolumeClaim/" + claim.Name, Namespace: claim.Namespace,
			Effect: "the pods that use it do not start",
			Fix:    kubectl(claim.Namespace, "describe", "persistentvolumeclaim", claim.Name),
			Docs:   "docs/installation.md#a-slurm-cluster",
		}
		switch claim.Status.Phase {
		case corev1.ClaimLost:
			finding.Check, finding.Problem = "PVCLost", "its PersistentVolume no longer exists"
			finding.Effect = "what it contained is gone: saved state, accounting or files of users"
			finding.Advice, finding.Docs = "restore it from a backup", "docs/backup.md#when-the-state-is-lost"
		case corev1.ClaimPending:
			if finding.Problem, finding.Advice = s.unbound(claim); finding.Problem == "" {
				continue
			}
			if fix := s.classFix(claim); fix != "" {
				finding.Fix = fix
			}
		case corev1.ClaimBound:
			continue
		default:
			continue
		}
		findings = append(findings, finding)
	}
	return findings
}

// uses reports whether a PVC belongs to a cluster: a pod of one uses it, or the operator made it.
func (s *Snapshot) uses(claim *corev1.PersistentVolumeClaim) bool {
	return naming.IsManaged(claim.Labels) || slices.ContainsFunc(s.Pods.Items, func(pod corev1.Pod) bool {
		_, _, _, ours := ownerOf(&pod)
		mounts := func(volume corev1.Volume) bool {
			return volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName == claim.Name
		}
		return ours && pod.Namespace == claim.Namespace && slices.ContainsFunc(pod.Spec.Volumes, mounts)
	})
}

// unbound returns why a PVC is not bound; empty if it still may be.
func (s *Snapshot) unbound(claim *corev1.PersistentVolumeClaim) (problem, advice string) {
	classes := s.StorageClasses.Items
	if name := claim.Spec.StorageClassName; name != nil && *name != "" && s.StorageClasses.Known {
		index := slices.IndexFunc(classes, func(class storagev1.StorageClass) bool { return class.Name == *name })
		if index < 0 {
			return fmt.Sprintf("it asks for the StorageClass %s, which does not exist; there are: %s", *name,
					classNames(classes)),
				"create the StorageClass; a PVC keeps the one that it asks for, so with another one it must be created again"
		}
		mode := classes[index].VolumeBindingMode
		if mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer {
			return "", "" // it waits for its pod; if that is not scheduled, that is the finding
		}
	}
	if name := claim.Spec.StorageClassName; name == nil && s.StorageClasses.Known {
		if !slices.ContainsFunc(classes, isDefault) {
			return "it asks for the default StorageClass, and there is none; there are: " + classNames(classes),
				"make one of them the default"
		}
	}
	if s.Now.Sub(claim.CreationTimestamp.Time) < unboundFor {
		return "", ""
	}
	return "it is not bound for " + s.age(claim.CreationTimestamp.Time), "see what its provisioner says"
}

func isDefault(class storagev1.StorageClass) bool { return class.Annotations[defaultClass] == "true" }

// classFix returns the command that makes the only StorageClass the default, if that is what is missing.
func (s *Snapshot) classFix(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName != nil || len(s.StorageClasses.Items) != 1 || isDefault(s.StorageClasses.Items[0]) {
		return ""
	}
	return "kubectl annotate --overwrite storageclass " + s.StorageClasses.Items[0].Name + " " + defaultClass + "=true"
}

func classNames(classes []storagev1.StorageClass) string {
	if len(classes) == 0 {
		return "none"
	}
	names := make([]string, len(classes))
	for i := range classes {
		names[i] = classes[i].Name
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

const evictionDocs = "docs/nodesets.md#evictions-and-kubectl-drain"

// budgets finds slurmd pods that may be evicted with their jobs, and budgets of others that block evictions.
func budgets(s *Snapshot) []Finding {
	if !s.Budgets.Known {
		return nil
	}
	var findings []Finding
	for i := range s.Objects.NodeSets {
		set := &s.Objects.NodeSets[i]
		finding := Finding{
			Severity: Warning, Check: "EvictionAllowed", Object: "NodeSet/" + set.Name, Namespace: set.Namespace,
			Effect: "kubectl drain, an autoscaler or a descheduler kills running jobs", Docs: evictionDocs,
		}
		own := slices.IndexFunc(s.Budgets.Items, func(budget policyv1.PodDisruptionBudget) bool {
			return budget.Namespace == set.Namespace && metav1.IsControlledBy(&budget, set)
		})
		switch wanted := set.Spec.WorkloadDisruptionProtection; {
		case wanted != nil && !*wanted:
			finding.Problem = "spec.workloadDisruptionProtection is false, so nothing refuses the eviction of its pods"
			finding.Advice = "protect its pods"
			finding.Fix = kubectl(set.Namespace, "patch", "nodeset", set.Name, "--type=merge",
				`--patch='{"spec":{"workloadDisruptionProtection":true}}'`)
		case own < 0 && set.Status.Replicas > 0:
			finding.Severity, finding.Problem = Error, "it has no PodDisruptionBudget, although it should"
			finding.Advice = "see why the operator does not create it"
			finding.Fix = kubectl(set.Namespace, "events", "--for=nodeset/"+set.Name)
		case own >= 0 && s.Budgets.Items[own].Status.DisruptionsAllowed > 0:
			budget := &s.Budgets.Items[own]
			finding.Severity, finding.Object = Error, "PodDisruptionBudget/"+budget.Name
			finding.Problem = fmt.Sprintf("it allows the eviction of %d pods that may have jobs",
				budget.Status.DisruptionsAllowed)
			finding.Advice = "put its value back; find out who changed it, and why the operator did not correct it"
			finding.Fix = kubectl(set.Namespace, "patch", "poddisruptionbudget", budget.Name, "--type=merge",
				`--patch='{"spec":{"minAvailable":2147483647,"maxUnavailable":null}}'`)
		default:
			continue
		}
		findings = append(findings, finding)
	}
	return append(findings, s.foreignBudgets()...)
}

// foreignBudgets finds budgets of others that select slurmd pods. The eviction API refuses pods with two budgets.
func (s *Snapshot) foreignBudgets() []Finding {
	var findings []Finding
	for i := range s.Budgets.Items {
		budget := &s.Budgets.Items[i]
		selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
		if err != nil || naming.IsManaged(budget.Labels) {
			continue
		}
		selected := slices.IndexFunc(s.Pods.Items, func(pod corev1.Pod) bool {
			daemon, _, _, ours := ownerOf(&pod)
			return ours && daemon == naming.Slurmd && pod.Namespace == budget.Namespace &&
				selector.Matches(labels.Set(pod.Labels)) && s.hasOwnBudget(&pod)
		})
		if selected < 0 {
			continue
		}
		findings = append(findings, Finding{
			Severity: Warning, Check: "ForeignBudget", Object: "PodDisruptionBudget/" + budget.Name,
			Namespace: budget.Namespace,
			Problem: fmt.Sprintf("it selects slurmd pods, such as %s, which have a budget of the operator already",
				s.Pods.Items[selected].Name),
			Effect: "the eviction API refuses pods with two budgets, so kubectl drain never ends, also without jobs",
			Advice: "exclude the label app.kubernetes.io/name: slurmd from its selector; delete it only if it protects nothing else",
			Fix:    kubectl(budget.Namespace, "edit", "poddisruptionbudget", budget.Name), Docs: evictionDocs,
		})
	}
	return findings
}

// hasOwnBudget reports whether a budget of the operator protects a slurmd pod.
func (s *Snapshot) hasOwnBudget(pod *corev1.Pod) bool {
	return slices.ContainsFunc(s.Budgets.Items, func(budget policyv1.PodDisruptionBudget) bool {
		set, owner := metav1.GetControllerOf(&budget), metav1.GetControllerOf(pod)
		return budget.Namespace == pod.Namespace && set != nil && owner != nil && set.UID == owner.UID
	})
}

// quotas finds quotas without room, if pods are missing. The condition QuotaExceeded is about a pod that was refused;
// this names the quota also for objects that others create, such as those of a Deployment.
func quotas(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.Quotas.Items {
		quota := &s.Quotas.Items[i]
		missing := slices.ContainsFunc(s.Objects.NodeSets, func(set slinkyv1beta1.NodeSet) bool {
			return set.Namespace == quota.Namespace && set.Status.Replicas < set.Status.Desired
		})
		if full := exhausted(quota); len(full) > 0 && missing {
			findings = append(findings, Finding{
				Severity: Error, Check: "Quota", Object: "ResourceQuota/" + quota.Name, Namespace: quota.Namespace,
				Problem: "it has no room for more pods: " + strings.Join(full, ", "),
				Effect:  "missing slurmd pods are not created; running jobs go on",
				Advice:  "raise the quota, or lower spec.replicas",
				Fix:     kubectl(quota.Namespace, "edit", "resourcequota", quota.Name),
				Docs:    "docs/installation.md#resourcequota-and-limitrange",
			})
		}
	}
	return findings
}

// exhausted returns the resources of a quota that are used up.
func exhausted(quota *corev1.ResourceQuota) []string {
	var full []string
	for name, hard := range quota.Status.Hard {
		if used := quota.Status.Used[name]; used.Cmp(hard) >= 0 && concernsPods(name) {
			full = append(full, fmt.Sprintf("%s %s of %s", name, used.String(), hard.String()))
		}
	}
	slices.Sort(full)
	return full
}

// concernsPods reports whether a resource of a quota limits pods.
func concernsPods(name corev1.ResourceName) bool {
	text := string(name)
	return slices.Contains([]string{"pods", "count/pods", "cpu", "memory"}, text) ||
		strings.HasPrefix(text, "requests.") && !strings.HasPrefix(text, "requests.storage") ||
		strings.HasPrefix(text, "limits.")
}
