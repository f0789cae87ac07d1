//go:build scale

package scale_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/scale"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

var (
	records = flag.Int("records", 5000, "how many Slurm nodes an elastic NodeSet has")
	woken   = flag.Int("woken", 1000, "how many of them a job needs")
)

// elasticIdle is the idle timeout of the elastic NodeSet.
const elasticIdle = 20 * time.Second

// TestElastic measures an elastic NodeSet: what its powered-down Slurm nodes cost, a job that needs many of them, and
// their power-down.
func TestElastic(t *testing.T) {
	report := elasticReport{Cores: runtime.NumCPU(), Nodes: *nodes, Records: *records}
	passed := t.Run("StatefulSet", func(t *testing.T) {
		cluster := simulated.Start(t, simulated.Options{Nodes: *nodes})
		scale.SimulateSlurmds(t, cluster, slurmtest.New(t, slurmtest.Release2605))
		report.StatefulSet = scale.Measure(t, cluster, statefulSetOf(cluster.Client, *woken, slurmdTemplate(t)))
	}) && t.Run("elastic NodeSet", func(t *testing.T) {
		cluster := simulated.Start(t, simulated.Options{Nodes: *nodes})
		report.Kubernetes = versionOf(t, cluster)
		newBench(t, cluster, *records, newOwnController()).measureElastic(t, &report)
	})
	if !passed {
		t.FailNow()
	}
	section := ""
	if *docsTable != "" {
		section = "elastic"
	}
	publish(t, report, "scale-elastic.json", section)
}

// newOwnController returns a Controller whose slurmctld the operator runs: only that can have elastic NodeSets. Its pod
// is simulated too, so its configuration is applied without a validation run.
func newOwnController() *slinkyv1beta1.Controller {
	controller := newController()
	controller.Spec.External, controller.Spec.ExternalConfig = false, nil
	controller.Spec.Persistence.Enabled, controller.Spec.ConfigurationTrial.Enabled = new(false), new(false)
	controller.Spec.SlurmUser = slinkyv1beta1.SlurmUser{UID: 401, GID: 401}
	return controller
}

func newElasticNodeSet() *slinkyv1beta1.NodeSet {
	set := newNodeSet(0)
	set.Spec.Replicas = nil
	set.Spec.Slurmd.Raw = []byte(`{"resources":{"limits":{"cpu":"2","memory":"1Gi"},"requests":{"cpu":"0","memory":"0"}}}`)
	set.Spec.Elastic = &slinkyv1beta1.NodeSetElastic{
		MaxReplicas: int32(*records), IdleTimeout: metav1.Duration{Duration: elasticIdle},
		StartTimeout: metav1.Duration{Duration: time.Hour},
	}
	return set
}

func (b *bench) measureElastic(t *testing.T, report *elasticReport) {
	t.Helper()
	b.addRecords(t)
	report.Idle = b.idle(t)
	begin, job := b.meter(t), int64(0)
	report.NodeSet = scale.Measure(t, b.cluster, scale.Workload{
		Kind: "NodeSet", Pods: *woken, Selector: slinkyv1beta1.LabelPodHostname, Users: []string{scale.OperatorUser},
		Create: func(ctx context.Context) (err error) {
			job, err = b.slurm.Submitter("root").Submit(ctx, slurmtest.JobRequest{
				Name: "wide", Script: "#!/bin/sh\nsleep 60", Nodes: *woken, TimeLimit: time.Hour,
			})
			return err
		},
		Settled: func(ctx context.Context) (bool, error) {
			set, err := b.set(ctx)
			return err == nil && set.Status.Elastic != nil && int(set.Status.Elastic.Busy) == *woken, err
		},
		While: func() { report.PowerUp = begin.step(t, *woken) },
		Delete: func(ctx context.Context) error {
			if err := b.waitForJob(ctx, job); err != nil {
				return err
			}
			select {
			case <-time.After(elasticIdle):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			begin = b.meter(t)
			return nil
		},
	})
	report.PowerDown = begin.step(t, *woken)
	b.until(t, "all Slurm nodes are powered down", b.allPoweredDown)
	report.IdleAgain = b.idle(t)
	b.countEvents(t)
}

// addRecords creates the NodeSet, and makes Slurm run with the configuration that has its records.
func (b *bench) addRecords(t *testing.T) {
	t.Helper()
	set := newElasticNodeSet()
	if err := b.Create(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	var hash string
	b.until(t, "the records are in slurm.conf", func(ctx context.Context) (bool, error) {
		live := &corev1.ConfigMap{}
		key := client.ObjectKey{Namespace: namespace, Name: naming.Configuration(clusterName)}
		if err := b.Get(ctx, key, live); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		document, err := slurmconf.Parse(live.Data[slurmconf.FileName])
		parameters, _ := document.Get("SlurmctldParameters")
		hash = slurmconf.HashOf(parameters)
		return len(slurmconf.RecordsInForce(document)) == *records, err
	})
	names := make([]string, *records)
	for ordinal := range names {
		names[ordinal] = naming.WorkerHost(set, ordinal)
	}
	b.slurm.AddCloudNodes(names...)
	controller := newOwnController()
	patch := fmt.Appendf(nil, `{"status":{"appliedConfigHash":%q}}`, hash)
	if err := b.Status().Patch(t.Context(), controller, client.RawPatch(types.MergePatchType, patch)); err != nil {
		t.Fatal(err)
	}
	b.until(t, "all Slurm nodes are powered down", b.allPoweredDown)
}

// allPoweredDown reports whether the NodeSet is ready, and has no pods.
func (b *bench) allPoweredDown(ctx context.Context) (bool, error) {
	set, err := b.set(ctx)
	if err != nil {
		return false, err
	}
	ready := meta.FindStatusCondition(set.Status.Conditions, slinkyv1beta1.ConditionReady)
	return ready != nil && ready.Status == metav1.ConditionTrue && set.Status.Elastic != nil &&
		set.Status.Desired == 0 && set.Status.Replicas == 0 && set.Status.Elastic.PoweringDown == 0, nil
}

// waitForJob waits until a job has completed.
func (b *bench) waitForJob(ctx context.Context, id int64) error {
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (bool, error) {
		job, err := b.admin.Job(ctx, id)
		if err == nil && slices.Contains(job.States, "PENDING") {
			err = errors.New("the job was requeued")
		}
		return err == nil && slices.Contains(job.States, "COMPLETED"), err
	})
}

// An elasticReport is the measurement of an elastic NodeSet, and of a StatefulSet with as many pods as the job needs.
type elasticReport struct {
	Kubernetes  string       `json:"kubernetes"`
	Cores       int          `json:"cores"`
	Nodes       int          `json:"nodes"`
	Records     int          `json:"records"`
	StatefulSet scale.Result `json:"statefulSet"`
	NodeSet     scale.Result `json:"nodeSet"`
	PowerUp     scale.Step   `json:"powerUp"`
	PowerDown   scale.Step   `json:"powerDown"`
	// Idle is the cost per minute before the job, IdleAgain after it.
	Idle      scale.Idle `json:"idle"`
	IdleAgain scale.Idle `json:"idleAgain"`
}

// Markdown renders the report as tables.
func (r elasticReport) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Kubernetes %s, %d cores, %d simulated Kubernetes nodes, %d Slurm nodes, a job on %d of them.\n\n",
		r.Kubernetes, r.Cores, r.Nodes, r.Records, r.NodeSet.Pods)
	b.WriteString("| | Seconds | Writes per pod | Requests to Slurm | MB from Slurm | Operator: CPU seconds |\n" +
		"|---|--:|--:|--:|--:|--:|\n")
	for _, row := range []struct {
		name string
		step scale.Step
	}{{"until the job runs", r.PowerUp}, {"from the idle timeout until no pod is left", r.PowerDown}} {
		writes := 0
		for _, write := range row.step.Writes {
			writes += write.Requests
		}
		fmt.Fprintf(&b, "| %s | %.1f | %.2f | %d | %.1f | %.1f |\n", row.name, row.step.Seconds,
			float64(writes)/float64(r.NodeSet.Pods), row.step.SlurmRequests, float64(row.step.SlurmBytes)/1e6, row.step.CPU)
	}
	fmt.Fprintf(&b, "\nPods created after %.1f s, and Ready after %.1f s; those of a bare StatefulSet after %.1f s and "+
		"%.1f s.\n\n", r.NodeSet.Created, r.NodeSet.Ready, r.StatefulSet.Created, r.StatefulSet.Ready)
	b.WriteString("| Idle, per minute | Writes | Requests to Slurm | kB from Slurm | Operator: CPU seconds |\n" +
		"|---|--:|--:|--:|--:|\n")
	for _, row := range []struct {
		name string
		idle scale.Idle
	}{{"before the job", r.Idle}, {"after it", r.IdleAgain}} {
		fmt.Fprintf(&b, "| %s | %.0f | %.1f | %.1f | %.2f |\n", row.name, row.idle.Writes, row.idle.SlurmRequests,
			row.idle.SlurmBytes/1e3, row.idle.CPU)
	}
	return b.String()
}
