//go:build e2e

package e2e_test

import (
	"context"
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

//go:embed workloads
var workloads embed.FS

// TestWorkloads runs what users run, from the home directory of a user in a login pod: one script per workload.
func TestWorkloads(t *testing.T) {
	startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			site := startSite(t, version)
			files, err := workloads.ReadDir("workloads")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if name, isScript := strings.CutSuffix(file.Name(), ".sh"); isScript {
					workload := readWorkload(t, name)
					if workload.releases == "" || slices.Contains(strings.Fields(workload.releases), version) {
						t.Run(name, func(t *testing.T) { site.runs(t, workload) })
					}
				}
			}
			t.Run("continues from a checkpoint after a rolling update", site.continuesAfterUpdate)
		})
	}
}

// A workload is a script with comments that describe it.
type workload struct {
	name, script string
	// user runs the script.
	user string
	// releases are those of Slurm that can run it; empty for all.
	releases string
	// prints is a regular expression for the output.
	prints *regexp.Regexp
}

func readWorkload(t *testing.T, name string) workload {
	t.Helper()
	script, err := workloads.ReadFile(path.Join("workloads", name+".sh"))
	if err != nil {
		t.Fatal(err)
	}
	result := workload{name: name, script: string(script), user: "alice"}
	for line := range strings.Lines(result.script) {
		key, value, _ := strings.Cut(strings.TrimPrefix(line, "# "), ": ")
		value = strings.TrimSpace(value)
		switch key {
		case "User":
			result.user = value
		case "Releases":
			result.releases = value
		case "Prints":
			result.prints = regexp.MustCompile(value)
		}
	}
	if result.prints == nil {
		t.Fatalf("%s.sh does not say what it prints", name)
	}
	return result
}

// A site is a cluster with users, homes and accounts, installed with the chart.
type site struct {
	slurmCluster
}

func startSite(t *testing.T, version string) site {
	t.Helper()
	namespace := kube.NewNamespace(t, "workloads-"+strings.ReplaceAll(version, ".", "-"))
	started := time.Now()
	namespace.InstallCluster(t, workloads, "workloads/values.yaml", smokeSettings{Version: version})
	becomesReady(t, namespace, 5*time.Minute, "controller.slinky.slurm.net/slurm", "accounting/slurm", "restapi/slurm",
		"nodeset/worker", "loginset/login")
	site := site{slurmCluster{namespace: namespace, operator: operatorNamespace, version: version}}
	namespace.Eventually(t, time.Minute, "a user with a home and an account", func(ctx context.Context) error {
		_, err := site.as(ctx, "alice", nil, "srun true")
		return err
	})
	t.Logf("%s: users can run jobs %.1f s after helm install", version, time.Since(started).Seconds())
	source, err := workloads.ReadFile("workloads/pingpong.c")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := site.as(t.Context(), "alice", source, "cat >pingpong.c"); err != nil {
		t.Fatal(err)
	}
	return site
}

// as runs a shell command in a login pod as a user logs in: in the home directory.
func (s site) as(ctx context.Context, user string, input []byte, command string) (string, error) {
	return s.namespace.ExecWith(ctx, input, "deployment/login", "runuser", "--login", user, "--command="+command)
}

func (s site) runs(t *testing.T, workload workload) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	started := time.Now()
	out, err := s.as(ctx, workload.user, []byte(workload.script),
		fmt.Sprintf("mkdir %[1]s && cd %[1]s && cat >script && bash -euo pipefail script </dev/null", workload.name))
	if err != nil || !workload.prints.MatchString(out) {
		t.Fatalf("it printed %q, not %s: %v", out, workload.prints, err)
	}
	t.Logf("%.1f s: %s", time.Since(started).Seconds(), strings.TrimSpace(out))
}

// checkpointJob is the batch script of a job that saves its work and requeues itself before its time limit.
const checkpointJob = `#!/bin/bash
#SBATCH --time=2 --signal=B:USR1@75 --requeue --open-mode=append --output=checkpoint.log
trap 'echo checkpoint; scontrol requeue $SLURM_JOB_ID' USR1
echo "start ${SLURM_RESTART_COUNT:-0}"
test -n "$SLURM_RESTART_COUNT" && exit
sleep 600 & wait
wait
`

// continuesAfterUpdate replaces all pods while such a job runs: its node is replaced last, after the checkpoint.
func (s site) continuesAfterUpdate(t *testing.T) {
	if _, err := s.as(t.Context(), "alice", []byte(checkpointJob), "sbatch"); err != nil {
		t.Fatal(err)
	}
	log := func(want string) func(context.Context) error {
		return func(ctx context.Context) error {
			out, err := s.as(ctx, "alice", nil, "grep --invert-match CANCELLED checkpoint.log")
			if err == nil && out != want {
				err = fmt.Errorf("the job printed %q, not %q", out, want)
			}
			return err
		}
	}
	s.namespace.Eventually(t, time.Minute, "the start of the job", log("start 0\n"))
	s.namespace.MustRun(t, "patch", "nodeset/worker", "--type=merge",
		`--patch={"spec":{"slurmd":{"env":[{"name":"ROUND","value":"2"}]}}}`)
	s.namespace.Eventually(t, 5*time.Minute, "new pods", func(ctx context.Context) error {
		rounds, err := s.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/instance=worker",
			`--output=jsonpath={.items[*].spec.containers[*].env[?(@.name=="ROUND")].value}`)
		if err == nil && rounds != "2 2 2" {
			err = fmt.Errorf("the pods have the rounds %q", rounds)
		}
		return err
	})
	becomesReady(t, s.namespace, time.Minute, "nodeset/worker")
	s.namespace.Eventually(t, 5*time.Minute, "the second start of the job", log("start 0\ncheckpoint\nstart 1\n"))
}
