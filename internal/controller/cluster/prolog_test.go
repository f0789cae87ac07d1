package cluster

import (
	"slices"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestPrologFlagsWaitForJobs(t *testing.T) {
	inForce := func(lines string) func(*scope) {
		return func(s *scope) {
			s.promoted = &promoted{hash: "live", files: map[string]string{slurmconf.FileName: lines}}
		}
	}
	older, nodeSet := inForce("ClusterName=a\n"), slinkyv1beta1.NodeSet{}
	nodeSet.Status.ReadyReplicas = 1
	withSlurmds := func(s *scope) { s.nodeSets = []slinkyv1beta1.NodeSet{nodeSet} }
	withSSH := func(s *scope) {
		withSlurmds(s)
		s.nodeSets[0].Spec.SSH.Enabled = true
	}
	queue := func(queue slurm.Queue) func(*scope) {
		return func(s *scope) { s.nodes = &slurm.Snapshot{Queue: queue} }
	}
	busy := queue(slurm.Queue{Loads: map[string]slurm.Load{"node-0": {Running: 1}}, Running: 1})
	unplaced := queue(slurm.Queue{Unplaced: 1})
	for name, test := range map[string]struct {
		changes []func(*scope)
		flags   string
		keeps   bool
	}{
		"a new cluster has the flag":  {flags: "Contain"},
		"a restored cluster may not":  {changes: []func(*scope){withSlurmds}},
		"an older cluster does not":   {changes: []func(*scope){older, busy}},
		"the flag stays":              {changes: []func(*scope){inForce("PrologFlags=Contain\n"), busy}, flags: "Contain"},
		"ssh waits for running jobs":  {changes: []func(*scope){older, withSSH, busy}, keeps: true},
		"ssh waits for unplaced jobs": {changes: []func(*scope){older, withSSH, unplaced}, keeps: true},
		"ssh waits for Slurm":         {changes: []func(*scope){older, withSSH}, keeps: true},
		"other flags change with jobs": {
			changes: []func(*scope){inForce("PrologFlags=Alloc\n"), withSSH, busy}, flags: "Contain",
		},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(test.changes...)
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			flags, _ := candidate.document.Get("PrologFlags")
			if flags != test.flags || slices.Contains(candidate.waiting, "PrologFlags") != test.keeps {
				t.Errorf("PrologFlags=%s, waiting: %s", flags, candidate.waiting)
			}
		})
	}
}
