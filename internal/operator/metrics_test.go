package operator

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset"
	"github.com/slurm-operator/slurm-operator/internal/metric"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	slurmmetrics "github.com/slurm-operator/slurm-operator/internal/slurm/metrics"
)

// recorder returns a sender that keeps all values by name and labels.
func recorder() (sender, map[string]float64) {
	values := map[string]float64{}
	return func(definition metric.Definition, value float64, labels ...string) {
		if len(labels) != len(definition.Labels)-2 && len(labels) != len(definition.Labels) {
			panic(fmt.Sprintf("%s has the labels %v, got %v", definition.Name, definition.Labels, labels))
		}
		values[fmt.Sprint(definition.Name, labels)] = value
	}, values
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestSnapshotMetrics(t *testing.T) {
	snapshot := &slurm.Snapshot{
		Nodes: []*slurm.Node{
			{Name: "a-0", State: slurm.StateMixed, Partitions: []string{"all", "a"}, CPUs: 8, AllocatedCPUs: 3, Memory: 1024,
				AllocatedMemory: 256, GRES: "gpu:a100:4(S:0-1)", GRESUsed: "gpu:a100:1(IDX:0)"},
			{Name: "a-1", State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: "slurm-operator: scale-in", ReasonAt: noon,
				Partitions: []string{"all", "a"}, CPUs: 8, GRES: "gpu:a100:4(S:0-1)", GRESUsed: "gpu:a100:0(IDX:N/A)"},
			{Name: "a-2", State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: "bad DIMM", ReasonAt: noon.Add(-time.Hour),
				Partitions: []string{"all"}, CPUs: 8},
			{Name: "a-3", State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: "bad fan", ReasonAt: noon,
				Partitions: []string{"all"}, CPUs: 8},
		},
		Queue: slurm.Queue{
			Pending: 7, Running: 1, Partitions: map[string]int{"a": 8},
			Waiting: map[slurm.Waiting]int{{Partition: "a", Reason: slurm.PendingLimit}: 7},
		},
	}
	send, values := recorder()
	collectSnapshot(snapshot, send)
	for series, want := range map[string]float64{
		"slurm_operator_slurm_nodes[mixed]":                            1,
		"slurm_operator_slurm_nodes[drained]":                          3,
		"slurm_operator_slurm_nodes[idle]":                             0,
		"slurm_operator_slurm_partition_nodes[a drained]":              1,
		"slurm_operator_slurm_partition_nodes[all drained]":            3,
		"slurm_operator_slurm_cpus[allocated]":                         3,
		"slurm_operator_slurm_cpus[idle]":                              5,
		"slurm_operator_slurm_cpus[unavailable]":                       24,
		"slurm_operator_slurm_partition_cpus[a unavailable]":           8,
		"slurm_operator_slurm_memory_bytes[allocated]":                 256 << 20,
		"slurm_operator_slurm_gpus[allocated]":                         1,
		"slurm_operator_slurm_gpus[idle]":                              3,
		"slurm_operator_slurm_gpus[unavailable]":                       4,
		"slurm_operator_slurm_jobs[pending]":                           7,
		"slurm_operator_slurm_jobs[running]":                           1,
		"slurm_operator_slurm_partition_jobs[a]":                       8,
		"slurm_operator_slurm_pending_jobs[a limit]":                   7,
		"slurm_operator_slurm_queue_partial[]":                         0,
		"slurm_operator_slurm_drained_nodes[ScaleIn]":                  1,
		"slurm_operator_slurm_drained_nodes[Update]":                   0,
		"slurm_operator_slurm_drained_nodes[Other]":                    2,
		"slurm_operator_slurm_oldest_drain_timestamp_seconds[ScaleIn]": float64(noon.Unix()),
		"slurm_operator_slurm_oldest_drain_timestamp_seconds[Other]":   float64(noon.Unix() - 3600),
	} {
		if got, found := values[series]; got != want || !found {
			t.Errorf("%s is %v, want %v", series, got, want)
		}
	}
	if _, found := values["slurm_operator_slurm_oldest_drain_timestamp_seconds[Update]"]; found {
		t.Error("there is an age of drains for updates, and no such drain")
	}
}

func TestNodeState(t *testing.T) {
	drained := slurm.FlagDrain
	for want, node := range map[string]slurm.Node{
		"down":           {State: slurm.StateDown, Flags: drained},
		"powered-down":   {State: slurm.StateIdle, Flags: slurm.FlagPoweredDown},
		"draining":       {State: slurm.StateMixed, Flags: drained},
		"drained":        {State: slurm.StateIdle, Flags: slurm.FlagFail},
		"not-responding": {State: slurm.StateAllocated, Flags: slurm.FlagNotResponding},
		"mixed":          {State: slurm.StateMixed, Flags: slurm.FlagCompleting},
		"allocated":      {State: slurm.StateAllocated},
		"completing":     {State: slurm.StateIdle, Flags: slurm.FlagCompleting},
		"reserved":       {State: slurm.StateIdle, Flags: slurm.FlagMaintenance},
		"idle":           {State: slurm.StateIdle, Flags: slurm.FlagDynamicNorm},
		"unknown":        {State: slurm.StateFuture},
	} {
		if got := nodeState(&node); got != want || !slices.Contains(nodeStates, got) {
			t.Errorf("%v counts as %s, want %s", node.StateNames(), got, want)
		}
	}
}

func TestDrainCause(t *testing.T) {
	for reason, want := range map[string]string{
		"slurm-operator: scale-in":                           "ScaleIn",
		"slurm-operator: update":                             "Update",
		"slurm-operator: NodeSet is being deleted":           "Deletion",
		"slurm-operator: pod is cordoned":                    "PodCordon",
		"slurm-operator: Kubernetes node node-2 is cordoned": "KubernetesNode",
		"slurm-operator: no capacity in Kubernetes":          "NoCapacity",
		"slurm-operator: its pod did not start in time":      "NotStarted",
		"XID 79": "Other",
		"":       "Other",
	} {
		node := &slurm.Node{State: slurm.StateIdle, Flags: slurm.FlagDrain, Reason: reason}
		if got := drainCause(node); got != want || !slices.Contains(drainCauses(), got) {
			t.Errorf("the drain %q has the cause %s, want %s", reason, got, want)
		}
	}
	if cause := drainCause(&slurm.Node{State: slurm.StateDown}); cause != "" {
		t.Errorf("a node that is down without a drain has the cause %s", cause)
	}
}

func TestCountGPUs(t *testing.T) {
	for list, want := range map[string]int64{
		"":                                      0,
		"gpu:8":                                 8,
		"gpu:a100:4(S:0-1),gpu:h100:2,shard:16": 6,
		"gpu:a100:3(IDX:0,2-3),tmpdisk:100":     3,
		"gpu:(null):0(IDX:N/A)":                 0,
	} {
		if got := countGPUs(list); got != want {
			t.Errorf("%q has %d GPUs, want %d", list, got, want)
		}
	}
}

// objects is a NodeSet, a RestApi and a Token with statuses.
func objects() []client.Object {
	conditions := []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "AsExpected", LastTransitionTime: metav1.NewTime(noon),
	}}
	return []client.Object{
		&slinkyv1beta1.NodeSet{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "gpu"},
			Spec:       slinkyv1beta1.NodeSetSpec{ControllerRef: slinkyv1beta1.ObjectReference{Name: "slurm"}},
			Status: slinkyv1beta1.NodeSetStatus{
				Conditions: conditions, Desired: 5, Replicas: 4, ReadyReplicas: 3, AvailableReplicas: 2, UpdatedReplicas: 1,
				SlurmDrain: 2,
			},
		},
		&slinkyv1beta1.RestApi{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm"},
			Status:     slinkyv1beta1.RestApiStatus{CertificateExpiresAt: new(metav1.NewTime(noon.Add(time.Hour)))},
		},
		&slinkyv1beta1.Token{
			ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "alice"},
			Status: slinkyv1beta1.TokenStatus{
				Conditions: conditions, IssuedAt: new(metav1.NewTime(noon)),
				ExpiresAt: new(metav1.NewTime(noon.Add(time.Hour))),
			},
		},
	}
}

func TestObjectMetrics(t *testing.T) {
	send, values := recorder()
	for _, object := range objects() {
		collectObject(kindOf(t, object), object, send)
	}
	transition := float64(noon.Unix())
	want := map[string]float64{
		"slurm_operator_nodeset_info[hpc gpu slurm]":                                        1,
		"slurm_operator_nodeset_nodes[hpc gpu idle]":                                        0,
		"slurm_operator_nodeset_nodes[hpc gpu allocated]":                                   0,
		"slurm_operator_nodeset_nodes[hpc gpu down]":                                        0,
		"slurm_operator_nodeset_nodes[hpc gpu drain]":                                       2,
		"slurm_operator_nodeset_desired_pods[hpc gpu]":                                      5,
		"slurm_operator_nodeset_pods[hpc gpu]":                                              4,
		"slurm_operator_nodeset_ready_pods[hpc gpu]":                                        3,
		"slurm_operator_nodeset_available_pods[hpc gpu]":                                    2,
		"slurm_operator_nodeset_outdated_pods[hpc gpu]":                                     3,
		"slurm_operator_restapi_certificate_expiry_timestamp_seconds[hpc slurm]":            transition + 3600,
		"slurm_operator_token_issued_timestamp_seconds[hpc alice]":                          transition,
		"slurm_operator_token_expiry_timestamp_seconds[hpc alice]":                          transition + 3600,
		"slurm_operator_condition[NodeSet hpc gpu Ready True AsExpected]":                   1,
		"slurm_operator_condition[Token hpc alice Ready True AsExpected]":                   1,
		"slurm_operator_condition_last_transition_timestamp_seconds[NodeSet hpc gpu Ready]": transition,
		"slurm_operator_condition_last_transition_timestamp_seconds[Token hpc alice Ready]": transition,
	}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}

func kindOf(t *testing.T, object client.Object) string {
	t.Helper()
	kinds, _, err := Scheme().ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	return kinds[0].Kind
}

// TestAllMetricsAreRegistered checks that the operator and the webhook export what the reference lists.
func TestAllMetricsAreRegistered(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	reader := fake.NewClientBuilder().WithScheme(Scheme()).WithObjects(objects()...).Build()
	if err := registry.Register(newCollector(slurm.NewPool(slurm.MirrorOptions{}), reader)); err != nil {
		t.Fatal(err)
	}
	if _, err := nodeset.NewMetrics(registry); err != nil {
		t.Fatal(err)
	}
	if _, err := slurmmetrics.NewRequests(registry); err != nil {
		t.Fatal(err)
	}
	for _, group := range metric.Groups() {
		for _, definition := range group.Metrics {
			duplicate := definition.NewGauge() // its registration fails if the metric is registered
			if err := registry.Register(duplicate); err == nil && definition.Name != metric.CertificateExpiry.Name {
				t.Errorf("%s is not registered", definition.Name)
			}
		}
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// pendingReasons are all reasons for which jobs can wait.
var pendingReasons = []slurm.PendingReason{
	slurm.PendingResources, slurm.PendingPriority, slurm.PendingDependency, slurm.PendingHeld, slurm.PendingBeginTime,
	slurm.PendingLimit, slurm.PendingNodes, slurm.PendingReservation, slurm.PendingLicenses, slurm.PendingInvalid,
	slurm.PendingOther,
}

// large returns a snapshot of 5,000 Slurm nodes in 20 partitions with 120,000 jobs. It has more than a real one: with
// so many jobs, those of partitions and reasons are not counted.
func large() *slurm.Snapshot {
	snapshot := &slurm.Snapshot{Queue: slurm.Queue{
		Pending: 100_000, Running: 20_000, Loads: map[string]slurm.Load{}, Partitions: map[string]int{},
		Waiting: map[slurm.Waiting]int{},
	}}
	for i := range 5000 {
		partition := fmt.Sprintf("p%d", i%20)
		name := fmt.Sprintf("n-%04d", i)
		node := &slurm.Node{
			Name: name, State: slurm.StateMixed, CPUs: 128, AllocatedCPUs: i % 128, Memory: 512 << 10,
			GRES: "gpu:h100:8(S:0-1)", GRESUsed: "gpu:h100:3(IDX:0,2-3)", Partitions: []string{"all", partition},
		}
		if i%10 == 0 {
			node.Flags, node.Reason, node.ReasonAt = slurm.FlagDrain, fmt.Sprintf("bad disk %d", i), noon
		}
		snapshot.Nodes = append(snapshot.Nodes, node)
		snapshot.Loads[name] = slurm.Load{Running: 4, Job: int64(i)}
		snapshot.Partitions[partition] += 24
		for _, reason := range pendingReasons {
			snapshot.Waiting[slurm.Waiting{Partition: partition, Reason: reason}] += 2
		}
	}
	return snapshot
}

// TestSeriesOfALargeCluster counts the series of a cluster with 5,000 Slurm nodes and 120,000 jobs: a fixed number for
// the cluster, and a fixed number for each partition if its jobs wait for every reason.
func TestSeriesOfALargeCluster(t *testing.T) {
	send, values := recorder()
	collectSnapshot(large(), send)
	const perCluster, perPartition, partitions = 35, 26, 21 // with the partition of all Slurm nodes
	if want := perCluster + perPartition*partitions; len(values) > want {
		t.Errorf("%d series, want at most %d, such as %v", len(values), want, slices.Sorted(maps.Keys(values))[:10])
	}
}

// A scrapedSnapshot collects the metrics of one snapshot.
type scrapedSnapshot struct {
	*collector
	snapshot *slurm.Snapshot
}

// Collect sends the metrics of the snapshot.
func (s scrapedSnapshot) Collect(metrics chan<- prometheus.Metric) {
	collectSnapshot(s.snapshot, func(definition metric.Definition, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(s.descriptions[definition.Name], prometheus.GaugeValue, value,
			append([]string{"hpc", "slurm"}, labels...)...)
	})
}

// BenchmarkScrape measures a scrape of a cluster with 5,000 Slurm nodes and 120,000 jobs.
func BenchmarkScrape(b *testing.B) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(scrapedSnapshot{newCollector(nil, nil), large()}); err != nil {
		b.Fatal(err)
	}
	handler := promhttp.HandlerFor(registry, promhttp.HandlerOpts{DisableCompression: true})
	body := ""
	for b.Loop() {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/metrics", http.NoBody))
		body = answer.Body.String()
	}
	series := 0
	for line := range strings.Lines(body) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	b.ReportMetric(float64(len(body)), "bytes/scrape")
	b.ReportMetric(float64(series), "series/scrape")
}
