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

// A mutation breaks the source on purpose. Tests that are worth something notice it.
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
	"an old look proves something": {
		"release.go", "after := s.Now.Add(-maxSnapshotAge)", "after := s.Now.Add(-240 * maxSnapshotAge)",
	},
	"a look from before the drain proves something": {"release.go", "if since.After(after) {", "if false {"},
	"a drain needs no history":                      {"release.go", "&& !recorded {", "&& !recorded && false {"},
	"a silent Slurm has no jobs": {
		"release.go", `return Hold{Why: "Slurm does not answer, so it is unknown whether it has jobs", Kind: Silent}, `,
		`return Hold{}, `,
	},
	"a node that is not found is drained": {
		"release.go", "s.undrained, s.absent, s.stale,", "s.undrained, s.stale,",
	},
	"a look that was taken for something else proves": {"release.go", "s.absent, s.stale,", "s.absent,"},
	"a slurmctld that just started forgets nothing": {
		"release.go", "if s.Slurm.ControllerSince.IsZero() {", "if false {",
	},
	"a node without a drain is drained": {"release.go", "s.occupied, s.undrained,", "s.occupied,"},
	"what is not reported to run does not run": {
		"release.go", "return Hold{}, pod.Unplaced && !pod.EverRan", "return Hold{}, !pod.EverRan",
	},
	"the list of jobs is not looked at": {slurmSnapshot, "case s.Loads[name].Jobs() > 0:", "case false:"},
	"suspended jobs are none": {
		slurmSnapshot, "return l.Running + l.Completing + l.Other", "return l.Running + l.Completing",
	},
	"completing jobs are none": {
		slurmSnapshot, "return l.Running + l.Completing + l.Other", "return l.Running + l.Other",
	},
	"a node that is COMPLETING is drained": {
		slurmNode, "return !free || n.Flags.Has(FlagCompleting) ||", "return !free ||",
	},
	"only nodes are looked at for their age": {
		slurmSnapshot, "s.NodesAsOf.After(moment) && s.JobsAsOf.After(moment)", "s.NodesAsOf.After(moment)",
	},
	"a drain that was lifted in between is the same": {
		"drainhistory.go", "case recorded && before == current:", "case recorded:",
	},
	"an absent node is not recorded": {
		"drainhistory.go", "current := closing{absent: !known}", "current := closing{acknowledged: !known}",
	},
	"what was acknowledged is what is seen next": {
		"drainhistory.go", "before.acknowledged && known && node.DrainedByUs()", "before.acknowledged",
	},
	"the history never forgets": {"drainhistory.go", "delete(h.since, name)", "_ = name"},

	// the rest of the plan
	"a new revision needs no canary": {
		"update.go", "if pod.ReadySince.IsZero() || p.proven || p.trying == 0 {", "if true {",
	},
	"a broken revision stops nothing": {"update.go", "if failed == 0 ||", "if true ||"},
	"a drained pod proves no revision": {
		"update.go", "p.proven = p.proven || p.up(pod)", "p.proven = p.proven || p.available(pod)",
	},
	"an update has no budget": {
		"update.go", "case known && p.drainable(pod):", "case false:",
	},
	"pods that are missing use up no budget": {
		"update.go", "budget = p.Set.Update.MaxUnavailable - missing", "budget = p.Set.Update.MaxUnavailable",
	},
	"new pods that do not work use up no budget": {"update.go", "if !p.available(pod) {", "if false {"},
	"what is unavailable for a moment lifts drains": {
		"update.go", "if budget < len(drained) {", "if budget < 0 {",
	},
	"a node is drained instead of one that stays drained": {
		"update.go", "first(stuck(a), stuck(b)),", "first(false && stuck(a), false),",
	},
	"more are drained for others when there is no budget": {
		"update.go", "return drained, len(drained)", "return candidates, len(drained)",
	},
	"a cordoned pod is updated": {"update.go", "case pod.Cordoned:", "case false:"},
	"states of others are overwritten": {
		"drain.go", "pod.Terminating || record.HeldByOthers() {", "pod.Terminating {",
	},
	"FAIL is no foreign state": {
		slurmNode, "return n.Closed() && !n.DrainedByUs()", "return n.Draining() && !n.DrainedByUs()",
	},
	"FAIL is lifted with a drain of ours": {
		slurmNode, "return n.Draining() && IsOurReason(n.Reason) && !n.Flags.Has(FlagFail)",
		"return n.Draining() && IsOurReason(n.Reason)",
	},
	"a node that is failing takes jobs": {
		slurmNode, "return n.Flags.HasAny(FlagDrain|FlagFail) || n.State == StateDown",
		"return n.Flags.HasAny(FlagDrain) || n.State == StateDown",
	},
	"a reason that outlived its drain stays": {
		"drain.go", `Why: "its drain was lifted"}, slurm.IsOurReason(record.Reason)`,
		`Why: "its drain was lifted"}, false`,
	},
	"a slurmd under another name is absent": {
		"release.go", "if !pod.Named && !pod.Registered && !pod.Started.IsZero() {", "if false {",
	},
	"a taint is a scale-in": {"scale.go", "node.Wanted || node.Stays", "node.Wanted"},
	"a Node object that is gone is a scale-in": {
		"scale.go", "return !known || node.Wanted", "return known && node.Wanted",
	},
	"claims go with a taint": {
		"remove.go", "known && !node.Selected", "known && !node.Stays",
	},
	"a record that is lost stays lost": {
		"remove.go", "return !p.Now.Before(replaced)", "return false",
	},
	"a record is lost as soon as it is missed": {
		"remove.go", "replaced := since.Add(p.Set.Registration)", "replaced := since",
	},
	"records that we have emptied stay": {
		"prune.go", "return drainedFor(ScaleIn, record) || drainedFor(Deletion, record)", "return false",
	},
	"records that are reserved are pruned": {"prune.go", "|| record.Reserved() {", "{"},
	"idle pods may be evicted": {
		"protect.go", "return !record.Drained(), true", "return record.Busy(), true",
	},
	"suspended jobs may be evicted": {
		"protect.go", "case s.load(pod).Jobs() > 0:", "case false:",
	},
	"pods may be evicted while Slurm is silent": {"protect.go", "return true, false", "return false, true"},
	"drains are set after an old look": {
		"drain.go", "case !p.JustRead: // others", "case !p.JustRead && false: // others",
	},
	"our drains are never lifted": {"drain.go", "record.DrainedByUs() && up", "false && up"},
	"claims go with an update": {
		"remove.go", "if cause != ScaleIn {", "if cause == Ended {",
	},
	"records of nodes that others closed are pruned": {
		"prune.go", "return record.DrainedByUs() || !record.Draining() && !record.Flags.Has(slurm.FlagFail)",
		"return true",
	},
	"records are pruned while a pod is missing": {"prune.go", "|| len(p.Pods) < p.Desired {", "{"},
	"who was chosen before is forgotten": {
		"scale.go", "first(p.drainedFor(ScaleIn, a), p.drainedFor(ScaleIn, b)),", "0,",
	},
	"pods are created although they cannot be": {
		"create.go", `len(additions) > 0 && p.Set.Withheld != ""`, `len(additions) < 0`,
	},
	"pods are replaced although none can be created": {
		"snapshot.go", `s.Update.Replace && s.Withheld == ""`, `s.Update.Replace`,
	},
	"a pod that is going has gone": {
		"create.go", "for range p.Set.Replicas - len(p.Pods) {", "for range p.Set.Replicas - p.Updated - p.Outdated {",
	},

	// The shell, as it is simulated. That it asks the rule again before each delete, and records drains that it
	// lifts, guards against what happens within one turn, which the model takes for one moment.
	"a lifted drain leaves our reason": {
		shell, "known.Reason, known.foreign = slurm.NoReason, 0", "known.foreign = 0",
	},
	"deletes carry no resourceVersion": {
		shell, "|| pod.resourceVersion != w.operator.versions[pod.Name] {", "{",
	},
	"deletes carry no UID and no resourceVersion": {
		shell, "|| pod.UID != action.Pod.UID || pod.resourceVersion != w.operator.versions[pod.Name] {", "{",
	},
}

// layers are the tests that could notice, from the quickest to the slowest.
var layers = []struct{ name, run string }{
	{"tables", "^Test(Scale.*|PVC.*|Lost.*|Update|Drain.*|Prune|Plan.*|Requeue.*|Release.*|Protected)$"},
	{"stories", "^TestScenarios$"},
	{"model", "^TestModel$"},
}

var everyLayer = flag.Bool("every-layer", false, "run all layers of tests on each mutation, not only until one notices")

// TestMutations builds the tests with each mutation in place of the true source, and shows which tests fail.
func TestMutations(t *testing.T) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "mutation\ttables\tstories\tmodel\n")
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
			t.Errorf("no test notices that %s", name)
		}
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d mutations\n%s", len(mutations), table.String())
}

// build makes a test binary of a source with a mutation.
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
		return "", fmt.Errorf("%q is %d times in %s", mutation.old, count, mutation.file)
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
		return "", fmt.Errorf("it does not build: %s", output)
	}
	return binary, nil
}
