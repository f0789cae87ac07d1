package slurmconf

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// build builds a valid document.
func build(t *testing.T, cluster Cluster) Document {
	t.Helper()
	document, err := Build(cluster)
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func TestValidationConfTouchesNothingReal(t *testing.T) {
	options := ValidationOptions{
		Host: "trial", Port: 16817, Directory: "/trial/etc", State: "/trial/state", PidFile: "/trial/slurmctld.pid",
	}
	original := build(t, full())
	before := original.Render()
	golden(t, "full-trial.conf", ForValidation(original, options))
	if diff := cmp.Diff(before, original.Render()); diff != "" {
		t.Errorf("the original changed:\n%s", diff)
	}
}

func TestValidationConfKeepsLinesThatNeedAccounting(t *testing.T) {
	cluster := minimal()
	cluster.ExtraConf = "AccountingStorageTRES=gres/gpu\nPartitionName=p Nodes=ALL AllowQos=high\n"
	variant := ForValidation(build(t, cluster), ValidationOptions{Host: "trial"}).Render()
	for line := range strings.Lines(cluster.ExtraConf) {
		if !strings.Contains(variant, line) {
			t.Errorf("the variant lacks %q", line)
		}
	}
}

func TestClientConfIsMinimal(t *testing.T) {
	golden(t, "full-clients.conf", Clients(build(t, full())))
}

func TestHash(t *testing.T) {
	document := build(t, full())
	files := map[string]string{FileName: document.Render(), "cgroup.conf": "CgroupPlugin=disabled\n"}
	hash := Hash(files)
	if len(hash) != 16 {
		t.Errorf("the hash is %q", hash)
	}
	marked := WithHash(WithHash(document, "0123"), hash)
	parameters, _ := marked.Get("SlurmctldParameters")
	if got := HashOf(parameters); got != hash {
		t.Errorf("%q has the hash %q, want %q", parameters, got, hash)
	}
	if diff := cmp.Diff(document.Render(), WithHash(marked, "").Render()); diff != "" {
		t.Errorf("the hash is not removed completely:\n%s", diff)
	}
	files[FileName] = marked.Render()
	if got := Hash(files); got != hash {
		t.Errorf("a marked file has the hash %q, want %q", got, hash)
	}
	files["cgroup.conf"] += "ConstrainCores=yes\n"
	if got := Hash(files); got == hash {
		t.Error("a changed file has the same hash")
	}
}

func TestHashOf(t *testing.T) {
	for name, test := range map[string]struct{ parameters, want string }{
		"nothing":       {"", ""},
		"nothing set":   {"(null)", ""},
		"no hash":       {"enable_configless", ""},
		"a hash":        {"enable_configless,config_hash=12ab,reconfig_on_restart", "12ab"},
		"only the name": {"config_hash", ""},
		"a longer name": {"my_config_hash=1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := HashOf(test.parameters); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestHashSeparatesFiles(t *testing.T) {
	hashes := map[string]bool{}
	for _, files := range []map[string]string{{}, {"a": ""}, {"a": "b"}, {"ab": ""}, {"a": "", "b": ""},
		{FileName: "not configuration"}, {FileName: ""}} {
		hashes[Hash(files)] = true
	}
	if len(hashes) != 7 {
		t.Errorf("%d hashes of 7 different sets of files", len(hashes))
	}
}

func TestMaxNodeCount(t *testing.T) {
	for name, test := range map[string]struct {
		desired, live, current int
		explicit               *int32
		want                   int
	}{
		"starts at 1024":                            {want: 1024},
		"stays while a quarter is free":             {desired: 819, want: 1024},
		"doubles with less than a quarter free":     {desired: 820, want: 2048},
		"counts live nodes beyond the desired ones": {desired: 10, live: 1000, want: 2048},
		"does not shrink with the cluster":          {desired: 10, current: 4096, want: 4096},
		"stops at Slurm's own limit":                {desired: 65000, want: 65536},
		"stops there for any desired count":         {desired: 1 << 40, want: 65536},
		"uses the explicit limit": {
			desired: 5000, current: 8192, explicit: new(int32(100)), want: 100,
		},
		"keeps live nodes above the explicit limit":  {live: 120, explicit: new(int32(100)), want: 120},
		"never falls below a live count of any size": {live: 70000, want: 70000},
	} {
		t.Run(name, func(t *testing.T) {
			if got := MaxNodeCount(test.desired, test.live, test.current, test.explicit); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}

func TestCountNodes(t *testing.T) {
	for name, test := range map[string]struct {
		conf string
		want int
	}{
		"no nodes":            {"PartitionName=a Nodes=ALL", 0},
		"single nodes":        {"NodeName=a CPUs=1\nNodeName=b", 2},
		"hostlists":           {"nodename=metal[001-300],gpu-[0-1] CPUs=64\nNodeName=x", 303},
		"defaults of nodes":   {"NodeName=DEFAULT CPUs=64\nNodeName=a", 1},
		"a broken hostlist":   {"NodeName=a[1-\nNodeName=b", 1},
		"more than Slurm can": {"NodeName=a[1-100000]", 65536},
	} {
		t.Run(name, func(t *testing.T) {
			if got := CountNodes(mustParse(t, test.conf)); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
