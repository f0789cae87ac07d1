package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// input returns a cluster with two NodeSets, extraConf and a prolog, whose configuration is in force.
func input(t *testing.T) *Input {
	t.Helper()
	in := &Input{
		Controller: &slinkyv1beta1.Controller{
			ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "slurm"},
			Spec: slinkyv1beta1.ControllerSpec{
				ExtraConf: "# limits\nSlurmdTimeout=600\nSlurmctldParameters=idle_on_node_suspend\n" +
					"PartitionName=all Nodes=ALL MaxTime=1-0\n",
				AccountingRef:    &slinkyv1beta1.ObjectReference{Name: "slurm"},
				PrologScriptRefs: []slinkyv1beta1.ObjectReference{{Name: "scripts"}},
				ConfigFileRefs:   []slinkyv1beta1.ObjectReference{{Name: "files"}},
			},
			Status: slinkyv1beta1.ControllerStatus{SlurmVersion: "24.11.5"},
		},
		NodeSets: []slinkyv1beta1.NodeSet{nodeSet("gpu", "Default=YES"), nodeSet("debug", "MaxTime=60")},
		ConfigMaps: map[string]*corev1.ConfigMap{
			"scripts": {Data: map[string]string{"scratch.sh": "#!/bin/sh\n"}},
			"files":   {Data: map[string]string{"topology.yaml": "- topology: t\n"}},
		},
	}
	in.NodeSets[0].Spec.Gres = []slinkyv1beta1.GresRule{{Resource: "example.com/gpu", Gres: "gpu"}}
	in.NodeSets[0].Spec.Slurmd.Raw = []byte(`{"resources":{"limits":{"example.com/gpu":2}}}`)
	document, problems := in.Build()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	document.Append(slurmconf.Pair{Key: "PartitionName", Value: "old"}, slurmconf.Pair{Key: "State", Value: "DRAIN"})
	in.InForce = map[string]string{
		"slurm.conf":    slurmconf.WithHash(document, "5f0c3a91d2b7e644").Render(),
		"cgroup.conf":   "CgroupPlugin=autodetect\n",
		"scratch.sh":    "#!/bin/sh\n",
		"topology.yaml": "- topology: t\n",
	}
	return in
}

func nodeSet(name, partition string) slinkyv1beta1.NodeSet {
	set := slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: name}}
	set.Spec.ControllerRef.Name, set.Spec.Replicas = "slurm", new(int32(2))
	set.Spec.Partition = slinkyv1beta1.NodeSetPartition{Enabled: true, Config: partition}
	return set
}

func draw(result interface{ Draw(*output.Page) }) string {
	page := &output.Page{}
	result.Draw(page)
	return page.String()
}

func TestSources(t *testing.T) {
	result, err := Explain(input(t), slurmconf.FileName)
	if err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "sources.txt", draw(&result))
	if _, err := Explain(input(t), "gress.conf"); err == nil || !strings.Contains(err.Error(), "cgroup.conf, scratch.sh") {
		t.Error(err)
	}
}

func TestExplainedLinesAreTheFile(t *testing.T) {
	in := input(t)
	result, err := Explain(in, slurmconf.FileName)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, line := range result.Lines {
		lines.WriteString(line.Text + "\n")
	}
	if diff := cmp.Diff(in.InForce["slurm.conf"], lines.String()); diff != "" {
		t.Error(diff)
	}
}

func TestCompare(t *testing.T) {
	const running = `Configuration data as of 2026-03-05T12:00:00
SlurmctldParameters     = enable_configless,reconfig_on_restart,config_hash=5f0c3a91d2b7e644
SlurmdTimeout           = 600 sec
`
	for name, test := range map[string]struct {
		next    func(map[string]string)
		printed string
	}{
		"same.txt":      {nil, running},
		"not-asked.txt": {nil, ""},
		"other.txt": {nil, strings.NewReplacer("5f0c3a91d2b7e644", "0000000000000000", "600", "300").
			Replace(running)},
		"next.txt": {func(files map[string]string) {
			files["slurm.conf"] = strings.NewReplacer("SlurmdTimeout=600", "SlurmdTimeout=30", "5f0c3a91d2b7e644",
				"1111111111111111").Replace(files["slurm.conf"])
			files["job_submit.lua"] = "return 1\n"
		}, running},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			var next map[string]string
			if test.next != nil {
				next = input(t).InForce
				test.next(next)
			}
			difference := Compare(in, next, test.printed)
			golden.Compare(t, "diff-"+name, draw(&difference))
		})
	}
}

func TestDifferenceNamesWhatWaits(t *testing.T) {
	in := input(t)
	in.Controller.Spec.ExtraConf += "SelectType=select/linear\n"
	in.Controller.Annotations = map[string]string{slinkyv1beta1.AnnotationChangeDespiteJobs: "PrologFlags"}
	difference := Compare(in, nil, "")
	golden.Compare(t, "diff-waiting.txt", draw(&difference))
}

func TestRemovedNodeLinesWait(t *testing.T) {
	for name, despite := range map[string]string{"waits-nodes.txt": "", "waits-nodes-despite-jobs.txt": "NodeName"} {
		in := input(t)
		in.InForce[slurmconf.FileName] += "NodeName=bm[1-2] CPUs=4\n"
		in.Controller.Annotations = map[string]string{slinkyv1beta1.AnnotationChangeDespiteJobs: despite}
		golden.Compare(t, name, draw(Waiting(in)))
	}
}

func TestCheck(t *testing.T) {
	for name, change := range map[string]func(*slinkyv1beta1.Controller, *slinkyv1beta1.NodeSet) []any{
		"valid.txt": func(controller *slinkyv1beta1.Controller, set *slinkyv1beta1.NodeSet) []any {
			controller.Spec.ExtraConf += "MaxJobCount=20000\n"
			set.Spec.Partition.Config = "MaxTime=120"
			return []any{controller, set}
		},
		"costly.txt": func(controller *slinkyv1beta1.Controller, set *slinkyv1beta1.NodeSet) []any {
			controller.Spec.ExtraConf = "SELECTTYPE=select/linear\nSlurmdSpoolDir=/scratch\nMaxJobCount=500\n"
			set.Spec.Partition.Enabled = false
			gpu := nodeSet("gpu", "Default=YES")
			return []any{controller, set, &gpu}
		},
		"costly-despite-jobs.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			controller.Annotations = map[string]string{slinkyv1beta1.AnnotationChangeDespiteJobs: "maxjobcount,SelectType"}
			controller.Spec.ExtraConf += "SelectType=select/linear\nSlurmdSpoolDir=/scratch\nMaxJobCount=500\n"
			return []any{controller}
		},
		"costly-taken-back.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			controller.Spec.ExtraConf += "SelectType=select/linear\nSelectType=select/cons_tres\nMaxJobCount=10000\n"
			return []any{controller}
		},
		"costly-with-mistake.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			controller.Spec.ExtraConf += "SelectType=select/linear\nClusterName=other\n"
			return []any{controller}
		},
		"slurmctld-without-volume.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			controller.Spec.Persistence.Enabled = new(false)
			controller.Spec.Slurmctld.Raw = []byte(`{"image":"other"}`)
			return []any{controller}
		},
		"no-change.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			return []any{controller}
		},
		"owned-key.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			controller.Spec.ExtraConf += "ClusterName=other\nSlurmctldTimeout\n"
			return []any{controller}
		},
		"new-key.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			controller.Spec.ExtraConf += "PrologTimeout=30\n"
			return []any{controller}
		},
		"partition.txt": func(_ *slinkyv1beta1.Controller, set *slinkyv1beta1.NodeSet) []any {
			set.Spec.Partition.Config = "Nodes=a MaxTime"
			return []any{set}
		},
		"new-nodeset.txt": func(*slinkyv1beta1.Controller, *slinkyv1beta1.NodeSet) []any {
			return []any{new(nodeSet("highmem", "MaxTime=60"))}
		},
		"missing-configmap.txt": func(controller *slinkyv1beta1.Controller, _ *slinkyv1beta1.NodeSet) []any {
			controller.Spec.ConfigFileRefs = append(controller.Spec.ConfigFileRefs, slinkyv1beta1.ObjectReference{Name: "more"})
			return []any{controller}
		},
		"managed-file.txt": func(*slinkyv1beta1.Controller, *slinkyv1beta1.NodeSet) []any {
			return []any{&corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"slurm.conf": "ClusterName=x\n"},
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			after, err := in.With(change(in.Controller.DeepCopy(), in.NodeSets[1].DeepCopy()))
			if err != nil {
				t.Fatal(err)
			}
			check := &Check{}
			check.Effect(in, after)
			golden.Compare(t, "check-"+name, draw(check))
		})
	}
}

// What waits, waits for jobs: those that run, for MaxJobCount also pending ones, and for a partition its own.
func TestJobsThatChangesWaitFor(t *testing.T) {
	at := func(hour int) *time.Time { return new(time.Date(2026, 3, 5, hour, 0, 0, 0, time.UTC)) }
	limited := []slurmcli.Job{
		{State: "RUNNING", Partition: "debug", Limit: "1:00:00", End: at(13)},
		{State: "COMPLETING", Partition: "gpu", Limit: "1:00:00", End: at(14)},
		{State: "PENDING", Partition: "gpu,debug", Limit: "1:00:00"},
	}
	for name, jobs := range map[string][]slurmcli.Job{
		"limited.txt":   limited,
		"unlimited.txt": append(limited[:2:2], slurmcli.Job{State: "RUNNING", Limit: "UNLIMITED", End: at(15)}),
		"none.txt":      nil,
	} {
		t.Run(name, func(t *testing.T) {
			in := input(t)
			controller, set := in.Controller.DeepCopy(), in.NodeSets[1].DeepCopy()
			controller.Spec.ExtraConf += "SelectType=select/linear\nMaxJobCount=500\n"
			set.Spec.Partition.Enabled = false
			after, err := in.With([]any{controller, set})
			if err != nil {
				t.Fatal(err)
			}
			waits := WaitsOf(in, after)
			waits.Count(jobs)
			golden.Compare(t, "waits-"+name, draw(waits))
		})
	}
}

// What cannot be applied does not wait for jobs: a NodeSet with a mistake keeps what it has in force, and so does
// everything if the Controller has one.
func TestNothingWaitsBecauseOfAMistake(t *testing.T) {
	for name, mistake := range map[string]func(*Input){
		"of a NodeSet":      func(in *Input) { in.NodeSets[1].Spec.Partition.Config = "MaxTime" },
		"of the Controller": func(in *Input) { in.Controller.Spec.ExtraConf = "SelectType=select/linear\nSlurmUser=x\n" },
	} {
		in := input(t)
		mistake(in)
		if waits := Waiting(in); waits != nil {
			t.Errorf("%s: %+v", name, waits)
		}
	}
}

// Without a change of its template, the pod of slurmctld stays.
func TestPodWithoutVolumeStaysIfItsTemplateDoes(t *testing.T) {
	in := input(t)
	in.Controller.Spec.Persistence.Enabled = new(false)
	controller := in.Controller.DeepCopy()
	controller.Spec.ExtraConf += "MaxArraySize=2000\n"
	after, err := in.With([]any{controller})
	if err != nil {
		t.Fatal(err)
	}
	if waits := WaitsOf(in, after); waits != nil {
		t.Errorf("%+v", waits)
	}
}

// An annotation stays in force if a changed manifest does not have it.
func TestAnnotationOfTheControllerCountsForAChange(t *testing.T) {
	in := input(t)
	controller := in.Controller.DeepCopy()
	controller.Spec.ExtraConf += "SelectType=select/linear\n"
	in.Controller.Annotations = map[string]string{slinkyv1beta1.AnnotationChangeDespiteJobs: "SelectType"}
	after, err := in.With([]any{controller})
	if err != nil {
		t.Fatal(err)
	}
	if waits := WaitsOf(in, after); waits == nil || !waits.Keys[0].Despite || waits.Override != "" {
		t.Errorf("%+v", waits)
	}
}

// An external slurmctld has a configuration of its own, and before the first configuration there are no jobs.
func TestNothingWaitsInAClusterThatIsNotConfiguredHere(t *testing.T) {
	for name, change := range map[string]func(*Input){
		"external": func(in *Input) {
			in.Controller.Spec.External = true
			in.Controller.Spec.ExternalConfig = &slinkyv1beta1.ExternalConfig{Host: "ctl"}
		},
		"new": func(in *Input) { in.InForce = nil },
	} {
		in := input(t)
		change(in)
		controller := in.Controller.DeepCopy()
		controller.Spec.ExtraConf += "SelectType=select/linear\n"
		after, err := in.With([]any{controller})
		if err != nil {
			t.Fatal(err)
		}
		if waits := WaitsOf(in, after); waits != nil {
			t.Errorf("%s: %v", name, waits)
		}
	}
}

func TestCheckOfAnotherCluster(t *testing.T) {
	in := input(t)
	other := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	if _, err := in.With([]any{other}); err == nil || !strings.Contains(err.Error(), "--controller") {
		t.Error(err)
	}
	foreign := nodeSet("cpu", "")
	foreign.Spec.ControllerRef.Name = "other"
	after, err := in.With([]any{&foreign})
	if err != nil || len(after.NodeSets) != 2 {
		t.Errorf("%v, %d NodeSets", err, len(after.NodeSets))
	}
}
