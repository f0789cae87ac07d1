package plan

// A Mark is who set the cordon annotation of a pod.
type Mark uint8

// The marks.
const (
	// Unmarked: the pod does not have the annotation.
	Unmarked Mark = iota
	// Marked: the operator set it, because the pod is scaled in.
	Marked
	// PartlyMarked: the operator set it, and a user has changed or removed it since.
	PartlyMarked
	// MarkedByOthers: a user or a tool set it, to whichever value. The operator never changes it.
	MarkedByOthers
)

// mark marks the pods that wait for their scale-in, and removes the operator's marks from all others. Marks are for
// users and tools. No decision depends on one: why a Slurm node is drained is recorded in Slurm alone.
func (p *planner) mark() {
	if !p.Answers || p.Slurm == nil || p.Set.Deleting {
		return // without Slurm, other pods may be chosen
	}
	deleted := p.Deleted()
	for i := range p.Pods {
		pod := &p.Pods[i]
		scaledIn := p.leaving[pod.Name] == ScaleIn
		switch {
		case pod.Terminating || deleted[pod.Name]:
		case scaledIn && pod.Mark == Unmarked:
			p.do(Action{
				Kind: MarkPod, Pod: pod, SlurmNode: pod.SlurmNode, Cause: ScaleIn, Why: "it waits for its scale-in",
			})
		case !scaledIn && pod.Mark == Marked, pod.Mark == PartlyMarked:
			p.do(Action{
				Kind: UnmarkPod, Pod: pod, SlurmNode: pod.SlurmNode, Cause: NoCause, Why: "its mark is out of date",
			})
		}
	}
}
