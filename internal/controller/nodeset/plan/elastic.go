package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/schedule"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

// An Elastic says how many pods an elastic NodeSet may have, and when. Slurm decides which: it has a record for each of
// its nodes, and powers those up that a job needs. All decisions are based on Slurm's states, and recorded there.
type Elastic struct {
	// Ended says that the NodeSet is no longer elastic. Slots are the Slurm nodes whose records are left; they are closed,
	// so that slurmctld can remove the records.
	Ended bool
	// Min is how many Slurm nodes always stay up, Warm how many idle ones, and Max how many there are.
	Min, Warm, Max int
	// Schedules say when more idle Slurm nodes than Warm stay up.
	Schedules []schedule.Window
	// Idle is how long a Slurm node is idle before it is powered down.
	Idle time.Duration
	// Start is how long the pods for a job may take until all their Slurm nodes have registered.
	Start time.Duration
	// Backoff is how long Slurm nodes stay closed that could not be started.
	Backoff time.Duration
	// Slots are the Slurm nodes that have a record in slurm.conf, or should have one, ordered by ordinal.
	Slots []Slot
	// Class is the provisioning class of the requests for room that precede pods; empty if there are none. Requests are
	// those that exist.
	Class    string
	Requests []Request
}

// A Slot is a Slurm node of an elastic NodeSet, with or without a pod.
type Slot struct {
	Ordinal   int
	SlurmNode string
	// Outdated says that its record in slurm.conf is not as the spec wants it. It is changed, or removed, while the Slurm
	// node is drained.
	Outdated bool
	// Mismatched says that the record also promises something else than a pod of the spec has: slurmctld might refuse its
	// slurmd, or a job might lack what it asked for.
	Mismatched bool
	// Pending says that slurmctld does not run with the latest configuration yet, so that its record may be about to
	// change: the Slurm node is neither opened nor closed meanwhile.
	Pending bool
}

// A Summary is what an elastic NodeSet is doing.
type Summary struct {
	// Up, Starting and Busy count Slurm nodes: those that are up, are powering up, and have jobs.
	Up, Starting, Busy int
	// Unplaced counts the Slurm nodes that are closed because Kubernetes has no room for their pods, Failed those whose
	// pods did not start; until Retry at the earliest.
	Unplaced, Failed int
	Retry            time.Time
	// Missing counts the Slurm nodes that have no record yet, Outdated those without a pod whose record is not as the spec
	// wants it, of which FirstOutdated is one. Pods of such nodes are outdated themselves.
	Missing, Outdated int
	FirstOutdated     string
	// Pending says that slurmctld does not run with the latest configuration yet.
	Pending bool
	// Open counts the records of Slurm nodes that are not closed to jobs.
	Open int
	// Causes count the Slurm nodes that are up by why they are. Jobs are those that keep them up, see Causes.
	Causes Causes
	Jobs   []int64
	// Warm is how many idle Slurm nodes should be up now; Scheduled says that a schedule asks for them.
	Warm      int
	Scheduled bool
	// Held says why pods of Slurm nodes that are powering up are not created yet; empty if they are.
	Held string
	// Refusal is what cluster-autoscaler said about a request for room that has failed; empty if none has.
	Refusal string
}

// A group are Slurm nodes that are powering up for one job: their pods are created and given up together.
type group struct {
	job   int64 // 0 for a Slurm node that is powered up without a job, or for one that is not known
	slots []Slot
	// unidentified says that its Slurm node has a job that is not known: there are too many jobs to list. The other Slurm
	// nodes of that job are then groups of their own.
	unidentified bool
	// givenUp says that its job returns to the queue.
	givenUp bool
	// incomplete says that Slurm has yet to power up other Slurm nodes for the job.
	incomplete bool
}

// hasJob reports whether a job waits for its Slurm nodes.
func (g *group) hasJob() bool { return g.job != 0 || g.unidentified }

// changesFirst reports whether the record of one of its Slurm nodes must change before there are pods: a new pod would
// not match it, or no job is waiting for one.
func (g *group) changesFirst() bool {
	return slices.ContainsFunc(g.slots, func(slot Slot) bool { return slot.Mismatched || slot.Outdated && !g.hasJob() })
}

// upToDate reports whether a pod has the current revision, and in an elastic NodeSet a record as the spec wants it. A
// record that was about to change when Slurm powered its node up for a job changes after that job.
func (p *planner) upToDate(pod *Pod) bool {
	if pod.Revision != p.Set.Revision {
		return false
	}
	elastic := p.Set.Elastic
	if elastic == nil || elastic.Ended || pod.Ordinal >= elastic.Max { // its record is removed, not changed
		return true
	}
	i, found := slices.BinarySearchFunc(elastic.Slots, pod.Ordinal, func(slot Slot, ordinal int) int {
		return cmp.Compare(slot.Ordinal, ordinal)
	})
	return !found || !elastic.Slots[i].Outdated
}

// describe returns what a group is for.
func (g *group) describe() string {
	switch {
	case g.unidentified:
		return "an unidentified job of a large queue"
	case g.job == 0:
		return "no job"
	default:
		return fmt.Sprintf("job %d", g.job)
	}
}

// cause returns why the pods of a group are created.
func (g *group) cause() Cause {
	if g.hasJob() {
		return ForJob
	}
	return ForWarm
}

// slotRecord returns the record of a slot; nil if there is none. A Slurm node that has registered without one, before
// the NodeSet was elastic, is not powered up and down.
func (s *Snapshot) slotRecord(slot Slot) *slurm.Node {
	if s.Slurm == nil {
		return nil
	}
	node, known := s.Slurm.Node(slot.SlurmNode)
	if !known || node.Flags.Has(slurm.FlagDynamicNorm) {
		return nil
	}
	return node
}

// on reports whether a Slurm node is up, or is powering up. One that Slurm is about to power up is not.
func on(record *slurm.Node) bool {
	return record != nil && !record.Flags.HasAny(slurm.FlagPoweredDown|slurm.FlagPoweringDown)
}

// slotBusy reports whether a Slurm node has jobs, or will have one.
func (s *Snapshot) slotBusy(record *slurm.Node) bool {
	return record.Busy() || s.Slurm.Loads[record.Name].Jobs() > 0
}

// poweredOff reports whether the Slurm node of a pod of an elastic NodeSet is powered down, or was given up by Slurm.
func (s *Snapshot) poweredOff(pod *Pod) bool {
	record := s.record(pod)
	return s.Set.Elastic != nil && record != nil && (record.PoweredOff() || record.TimedOut())
}

// wantedSlots returns how many pods an elastic NodeSet should have. Without Slurm it is unknown, and those that there
// are stay, as do those from before it was elastic until they are replaced.
func (s *Snapshot) wantedSlots() int {
	if s.Slurm == nil {
		return len(s.Pods)
	}
	wanted := 0
	for _, slot := range s.Set.Elastic.Slots {
		if on(s.slotRecord(slot)) {
			wanted++
		}
	}
	for i := range s.Pods {
		if s.Pods[i].Dynamic {
			wanted++
		}
	}
	return wanted
}

// recordless returns, while pods from before the NodeSet was elastic are replaced, how many Slurm nodes have neither a
// pod nor a record yet: no job can use these.
func (p *planner) recordless() int {
	if !p.Set.isElastic() || p.Slurm == nil ||
		!slices.ContainsFunc(p.Pods, func(pod Pod) bool { return pod.Dynamic }) {
		return 0
	}
	pods, count := p.podBySlot(), 0
	for _, slot := range p.Set.Elastic.Slots {
		if pods[slot.Ordinal] == nil && p.slotRecord(slot) == nil {
			count++
		}
	}
	return count
}

// podBySlot returns the pods by ordinal.
func (p *planner) podBySlot() map[int]*Pod {
	pods := make(map[int]*Pod, len(p.Pods))
	for i := range p.Pods {
		pods[p.Pods[i].Ordinal] = &p.Pods[i]
	}
	return pods
}

// findGroups returns the Slurm nodes that are powering up, grouped by job, in the order in which their pods are
// created: the oldest job first, then those whose job is not known, and those without a job last.
func (p *planner) findGroups() []group {
	byJob := map[int64]*group{}
	var groups []group
	for _, slot := range p.Set.Elastic.Slots {
		record := p.slotRecord(slot)
		if record == nil || !record.PoweringUp() {
			continue
		}
		job := p.Slurm.Loads[record.Name].Job
		if job == 0 {
			groups = append(groups, group{slots: []Slot{slot}, unidentified: p.slotBusy(record)})
			continue
		}
		if byJob[job] == nil {
			byJob[job] = &group{job: job}
		}
		byJob[job].slots = append(byJob[job].slots, slot)
	}
	for _, slot := range p.Set.Elastic.Slots {
		record := p.slotRecord(slot)
		if record == nil || on(record) {
			continue
		}
		if waiting := byJob[p.Slurm.Loads[record.Name].Job]; waiting != nil {
			waiting.incomplete = true
		}
	}
	for _, found := range byJob {
		groups = append(groups, *found)
	}
	slices.SortStableFunc(groups, func(a, b group) int {
		return cmp.Or(first(a.job != 0, b.job != 0), first(a.hasJob(), b.hasJob()), cmp.Compare(a.job, b.job))
	})
	return groups
}

// missingSlots returns the pods to create: those of the Slurm nodes that are powering up, all of a job at once, and
// those of Slurm nodes with jobs that have lost their pod.
//
// While the pods of a job with several nodes are not scheduled, no pods of later jobs are created: two jobs whose pods
// hold half of the Kubernetes nodes each would wait for each other. With requests for room, cluster-autoscaler prevents
// that.
func (p *planner) missingSlots() []Action {
	if !p.Answers || p.Slurm == nil {
		return nil
	}
	pods := p.podBySlot()
	var additions []Action
	var before *group
	for i := range p.groups {
		group := &p.groups[i]
		if group.givenUp || group.changesFirst() || p.awaitsJob(group) {
			continue
		}
		missing, terminating, unplaced := p.census(group, pods)
		switch {
		case len(missing) == 0:
		case before != nil && p.Set.Elastic.Class == "":
			p.Elastic.Held = fmt.Sprintf("the pods for %s wait until those for %s are scheduled", group.describe(),
				before.describe())
		case group.incomplete || terminating:
			if group.incomplete && !p.allRead() {
				p.refreshAll()
			}
			p.wakeAt(p.Now.Add(settleInterval))
		default:
			additions = append(additions, p.provision(group, missing)...)
			unplaced = true
		}
		if len(group.slots) > 1 && unplaced && before == nil {
			before = group
		}
	}
	return append(additions, p.lostSlots(pods)...)
}

// awaitsJob reports whether the job of a group is about to be known: until then, neither are the other Slurm nodes that
// it needs. With so many jobs that they are only counted, it never is, and each Slurm node is a group: if one does not
// start in time, Slurm requeues the job, and the others follow.
func (p *planner) awaitsJob(group *group) bool {
	switch {
	case !group.unidentified:
		return false
	case p.Slurm.Partial:
		p.wakeAt(p.Slurm.IdentifiedBy)
		return p.Now.Before(p.Slurm.IdentifiedBy)
	case p.allRead():
		return false // it was allocated while Slurm was read
	}
	p.refreshAll()
	return true
}

// settleInterval is when to look again for Slurm nodes that are about to be powered up.
const settleInterval = 2 * time.Second

// census returns the pods that a group lacks, whether one of its names is still taken by a pod that is being deleted,
// and whether one of its pods is not scheduled yet. While one of its old pods does not terminate, others need not wait.
func (p *planner) census(group *group, pods map[int]*Pod) (missing []Action, terminating, unplaced bool) {
	why := "Slurm powers its node up"
	if group.hasJob() {
		why += " for " + group.describe()
	}
	lingers := false
	for _, slot := range group.slots {
		switch pod := pods[slot.Ordinal]; {
		case pod == nil:
			missing = append(missing, creation(slot, group.cause(), why))
			unplaced = true
		case pod.Terminating:
			terminating = true
			lingers = lingers || p.lingers(pod)
		default:
			unplaced = unplaced || pod.Unscheduled
		}
	}
	return missing, terminating, unplaced && !lingers
}

func creation(slot Slot, cause Cause, why string) Action {
	return Action{
		Kind: Create, Pod: &Pod{Ordinal: slot.Ordinal, SlurmNode: slot.SlurmNode}, SlurmNode: slot.SlurmNode, Cause: cause,
		Why: why,
	}
}

// lostSlots returns the pods of Slurm nodes that are up in Slurm's view and have lost their pod. With a job, or marked
// as down, they are created again, so that Slurm learns soon that the job is lost. Idle ones are powered down: see
// power.
func (p *planner) lostSlots(pods map[int]*Pod) []Action {
	var additions []Action
	for _, slot := range p.Set.Elastic.Slots {
		record := p.slotRecord(slot)
		if pods[slot.Ordinal] != nil || !on(record) || record.PoweringUp() || slot.Mismatched {
			continue
		}
		if p.givenUp[p.Slurm.Loads[record.Name].Job] { // it will be idle
			continue
		}
		if p.slotBusy(record) || record.OnlyDown() {
			additions = append(additions, creation(slot, Missing, "Slurm expects its node to be up"))
		}
	}
	return additions
}
