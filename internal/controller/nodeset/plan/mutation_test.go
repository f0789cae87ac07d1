//go:build mutation

package plan_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"
)

// A mutation is a deliberate defect in the source, which some test must detect.
type mutation struct {
	file     string // relative to this directory
	old, new string
}

const (
	slurmSnapshot = "../../../slurm/snapshot.go"
	slurmNode     = "../../../slurm/node.go"
	shell         = "operator_test.go"
)

var mutations = map[string]mutation{
	// the deletion rule
	"an old snapshot is accepted as proof": {
		"release.go", "after := s.Now.Add(-maxSnapshotAge)", "after := s.Now.Add(-240 * maxSnapshotAge)",
	},
	"a snapshot from before the drain is accepted as proof": {"release.go", "if since.After(after) {", "if false {"},
	"a drain needs no history":                              {"release.go", "&& !recorded {", "&& !recorded && false {"},
	"a pod is released while Slurm does not answer": {
		"release.go", `return Hold{Why: "Slurm does not answer, so it is unknown whether it has jobs", Kind: Unreachable}, `,
		`return Hold{}, `,
	},
	"a Slurm node without a record counts as drained": {
		"release.go", "s.absent, s.unidentified,", "s.unidentified,",
	},
	"a snapshot that was not taken for the plan is accepted as proof": {
		"release.go", "s.unidentified, s.stale,", "s.unidentified,",
	},
	"a slurmctld that just started is assumed to have all records": {
		"release.go", "if s.Slurm.ControllerSince.IsZero() {", "if false {",
	},
	"an open Slurm node counts as drained": {"release.go", "s.occupied, s.undrained,", "s.occupied,"},
	"a slurmd that is not reported as running counts as not running": {
		"release.go", "return Hold{}, pod.Unscheduled && !pod.EverRan", "return Hold{}, !pod.EverRan",
	},
	"an old absence is accepted of a slurmd that may have started": {
		"release.go", "s.Now.Sub(s.Slurm.ListedAt()) >= maxAbsenceAge", "false",
	},
	"an old read of a Slurm node that is down is accepted": {
		"release.go", "s.returning, s.absent,", "s.absent,",
	},
	"a Slurm node that is drained and down counts as one that may return": {
		slurmNode, "return n.State == StateDown && !n.Flags.HasAny(FlagDrain|FlagFail)", "return n.State == StateDown",
	},
	"Slurm is read again and again for jobs on unknown nodes": {
		"remove.go", "p.refreshRarely(pod.SlurmNode)", "p.refresh(pod.SlurmNode)",
	},
	"Slurm is never read again for jobs on unknown nodes": {
		"remove.go", "		return\n	}\n	p.refresh(node)\n", "	}\n",
	},
	"the list of jobs is ignored": {slurmSnapshot, "case s.Loads[name].Jobs() > 0:", "case false:"},
	"suspended jobs are ignored": {
		slurmSnapshot, "return l.Running + l.Completing + l.Other", "return l.Running + l.Completing",
	},
	"completing jobs are ignored": {
		slurmSnapshot, "return l.Running + l.Completing + l.Other", "return l.Running + l.Other",
	},
	"a COMPLETING Slurm node counts as drained": {
		slurmNode, "return !free || n.Flags.Has(FlagCompleting) ||", "return !free ||",
	},
	"the age of the list of jobs is ignored": {
		slurmSnapshot, "|| !s.JobsAsOf.After(after) {", "{",
	},
	"a Slurm node that was not read for the plan counts as read": {
		"snapshot.go", "s.JustRead && (s.Reread == nil || s.Reread[node])", "s.JustRead",
	},
	"the history takes the time of the list for Slurm nodes that were read alone": {
		"drainhistory.go", "!snapshot.NodeAsOf(name).After(since)", "!snapshot.NodesAsOf.After(since)",
	},
	"a drain that was lifted and set again counts as the same": {
		"drainhistory.go", "case recorded && before == current:", "case recorded:",
	},
	"a missing Slurm node is not recorded": {
		"drainhistory.go", "current := closing{absent: !known}", "current := closing{acknowledged: !known}",
	},
	"any closing after an acknowledgement counts as the acknowledged one": {
		"drainhistory.go", "before.acknowledged && known && node.DrainedByUs()", "before.acknowledged",
	},
	"the history keeps lifted drains": {"drainhistory.go", "delete(h.since, name)", "_ = name"},

	// elastic NodeSets
	"a powered-down Slurm node that a job was allocated to counts as off": {
		slurmNode, "!n.Flags.Has(FlagPoweringUp) && !n.Busy()", "!n.Flags.Has(FlagPoweringUp)",
	},
	"a powered-down Slurm node needs no history": {
		"release.go", "vacancy == slurm.Absent || vacancy == slurm.Off) &&", "vacancy == slurm.Absent) &&",
	},
	"Slurm nodes that are up are given up": {
		"elastic.go", "if record == nil || !record.PoweringUp() {", "if record == nil || !on(record) {",
	},
	"a drained Slurm node is powered down": {
		"power.go", "!record.Closed() && !record.PoweringUp() && !p.slotBusy(record) &&",
		"!record.PoweringUp() && !p.slotBusy(record) &&",
	},
	"a Slurm node with jobs is powered down": {
		"power.go", "!record.Closed() && !record.PoweringUp() && !p.slotBusy(record) &&",
		"!record.Closed() && !record.PoweringUp() &&",
	},
	"pods are created for a job that is given up": {
		"elastic.go", "if group.givenUp || group.changesFirst() ||", "if group.changesFirst() ||",
	},
	"idle Slurm nodes are powered down before backfill runs": {
		"power.go", "return max(p.Set.Elastic.Idle, backfillTime)", "return p.Set.Elastic.Idle",
	},
	"power requests need no fresh snapshot": {"power.go", "if !p.allRead() {", "if false {"},
	"the minimum is powered down": {
		"power.go", "min(up-p.Set.Elastic.Min, idle-p.Elastic.Warm)", "min(up, idle-p.Elastic.Warm)",
	},
	"schedules have no effect": {
		"power.go", "max(p.Set.Elastic.Warm, scheduled)", "p.Set.Elastic.Warm + 0*scheduled",
	},
	"the end of a schedule is missed": {"power.go", "p.wakeAt(boundary)", "_ = boundary"},
	"pods of two jobs are created at once": {
		"elastic.go", `case before != nil && p.Set.Elastic.Class == "":`, "case false:",
	},
	"a power-up whose old pod does not terminate is not given up": {
		"power.go", "start = pod.Terminates", "start = pod.Terminates.Add(1000 * time.Hour)",
	},
	"jobs wait for a power-up whose old pod does not terminate": {
		"elastic.go", "unplaced && !lingers", "unplaced",
	},
	"Slurm nodes whose pod does not terminate are powered up": {
		"power.go", "case pod != nil && p.lingers(pod):", "case false:",
	},
	"a job waits for room for another one": {
		"elastic.go", `case before != nil && p.Set.Elastic.Class == "":`, "case before != nil:",
	},
	"pods are created before there is room for all of them": {
		"provision.go", "case request.Answer == Provisioned || p.used[request.Name]:", "case true:",
	},
	"a job without room is not given up": {
		"provision.go", "return request.Answer == Refused || request.Answer == Expired && !p.used[request.Name]",
		"return false",
	},
	"pods that are scheduled are given up when the room expires": {
		"provision.go", "request.Answer == Expired && !p.used[request.Name]", "request.Answer == Expired",
	},
	"a request that is not answered is waited for forever": {
		"power.go", "began = request.Created", "began = request.Created.Add(1000 * time.Hour)",
	},
	"Slurm nodes without room are tried again without a backoff": {
		"power.go", "unplaced && (late || slices.ContainsFunc(p.requests[slot.SlurmNode], p.failed)):", "unplaced && late:",
	},
	"a failed request is withdrawn before its Slurm nodes are closed": {
		"provision.go", "case failed && (needed[request.Name] || p.unclosed(request, pods)):",
		"case failed && needed[request.Name]:",
	},
	"Slurm nodes that are being closed are powered up": {
		"power.go", "record.Closed() || p.closing[slot.SlurmNode] ||", "record.Closed() ||",
	},
	"requests are kept when their pods are up": {
		"provision.go", "		case needed[request.Name]:", "		case true:",
	},
	"pods are created before all Slurm nodes of a job power up": {
		"elastic.go", "case group.incomplete || terminating:", "case terminating:",
	},
	"Slurm nodes are tried again without a backoff": {
		"power.go", "case record.Draining() && p.backingOff(record):", "case false:",
	},
	"foreign states of Slurm nodes without a pod are overwritten": {
		"power.go", "if record.HeldByOthers() && (!record.GaveUp() || !p.Set.Elastic.Ended && !slot.Mismatched) {",
		"if false {",
	},
	"a Slurm node that is down without a pod keeps its old record": {
		"power.go", "!p.Set.Elastic.Ended && !slot.Mismatched", "!p.Set.Elastic.Ended",
	},
	"Slurm nodes stay open for which there is no room": {
		"power.go", "full = full || cause == NoCapacity", "full = false",
	},
	"pods are created that do not match their records": {"elastic.go", "|| group.changesFirst() ||", "||"},
	"pods are created before it is known which job they are for": {
		"elastic.go", "|| p.awaitsJob(group) {", "{",
	},
	"a job is given up before it is known which one it is": {"power.go", "if p.awaitsJob(group) {", "if false {"},
	"a job that is not known counts as none": {
		"elastic.go", "slot.Outdated && !g.hasJob() })", "slot.Outdated && g.job == 0 })",
	},
	"Slurm nodes that have registered since the plan are given up": {
		"power.go", "	next := Next(later)\n", "	later = new(*later)\n	next := Plan{Actions: actions}\n",
	},
	"a Slurm node that an administrator has set down is resumed": {
		slurmNode, "n.Flags.Has(FlagPoweredDown) && n.Reason == resumeTimeoutReason", "n.Flags.Has(FlagPoweredDown)",
	},
	"Slurm nodes without a record are powered up and down": {
		"elastic.go", "if !known || node.Flags.Has(slurm.FlagDynamicNorm) {", "if !known {",
	},
	"pods are created while their Slurm nodes have records from before": {
		"create.go", "if slot, waits := recorded[ordinal]; waits {", "if slot, waits := recorded[ordinal]; waits && false {",
	},
	"a NodeSet becomes elastic without waiting for records": {
		"update.go", "- missing - p.recordless()", "- missing",
	},
	"records from before a NodeSet was elastic stay": {
		"prune.go", "	elastic := p.Set.isElastic()\n", "	elastic := p.Set.isElastic()\n	if elastic {\n		return\n	}\n",
	},
	"a Slurm node that an administrator has set down loses its record": {
		slurmNode, "n.OnlyDown() && n.Reason == notRespondingReason", "n.OnlyDown()",
	},

	// the rest of the plan
	"a new revision needs no canary": {
		"update.go", "if pod.ReadySince.IsZero() || p.proven || p.trying == 0 {", "if true {",
	},
	"a broken revision does not stop the update":        {"update.go", "case failed > 0 &&", "case false &&"},
	"a pod that does not terminate is waited for":       {"update.go", "if !p.lingers(pod) {", "if true {"},
	"pods that do not terminate do not stop the update": {"update.go", "case lingering >= most:", "case false:"},
	"nothing wakes when a pod should have terminated":   {"update.go", "p.wakeAt(end)", "_ = end"},
	"a drained pod is no canary": {
		"update.go", "p.proven = p.proven || p.up(pod)", "p.proven = p.proven || p.available(pod)",
	},
	"an update has no budget": {
		"update.go", "case known && p.drainable(pod):", "case false:",
	},
	"missing pods use no budget": {
		"update.go", "budget = p.Set.Update.MaxUnavailable - missing", "budget = p.Set.Update.MaxUnavailable + 0*missing",
	},
	"unavailable new pods use no budget": {"update.go", "if !p.available(pod) {", "if false {"},
	"pods that are briefly unavailable lift drains": {
		"update.go", "if budget < len(drained) {", "if budget < 0 {",
	},
	"a Slurm node is drained instead of one whose drain cannot be lifted": {
		"update.go", "first(stuck(a), stuck(b)),", "first(false && stuck(a), false),",
	},
	"other Slurm nodes are drained without a budget": {
		"update.go", "return drained, len(drained)", "return candidates, len(drained)",
	},
	"a cordoned pod is updated": {"update.go", "case pod.Cordoned:", "case false:"},
	"foreign states are overwritten": {
		"drain.go", "pod.Terminating || record.HeldByOthers() {", "pod.Terminating {",
	},
	"FAIL is not a foreign state": {
		slurmNode, "return n.Closed() && !n.DrainedByUs()", "return n.Draining() && !n.DrainedByUs()",
	},
	"FAIL is lifted with a drain of the operator": {
		slurmNode, "return n.Draining() && IsOurReason(n.Reason) && !n.Flags.Has(FlagFail)",
		"return n.Draining() && IsOurReason(n.Reason)",
	},
	"a failing Slurm node counts as open": {
		slurmNode, "return n.Flags.HasAny(FlagDrain|FlagFail) || n.State == StateDown",
		"return n.Flags.HasAny(FlagDrain) || n.State == StateDown",
	},
	"a reason is kept after its drain is lifted": {
		"drain.go", `Why: "its drain was lifted"}, slurm.IsOurReason(record.Reason)`,
		`Why: "its drain was lifted"}, false`,
	},
	"a slurmd under another name counts as absent": {
		"release.go", "s.absent, s.unidentified,", "s.absent,",
	},
	"a record of an earlier pod is that of a slurmd without its name": {
		"snapshot.go", "SlurmdStartedAt.Before(since) &&", "SlurmdStartedAt.Before(since.Add(-1000*time.Hour)) &&",
	},
	"a record that names another pod is that of a slurmd without its name": {
		"snapshot.go", "(err != nil || owner.PodName == p.Name)", "(err != nil || owner.PodName != \"\")",
	},
	"pods may be evicted because of the record of another slurmd": {
		"protect.go", "!record.PoweredOff(), !pod.Identified(record):", "!record.PoweredOff():",
	},
	"a NoSchedule taint causes a scale-in": {"scale.go", "node.Wanted || node.Stays", "node.Wanted"},
	"a deleted Node object causes a scale-in": {
		"scale.go", "return !known || node.Wanted", "return known && node.Wanted",
	},
	"PVCs are deleted with a taint": {
		"remove.go", "known && !node.Selected", "known && !node.Stays",
	},
	"a pod with a lost record is not replaced": {
		"remove.go", "return !p.Now.Before(replaced)", "return false",
	},
	"a pod is replaced as soon as its record is missing": {
		"remove.go", "replaced := since.Add(p.Set.Registration)", "replaced := since",
	},
	"records that the operator has drained are kept": {
		"prune.go", "return drainedFor(ScaleIn, record) || drainedFor(Deletion, record)", "return false",
	},
	"reserved records are pruned": {"prune.go", "|| record.Reserved() ||", "||"},
	"idle pods may be evicted": {
		"protect.go", "case !record.Drained() && !record.PoweredOff(),", "case record.Busy(),",
	},
	"suspended jobs may be evicted": {
		"protect.go", "case p.load(pod).Jobs() > 0:", "case false:",
	},
	"pods may be evicted while Slurm does not answer": {
		"protect.go", "p.Slurm == nil {\n\t\treturn UnknownProtection", "p.Slurm == nil {\n\t\treturn Evictable",
	},
	"pods may be evicted before slurmd ran": {
		"protect.go", "if !pod.EverRan || !pod.Identified(nil) {", "if !pod.Identified(nil) {",
	},
	"pods may be evicted because of an earlier pod's record": {
		"protect.go", "case !p.Slurm.NodeAsOf(pod.SlurmNode).Before(created):", "case true:",
	},
	"pods may be evicted while their drain is lifted": {
		"protect.go", "case opened[pod.SlurmNode] || pod.Terminating:", "case pod.Terminating:",
	},
	"nothing wakes when a pod's second of creation is over": {"protect.go", "p.wakeAt(created)", "_ = created"},
	"nothing reads a record that may be that of an earlier pod": {
		"protect.go", "p.wakeAt(created)\n\tdefault:\n\t\tp.refresh(pod.SlurmNode)", "p.wakeAt(created)\n\tdefault:",
	},
	"nothing reads Slurm for a pod that did not register": {
		"protect.go", "UnknownProtection\n\tdefault:\n\t\tp.refresh(pod.SlurmNode)", "UnknownProtection\n\tdefault:",
	},
	"nothing reads Slurm after a poll that proves nothing about jobs": {
		"protect.go", "case p.Slurm.Unplaced > 0 &&", "case p.Slurm.Partial &&",
	},
	"pods are protected again by a poll that proves nothing about jobs": {
		"protect.go", "p.readJobs(pod)\n\t\treturn UnknownProtection", "p.readJobs(pod)\n\t\treturn Protected",
	},
	"nothing wakes when a slurmd should have registered": {"plan.go", "p.wakeAt(until)", "_ = until"},
	"a request for room fails without a wake-up":         {"provision.go", "\tp.wakeAt(end)", "\t_ = end"},
	"drains are set with an old snapshot": {
		"drain.go", "if !current { // others", "if false { // others",
	},
	"drains of the operator are never lifted": {"drain.go", "record.DrainedByUs() && up", "false && up"},
	"a drain is lifted when the Node object of its cause is deleted": {
		"drain.go", "record.Responding() && !p.hostGone(pod, record)", "record.Responding()",
	},
	"PVCs are deleted with an update": {
		"remove.go", "if cause != ScaleIn {", "if cause == Exited {",
	},
	"records of Slurm nodes that others closed are pruned": {
		"prune.go", "return record.DrainedByUs() || !record.Draining() && !record.Flags.Has(slurm.FlagFail)",
		"return true",
	},
	"records are pruned while a pod is missing": {"prune.go", "|| len(p.Pods) < p.Desired) {", ") {"},
	"the pod chosen before is ignored": {
		"scale.go", "first(a.chosen, b.chosen),", "0,",
	},
	"a user's cordon is removed": {
		"mark.go", "!scaledIn && pod.Mark == Marked,", "!scaledIn && pod.Mark != Unmarked,",
	},
	"a user's cordon is taken over": {
		"mark.go", "scaledIn && pod.Mark == Unmarked:", "scaledIn && pod.Mark != Marked:",
	},
	"a mark is kept at scale-out": {"mark.go", "!scaledIn && pod.Mark == Marked,", "false,"},
	"marks carry no resourceVersion": {
		shell, "|| pod.resourceVersion != w.operator.versions[pod.Name] || w.oneIn(20) {", "|| w.oneIn(20) {",
	},
	"pods are created although they are withheld": {
		"create.go", `len(additions) > 0 && p.Set.Withheld != ""`, `len(additions) < 0`,
	},
	"pods are replaced although pods are withheld": {
		"snapshot.go", `s.Update.Replace && s.Withheld == ""`, `s.Update.Replace`,
	},
	"a terminating pod counts as removed": {
		"create.go", "for range p.Set.Replicas - len(p.Pods) {", "for range p.Set.Replicas - p.Updated - p.Outdated {",
	},

	// The simulated shell. Two of its steps have no mutation: it evaluates the deletion rule again before each delete,
	// and records undrains. Both guard against events within one reconcile, which the model treats as instantaneous.
	"a lifted drain keeps its reason": {
		shell, "known.Reason, known.foreign = slurm.NoReason, 0", "known.foreign = 0",
	},
	"deletes carry no resourceVersion": {
		shell, "|| pod.resourceVersion != w.operator.versions[pod.Name] {", "{",
	},
	"deletes carry no UID and no resourceVersion": {
		shell, "|| pod.UID != action.Pod.UID || pod.resourceVersion != w.operator.versions[pod.Name] {", "{",
	},
}

// layers are the tests that could detect a mutation, from the fastest to the slowest.
var layers = []struct{ name, run string }{
	{"tables", "^Test(Scale.*|PVC.*|Lost.*|Update|Drain.*|Prune|Plan.*|Requeue.*|Release.*|Protect.*|OldAbsence.*|" +
		"Unproven.*|Unidentified.*|Unregistered.*|Mark.*|Elastic.*|" +
		"NodeSet.*)$"},
	{"scenarios", "^TestScenarios$"},
	{"model", "^TestModel$"},
}

var everyLayer = flag.Bool("every-layer", false, "run all layers of tests on each mutation, even if one detects it")

// TestMutations builds the tests with each mutation in the source, and shows which tests detect it.
func TestMutations(t *testing.T) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "mutation\ttables\tscenarios\tmodel\n")
	for _, name := range sorted(mutations) {
		binary, err := build(t, mutations[name])
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		caught := 0
		fmt.Fprintf(out, "%s", name)
		for _, layer := range layers {
			if caught > 0 && !*everyLayer {
				break
			}
			command := exec.CommandContext(t.Context(), binary, "-test.run", layer.run, "-test.timeout", "5m")
			verdict := "-"
			if command.Run() != nil {
				verdict = "caught"
				caught++
			}
			fmt.Fprintf(out, "\t%s", verdict)
		}
		fmt.Fprintln(out)
		if caught == 0 {
			t.Errorf("no test detects that %s", name)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d mutations\n%s", len(mutations), table.String())
}

// build builds a test binary with a mutation.
func build(t *testing.T, mutation mutation) (binary string, err error) {
	t.Helper()
	path, err := filepath.Abs(mutation.file)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	if count := strings.Count(string(source), mutation.old); count != 1 {
		return "", fmt.Errorf("%q occurs %d times in %s, want 1", mutation.old, count, mutation.file)
	}
	directory := t.TempDir()
	mutated, overlay, binary := filepath.Join(directory, "mutated.go"), filepath.Join(directory,
		"overlay.json"), filepath.Join(directory, "test")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{path: mutated}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(mutated, []byte(strings.Replace(string(source), mutation.old, mutation.new, 1)),
		0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o600); err != nil {
		return "", err
	}
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "go", "test", "-c", "-vet=off", "-overlay",
		overlay, "-o", binary, ".")
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the build failed: %s", output)
	}
	return binary, nil
}
