//go:build slurm

package slurmnet

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
)

// startVersion starts a cluster of a version, in parallel with those of other versions.
func startVersion(t *testing.T, version string, opts Options) *Cluster {
	t.Helper()
	t.Parallel()
	opts.Version = version
	start := time.Now()
	cluster := Start(t, opts)
	t.Logf("Slurm %s ready in %.1f s", version, time.Since(start).Seconds())
	return cluster
}

// mustRun runs a command on the login node that must succeed, and returns its output without surrounding space.
func mustRun(t *testing.T, cluster *Cluster, args ...string) string {
	t.Helper()
	output, err := cluster.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(output)
}

// waitForJob waits until a job is in a state.
func waitForJob(t *testing.T, cluster *Cluster, job, state string) {
	t.Helper()
	cluster.WaitFor(t, fmt.Sprintf("job %s to be %s", job, state), func(ctx context.Context) error {
		record, err := cluster.Run(ctx, "scontrol", "show", "job", job)
		if err == nil && !strings.Contains(record, "JobState="+state+" ") {
			err = fmt.Errorf("job record: %s", record)
		}
		return err
	})
}

// get sends a request to slurmrestd and returns the status and the decoded response.
func get(t *testing.T, cluster *Cluster, path, token string) (int, map[string]any) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cluster.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(body, &answer); err != nil && response.StatusCode == http.StatusOK {
		t.Fatalf("%s: %v: %s", path, err, body)
	}
	return response.StatusCode, answer
}

func TestClusterRunsJobs(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 3})
			if got := strings.Fields(mustRun(t, cluster, "srun", "-N2", "hostname")); len(got) != 2 ||
				got[0] == got[1] {
				t.Errorf("srun on two nodes printed %q", got)
			}
			job := mustRun(t, cluster, "sbatch", "--parsable", "--wrap", "srun hostname")
			waitForJob(t, cluster, job, "COMPLETED")

			cluster.Slurmctld.Stop(t)
			cluster.Slurmctld.Start(t)
			cluster.WaitReady(t)
			waitForJob(t, cluster, job, "COMPLETED")
		})
	}
}

// TestSlurmRunsOverIPv6 shows what docs/installation.md says about clusters without IPv4: one parameter in slurm.conf
// and slurmdbd.conf suffices.
func TestSlurmRunsOverIPv6(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 2, Accounting: true, IPv6: true})
			if got := strings.Fields(mustRun(t, cluster, "srun", "-N2", "hostname")); len(got) != 2 ||
				got[0] == got[1] {
				t.Errorf("srun on two nodes printed %q", got)
			}
			job := mustRun(t, cluster, "sbatch", "--parsable", "--wrap", "srun hostname")
			cluster.WaitFor(t, "the job in accounting", func(ctx context.Context) error {
				out, err := cluster.Run(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+job,
					"--format=state")
				if state := strings.TrimSpace(out); err == nil && state != "COMPLETED" {
					err = fmt.Errorf("sacct shows %q", state)
				}
				return err
			})
			if address := mustRun(t, cluster, "sinfo", "--noheader", "--Node", "--nodes=node-0",
				"--format=%o"); !strings.Contains(address, "fd53:") {
				t.Errorf("a node has the address %s", address)
			}
		})
	}
}

func TestRESTRequiresAToken(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 1})
			status, answer := get(t, cluster, "/slurm/v0.0.42/ping/", cluster.Token("root"))
			if status != http.StatusOK || len(answer["pings"].([]any)) != 1 {
				t.Errorf("ping: %d, %v", status, answer)
			}
			if nodes := answerNodes(t, cluster); nodes != 1 {
				t.Errorf("%d nodes, want 1", nodes)
			}
			if status, answer := get(t, cluster, "/slurm/v0.0.42/nodes/", "not a token"); status < 400 {
				t.Errorf("without a token: %d, %v", status, answer)
			}
		})
	}
}

func answerNodes(t *testing.T, cluster *Cluster) int {
	t.Helper()
	status, answer := get(t, cluster, "/slurm/v0.0.42/nodes/", cluster.Token("root"))
	if status != http.StatusOK {
		t.Fatalf("nodes: %d, %v", status, answer["errors"])
	}
	return len(answer["nodes"].([]any))
}

func TestAccountingRecordsFinishedJobs(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 1, Accounting: true})
			job := mustRun(t, cluster, "sbatch", "--parsable", "--wrap", "true")
			cluster.WaitFor(t, "the job in the database", func(ctx context.Context) error {
				state, err := cluster.Run(ctx, "sacct", "-nPX", "-j", job, "-o", "State")
				if err == nil && strings.TrimSpace(state) != "COMPLETED" {
					err = fmt.Errorf("sacct shows %q", state)
				}
				return err
			})
			if status, answer := get(t, cluster, "/slurmdb/v0.0.42/job/"+job,
				cluster.Token("root")); status != http.StatusOK {
				t.Errorf("slurmdb: %d, %v", status, answer["errors"])
			}
		})
	}
}

func TestUserLogsInBySSHAndRunsAJob(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 1})
			mustRun(t, cluster, "sh", "-ec", `
useradd --create-home --uid 2000 alice
ssh-keygen -q -t ed25519 -N '' -f /root/key
install -d -o alice -g alice -m 0700 /home/alice/.ssh
install -o alice -g alice -m 0600 /root/key.pub /home/alice/.ssh/authorized_keys`)
			// alice does not exist on the node: her identity comes with the job.
			got := mustRun(t, cluster, "ssh", "-i", "/root/key", "-o", "StrictHostKeyChecking=no", "alice@login",
				"srun --chdir=/ id")
			if want := "uid=2000 gid=2000 groups=2000"; got != want {
				t.Errorf("the job ran as %q, want %q", got, want)
			}
		})
	}
}

func TestDaemonsStopPauseCrashAndRestart(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 2})
			// As PID 1 slurmrestd and sackd would ignore SIGTERM; the images run them under an init.
			for _, daemon := range []*Daemon{cluster.Slurmrestd, cluster.Login} {
				daemon.Stop(t)
			}
			if err := cluster.ping(t.Context()); err == nil {
				t.Error("slurmrestd answers after it was stopped")
			}
			cluster.Slurmrestd.Start(t)
			cluster.Login.Start(t)
			cluster.WaitReady(t)

			cluster.Nodes[0].Kill(t)
			cluster.Nodes[0].Start(t)
			// A crashed slurmctld loses what it has not saved, including nodes, which then stay unknown until they
			// restart. It saves nodes not when they register, but when they are changed.
			mustRun(t, cluster, "scontrol", "update", "nodename=ALL", "comment=saved")
			cluster.WaitFor(t, "slurmctld to save its nodes", func(ctx context.Context) error {
				_, err := cluster.Slurmctld.Run(ctx, "grep", "--quiet", cluster.Nodes[1].Name,
					"/var/spool/slurmctld/node_state")
				return err
			})
			cluster.Slurmctld.Kill(t)
			cluster.Slurmctld.Start(t)
			cluster.WaitReady(t)

			cluster.Slurmctld.Pause(t)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := cluster.ping(ctx); err == nil {
				t.Error("a frozen slurmctld answers")
			}
			cluster.Slurmctld.Resume(t)
			cluster.WaitReady(t)
		})
	}
}

func TestReconfigureAppliesAChangedFile(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 1, ExtraConf: "PartitionName=extra Nodes=ALL"})
			if _, err := cluster.Slurmctld.Run(t.Context(), "sed", "-i", "s/PartitionName=extra/PartitionName=changed/",
				"/etc/slurm/slurm.conf"); err != nil {
				t.Fatal(err)
			}
			mustRun(t, cluster, "scontrol", "reconfigure")
			cluster.WaitReady(t)
			mustRun(t, cluster, "srun", "-p", "changed", "true")
		})
	}
}

func TestThousandsOfNodesWithoutSlurmd(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := startVersion(t, version, Options{Nodes: 1, CloudNodes: 5000})
			if nodes := answerNodes(t, cluster); nodes != 5001 {
				t.Errorf("%d nodes, want 5001", nodes)
			}
		})
	}
}
