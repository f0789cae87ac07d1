package plan

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// A Request is a ProvisioningRequest: it asks cluster-autoscaler for room for all pods of a group, before any of them
// is created.
type Request struct {
	Name string
	// Class is its provisioning class.
	Class string
	// Job is that of the group, 0 if it has none or if it is not known; SlurmNodes are those of the group, and Pods counts
	// those among them that had no pod.
	Job        int64
	SlurmNodes []string
	Pods       int
	Created    time.Time
	// Terminating says that it is being deleted.
	Terminating bool
	Answer      Answer
	// Message is cluster-autoscaler's own; it may be empty.
	Message string
}

// An Answer is what cluster-autoscaler says about a request.
type Answer uint8

// The answers.
const (
	// Unanswered means that there is no room yet; cluster-autoscaler may still find or make some.
	Unanswered Answer = iota
	// Provisioned means that there is room for all pods, or soon will be.
	Provisioned
	// Expired means that room is no longer kept for the pods. It is also set when all of them are scheduled.
	Expired
	// Refused means that there is no room, or no longer any.
	Refused
)

// describe returns what is known of a request.
func (r *Request) describe() string {
	if r.Message == "" {
		return "ProvisioningRequest " + r.Name
	}
	return fmt.Sprintf("ProvisioningRequest %s (%s)", r.Name, r.Message)
}

// indexRequests indexes the requests by their Slurm nodes, and finds those that pods use. Without a class, requests
// have no effect, and are withdrawn.
func (p *planner) indexRequests() {
	p.requests, p.used = map[string][]*Request{}, map[string]bool{}
	if p.Set.Elastic.Class == "" {
		return
	}
	for i := range p.Set.Elastic.Requests {
		request := &p.Set.Elastic.Requests[i]
		if request.Terminating {
			continue
		}
		for _, node := range request.SlurmNodes {
			p.requests[node] = append(p.requests[node], request)
		}
	}
	for i := range p.Pods {
		if !p.Pods[i].Terminating {
			p.used[p.Pods[i].Request] = true
		}
	}
}

// requestOf returns the request for a group; nil if there is none. Slurm nodes that have registered are no longer in
// the group, and those whose job was cancelled have no job.
func (p *planner) requestOf(group *group) *Request {
	for _, request := range p.requests[group.slots[0].SlurmNode] {
		if (group.job == 0 || request.Job == group.job) && !slices.ContainsFunc(group.slots, func(slot Slot) bool {
			return !slices.Contains(p.requests[slot.SlurmNode], request)
		}) {
			return request
		}
	}
	return nil
}

// refused reports whether cluster-autoscaler has no room for a request. That it keeps none any longer matters only
// before pods use the request: afterwards they may all be scheduled, or wait for Kubernetes nodes that are starting.
func (p *planner) refused(request *Request) bool {
	return request.Answer == Refused || request.Answer == Expired && !p.used[request.Name]
}

// failed reports whether a request was refused, or its pods did not start in time.
func (p *planner) failed(request *Request) bool {
	end := request.Created.Add(p.Set.Elastic.Start)
	p.wakeAt(end)
	return p.refused(request) || !p.Now.Before(end)
}

// provision returns the missing pods of a group if there is room for all of them, and asks for it before. If some of
// them exist by now, the others follow.
func (p *planner) provision(group *group, missing []Action) []Action {
	if p.Set.Elastic.Class == "" {
		return missing
	}
	request := p.requestOf(group)
	switch {
	case request == nil:
		return []Action{p.newRequest(group, len(missing))}
	case request.Answer == Provisioned || p.used[request.Name]:
		for i := range missing {
			missing[i].Request = request
		}
		return missing
	default:
		p.Elastic.Held = cmp.Or(p.Elastic.Held,
			fmt.Sprintf("the pods for %s wait for %s", group.describe(), request.describe()))
		return nil
	}
}

// newRequest asks for room for the missing pods of a group. The name differs between groups, so that no request is
// taken for that of another one.
func (p *planner) newRequest(group *group, pods int) Action {
	request := &Request{Class: p.Set.Elastic.Class, Job: group.job, Pods: pods}
	sum := fnv.New32a()
	for _, slot := range group.slots {
		request.SlurmNodes = append(request.SlurmNodes, slot.SlurmNode)
		_, _ = sum.Write([]byte(slot.SlurmNode + ",")) // it returns no error
	}
	purpose := "warm"
	switch {
	case group.unidentified:
		purpose = "job"
	case group.job != 0:
		purpose = fmt.Sprintf("job-%d", group.job)
	}
	request.Name = fmt.Sprintf("%s-%s-%08x", p.Set.Name, purpose, sum.Sum32())
	return Action{
		Kind: RequestCapacity, Request: request, Cause: group.cause(),
		Why: fmt.Sprintf("room is needed for %d pods for %s", pods, group.describe()),
	}
}

// withdraw deletes the requests that no group waits for. A failed one stays until all of its Slurm nodes are closed: it
// says which.
func (p *planner) withdraw(pods map[int]*Pod) {
	needed := map[string]bool{}
	for i := range p.groups {
		if request := p.requestOf(&p.groups[i]); request != nil {
			needed[request.Name] = true
		}
	}
	for i := range p.Set.Elastic.Requests {
		request := &p.Set.Elastic.Requests[i]
		failed := p.Set.Elastic.Class != "" && p.failed(request)
		switch {
		case request.Terminating:
		case failed && (needed[request.Name] || p.unclosed(request, pods)):
			if request.Answer == Unanswered || p.refused(request) { // otherwise there was room
				p.Elastic.Refusal = request.describe()
			}
		case needed[request.Name]:
		default:
			p.do(Action{Kind: Withdraw, Request: request, Cause: NoCause, Why: "no pods wait for it"})
		}
	}
}

// unclosed reports whether closeFailed has yet to close a Slurm node of a failed request, which is off, or about to be.
func (p *planner) unclosed(request *Request, pods map[int]*Pod) bool {
	return slices.ContainsFunc(p.Set.Elastic.Slots, func(slot Slot) bool {
		record, pod := p.slotRecord(slot), pods[slot.Ordinal]
		return record != nil && slices.Contains(p.requests[slot.SlurmNode], request) && !record.Closed() &&
			(!on(record) || record.Flags.Has(slurm.FlagPowerDown)) && (pod == nil || pod.Unscheduled)
	})
}
