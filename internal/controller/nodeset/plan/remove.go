package plan

import "time"

// remove deletes the chosen pods that the deletion rule releases, those that have exited, those whose record Slurm has
// lost, and those whose Slurm node is powered down.
func (p *planner) remove() {
	for i := range p.Pods {
		pod := &p.Pods[i]
		cause, leaving := p.leaving[pod.Name]
		switch {
		case pod.Terminating:
			continue
		case p.poweredOff(pod) && cause != ScaleIn && cause != Deletion:
			cause = PoweredDown // its name must be free for the next power-up
		case leaving:
		case pod.Exited:
			cause = Exited
		case p.lost(pod):
			cause = Lost
		default:
			continue
		}
		hold := p.Release(pod)
		if hold.Kind == NotHeld && cause == Updating {
			hold = p.canary(pod)
		}
		if hold.Kind == NotHeld {
			p.do(Action{
				Kind: Delete, Pod: pod, SlurmNode: pod.SlurmNode, Cause: cause, Why: removalReasons[cause],
				ScaledIn: p.scaledIn(pod, cause),
			})
			continue
		}
		p.Waits = append(p.Waits, Wait{Pod: pod, Cause: cause, Hold: hold})
		switch hold.Kind { //nolint:exhaustive // no read of Slurm ends the others
		case Unproven:
			p.refresh(pod.SlurmNode)
		case Unlocated:
			p.refreshRarely(pod.SlurmNode)
		}
		if hold.Kind != Jobs {
			p.wakeAt(hold.Until)
		}
	}
}

// unlocatedPause is how often Slurm is read to see whether all jobs that are being cleaned up are on known Slurm nodes.
// In a large cluster such a read takes seconds, and there may be such jobs at any time.
const unlocatedPause = time.Minute

// refreshRarely asks for a newer record of a Slurm node, unless the last list is recent.
func (p *planner) refreshRarely(node string) {
	if due := p.Slurm.NodesAsOf.Add(unlocatedPause); p.Now.Before(due) {
		p.wakeAt(due)
		return
	}
	p.refresh(node)
}

// lost reports whether Slurm has lost the record of a pod's node: a slurmctld that crashed, a restored backup that is
// older than the node, or a record that was deleted by hand. slurmd does not register again by itself. One that was
// never seen registered counts if slurmctld has started after it; otherwise it has not registered at all, and a new pod
// would not either.
func (p *planner) lost(pod *Pod) bool {
	if !p.Answers || p.Slurm == nil || pod.ReadySince.IsZero() || p.record(pod) != nil {
		return false
	}
	if !pod.Registered && !p.Slurm.ControllerSince.After(pod.Started) {
		return false
	}
	since, known := p.DrainedSince[pod.SlurmNode]
	if !known {
		p.refreshAll()
		return false
	}
	replaced := since.Add(p.Set.Registration)
	p.wakeAt(replaced)
	return !p.Now.Before(replaced)
}

// scaledIn reports whether the pod's ordinal or Kubernetes node has left the NodeSet, so that the retention policy
// decides about its PVCs. A taint, or a Node object that is deleted and registers again, is no such decision.
func (p *planner) scaledIn(pod *Pod, cause Cause) bool {
	if cause != ScaleIn {
		return false
	}
	node, known := p.KubernetesNodes[pod.KubernetesNode]
	return !p.Set.DaemonSet || known && !node.Selected
}

var removalReasons = map[Cause]string{
	ScaleIn:     "the NodeSet needs fewer pods",
	Updating:    "its revision is out of date",
	Deletion:    "its NodeSet is being deleted",
	Exited:      "it has exited",
	PoweredDown: "its Slurm node is powered down",
	Lost:        "Slurm has lost the record of its node, and slurmd does not register again by itself",
}
