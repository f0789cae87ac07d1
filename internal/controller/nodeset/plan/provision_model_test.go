package plan_test

import (
	"maps"
	"slices"

	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/plan"
)

// runAutoscaler answers requests for room, and removes those that are deleted.
func (w *elasticModel) runAutoscaler() {
	free := w.places
	for _, pod := range w.pods {
		if !pod.Unscheduled {
			free--
		}
	}
	w.requests = slices.DeleteFunc(w.requests, func(request *plan.Request) bool {
		return request.Terminating && w.rand.IntN(3) == 0
	})
	for _, request := range w.requests {
		switch {
		case request.Answer == plan.Unanswered && w.rand.IntN(20) == 0 && request.Pods <= free:
			request.Answer = plan.Provisioned
		case request.Answer == plan.Unanswered && w.rand.IntN(100) == 0:
			request.Answer = plan.Refused
		case request.Answer == plan.Provisioned && w.rand.IntN(100) == 0:
			request.Answer = plan.Expired
		default:
			continue
		}
		w.note("autoscaler: the answer to %s is %d", request.Name, request.Answer)
	}
}

// ask creates or deletes a request for room.
func (w *elasticModel) ask(action plan.Action) {
	at := slices.IndexFunc(w.requests, func(known *plan.Request) bool { return known.Name == action.Request.Name })
	switch {
	case action.Kind == plan.Withdraw:
		w.requests[at].Terminating = true
	case at < 0:
		made := *action.Request
		made.Created = w.now
		w.requests = append(w.requests, &made)
	case !w.requests[at].Terminating: // otherwise its name is taken until then
		w.violate("%s is requested twice", action.Request.Name)
	}
}

// hasRoom reports whether a new pod may be created: it replaces a lost one, or there is room for all pods of its group.
func (w *elasticModel) hasRoom(action plan.Action) bool {
	if w.sizes.Class == "" || action.Cause == plan.Missing {
		return true
	}
	return action.Request != nil && (action.Request.Answer == plan.Provisioned ||
		slices.ContainsFunc(slices.Collect(maps.Values(w.pods)), func(pod *plan.Pod) bool {
			return pod.Request == action.Request.Name
		}))
}
