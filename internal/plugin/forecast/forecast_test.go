package forecast_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/forecast"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

var now = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

// cluster returns a NodeSet gpu with four idle nodes.
func cluster(t *testing.T) (*forecast.Input, *slinkyv1beta1.NodeSet) {
	t.Helper()
	set := &slinkyv1beta1.NodeSet{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "gpu", UID: "n-1"}}
	set.Spec.ControllerRef.Name, set.Spec.Replicas = "slurm", new(int32(4))
	set.Status.NodeSetHash = "r1"
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "slurm"}}
	controller.Status.JobConfinement = slinkyv1beta1.JobConfinementNone
	in := &forecast.Input{Now: now, Controller: controller, Asked: true, Started: forecast.Since(now)}
	template, err := worker.Template(worker.Set{NodeSet: set, Controller: controller})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		name := fmt.Sprintf("gpu-%d", i)
		pod := corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: template.Spec}
		pod.Name, pod.Namespace, pod.CreationTimestamp = name, "slurm", metav1.NewTime(now.Add(-time.Hour))
		if pod.Labels == nil {
			pod.Labels = map[string]string{}
		}
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "r1"
		pod.Labels[slinkyv1beta1.LabelPodIndex], pod.Labels[slinkyv1beta1.LabelPodHostname] = strconv.Itoa(i), name
		pod.Spec.NodeName, pod.Spec.Hostname = fmt.Sprintf("node-%d", i), name
		pod.OwnerReferences = []metav1.OwnerReference{{UID: set.UID, Controller: new(true)}}
		started := metav1.NewTime(now.Add(-time.Hour))
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: started},
				{Type: slinkyv1beta1.PodConditionRegistered, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name:  string(naming.Slurmd),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
			}},
		}
		in.Pods = append(in.Pods, pod)
		in.KubernetesNodes = append(in.KubernetesNodes, corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}})
		in.SlurmNodes = append(in.SlurmNodes, slurm.Node{
			Name: name, State: slurm.StateIdle, Version: "26.05.5", SlurmdStartedAt: now.Add(-time.Hour),
		})
	}
	return in, set
}

// runs puts a job on a node.
func runs(in *forecast.Input, node int, number int64, limit string, left time.Duration) {
	in.SlurmNodes[node].State, in.SlurmNodes[node].AllocatedCPUs = slurm.StateAllocated, 1
	in.Jobs = append(in.Jobs, slurmcli.Job{
		Number: number, State: "RUNNING", Nodes: in.SlurmNodes[node].Name, Limit: limit, End: new(now.Add(left)),
	})
}

func TestForecast(t *testing.T) {
	for name, change := range map[string]func(*forecast.Input, *slinkyv1beta1.NodeSet){
		"steady.txt": func(*forecast.Input, *slinkyv1beta1.NodeSet) {},
		"scale-in.txt": func(in *forecast.Input, after *slinkyv1beta1.NodeSet) {
			runs(in, 0, 7, "2:00:00", time.Hour)
			after.Spec.Replicas = new(int32(2))
		},
		"scale-in-of-busy-nodes.txt": func(in *forecast.Input, after *slinkyv1beta1.NodeSet) {
			for node := range 4 {
				runs(in, node, int64(7+node), "2:00:00", time.Duration(node+1)*time.Hour)
			}
			after.Spec.Replicas = new(int32(2))
		},
		"scale-out.txt": func(_ *forecast.Input, after *slinkyv1beta1.NodeSet) { after.Spec.Replicas = new(int32(6)) },
		"update.txt": func(in *forecast.Input, after *slinkyv1beta1.NodeSet) {
			runs(in, 3, 4711, "UNLIMITED", 365*24*time.Hour)
			after.Spec.ExtraConf = "Weight=10"
		},
		"other-fields.txt": func(_ *forecast.Input, after *slinkyv1beta1.NodeSet) {
			after.Spec.Partition.Config = "MaxTime=60" // slurm.conf, and no pod
		},
		"drained-for-scale-in.txt": func(in *forecast.Input, after *slinkyv1beta1.NodeSet) {
			in.SlurmNodes[3].Flags, in.SlurmNodes[3].Reason = slurm.FlagDrain, slinkyv1beta1.ReasonPrefix+"scale-in"
			in.SlurmNodes[3].ReasonAt = now.Add(-time.Minute)
			after.Spec.Replicas = new(int32(3))
		},
		"cordoned.txt": func(in *forecast.Input, _ *slinkyv1beta1.NodeSet) {
			in.KubernetesNodes[1].Spec.Unschedulable = true
		},
		"slurm-not-asked.txt": func(in *forecast.Input, after *slinkyv1beta1.NodeSet) {
			in.Asked = false
			after.Spec.Replicas = new(int32(3))
		},
		"daemonset.txt": func(in *forecast.Input, after *slinkyv1beta1.NodeSet) {
			in.Pods = nil
			after.Spec.ScalingMode = slinkyv1beta1.ScalingModeDaemonSet
			after.Spec.Template.Spec.Raw = []byte(`{"nodeSelector":{"gpu":"yes"}}`)
			in.KubernetesNodes[2].Labels = map[string]string{"gpu": "yes"}
		},
		"invalid.txt": func(_ *forecast.Input, after *slinkyv1beta1.NodeSet) {
			after.Spec.ExtraConf = "NodeName=x"
		},
	} {
		t.Run(name, func(t *testing.T) {
			in, before := cluster(t)
			after := before.DeepCopy()
			change(in, after)
			next, err := forecast.Of(in, before, after)
			if err != nil {
				t.Fatal(err)
			}
			result := &forecast.Result{NodeSets: []forecast.NodeSet{next}}
			page := &output.Page{}
			result.Draw(page)
			golden.Compare(t, name, page.String())
			if name == "scale-in-of-busy-nodes.txt" { // as hack/pictures draws it
				page := &output.Page{Style: output.Style{Colours: true}}
				result.Draw(page)
				golden.Compare(t, "scale-in-of-busy-nodes.ansi", page.String())
			}
		})
	}
}

func TestForecastOfANewNodeSet(t *testing.T) {
	in, set := cluster(t)
	set.UID, set.Name = "", "new"
	next, err := forecast.Of(in, nil, set)
	if err != nil || len(next.Steps) != 1 || next.Steps[0].Action != "create" || next.Steps[0].Nodes != "new-[0-3]" {
		t.Errorf("%v: %+v", err, next.Steps)
	}
}

func TestForecastLeavesElasticNodeSetsToSlurm(t *testing.T) {
	in, set := cluster(t)
	set.Spec.Replicas, set.Spec.Elastic = nil, &slinkyv1beta1.NodeSetElastic{MaxReplicas: 64}
	next, err := forecast.Of(in, set, set)
	if err != nil || len(next.Steps) > 0 || !strings.Contains(next.Withheld, "Slurm decides") {
		t.Errorf("%v: %+v", err, next)
	}
}
