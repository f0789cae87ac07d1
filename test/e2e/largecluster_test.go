//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var downNodes = flag.Int("down-nodes", 1500, "how many Slurm nodes without a slurmd TestLargeCluster adds to a cluster")

// TestLargeCluster checks a NodeSet in a cluster with so many Slurm nodes that listing all of them for each change
// would take too long: the operator asks the agent next to slurmctld which nodes have changed. Most of the nodes have
// no slurmd: they are hosts that are down.
func TestLargeCluster(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			// Slurm would forward messages through the hosts, which are down, and wait for each of them.
			large := &largeCluster{startNodeSet(t, operator, version, "TreeWidth=65533",
				fmt.Sprintf("NodeName=host-[1-%d] NodeAddr=127.1.1.1 CPUs=1 State=DOWN", *downNodes))}
			t.Run("shows changes by others without lists", large.showsChangesWithoutLists)
			t.Run("shows changes after the agent has restarted", large.showsChangesAfterAgentRestart)
			t.Run("scales in without disturbing jobs", large.scalesInAroundJobs)
			t.Run("is updated under load", large.isUpdatedUnderLoad)
			t.Run("keeps an admin's drain", large.keepsAdminDrain)
			t.Run("continues when the operator is killed", large.continuesWhenOperatorIsKilled)
		})
	}
}

// largeCluster is a NodeSet in a cluster with many other Slurm nodes.
type largeCluster struct{ *nodeSet }

func (l *largeCluster) showsChangesWithoutLists(t *testing.T) {
	l.showsDrain(t, "gpu-0") // the agent is asked from now on
	l.resume(t, "gpu-0")
	before := l.slurmRequests(t)
	var delays []time.Duration
	for range 5 {
		for node := range defaultNodes {
			delays = append(delays, l.showsDrain(t, fmt.Sprintf("gpu-%d", node)))
		}
		l.resume(t, fmt.Sprintf("gpu-[0-%d]", defaultNodes-1))
	}
	after := l.slurmRequests(t)
	slices.Sort(delays)
	t.Logf("%s: with %d other Slurm nodes, a drain by an administrator shows on its pod after %s (p50) to %s; "+
		"requests to Slurm: %v before and %v after", l.version, *downNodes, delays[len(delays)/2].Round(time.Millisecond),
		delays[len(delays)-1].Round(time.Millisecond), before, after)
	if questions := after["node-changes"] - before["node-changes"]; questions < len(delays)/defaultNodes {
		t.Errorf("the agent was asked %d times", questions)
	}
	// One list follows every half an hour, and one if more nodes change than are worth reading alone.
	if lists := after["nodes"] - before["nodes"]; lists > 2 {
		t.Errorf("all nodes were listed %d times", lists)
	}
}

// showsDrain drains a Slurm node as an administrator, and returns how long it took until its pod shows that.
func (l *largeCluster) showsDrain(t *testing.T, node string) time.Duration {
	t.Helper()
	type shown struct {
		at  time.Time
		err error
	}
	shows := make(chan shown, 1)
	go func() {
		_, err := l.namespace.Run(t.Context(), "wait", "pod/"+node, "--for=condition=SlurmNodeStateDrain=True",
			"--timeout=10m")
		shows <- shown{time.Now(), err}
	}()
	out, err := l.login(t.Context(), "sh", "-c",
		"scontrol update nodename="+node+" state=drain reason=check && date +%s%N")
	if err != nil {
		t.Fatal(err)
	}
	nanoseconds, err := strconv.ParseInt(strings.TrimSpace(out), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	result := <-shows
	if result.err != nil {
		t.Fatal(result.err)
	}
	return result.at.Sub(time.Unix(0, nanoseconds))
}

// resume resumes drained nodes of the NodeSet, and waits until all its pods show that they are not drained.
func (l *largeCluster) resume(t *testing.T, nodes string) {
	t.Helper()
	if _, err := l.login(t.Context(), "scontrol", "update", "nodename="+nodes, "state=resume"); err != nil {
		t.Fatal(err)
	}
	l.waitUntilAllIdle(t)
	l.namespace.Eventually(t, time.Minute, "pods whose nodes are not drained", func(ctx context.Context) error {
		out, err := l.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmd",
			`--output=jsonpath={.items[*].status.conditions[?(@.type=="SlurmNodeStateDrain")].status}`)
		if err == nil && strings.Contains(out, "True") {
			err = errors.New("some are drained")
		}
		return err
	})
}

// slurmRequests returns how many requests to Slurm the operator has sent for the cluster, by call.
func (l *largeCluster) slurmRequests(t *testing.T) map[string]int {
	t.Helper()
	requests := map[string]int{}
	for text := range maps.Values(l.operatorMetrics(t)) {
		lines := bufio.NewScanner(strings.NewReader(text))
		for lines.Scan() {
			rest, ok := strings.CutPrefix(lines.Text(), "slurm_operator_slurm_requests_total{")
			if !ok || !strings.Contains(rest, strconv.Quote(l.namespace.Name)) {
				continue
			}
			_, label, _ := strings.Cut(rest, `call="`)
			call, _, _ := strings.Cut(label, `"`)
			value, err := strconv.Atoi(rest[strings.LastIndex(rest, " ")+1:])
			if call == "" || err != nil {
				t.Fatalf("%q: %v", lines.Text(), err)
			}
			requests[call] += value
		}
	}
	return requests
}

// showsChangesAfterAgentRestart restarts the agent, which forgets what it has seen: a list shows what its answers lack.
func (l *largeCluster) showsChangesAfterAgentRestart(t *testing.T) {
	restarts := func(ctx context.Context) (string, error) {
		return l.namespace.Run(ctx, "get", "pod/slurm-controller-0",
			`--output=jsonpath={.status.containerStatuses[?(@.name=="reconfigure")].restartCount}`)
	}
	before, err := restarts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, killed := l.namespace.Run(t.Context(), "exec", "pod/slurm-controller-0", "--container=reconfigure", "--",
		"sh", "-c", "kill 1")
	l.namespace.Eventually(t, 2*time.Minute, "a restarted agent", func(ctx context.Context) error {
		now, err := restarts(ctx)
		if err == nil && now == before {
			err = fmt.Errorf("it has restarted %s times; %w", now, killed)
		}
		return err
	})
	t.Logf("%s: the next drain shows after %s", l.version, l.showsDrain(t, "gpu-1").Round(time.Millisecond))
	l.resume(t, "gpu-1")
	// One that did not answer is asked again after a minute.
	asked := l.slurmRequests(t)["node-changes"]
	l.namespace.Eventually(t, 2*time.Minute, "another question to the agent", func(context.Context) error {
		l.showsDrain(t, "gpu-2")
		l.resume(t, "gpu-2")
		if now := l.slurmRequests(t)["node-changes"]; now <= asked+1 {
			return fmt.Errorf("it was asked %d times before and %d times after", asked, now)
		}
		return nil
	})
}
