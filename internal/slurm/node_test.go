package slurm

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// record returns a node with a state as Slurm prints it.
func record(states ...string) *Node {
	node := &Node{Name: "n"}
	node.State, node.Flags, node.OtherStates = ParseState(states)
	return node
}

func TestDrained(t *testing.T) {
	allocated := record("IDLE", "DRAIN")
	allocated.AllocatedCPUs = 1
	withMemory := record("IDLE", "DRAIN")
	withMemory.AllocatedMemory = 1
	for name, test := range map[string]struct {
		node *Node
		want bool
	}{
		"idle and drained":                    {record("IDLE", "DRAIN", "DYNAMIC_NORM"), true},
		"down and drained":                    {record("DOWN", "DRAIN"), true},
		"drained and not responding":          {record("IDLE", "DRAIN", "NOT_RESPONDING"), true},
		"flags before the base state":         {record("DRAIN", "IDLE"), true},
		"with a flag of a later Slurm":        {record("IDLE", "DRAIN", "NEW_FLAG"), true},
		"idle without a drain":                {record("IDLE"), false},
		"down without a drain":                {record("DOWN"), true},
		"failing":                             {record("IDLE", "FAIL"), true},
		"failing with a job":                  {record("MIXED", "FAIL"), false},
		"down and still cleaning up":          {record("DOWN", "COMPLETING"), false},
		"still running jobs":                  {record("ALLOCATED", "DRAIN"), false},
		"still running some jobs":             {record("MIXED", "DRAIN"), false},
		"still cleaning up":                   {record("IDLE", "DRAIN", "COMPLETING"), false},
		"CPUs allocated whatever the state":   {allocated, false},
		"memory allocated whatever the state": {withMemory, false},
		"unknown base state":                  {record("UNKNOWN", "DRAIN"), false},
		"invalid base state":                  {record("INVALID", "DRAIN"), false},
		"base state of a later Slurm":         {record("NEW_STATE", "DRAIN"), false},
		"two base states":                     {record("IDLE", "ALLOCATED", "DRAIN"), false},
		"error state":                         {record("ERROR", "DRAIN"), false},
		"future node":                         {record("FUTURE", "DRAIN"), false},
		"no state":                            {record(), false},
		"no record":                           {&Node{}, false},
		"power drain":                         {record("IDLE", "POWER_DRAIN"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.node.Drained(); got != test.want {
				t.Errorf("drained: %t, want %t", got, test.want)
			}
			if test.node.Drained() && test.node.Busy() {
				t.Error("both drained and busy")
			}
		})
	}
}

func TestBusy(t *testing.T) {
	for name, test := range map[string]struct {
		node *Node
		want bool
	}{
		"idle":                 {record("IDLE"), false},
		"down":                 {record("DOWN"), false},
		"future":               {record("FUTURE"), false},
		"allocated":            {record("ALLOCATED"), true},
		"mixed":                {record("MIXED"), true},
		"completing":           {record("IDLE", "COMPLETING"), true},
		"not understood":       {record("NEW_STATE"), true},
		"several base states":  {record("IDLE", "DOWN"), true},
		"down with allocation": {&Node{State: StateDown, AllocatedCPUs: 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.node.Busy(); got != test.want {
				t.Errorf("busy: %t, want %t", got, test.want)
			}
		})
	}
}

func TestDrainOwnership(t *testing.T) {
	for name, test := range map[string]struct {
		states       []string
		reason       string
		ours, theirs bool
	}{
		"ours":                              {[]string{"IDLE", "DRAIN"}, OurReason("scale-in"), true, false},
		"an admin's":                        {[]string{"IDLE", "DRAIN"}, "bad memory", false, true},
		"an admin's with our prefix inside": {[]string{"IDLE", "DRAIN"}, "not slurm-operator: x", false, true},
		"drain without reason":              {[]string{"IDLE", "DRAIN"}, "", false, true},
		"stale reason without drain":        {[]string{"IDLE"}, OurReason("scale-in"), false, false},
		"drain after ours was lifted":       {[]string{"IDLE", "DRAIN"}, NoReason, false, true},
		"FAIL by an admin":                  {[]string{"IDLE", "FAIL"}, "XID 79", false, true},
		"FAIL on top of ours":               {[]string{"IDLE", "DRAIN", "FAIL"}, OurReason("scale-in"), false, true},
		"DOWN by an admin":                  {[]string{"DOWN"}, "bad DIMM", false, true},
		"DOWN with a stale reason":          {[]string{"DOWN"}, OurReason("scale-in"), false, true},
		"down under our drain":              {[]string{"DOWN", "DRAIN"}, OurReason("scale-in"), true, false},
		"idle":                              {[]string{"IDLE"}, "", false, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := record(test.states...)
			node.Reason = test.reason
			if node.DrainedByUs() != test.ours || node.HeldByOthers() != test.theirs {
				t.Errorf("ours %t, theirs %t", node.DrainedByUs(), node.HeldByOthers())
			}
		})
	}
}

func TestEqualComparesEveryField(t *testing.T) {
	changed := map[string]func(*Node){
		"name": func(n *Node) { n.Name = "x" }, "hostname": func(n *Node) { n.Hostname = "x" },
		"address": func(n *Node) { n.Address = "x" }, "state": func(n *Node) { n.State = StateIdle },
		"flags": func(n *Node) { n.Flags = FlagDrain }, "other states": func(n *Node) { n.OtherStates = []string{"x"} },
		"reason": func(n *Node) { n.Reason = "x" }, "reason by": func(n *Node) { n.ReasonBy = "x" },
		"reason at": func(n *Node) { n.ReasonAt = time.Unix(1, 0) }, "comment": func(n *Node) { n.Comment = "x" },
		"topology":    func(n *Node) { n.Topology = "x" },
		"instance":    func(n *Node) { n.Instance = "x" },
		"features":    func(n *Node) { n.Features = []string{"x"} },
		"active":      func(n *Node) { n.ActiveFeatures = []string{"x"} },
		"partitions":  func(n *Node) { n.Partitions = []string{"x"} },
		"reservation": func(n *Node) { n.Reservation = "x" },
		"cpus":        func(n *Node) { n.CPUs = 1 }, "allocated cpus": func(n *Node) { n.AllocatedCPUs = 1 },
		"memory": func(n *Node) { n.Memory = 1 }, "allocated memory": func(n *Node) { n.AllocatedMemory = 1 },
		"gres": func(n *Node) { n.GRES = "x" }, "gres used": func(n *Node) { n.GRESUsed = "x" },
		"booted":    func(n *Node) { n.BootedAt = time.Unix(1, 0) },
		"slurmd":    func(n *Node) { n.SlurmdStartedAt = time.Unix(1, 0) },
		"last busy": func(n *Node) { n.LastBusy = time.Unix(1, 0) }, "version": func(n *Node) { n.Version = "x" },
	}
	for name, change := range changed {
		t.Run(name, func(t *testing.T) {
			var plain, other Node
			change(&other)
			if plain.Equal(&other) || !other.Equal(&other) || cmp.Equal(plain, other) {
				t.Error("the change is not detected")
			}
		})
	}
}

func TestFlagNamesMatchTheirBits(t *testing.T) {
	want := Flags(0)
	for i, name := range flagNames {
		_, flag, others := ParseState([]string{name})
		if flag != 1<<i || others != nil {
			t.Errorf("%s is bit %b", name, flag)
		}
		want |= flag
	}
	if last := FlagUndrain; want != last<<1-1 {
		t.Errorf("there are %d names and the last flag is %b", len(flagNames), last)
	}
	if diff := cmp.Diff([]string{"IDLE", "COMPLETING", "DRAIN", "X"},
		record("X", "DRAIN", "IDLE", "COMPLETING").StateNames()); diff != "" {
		t.Error(diff)
	}
}

func TestJobHolds(t *testing.T) {
	for name, test := range map[string]struct {
		states []string
		want   bool
	}{
		"pending":               {[]string{"PENDING"}, false},
		"running":               {[]string{"RUNNING"}, true},
		"suspended":             {[]string{"SUSPENDED"}, true},
		"starting":              {[]string{"RUNNING", "CONFIGURING"}, true},
		"completed":             {[]string{"COMPLETED"}, false},
		"being cleaned up":      {[]string{"COMPLETED", "COMPLETING"}, true},
		"requeued":              {[]string{"PENDING", "REQUEUED"}, false},
		"a later Slurm's state": {[]string{"NEW_STATE"}, true},
		"no state":              {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&Job{States: test.states}).Holds(); got != test.want {
				t.Errorf("holds: %t, want %t", got, test.want)
			}
		})
	}
}

func TestOwner(t *testing.T) {
	owner := Owner{Namespace: "slurm", PodName: "gpu-0", Node: "worker-1", NodeSetName: "gpu", NodeSetUID: "42"}
	const comment = `{"namespace":"slurm","podName":"gpu-0","node":"worker-1","nodeSetName":"gpu","nodeSetUID":"42"}`
	if got := owner.String(); got != comment {
		t.Errorf("comment is %s", got)
	}
	if got, err := ParseOwner(comment); err != nil || got != owner {
		t.Errorf("parsed %+v: %v", got, err)
	}
	for text, part := range map[string]Owner{
		`{"namespace":"slurm","podName":"gpu-0","node":"worker-1"}`:   owner.Pod(),
		`{"namespace":"slurm","nodeSetName":"gpu","nodeSetUID":"42"}`: owner.NodeSet(),
	} {
		if got, err := ParseOwner(text); err != nil || got != part || part.String() != text {
			t.Errorf("%s was read as %+v and written as %s: %v", text, got, part, err)
		}
	}
	for _, foreign := range []string{
		"", "repaired by Ann", "{}", `{"namespace":"x"}`, "null", "[1]", `{"nodeSetUID":"42"}`,
	} {
		if got, err := ParseOwner(foreign); err == nil {
			t.Errorf("%q was read as %+v", foreign, got)
		}
	}
}

func TestVersion(t *testing.T) {
	for release, want := range map[string]Version{
		"26.05.5": {26, 5, 5}, "24.11.5": {24, 11, 5}, "25.11.0-0rc1": {25, 11, 0}, "26.05": {26, 5, 0},
	} {
		if got, err := ParseVersion(release); err != nil || got != want {
			t.Errorf("%s was read as %v: %v", release, got, err)
		}
	}
	for _, release := range []string{"", "26", "slurm 26.05", "26.x.1", "26..1"} {
		if got, err := ParseVersion(release); err == nil {
			t.Errorf("%q was read as %v", release, got)
		}
	}
	if (Version{24, 11, 5}).Compare(Version{26, 5, 0}) >= 0 || (Version{26, 5, 5}).String() != "26.05.5" {
		t.Error("versions do not compare or print")
	}
}

func TestReleaseOfImage(t *testing.T) {
	for image, want := range map[string]string{
		"example.com/slurmdbd:26.05": "26.05", "example.com/slurmdbd:25.11.2@sha256:abcd": "25.11.2",
		"example.com:5000/slurmdbd:24.11-ubuntu24.04": "24.11", "example.com:5000/slurmdbd": "", "slurmdbd:latest": "",
		"slurmdbd@sha256:2511": "", "slurmdbd:25.12": "", "slurmdbd:125.11": "",
	} {
		if got := ReleaseOfImage(image); got != want {
			t.Errorf("release %q in %s, want %q", got, image, want)
		}
	}
	if latest, known := Latest([]string{"", "25.11", "26.05.1", "26.05"}); !known || latest.String() != "26.05.1" {
		t.Errorf("the latest release is %s", latest)
	}
	if _, known := Latest([]string{"", "new"}); known {
		t.Error("there is a latest release")
	}
}

func TestErrorKinds(t *testing.T) {
	err := fmt.Errorf("draining: %w", &Error{
		Kind: Rejected, Op: "update nodes n", Status: 422,
		Reasons: []Reason{{Number: NumberNodesBusy, Text: "busy", Description: "failure"}},
	})
	if !errors.Is(err, Rejected) || errors.Is(err, NotFound) || !ErrorNumber(err, NumberNodesBusy) ||
		ErrorNumber(err, 1) {
		t.Errorf("%v has another kind or number", err)
	}
	if want := "draining: update nodes n: refused (HTTP 422): failure: busy (error 2016)"; err.Error() != want {
		t.Errorf("message is %q, want %q", err, want)
	}
	for kind := Unreachable; kind <= Failed; kind++ {
		if kind.Error() == "" || resultNames[kind] == "" {
			t.Errorf("kind %d has no name", kind)
		}
		certain := kind == NotFound || kind == Rejected || kind == Unauthorized || kind == Unsupported
		if MayHaveTakenEffect(&Error{Kind: kind}) == certain {
			t.Errorf("%q: may have taken effect: %t", kind, !certain)
		}
	}
}

func FuzzParseOwner(f *testing.F) {
	f.Add(Owner{Namespace: "slurm", PodName: "gpu-0", Node: "worker-1", NodeSetName: "gpu", NodeSetUID: "42"}.String())
	f.Add(`{"namespace":"slurm","nodeSetName":"gpu","nodeSetUID":"42"}`)
	f.Add("repaired by Ann")
	f.Add(`{"namespace":1}`)
	f.Fuzz(func(t *testing.T, comment string) {
		owner, err := ParseOwner(comment)
		if err != nil {
			return
		}
		if again, err := ParseOwner(owner.String()); err != nil || again != owner {
			t.Errorf("%q: %+v became %+v: %v", comment, owner, again, err)
		}
	})
}

func FuzzParseVersion(f *testing.F) {
	f.Add("26.05.5")
	f.Add("25.11.0-0rc1")
	f.Fuzz(func(t *testing.T, release string) {
		version, err := ParseVersion(release)
		if err != nil {
			return
		}
		if again, err := ParseVersion(version.String()); err != nil || again != version {
			t.Errorf("%q: %v became %v: %v", release, version, again, err)
		}
	})
}
