//go:build costs

package costs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/costs"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

var only = flag.String("only", "", "change only the settings that contain this text")

// TestCosts changes each setting of testdata/settings.txt below a job that runs on two nodes and has used one of them,
// back again below another job, and compares what that costs with the record.
func TestCosts(t *testing.T) {
	settings, err := costs.Settings()
	if err != nil {
		t.Fatal(err)
	}
	settings = slices.DeleteFunc(settings, func(setting string) bool { return !strings.Contains(setting, *only) })
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			recorded, err := costs.Recorded(version)
			if err != nil {
				t.Fatal(err)
			}
			results := map[string]string{}
			for rest := settings; len(rest) > 0; {
				static := isStatic(rest[0])
				t.Run("cluster", func(t *testing.T) {
					cluster := start(t, version, static)
					for len(rest) > 0 && isStatic(rest[0]) == static && cluster.usable {
						results[rest[0]] = cluster.try(t, rest[0])
						t.Logf("%s: %s", rest[0], results[rest[0]])
						rest = rest[1:]
					}
				})
			}
			for _, setting := range settings {
				if results[setting] != recorded[setting] && !*update {
					t.Errorf("%s costs %s, and in the record %s", setting, results[setting], recorded[setting])
				}
			}
			if *update {
				maps.Copy(recorded, results)
				record(t, version, recorded)
			}
		})
	}
}

// record writes the results of a version.
func record(t *testing.T, version string, results map[string]string) {
	t.Helper()
	settings, err := costs.Settings()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, setting := range settings {
		fmt.Fprintf(&text, "%s\t%s\n", setting, results[setting])
	}
	if err := os.WriteFile(filepath.Join("testdata", version+".txt"), []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// isStatic reports whether a setting is about nodes with lines in slurm.conf.
func isStatic(setting string) bool { return strings.HasPrefix(setting, "NodeName=") }

const nodeLine = "CPUs=2 RealMemory=500"

// A cluster is what settings are changed in, until a change has a cost.
type cluster struct {
	*slurmnet.Cluster
	base   slurmconf.Document
	usable bool
}

func start(t *testing.T, version string, static bool) *cluster {
	t.Helper()
	options := slurmnet.Options{
		Version: version, Nodes: 2, ExtraConf: "MessageTimeout=2",
		Files: map[string]string{"topology.conf": "SwitchName=s0 Nodes=node-[0-1]\n"},
	}
	if static {
		options.NodeLine, options.ExtraConf = nodeLine, options.ExtraConf+"\nSlurmdParameters=config_overrides"
	}
	slurm := slurmnet.Start(t, options)
	base, err := slurmconf.Parse(slurm.Slurmctld.MustRun(t, "cat", "/etc/slurm/slurm.conf"))
	if err != nil {
		t.Fatal(err)
	}
	return &cluster{slurm, base, true}
}

// try changes a setting below a job, and back below another one, and returns the cost.
func (c *cluster) try(t *testing.T, setting string) string {
	t.Helper()
	changed, err := costs.With(c.base, setting)
	if err != nil {
		t.Fatal(err)
	}
	cost, started := c.change(t, changed)
	if !started {
		t.Fatal("no job starts with the default settings")
	}
	if cost == costs.Nothing {
		back, startedBack := c.change(t, c.base)
		if startedBack && back != costs.Nothing {
			cost = "back: " + back
		}
		started = startedBack
	}
	c.usable = cost == costs.Nothing && started // if no job starts, the setting is one that says so
	return cost
}

// change changes the configuration below a job and returns the cost, and whether the job had started.
func (c *cluster) change(t *testing.T, document slurmconf.Document) (cost string, started bool) {
	t.Helper()
	running, err := c.startJob(t)
	if err != nil {
		return "", false
	}
	pending := c.Login.MustRun(t, "sbatch", "--parsable", "--output=/dev/null", "--hold", "--wrap=true")
	if problem := c.reconfigure(t, document); problem != "" {
		return problem, true
	}
	var results []string
	for _, node := range c.Nodes {
		node.MustRun(t, "touch", "/tmp/finish-"+running)
	}
	if fate := c.fate(t, running); fate != "" {
		results = append(results, "the job: "+fate)
	}
	if output, err := c.Login.Run(t.Context(), "scontrol", "show", "job", pending); err != nil ||
		!strings.Contains(output, "JobState=PENDING") {
		results = append(results, "pending jobs: "+state(output))
	} else {
		c.Login.MustRun(t, "scancel", pending)
	}
	if nodes := c.nodes(t); nodes != "" {
		results = append(results, "nodes: "+nodes)
	}
	if len(results) == 0 {
		return costs.Nothing, true
	}
	return strings.Join(results, "; "), true
}

// startJob starts a job on two nodes, of which it uses one until it may finish.
func (c *cluster) startJob(t *testing.T) (string, error) {
	t.Helper()
	job, err := c.Login.Run(t.Context(), "sbatch", "--parsable", "--nodes=2", "--mem=50", "--chdir=/tmp",
		"--output=/dev/null",
		"--wrap=touch started-$SLURM_JOB_ID; until [ -f finish-$SLURM_JOB_ID ]; do sleep 0.1; done; srun true")
	if err != nil {
		return "", errors.New("refused")
	}
	job = strings.TrimSpace(job)
	return job, poll(t, 30*time.Second, func(ctx context.Context) error {
		for _, node := range c.Nodes {
			if _, err := node.Run(ctx, "test", "-f", "/tmp/started-"+job); err == nil {
				return nil
			}
		}
		return errors.New("not started")
	})
}

// reconfigure returns why not all daemons run with a configuration; empty if they do.
func (c *cluster) reconfigure(t *testing.T, document slurmconf.Document) string {
	t.Helper()
	starts := func(node *slurmnet.Daemon) int { return strings.Count(node.Logs(), "slurmd started on") }
	before := map[*slurmnet.Daemon]int{}
	for _, node := range c.Nodes {
		before[node] = starts(node)
	}
	c.Slurmctld.Write(t, "/etc/slurm/slurm.conf", document.Render())
	_, failure := c.Login.Run(t.Context(), "scontrol", "reconfigure")
	problem := ""
	err := poll(t, 30*time.Second, func(ctx context.Context) error {
		if _, err := c.Slurmctld.Run(ctx, "true"); err != nil && ctx.Err() == nil {
			problem = "slurmctld exits"
			return nil
		}
		for node, count := range before {
			if _, err := node.Run(ctx, "true"); err != nil && ctx.Err() == nil {
				problem = "slurmd exits"
				return nil
			}
			if starts(node) == count {
				return errors.New("a slurmd does not follow")
			}
		}
		return nil
	})
	switch {
	case problem == "" && failure != nil:
		return "slurmctld refuses it"
	case err != nil:
		return err.Error()
	}
	return problem
}

// fate waits until a job has ended and returns what happened to it; empty if it has completed.
func (c *cluster) fate(t *testing.T, job string) string {
	t.Helper()
	last := ""
	err := poll(t, 2*time.Minute, func(ctx context.Context) error {
		output, failure := c.Login.Run(ctx, "scontrol", "show", "job", job)
		switch last = state(output); {
		case failure != nil && strings.Contains(failure.Error(), "Invalid job id"):
			return nil
		case failure != nil:
			return failure
		case strings.Contains(output, "JobState=COMPLETED ") && strings.Contains(output, "Restarts=0"):
			last = ""
			return nil
		case strings.Contains(output, "JobState=RUNNING"), strings.Contains(output, "JobState=COMPLETING"):
			return errors.New("running")
		}
		return nil
	})
	if err != nil {
		return "it does not end"
	}
	return last
}

// state summarizes scontrol's description of a job.
func state(output string) string {
	for field := range strings.FieldsSeq(output) {
		if name, found := strings.CutPrefix(field, "JobState="); found {
			if strings.Contains(output, "held") {
				return "requeued and held"
			}
			return strings.ToLower(name)
		}
	}
	return "forgotten"
}

// nodes waits until all nodes are idle, and returns their states if they are not.
func (c *cluster) nodes(t *testing.T) string {
	t.Helper()
	states := ""
	err := poll(t, 10*time.Second, func(ctx context.Context) error {
		output, err := c.Login.Run(ctx, "sinfo", "--noheader", "--Node", "--format=%T")
		if err != nil {
			return err
		}
		names := strings.Fields(output)
		slices.Sort(names)
		states = strings.Join(slices.Compact(names), ", ")
		if states != "idle" {
			return errors.New(states)
		}
		return nil
	})
	if err == nil {
		return ""
	}
	return states
}

// poll polls until check succeeds, or returns its last error.
func poll(t *testing.T, timeout time.Duration, check func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-ticker.C:
		}
	}
}
