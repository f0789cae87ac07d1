package cluster

import (
	"strings"
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// I21: settings of one NodeSet that the operator cannot parse are left out; those in force stay, and the other NodeSets
// get what they ask for.
func TestUnreadableNodeSetIsLeftOut(t *testing.T) {
	tests := map[string]struct {
		spoil   func(controller *slinkyv1beta1.Controller, gpu *slinkyv1beta1.NodeSet)
		isNew   bool // the NodeSet did not exist before
		before  string
		want    []string
		without []string
		says    []string
	}{
		"an unreadable partition": {
			spoil: func(_ *slinkyv1beta1.Controller, gpu *slinkyv1beta1.NodeSet) { gpu.Spec.Partition.Config = "MaxTime" },
			want:  []string{"PartitionName=gpu Nodes=gpu MaxTime=60", "GresTypes=gpu"}, says: []string{
				"spec.partition.config", `"MaxTime"`,
			},
		},
		"an unreadable partition of a new NodeSet": {
			spoil: func(_ *slinkyv1beta1.Controller, gpu *slinkyv1beta1.NodeSet) { gpu.Spec.Partition.Config = "MaxTime" },
			isNew: true,
			want:  []string{"NodeSet=gpu Feature=gpu"}, without: []string{"PartitionName=gpu", "GresTypes"}, says: []string{
				"spec.partition.config",
			},
		},
		"an invalid GRES name": {
			spoil: func(_ *slinkyv1beta1.Controller, gpu *slinkyv1beta1.NodeSet) { gpu.Spec.ExtraConf = "Gres=g$pu:1" },
			want:  []string{"PartitionName=gpu Nodes=gpu MaxTime=60", "GresTypes=gpu"}, without: []string{"g$pu"},
			says: []string{
				`"g$pu"`, "spec.extraConf",
			},
		},
		"node parameters that the NodeSet's own status reports": {
			spoil: func(_ *slinkyv1beta1.Controller, gpu *slinkyv1beta1.NodeSet) { gpu.Spec.ExtraConf = "Gres" },
			want:  []string{"PartitionName=gpu Nodes=gpu MaxTime=60", "GresTypes=gpu"},
		},
		"a new NodeSet with the name of a partition in force": {
			spoil: func(*slinkyv1beta1.Controller, *slinkyv1beta1.NodeSet) {}, isNew: true,
			before: "PartitionName=gpu Nodes=ALL",
			want:   []string{"PartitionName=gpu Nodes=ALL"}, without: []string{"PartitionName=gpu Nodes=gpu"}, says: []string{
				"line 1 of the Controller's spec.extraConf", "another name",
			},
		},
		"a new NodeSet with the name of a line in force": {
			spoil: func(*slinkyv1beta1.Controller, *slinkyv1beta1.NodeSet) {}, isNew: true,
			before: "NodeSet=gpu Feature=other",
			want:   []string{"NodeSet=gpu Feature=other"}, without: []string{"PartitionName=gpu"}, says: []string{
				"line 1 of the Controller's spec.extraConf",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := newScope(withPartitions("cpu", "gpu"))
			scope.controller.Spec.ExtraConf = test.before
			gpu := &scope.nodeSets[1]
			gpu.Spec.Partition.Config, gpu.Spec.ExtraConf = "MaxTime=60", "Gres=gpu:1"
			if test.isNew {
				now := scope.nodeSets
				scope.nodeSets = now[:1]
				promoteBuilt(t, scope)
				scope.nodeSets = now
			} else {
				promoteBuilt(t, scope)
			}
			test.spoil(scope.controller, gpu)
			scope.nodeSets[0].Spec.Partition.Config = "Default=YES"
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatalf("it blocks the whole configuration: %s", problem.Message)
			}
			conf := candidate.files[slurmconf.FileName]
			for _, line := range append(test.want, "PartitionName=cpu Nodes=cpu Default=YES") {
				if !strings.Contains(conf, line+"\n") {
					t.Errorf("line %q is missing in\n%s", line, conf)
				}
			}
			for _, text := range test.without {
				if strings.Contains(conf, text) {
					t.Errorf("unexpected %q in\n%s", text, conf)
				}
			}
			if !test.isNew && candidate.files[slurmconf.GresFile] != slurmconf.IncludePodGres {
				t.Error("the GPUs in force have lost their gres.conf")
			}
			if len(candidate.leaving) > 0 {
				t.Errorf("partitions %v are being removed", candidate.leaving)
			}
			message := leftOutMessage(candidate.leftOut)
			for _, text := range test.says {
				if len(candidate.leftOut) != 1 || !strings.Contains(message, text) ||
					!strings.Contains(message, "NodeSet gpu") {
					t.Errorf("the message is %q", message)
				}
			}
		})
	}
}

// withHostname gives a NodeSet a prefix of host names.
func withHostname(set *slinkyv1beta1.NodeSet) {
	set.Spec.Template.Spec.Raw = []byte(`{"hostname":"gpu-"}`)
}

// A NodeSet with a prefix of host names is in slurm.conf under that name, and reported under its own.
func TestNodeSetIsNamedAfterItsHostNames(t *testing.T) {
	scope := newScope(withPartitions("worker-gpu"))
	gpu := &scope.nodeSets[0]
	withHostname(gpu)
	gpu.Spec.Partition.Config = "MaxTime=60"
	promoteBuilt(t, scope)
	gpu.Spec.Partition.Config = "MaxTime"
	candidate, problem := build(scope)
	if problem != nil {
		t.Fatal(problem.Message)
	}
	const want = "NodeSet=gpu Feature=gpu\nNodeSet=worker-gpu Feature=worker-gpu\nPartitionName=gpu Nodes=gpu MaxTime=60\n"
	if conf := candidate.files[slurmconf.FileName]; !strings.Contains(conf, want) {
		t.Errorf("got\n%s", conf)
	}
	if len(candidate.leftOut) != 1 || candidate.leftOut[0].NodeSet != "worker-gpu" || len(candidate.leaving) > 0 {
		t.Errorf("left out %v, leaving %v", candidate.leftOut, candidate.leaving)
	}
	if candidate.names["worker-gpu"] != "gpu" {
		t.Errorf("the names are %v", candidate.names)
	}
}

// A cluster that is in force under the names of the NodeSets does not change.
func TestNodeSetInForceKeepsItsName(t *testing.T) {
	scope := newScope(withPartitions("worker-gpu"))
	promoteBuilt(t, scope)
	withHostname(&scope.nodeSets[0])
	if plan := decide(scope); plan.stage != settled || plan.candidate.names["worker-gpu"] != "worker-gpu" {
		t.Errorf("stage %d, names %v, with\n%s", plan.stage, plan.candidate.names, plan.candidate.files[slurmconf.FileName])
	}
}

// A NodeSet whose name is that of another one in Slurm is left out.
func TestNodeSetWithNameOfAnotherIsLeftOut(t *testing.T) {
	scope := newScope(withPartitions("gpu", "worker-gpu"))
	worker := &scope.nodeSets[1]
	withHostname(worker)
	worker.Annotations = map[string]string{slinkyv1beta1.AnnotationSlurmName: "gpu"}
	scope.nodeSets[0].CreationTimestamp.Time = start
	candidate, problem := build(scope)
	if problem != nil {
		t.Fatal(problem.Message)
	}
	message := leftOutMessage(candidate.leftOut)
	if len(candidate.leftOut) != 1 || !strings.Contains(message, "NodeSet gpu: NodeSet worker-gpu has the name gpu") {
		t.Errorf("the message is %q", message)
	}
	if conf := candidate.files[slurmconf.FileName]; strings.Count(conf, "NodeSet=gpu ") != 1 ||
		!strings.Contains(conf, "NodeSet=worker-gpu Feature=worker-gpu\n") {
		t.Errorf("got\n%s", conf)
	}
}

// A new line of extraConf that conflicts with a NodeSet in force is a mistake in extraConf, and nothing changes.
func TestExtraConfConflictingWithNodeSetIsRefused(t *testing.T) {
	scope := newScope(withPartitions("gpu"))
	promoteBuilt(t, scope)
	scope.controller.Spec.ExtraConf = "PartitionName=gpu Nodes=ALL"
	if _, problem := build(scope); problem == nil || !strings.Contains(problem.Message, "spec.extraConf: line 1") {
		t.Errorf("got problem %+v", problem)
	}
}

// Settings of one NodeSet that slurmctld refuses are left out until something changes, without another validation run.
func TestRefusedNodeSetIsLeftOut(t *testing.T) {
	scope := newScope(withPartitions("cpu", "gpu"))
	promoteBuilt(t, scope)
	scope.nodeSets[0].Spec.Partition.Config, scope.nodeSets[1].Spec.Partition.Config = "Default=YES", "MaxTime=soon"
	refusedHash := hashOf(t, scope)
	report := &validation.Report{
		Outcome: validation.Accepted, LeftOut: []validation.LeftOut{{NodeSet: "gpu", Detail: "Bad value soon"}},
	}

	validateWith(refusedHash, report)(scope)
	if plan := decide(scope); plan.stage != begin || !plan.endValidation {
		t.Errorf("stage %d after a run against another configuration in force", plan.stage)
	}
	scope.validation.Annotations[annotationInForce] = scope.promoted.hash
	plan := decide(scope)
	conf := plan.candidate.files[slurmconf.FileName]
	if plan.stage != promote || !strings.Contains(conf, "PartitionName=gpu Nodes=gpu\n") ||
		!strings.Contains(conf, "PartitionName=cpu Nodes=cpu Default=YES\n") {
		t.Fatalf("stage %d, with\n%s", plan.stage, conf)
	}
	live, err := promotedConfigMap(scope, &plan)
	if err != nil || live.Annotations[annotationRefusedHash] != refusedHash ||
		!strings.Contains(live.Annotations[annotationRefused], "Bad value soon") {
		t.Errorf("annotations are %v", live.Annotations)
	}

	scope.promoted = &promoted{
		files: plan.candidate.files, hash: plan.candidate.hash, image: scope.image,
		refusedHash: plan.candidate.refusedHash, refused: plan.candidate.refused,
	}
	scope.validation = nil
	if plan = decide(scope); plan.stage != settled || plan.candidate.hash != scope.promoted.hash ||
		!strings.Contains(leftOutMessage(plan.candidate.leftOut), "Bad value soon") {
		t.Errorf("stage %d, configuration %s, left out %v", plan.stage, plan.candidate.hash, plan.candidate.leftOut)
	}
	scope.image = "newer"
	if plan = decide(scope); plan.stage != begin {
		t.Errorf("stage %d with another image", plan.stage)
	}
	scope.image = "new"
	scope.nodeSets[1].Spec.Partition.Config = "MaxTime=later"
	if plan = decide(scope); plan.stage != begin {
		t.Errorf("stage %d after another change", plan.stage)
	}
	scope.nodeSets[1].Spec.Partition.Config = ""
	if plan = decide(scope); plan.stage != settled || len(plan.candidate.leftOut) > 0 {
		t.Errorf("stage %d, left out %v after the change was reverted", plan.stage, plan.candidate.leftOut)
	}
}
