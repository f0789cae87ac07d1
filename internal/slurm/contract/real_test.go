//go:build slurm

package contract

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// realSlurm is a cluster of real Slurm daemons.
type realSlurm struct {
	*slurmnet.Cluster
	version string
}

func (r realSlurm) url() string              { return r.URL }
func (r realSlurm) old() bool                { return r.version == "24.11" }
func (r realSlurm) token(user string) string { return r.Token(user) }

func (r realSlurm) briefToken(t *testing.T) string {
	t.Helper()
	output := r.command(t, "scontrol", "token", "username=root", "lifespan=2")
	_, token, ok := strings.Cut(strings.TrimSpace(output), "=")
	if !ok {
		t.Fatalf("scontrol token printed %q", output)
	}
	return token
}

func (r realSlurm) suspend(t *testing.T, job int64) {
	t.Helper()
	r.command(t, "scontrol", "suspend", strconv.FormatInt(job, 10))
}

func (r realSlurm) resume(t *testing.T, job int64) {
	t.Helper()
	r.command(t, "scontrol", "resume", strconv.FormatInt(job, 10))
}

func (r realSlurm) command(t *testing.T, args ...string) string {
	t.Helper()
	output, err := r.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func (r realSlurm) stopController(t *testing.T)  { t.Helper(); r.Slurmctld.Stop(t) }
func (r realSlurm) startController(t *testing.T) { t.Helper(); r.Slurmctld.Start(t) }

// topology is for dynamic nodes. 24.11 ignores it.
const topology = `
- {topology: topo-flat, cluster_default: true, flat: true}
- {topology: topo-switch, cluster_default: false, tree: {
    switches: [{switch: root, children: "s[1-2]"}, {switch: s1}, {switch: s2}]}}
`

func TestRealSlurm(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			// Without memory as a resource, a suspended job does not show in its node's record.
			cluster := slurmnet.Start(t, slurmnet.Options{
				Version: version, Nodes: 2, ExtraConf: "SelectTypeParameters=CR_CPU", Files: map[string]string{
					"topology.yaml": topology,
				},
				SlurmdArgs: []string{"--instance-id", instance},
			})
			run(t, realSlurm{cluster, version})
		})
	}
}

// newMirror runs a mirror until the test ends that does not list nodes unless the counters change.
func newMirror(t *testing.T, client slurm.Reader) *slurm.Mirror {
	t.Helper()
	mirror := slurm.NewMirror(client, slurm.MirrorOptions{
		Fast: 100 * time.Millisecond, Slow: 500 * time.Millisecond, Noise: 1, MaxQuiet: time.Hour,
	})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { mirror.Run(ctx, func(slurm.Poll) {}) })
	t.Cleanup(func() { stop(); running.Wait() })
	return mirror
}

// With slurmctld's metrics a mirror sees changes that slurmctld makes by itself, even if no counter changes.
func TestMirrorDetectsNonRespondingNode(t *testing.T) {
	t.Parallel()
	cluster := slurmnet.Start(t, slurmnet.Options{Version: "26.05", Nodes: 2, ExtraConf: "SlurmdTimeout=10"})
	client := connectMetrics(t, cluster)
	mirror := newMirror(t, client)
	responding := func() error {
		if snapshot := mirror.Snapshot(); snapshot != nil {
			if node, ok := snapshot.Node("node-1"); ok && node.Responding() {
				return nil
			}
		}
		return errors.New("it is not")
	}
	eventually(t, "node to respond", responding)
	cluster.Nodes[1].Kill(t)
	eventually(t, "node to be not responding", func() error {
		if responding() == nil {
			return errors.New("it is not")
		}
		return nil
	})
}

// A restarted slurmctld does not know the releases of its slurmds: an empty release does not mean that slurmd never
// registered.
func TestRestartedSlurmctldHasNoSlurmdVersions(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			target := realSlurm{slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1}), version}
			c := cluster{target, connect(t, target, always(target.token("root")))}
			known := func(want bool) func() error {
				return func() error {
					list, err := c.Nodes(t.Context(), 0)
					if err != nil {
						return err
					}
					if node := list.Nodes[0]; (node.Version != "") != want || !node.Busy() {
						return fmt.Errorf("it is %q on a node in state %v", node.Version, node.StateNames())
					}
					return nil
				}
			}
			target.command(t, "sbatch", "--time=10", "--output=/dev/null", "--wrap=touch /tmp/started; sleep 1000")
			// A job that slurmd has not received yet would be requeued by the restarted slurmctld.
			eventually(t, "the job to start", func() error {
				_, err := target.Nodes[0].Run(t.Context(), "test", "-e", "/tmp/started")
				return err
			})
			eventually(t, "the release of a node with a job", known(true))
			target.Nodes[0].Pause(t)
			target.stopController(t)
			target.startController(t)
			eventually(t, "no release of a node with a job", known(false))
			target.Nodes[0].Resume(t)
			eventually(t, "the release again", known(true))
		})
	}
}

// A job that the operator's user cannot see would be lost with its node.
func TestSlurmUserSeesAllJobsAndNodes(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			started := slurmnet.Start(t, slurmnet.Options{
				Version: version, Nodes: 2,
				ExtraConf: "PartitionName=secret Nodes=ALL Hidden=YES " +
					"AllowGroups=root\nPrivateData=jobs,nodes,reservations",
			})
			target := realSlurm{started, version}
			c := cluster{target, connect(t, target, always(target.token("slurm")))}
			target.command(t, "sbatch", "--partition=secret", "--nodelist=node-0", "--time=10", "--wrap=sleep 1000")
			eventually(t, "job to be seen", func() error {
				job, err := c.job(t, 1)
				if err == nil && (!job.Running() || job.Nodes != "node-0" || job.Partition != "secret") {
					err = fmt.Errorf("it is %+v", job)
				}
				return err
			})
			list, err := c.Nodes(t.Context(), 0)
			must(t, err)
			if len(list.Nodes) != 2 {
				t.Errorf("nodes are %+v", list.Nodes)
			}
		})
	}
}

// connectMetrics returns a client that also reads slurmctld's metrics.
func connectMetrics(t *testing.T, cluster *slurmnet.Cluster) *rest.Client {
	t.Helper()
	address, err := cluster.Run(t.Context(), "getent", "hosts", "slurmctld")
	must(t, err)
	client, err := rest.New(rest.Options{
		URL: cluster.URL, Metrics: "http://" + strings.Fields(address)[0] + ":6817",
		Token: always(cluster.Token("root")),
	})
	must(t, err)
	t.Cleanup(client.Close)
	return client
}

// The metrics are computed per request: a suspended job shows immediately.
func TestJobCensusShowsSuspendedJobsImmediately(t *testing.T) {
	t.Parallel()
	target := realSlurm{slurmnet.Start(t, slurmnet.Options{Version: "26.05", Nodes: 1}), "26.05"}
	c := cluster{target, connectMetrics(t, target.Cluster)}
	id := c.submit(t, "node-0", "sleep 1000")
	for range 10 {
		c.suspend(t, id)
		if census, err := c.JobCensus(t.Context()); err != nil || census != (slurm.JobCensus{Jobs: 1, Hidden: 1}) {
			t.Fatalf("census is %+v with a suspended job: %v", census, err)
		}
		c.resume(t, id)
		if census, err := c.JobCensus(t.Context()); err != nil || census != (slurm.JobCensus{Jobs: 1, Running: 1}) {
			t.Fatalf("census is %+v with a running job: %v", census, err)
		}
	}
	must(t, c.submitter().Cancel(t.Context(), id))
	eventually(t, "no job to hold the node", func() error {
		census, err := c.JobCensus(t.Context())
		if err == nil && census != (slurm.JobCensus{Jobs: 1}) {
			err = fmt.Errorf("census is %+v", census)
		}
		return err
	})
}
