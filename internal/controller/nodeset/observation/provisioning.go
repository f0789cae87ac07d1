package observation

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/provisioning"
)

// Request converts a ProvisioningRequest for package plan. One whose annotations were changed is for no Slurm node, and
// so it is withdrawn.
func Request(request *provisioning.Request) plan.Request {
	is := plan.Request{
		Name: request.Name, Class: request.Spec.ClassName, Created: request.CreationTimestamp.Time,
		Terminating: request.DeletionTimestamp != nil,
	}
	for _, podSet := range request.Spec.PodSets {
		is.Pods += int(podSet.Count)
	}
	is.Answer, is.Message = answer(request)
	job, err := strconv.ParseInt(request.Annotations[provisioning.AnnotationJob], 10, 64)
	if err != nil {
		return is
	}
	is.Job = job
	is.SlurmNodes, _ = hostlist.Expand(request.Annotations[provisioning.AnnotationSlurmNodes], maxSlurmNodes)
	return is
}

// maxSlurmNodes is how many Slurm nodes a NodeSet has at most.
const maxSlurmNodes = 65536

// answer returns what cluster-autoscaler says about a request, the latest first: it only adds conditions.
func answer(request *provisioning.Request) (plan.Answer, string) {
	for _, known := range []struct {
		condition string
		answer    plan.Answer
	}{
		{provisioning.ConditionFailed, plan.Refused},
		{provisioning.ConditionCapacityRevoked, plan.Refused},
		{provisioning.ConditionBookingExpired, plan.Expired},
		{provisioning.ConditionProvisioned, plan.Provisioned},
	} {
		if meta.IsStatusConditionTrue(request.Status.Conditions, known.condition) {
			return known.answer, message(request, known.condition)
		}
	}
	return plan.Unanswered, message(request, provisioning.ConditionProvisioned)
}

// message returns the message of a condition; empty if there is none.
func message(request *provisioning.Request, kind string) string {
	condition := meta.FindStatusCondition(request.Status.Conditions, kind)
	if condition == nil {
		return ""
	}
	return cmp.Or(condition.Message, condition.Reason)
}
