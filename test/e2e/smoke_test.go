//go:build e2e

package e2e_test

import (
	"context"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

//go:embed smoke/*.yaml
var smokeManifests embed.FS

var (
	slurmVersions = flag.String("slurm", "26.05,24.11", "the Slurm versions to test, separated by commas")
	imagePrefix   = flag.String("images", "slurm-operator", "repository of the images")
)

// TestSlurmRunsInPods tests what all other tests depend on: the images, the cluster, and Slurm from plain manifests,
// without the operator.
func TestSlurmRunsInPods(t *testing.T) {
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			started := time.Now()
			slurm := startSmoke(t, "smoke", version)
			t.Logf("two idle nodes after %.1f s", time.Since(started).Seconds())
			slurm.runsJobOnTwoNodes(t)
			job := slurm.runsBatchJob(t)
			slurm.answersREST(t)
			slurm.keepsJobsWhenSlurmctldIsDeleted(t, job)
			t.Run("recovers after a power cut", slurm.recoversAfterPowerCut)
		})
	}
}

// smokeSlurm is a Slurm cluster from plain manifests in its own namespace.
type smokeSlurm struct {
	namespace kube.Namespace
	version   string
	jwtKey    []byte
}

func startSmoke(t *testing.T, name, version string) smokeSlurm {
	t.Helper()
	slurm := smokeSlurm{
		namespace: kube.NewNamespace(t, name+"-"+strings.ReplaceAll(version, ".", "-")),
		version:   version,
		jwtKey:    randomBytes(t, 32),
	}
	password := rand.Text()
	slurm.namespace.CreateSecret(t, "slurm", map[string][]byte{
		"slurm.key":         randomBytes(t, 1024),
		"jwt_hs256.key":     slurm.jwtKey,
		"database-password": []byte(password),
		"slurmdbd.conf":     []byte(slurmdbdConf(password)),
	})
	slurm.namespace.ApplyTemplates(t, smokeManifests, "smoke/*.yaml", smokeSettings{Version: version})
	slurm.namespace.Eventually(t, 3*time.Minute, "two idle nodes", slurm.bothNodesIdle)
	return slurm
}

func (s smokeSlurm) runsJobOnTwoNodes(t *testing.T) {
	t.Helper()
	out, err := s.login(t.Context(), "srun", "--nodes=2", "hostname")
	if err != nil {
		t.Fatal(err)
	}
	if hosts := strings.Fields(out); len(hosts) != 2 || hosts[0] == hosts[1] {
		t.Errorf("srun on two nodes printed %q", out)
	}
}

// runsBatchJob returns the job's id once accounting shows that it completed.
func (s smokeSlurm) runsBatchJob(t *testing.T) string {
	t.Helper()
	out, err := s.login(t.Context(), "sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 1")
	if err != nil {
		t.Fatal(err)
	}
	job := strings.TrimSpace(out)
	if _, err := strconv.Atoi(job); err != nil {
		t.Fatalf("sbatch printed %q", out)
	}
	s.accountingShowsCompleted(t, job)
	return job
}

func (s smokeSlurm) accountingShowsCompleted(t *testing.T, job string) {
	t.Helper()
	s.namespace.Eventually(t, time.Minute, "job "+job+" completed in accounting", func(ctx context.Context) error {
		out, err := s.login(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+job, "--format=state")
		if err != nil {
			return err
		}
		if state := strings.TrimSpace(out); state != "COMPLETED" {
			return fmt.Errorf("sacct shows %q", state)
		}
		return nil
	})
}

func (s smokeSlurm) answersREST(t *testing.T) {
	t.Helper()
	var nodes struct {
		Nodes []struct {
			Name  string   `json:"name"`
			State []string `json:"state"`
		} `json:"nodes"`
		Errors []json.RawMessage `json:"errors"`
	}
	if err := json.Unmarshal(s.get(t, "/slurm/v0.0.42/nodes/"), &nodes); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Nodes) != 2 || len(nodes.Errors) != 0 {
		t.Errorf("REST shows nodes %v and errors %s", nodes.Nodes, nodes.Errors)
	}
}

func (s smokeSlurm) keepsJobsWhenSlurmctldIsDeleted(t *testing.T, job string) {
	t.Helper()
	started := time.Now()
	s.namespace.DeletePod(t, "slurmctld-0")
	s.namespace.Eventually(t, time.Minute, "slurmctld back with its jobs", func(ctx context.Context) error {
		out, err := s.login(ctx, "scontrol", "show", "job", job)
		if err == nil && !strings.Contains(out, "JobState=COMPLETED") {
			err = fmt.Errorf("scontrol shows %q", out)
		}
		return err
	})
	t.Logf("slurmctld answers %.1f s after its pod was deleted", time.Since(started).Seconds())
	s.accountingShowsCompleted(t, job)
	s.runsJobOnTwoNodes(t)
}

func (s smokeSlurm) recoversAfterPowerCut(t *testing.T) {
	own := ownCluster(t)
	name, err := s.namespace.Run(t.Context(), "get", "pod", "slurmd-1", "--output=jsonpath={.spec.nodeName}")
	if err != nil {
		t.Fatal(err)
	}
	node, err := own.Node(name)
	if err != nil {
		t.Fatal(err)
	}
	before, err := s.slurmdStart(t.Context(), "slurmd-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Off(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := node.On(); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	s.namespace.Eventually(t, 2*time.Minute, "slurmd restarted and idle", func(ctx context.Context) error {
		now, err := s.slurmdStart(ctx, "slurmd-1")
		if err == nil && now == before {
			err = fmt.Errorf("slurmd has been running since %s", now)
		}
		return errors.Join(err, s.bothNodesIdle(ctx))
	})
	t.Logf("both nodes are idle %.1f s after the power of one was cut", time.Since(started).Seconds())
	s.runsJobOnTwoNodes(t)
}

// slurmdStart returns a node's SlurmdStartTime.
func (s smokeSlurm) slurmdStart(ctx context.Context, node string) (string, error) {
	out, err := s.login(ctx, "scontrol", "show", "node", node)
	if err != nil {
		return "", err
	}
	for field := range strings.FieldsSeq(out) {
		if start, found := strings.CutPrefix(field, "SlurmdStartTime="); found {
			return start, nil
		}
	}
	return "", fmt.Errorf("scontrol shows no SlurmdStartTime: %q", out)
}

func (s smokeSlurm) bothNodesIdle(ctx context.Context) error {
	out, err := s.login(ctx, "sinfo", "--noheader", "--format=%t %D")
	if err != nil {
		return err
	}
	if strings.TrimSpace(out) != "idle 2" {
		return fmt.Errorf("sinfo shows %q", out)
	}
	return nil
}

// login runs a command in the login pod.
func (s smokeSlurm) login(ctx context.Context, command ...string) (string, error) {
	return s.namespace.Exec(ctx, "deployment/login", command...)
}

func randomBytes(t *testing.T, length int) []byte {
	t.Helper()
	bytes := make([]byte, length)
	if _, err := rand.Read(bytes); err != nil {
		t.Fatal(err)
	}
	return bytes
}
