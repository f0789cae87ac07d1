package validation

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// versions are the Slurm versions with logs in testdata.
var versions = []string{"24.11", "26.05"}

// A candidate is testdata/slurm.conf with a change. slurmctld's output for it is in testdata/<version>/<name>.log, as
// recorded by the tests with the build tag slurm.
type candidate struct {
	old, new string            // replaced in slurm.conf; without old, new is appended
	files    map[string]string // in addition to slurm.conf
	// accepted are the versions that accept it.
	accepted []string
	// slurmd is true if slurmctld accepts it, and slurmd would not.
	slurmd bool
}

var candidates = map[string]candidate{
	"good": {accepted: versions},
	"unknown-parameter-token": {
		old: "enable_configless", new: "enable_configless,nobody_knows=this", accepted: versions,
	},
	"typo-in-key":             {old: "PartitionName=blue", new: "PartionName=blue"},
	"typo-in-case":            {old: "MaxNodeCount", new: "maxnodecnt"},
	"no-such-plugin":          {new: "PriorityType=priority/nope"},
	"no-such-task-plugin":     {new: "TaskPlugin=affinity,task/nope", slurmd: true},
	"no-such-proctrack":       {new: "ProctrackType=proctrack/nope", slurmd: true},
	"slurmd-user":             {new: "SlurmdUser=slurm", slurmd: true},
	"task-plugin-none":        {new: "TaskPlugin=task/none\nSlurmdUser=root", accepted: versions},
	"select-without-trees":    {old: "select/cons_tres", new: "select/nope"},
	"partition-bad-option":    {old: "Nodes=blue", new: "Nodes=blue MaxTimes=5"},
	"partition-bad-value":     {old: "Nodes=blue", new: "Nodes=blue MaxTime=soon"},
	"partition-unknown-nodes": {old: "Nodes=blue", new: "Nodes=red[1-3]"},
	"partition-many-unknown":  {old: "Nodes=blue", new: "Nodes=red[1-30]"},
	"partition-twice":         {new: "PartitionName=blue Nodes=node-0"},
	"node-twice":              {new: "NodeName=node-[0-3] CPUs=4"},
	"not-a-setting":           {new: "this is no setting"},
	"not-a-number":            {new: `SlurmdTimeout=soon`},
	"max-nodes-not-a-number":  {old: "MaxNodeCount=1024", new: "MaxNodeCount=many"},
	"max-nodes-too-many":      {old: "MaxNodeCount=1024", new: "MaxNodeCount=99999999"},
	"max-nodes-too-few":       {old: "MaxNodeCount=1024", new: "MaxNodeCount=2"},
	"no-such-prolog":          {new: "PrologSlurmctld=/nonexistent/prolog"},
	"no-such-include":         {new: "Include extra.conf"},
	"lua-missing":             {new: "JobSubmitPlugins=lua"},
	"lua-broken": {
		new:   "JobSubmitPlugins=lua",
		files: map[string]string{"job_submit.lua": "function slurm_job_submit(\n"},
	},
	"topology-missing": {new: "TopologyPlugin=topology/tree"},
	"topology-bad-key": {
		new:   "TopologyPlugin=topology/tree",
		files: map[string]string{"topology.conf": "SwitchName=s0 Nodez=node-0\n"},
	},
	"topology-bad-nodes": {
		new:   "TopologyPlugin=topology/tree",
		files: map[string]string{"topology.conf": "SwitchName=s0 Nodes=node-[0-\n"},
	},
	// 24.11 does not read the file.
	"topology-yaml-broken": {
		files: map[string]string{
			"topology.yaml": "- topology: a\n  cluster_default: true\n  tree:\n    switches: [{switch: s0\n",
		},
		accepted: []string{"24.11"},
	},
	"topology-yaml-bad-key": {
		files: map[string]string{
			"topology.yaml": "- topology: a\n  cluster_default: true\n  tree:\n    switchez: []\n",
		},
		accepted: []string{"24.11"},
	},
	"gres-bad-key": {
		new:   "GresTypes=gpu",
		files: map[string]string{"gres.conf": "Name=gpu Filez=/dev/x\n"},
	},
	"gres-bad-value": {
		old: "State=CLOUD", new: "State=CLOUD Gres=gpu:2\nGresTypes=gpu",
		files: map[string]string{"gres.conf": "NodeName=node-[0-3] Name=gpu Count=nope\n"},
	},
	"cgroup-bad-key":     {files: map[string]string{"cgroup.conf": "# jobs\nCgroupPlugn=disabled\n"}},
	"cgroup-bad-boolean": {files: map[string]string{"cgroup.conf": "CgroupPlugin=disabled\nConstrainCores=perhaps\n"}},
	"cgroup-bad-number":  {files: map[string]string{"cgroup.conf": "CgroupPlugin=disabled\nAllowedRAMSpace=all\n"}},
	"cgroup-bad-plugin":  {files: map[string]string{"cgroup.conf": "CgroupPlugin=cgroup/nope\n"}},
}

// contents returns the candidate's files by name.
func (c candidate) contents(t *testing.T) map[string]string {
	t.Helper()
	base, err := os.ReadFile(filepath.Join("testdata", "slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	conf := string(base)
	switch {
	case c.old == "" && c.new != "":
		conf += c.new + "\n"
	case c.old != "" && !strings.Contains(conf, c.old):
		t.Fatalf("slurm.conf has no %q", c.old)
	default:
		conf = strings.Replace(conf, c.old, c.new, 1)
	}
	files := map[string]string{"slurm.conf": conf, "cgroup.conf": "CgroupPlugin=disabled\n"}
	maps.Copy(files, c.files)
	return files
}
