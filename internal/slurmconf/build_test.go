package slurmconf

import (
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files under testdata")

// golden compares a document with a file under testdata.
func golden(t *testing.T, file string, document Document) {
	t.Helper()
	path := filepath.Join("testdata", file)
	got := document.Render()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (run the test with -update to accept):\n%s", path, diff)
	}
	again, err := Parse(got)
	if err != nil {
		t.Fatal(err)
	}
	if !again.Equal(document) {
		t.Errorf("%s is another document when it is parsed", path)
	}
}

// minimal returns the smallest cluster.
func minimal() Cluster {
	return Cluster{
		Name: "slurm", Hosts: []Host{{Name: "slurm-controller-0"}}, Port: 6817, SlurmUser: "slurm", MaxNodeCount: 1024,
	}
}

// full returns a cluster that uses every field.
func full() Cluster {
	return Cluster{
		Name:         "prod",
		Hosts:        []Host{{"prod-0", "prod-0.prod.hpc.svc"}, {"prod-1", "prod-1.prod.hpc.svc"}},
		Port:         6817,
		SlurmUser:    "slurm",
		Accounting:   &Endpoint{"accounting.hpc.svc", 6819},
		JWKS:         true,
		Metrics:      true,
		MaxNodeCount: 2048,
		NodeSets: []NodeSet{
			{
				Name:      "gpu",
				Partition: new("Default=YES MaxTime=1-0 QOS=gpu TRESBillingWeights=\"CPU=1.0,GRES/gpu=3\""),
				GresTypes: []string{"gpu", "gpu"},
			},
			{Name: "cpu", Partition: new("")}, {Name: "debug", SlurmName: "dev"},
		},
		Contain:         true,
		Prolog:          []string{"10-mount.sh", "20-check.sh"},
		Epilog:          []string{"clean.sh"},
		PrologSlurmctld: []string{"announce.sh"},
		EpilogSlurmctld: []string{"report.sh"},
		ExtraConf: `
# Scheduling
schedulertype=sched/backfill
SchedulerParameters=bf_window=1440,bf_continue
SchedulerParameters=bf_window=2880,defer   # a list: merged
PriorityType=priority/multifactor
PriorityWeightFairshare=1000
PriorityWeightTRES=CPU=1000,GRES/gpu=3000
slurmctldparameters=idle_on_node_suspend,enable_configless
AuthInfo=ttl=120
GresTypes=shard
PrologFlags=alloc
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=limits,qos
slurmdTimeout=120
SlurmdTimeout=60
MailProg=/usr/bin/mail
SlurmctldPrimaryOnProg=/opt/on
JobCompType=jobcomp/elasticsearch
JobCompLoc=http://search:9200/slurm
SuspendProgram=/opt/suspend
ResumeProgram=/opt/resume
SuspendTime=600
HealthCheckProgram="/opt/check \#1"
ClusterName=prod   # the same as the operator's: no harm
NodeName=DEFAULT CPUs=64
NodeName=metal[0-3] NodeAddr=metal[0-3].example Features=metal
PartitionName=DEFAULT MaxTime=12:00:00
PartitionName=all Nodes=ALL \
  AllowQos=normal,high AllowGroups="a,b"
DownNodes=metal3 State=DOWN Reason="bad disk"
`,
	}
}

func TestBuild(t *testing.T) {
	for file, cluster := range map[string]Cluster{"minimal.conf": minimal(), "full.conf": full()} {
		t.Run(file, func(t *testing.T) {
			document, err := Build(cluster)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file, WithHash(document, Hash(map[string]string{FileName: document.Render()})))
		})
	}
}

// TestIPv6ReachesAllDaemons checks that the parameter which docs/installation.md names is in every file that daemons
// and commands read.
func TestIPv6ReachesAllDaemons(t *testing.T) {
	const key, want = "CommunicationParameters", "EnableIPv6"
	cluster, accounting := minimal(), database()
	cluster.ExtraConf, accounting.ExtraConf = key+"="+want, key+"="+want
	slurm, err := Build(cluster)
	if err != nil {
		t.Fatal(err)
	}
	slurmdbd, err := BuildDatabase(accounting)
	if err != nil {
		t.Fatal(err)
	}
	for file, document := range map[string]Document{
		"slurm.conf": slurm, "slurm.conf of slurmrestd": Clients(slurm), "slurmdbd.conf": slurmdbd,
		"slurm.conf of slurmdbd's helper": Clients(slurmdbd),
	} {
		if got, _ := document.Get(key); got != want {
			t.Errorf("%s has %q", file, got)
		}
	}
}

func TestConfinementHasDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		confined, exclusive bool
		partition, extra    string
		want                string // the end of the partition's line
		tracking            string
	}{
		"confined": {confined: true, want: "DefMemPerCPU=2000", tracking: "proctrack/cgroup"},
		"a partition with its own default": {
			confined: true, partition: "defmempernode=7", want: "defmempernode=7", tracking: "proctrack/cgroup",
		},
		"a cluster with its own default": {
			confined: true, extra: "DefMemPerGPU=5", want: "Nodes=gpu", tracking: "proctrack/cgroup",
		},
		"the administrator's choice": {
			confined: true, extra: "ProctrackType=proctrack/pgid", want: "DefMemPerCPU=2000", tracking: "proctrack/pgid",
		},
		"unconfined":            {want: "Nodes=gpu", tracking: "proctrack/linuxproc"},
		"unconfined, by choice": {exclusive: true, want: "OverSubscribe=EXCLUSIVE", tracking: "proctrack/linuxproc"},
		"nodes are shared by choice": {
			exclusive: true, partition: "oversubscribe=NO", want: "oversubscribe=NO", tracking: "proctrack/linuxproc",
		},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := Build(Cluster{
				Name: "c", Hosts: []Host{{"h", ""}}, Port: 1, SlurmUser: "slurm", MaxNodeCount: 1,
				Confined: test.confined, Exclusive: test.exclusive, ExtraConf: test.extra,
				NodeSets: []NodeSet{{Name: "gpu", Partition: &test.partition, MemoryPerCPU: 2000}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := document.Get("ProctrackType"); got != test.tracking {
				t.Errorf("ProctrackType=%s", got)
			}
			if text := document.Render(); !strings.Contains(text, test.want+"\n") ||
				strings.Contains(text, "TaskPlugin=task/affinity,task/cgroup\n") != test.confined {
				t.Error(text)
			}
		})
	}
}

func TestBuildIsIndependentOfNodeSetOrder(t *testing.T) {
	cluster := full()
	want, err := Build(cluster)
	if err != nil {
		t.Fatal(err)
	}
	cluster.NodeSets = []NodeSet{cluster.NodeSets[2], cluster.NodeSets[0], cluster.NodeSets[1]}
	got, err := Build(cluster)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Render(), got.Render()); diff != "" {
		t.Error(diff)
	}
}

func TestBuildRejectsInvalidExtraConf(t *testing.T) {
	for name, test := range map[string]struct{ extra, want string }{
		"a key that the operator owns": {
			"A=1\nclustername=other",
			"line 2: clustername: the operator sets this key: it is set from the Controller; set " +
				"spec.clusterName instead",
		},
		"another slurmctld": {
			"SlurmctldHost=other",
			"line 1: SlurmctldHost: the operator sets this key: it is set from the Controller; remove the " +
				"line; spec.ha adds backups",
		},
		"the size of the cluster": {
			"MaxNodeCount=5000",
			"line 1: MaxNodeCount: the operator sets this key: it follows the size of the cluster and must not " +
				"fall below the nodes that are registered; set spec.maxNodeCount instead",
		},
		"accounting": {
			"AccountingStorageHost=dbd",
			"line 1: AccountingStorageHost: the operator sets this key: it is set from the Accounting that " +
				"the Controller refers to; set spec.accountingRef instead",
		},
		"an included file": {
			"Include more.conf",
			"line 1: Include: the operator sets this key: the operator cannot see what the file says, nor when " +
				"it changes; put its lines here; other files come from spec.configFileRefs",
		},
		"metrics": {
			"MetricsType=metrics/openmetrics",
			"line 1: MetricsType: the operator sets this key: the ServiceMonitor depends on it; set " +
				"spec.metrics.enabled instead",
		},
		"scripts in addition to refs": {
			"prolog=/opt/p.sh",
			"line 1: prolog: the operator sets this key: its scripts come from ConfigMaps; remove the line, or " +
				"add the script to a ConfigMap of spec.prologScriptRefs",
		},
		"a hash": {
			"SlurmctldParameters=config_hash=1",
			"line 1: SlurmctldParameters: its token config_hash belongs to the operator; remove the token",
		},
		"a token that the operator owns": {
			"SlurmctldParameters=enable_configless=no",
			"line 1: SlurmctldParameters: its token enable_configless belongs to the operator, which sets " +
				"enable_configless; remove the token",
		},
		"a partition of a NodeSet": {"PartitionName=gpu Nodes=ALL",
			`line 1: "PartitionName=gpu": the NodeSet gpu defines it already; remove it here, or set spec.partition.enabled of the NodeSet to false`},
		"a NodeSet of the same name": {"NodeSet=gpu Feature=x",
			`line 1: "NodeSet=gpu": the NodeSet gpu defines it already; rename it here; the operator adds the line of a NodeSet`},
		"a duplicate partition": {"PartitionName=a\nA=1\nPartitionName=a",
			`line 3: "PartitionName=a": it is defined twice; remove or rename one of the two`},
		"text that is not configuration": {"make it fast",
			`line 1: "make it fast": this is not of the form Key=Value; write Key=Value, with quotes around a value that has blanks, and # before a comment`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := minimal()
			cluster.Prolog = []string{"p.sh"}
			cluster.NodeSets = []NodeSet{{Name: "gpu", Partition: new("")}}
			cluster.ExtraConf = test.extra
			_, err := Build(cluster)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestBuildRejectsInvalidValues(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Cluster)
		want   string
	}{
		"no slurmctld":        {func(c *Cluster) { c.Hosts = nil }, "at least one slurmctld"},
		"a name with a blank": {func(c *Cluster) { c.Name = "a b" }, `the cluster name "a b"`},
		"an address with a line break": {func(c *Cluster) { c.Hosts[0].Address = "a\nB=1" },
			"the slurmctld address"},
		"a script elsewhere":       {func(c *Cluster) { c.Prolog = []string{"../p.sh"} }, "the Prolog script"},
		"a NodeSet without a name": {func(c *Cluster) { c.NodeSets = []NodeSet{{}} }, "NodeSet : metadata.name"},
		"two NodeSets of one name": {func(c *Cluster) { c.NodeSets = []NodeSet{{Name: "a"}, {Name: "a"}} },
			"defines it already"},
		"a partition on two lines": {
			func(c *Cluster) { c.NodeSets = []NodeSet{{Name: "a", Partition: new("A=1\nB=2")}} },
			"NodeSet a: spec.partition.config: it has more than one line"},
		"a partition with other nodes": {
			func(c *Cluster) { c.NodeSets = []NodeSet{{Name: "a", Partition: new("nodes=b")}} },
			"nodes is the NodeSet's own name"},
		"a partition with another name": {
			func(c *Cluster) { c.NodeSets = []NodeSet{{Name: "a", Partition: new("PartitionName=b")}} },
			"PartitionName is the NodeSet's own name"},
		"a partition with a continuation": {
			func(c *Cluster) { c.NodeSets = []NodeSet{{Name: "a", Partition: new(`A=1 \`)}} }, "ends with a backslash"},
		"a partition of words": {
			func(c *Cluster) { c.NodeSets = []NodeSet{{Name: "a", Partition: new("the best")}} },
			`"the best": this is not of the form Key=Value`},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := minimal()
			test.change(&cluster)
			_, err := Build(cluster)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func FuzzBuild(f *testing.F) {
	f.Add("", "")
	f.Add(full().ExtraConf, "Default=YES")
	f.Add("SlurmctldParameters=a,b=c\nGresTypes=\"\"\nPrologFlags=x", `AllowGroups="a b" # c`)
	f.Fuzz(func(t *testing.T, extra, partition string) {
		cluster := minimal()
		cluster.NodeSets = []NodeSet{{Name: "gpu", Partition: &partition}}
		cluster.ExtraConf = extra
		document, err := Build(cluster)
		if err != nil {
			return
		}
		again, err := Parse(document.Render())
		if err != nil || !again.Equal(document) {
			t.Fatalf("it was built as %q, which is parsed as %q: %v", document.Render(), again.Render(), err)
		}
		for key, want := range map[string]string{"ClusterName": "slurm", "AuthType": "auth/slurm",
			"MaxNodeCount": "1024", "StateSaveLocation": StateSaveLocation} {
			if got, _ := again.Get(key); got != want {
				t.Errorf("%s is %q", key, got)
			}
		}
		parameters, _ := again.Get("SlurmctldParameters")
		if _, found := findToken(splitTokens(parameters), "enable_configless"); !found {
			t.Errorf("SlurmctldParameters lost a token: %q", parameters)
		}
	})
}

// The largest extraConf that the API accepts must not delay a reconcile, whatever its content.
func TestBuildHandlesLargeExtraConf(t *testing.T) {
	const size = 512 << 10
	for name, line := range map[string]func(int) string{
		"parameters": func(i int) string { return fmt.Sprintf("k%d=1\n", i%30000) },
		"tokens":     func(i int) string { return fmt.Sprintf("LaunchParameters=t%d\n", i) },
		"records":    func(i int) string { return fmt.Sprintf("NodeName=n%d\n", i) },
		"one line":   func(int) string { return "\\\n" },
	} {
		t.Run(name, func(t *testing.T) {
			least := func(size int) time.Duration {
				var text strings.Builder
				for i := 0; text.Len() < size; i++ {
					text.WriteString(line(i))
				}
				cluster := minimal()
				cluster.ExtraConf = text.String()
				least := time.Duration(math.MaxInt64)
				for range 3 {
					before := cpuTime(t)
					build(t, cluster)
					least = min(least, cpuTime(t)-before)
				}
				return least
			}
			// The cost is linear: eight times the text costs about eight times as much, not sixty-four times.
			part, whole := least(size/8), least(size)
			t.Logf("%d bytes: %s, %d bytes: %s", size/8, part, size, whole)
			if whole > 30*part {
				t.Errorf("%d bytes took %s, and %d took %s", size/8, part, size, whole)
			}
		})
	}
}

// cpuTime returns the CPU time of this process, which is independent of other load on the host.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestHashChangesWithJWTKey(t *testing.T) {
	hash := func(key string) string {
		digest := KeyDigest([]byte(key))
		document, err := Build(Cluster{
			Name: "c", Hosts: []Host{{Name: "h"}}, Port: 6817, SlurmUser: "slurm", MaxNodeCount: 1,
			JWTKeyDigest: digest,
		})
		if err != nil {
			t.Fatal(err)
		}
		parameters, _ := document.Get("SlurmctldParameters")
		if found := KeyDigestOf(parameters); found != digest {
			t.Errorf("%s has the digest %q instead of %q", parameters, found, digest)
		}
		return Hash(map[string]string{FileName: document.Render()})
	}
	if hash("one") == hash("two") {
		t.Error("two keys have the same hash")
	}
}
