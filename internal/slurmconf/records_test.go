package slurmconf

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func small() []Pair { return []Pair{{"Features", "gpu"}, {"CPUs", "4"}, {"RealMemory", "1000"}} }

func large() []Pair { return []Pair{{"Features", "gpu"}, {"CPUs", "8"}, {"RealMemory", "1000"}} }

// elastic returns a cluster with records.
func elastic(records ...Record) Cluster {
	cluster := minimal()
	cluster.NodeSets = []NodeSet{{Name: "gpu"}}
	cluster.Records, cluster.PowerSaving = records, &PowerSaving{ResumeTimeout: 35 * time.Minute}
	return cluster
}

func mustBuild(t *testing.T, cluster Cluster) Document {
	t.Helper()
	document, err := Build(cluster)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestElasticGolden(t *testing.T) {
	cluster := elastic(Record{NodeSet: "gpu", Nodes: []string{"gpu-0", "gpu-1", "gpu-2"}, Parameters: append(small(),
		Pair{"Gres", "gpu:h100:8"})})
	cluster.ExtraConf = "SchedulerParameters=bf_interval=60\nTreeWidth=16"
	golden(t, "elastic.conf", mustBuild(t, cluster))
}

func TestKeysOfPowerSavingAreOwnedInElasticClusters(t *testing.T) {
	cluster := elastic()
	cluster.ExtraConf = "SuspendTime=300\nSlurmctldParameters=power_save_interval=30"
	_, err := Build(cluster)
	for _, text := range []string{"SuspendTime", "spec.elastic", "power_save_interval"} {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v does not name %s", err, text)
		}
	}
	written, _ := Parse(cluster.ExtraConf)
	if diff := cmp.Diff([]string{"SuspendTime"}, PowerKeys(written)); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	cluster.PowerSaving = nil
	if document, err := Build(cluster); err != nil || len(PowerKeys(document)) != 1 {
		t.Errorf("without elastic NodeSets: %v", err)
	}
}

func TestSettleRecords(t *testing.T) {
	inForce := map[string][]Pair{"gpu-0": small(), "gpu-1": small()}
	names := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}
	wanted := func(parameters []Pair, nodes ...string) []Record {
		return []Record{{NodeSet: "gpu", Nodes: nodes, Parameters: parameters}}
	}
	for name, test := range map[string]struct {
		wanted            []Record
		mayChange, mayAdd []string
		want              []Record
	}{
		"nothing changes": {
			wanted: wanted(small(), "gpu-0", "gpu-1"), want: wanted(small(), "gpu-0", "gpu-1"),
		},
		"a new record waits until it may be added": {
			wanted: wanted(small(), "gpu-0", "gpu-1", "gpu-2", "gpu-3"), mayAdd: []string{"gpu-3"},
			want: wanted(small(), "gpu-0", "gpu-1", "gpu-3"),
		},
		"only records that may be changed are": {
			wanted: wanted(large(), "gpu-0", "gpu-1"), mayChange: []string{"gpu-1"},
			want: append(wanted(small(), "gpu-0"), wanted(large(), "gpu-1")...),
		},
		"only records that may be changed are removed": {
			wanted: wanted(small()), mayChange: []string{"gpu-0"},
			want: []Record{{Nodes: []string{"gpu-1"}, Parameters: small()}},
		},
		"all records of a deleted NodeSet stay until they may be changed": {
			want: []Record{{Nodes: []string{"gpu-0", "gpu-1"}, Parameters: small()}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := SettleRecords(test.wanted, inForce, names(test.mayChange...), names(test.mayAdd...))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRecordsInForceRoundTrip(t *testing.T) {
	extra := "NodeName=cloud-[0-3] State=CLOUD CPUs=2"
	cluster := elastic(Record{NodeSet: "gpu", Nodes: []string{"gpu-0", "gpu-2"}, Parameters: small()},
		Record{NodeSet: "gpu", Nodes: []string{"gpu-1"}, Parameters: large()})
	cluster.ExtraConf = extra + "\nNodeName=metal-0 CPUs=2"
	again, err := Parse(mustBuild(t, cluster).Render())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]Pair{"gpu-0": small(), "gpu-1": large(), "gpu-2": small()}
	if diff := cmp.Diff(want, RecordsInForce(again)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An earlier version of the operator wrote an administrator's line as it was in extraConf.
func TestLinesOfAnAdministratorAreNoRecords(t *testing.T) {
	inForce, err := Parse("ResumeProgram=/opt/resume\nNodeName=c[1-9] State=CLOUD CPUs=4\n")
	if records := RecordsInForce(inForce); err != nil || len(records) > 0 {
		t.Errorf("records: %v, %v", records, err)
	}
}

func TestRecordDevices(t *testing.T) {
	gpus := append(small(), Pair{"Gres", "gpu:h100:2,gpu:4,nic:1"})
	got := RecordDevices([]Record{
		{Nodes: []string{"cpu-0"}, Parameters: small()}, {Nodes: []string{"gpu-0", "gpu-1"}, Parameters: gpus},
	}, "/dev/here")
	want := "NodeName=gpu-[0-1] Name=gpu Type=h100 File=/dev/here/gpu[0-1]\n" +
		"NodeName=gpu-[0-1] Name=gpu File=/dev/here/gpu[2-5]\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecordsOfFaultyNodeSetAreLeftOut(t *testing.T) {
	good := Record{NodeSet: "cpu", Nodes: []string{"cpu-0"}, Parameters: small()}
	before := Record{NodeSet: "gpu", Nodes: []string{"gpu-0"}, Parameters: small()}
	after := Record{NodeSet: "gpu", Nodes: []string{"gpu-0", "gpu-1"}, Parameters: append(small(), Pair{"Nonsense", "1"})}
	sets := []NodeSet{{Name: "cpu"}, {Name: "gpu"}}
	build := func(records ...Record) Document {
		cluster := elastic(records...)
		cluster.NodeSets = sets
		return mustBuild(t, cluster)
	}
	document := build(good, after)
	changes := ChangesOf(document, build(good, before), sets, []Record{good, after})
	if diff := cmp.Diff([]string{"gpu"}, changes.Names()); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(lines(build(good, before)), lines(changes.LeaveOut(document, []string{"gpu"}))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	first := ChangesOf(document, Document{}, sets, []Record{good, after})
	if diff := cmp.Diff(lines(build(good)), lines(first.LeaveOut(document, []string{"gpu"}))); diff != "" {
		t.Errorf("a new NodeSet (-want +got):\n%s", diff)
	}
}
