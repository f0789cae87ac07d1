//go:build e2e

package e2e_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestServicesOfACluster tests the services of a cluster, slurmctld, slurmdbd, slurmrestd, a login pod and a token, and
// how they behave when they are changed or broken.
func TestServicesOfACluster(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			cluster := startCluster(t, operator, version)
			cluster.isRegisteredInAccounting(t)
			t.Run("a partition is live without a restart", cluster.addsPartition)
			t.Run("a typo is not rolled out", cluster.refusesTypo)
			t.Run("a broken topology is not rolled out", cluster.refusesBrokenTopology)
			t.Run("slurmctld restarts with its state", cluster.keepsStateWhenPodIsDeleted)
			t.Run("a wrong database password is reported", cluster.reportsWrongPassword)
			t.Run("the database is reached with TLS", cluster.reachesDatabaseWithTLS)
			t.Run("agents report only to the operator", cluster.reportsOnlyToOperator)
			t.Run("jobs run without the database", cluster.runsJobsWithoutDatabase)
			t.Run("slurmctld is reachable while the operator is down", cluster.isReachableWithoutOperator)
			t.Run("users log in by ssh", cluster.allowsSSHLogin)
			t.Run("a token grants access to the REST API and is renewed", cluster.renewsTokens)
			t.Run("externally signed tokens are accepted", cluster.acceptsForeignTokens)
			t.Run("external daemons are served", cluster.servesExternalDaemons)
			t.Run("the JWT key is rotated", cluster.rotatesJWTKey)
			t.Run("no secrets leak", cluster.leaksNoSecrets)
			t.Run("the operator is not root", cluster.operatorIsNotRoot)
		})
	}
}

// slurmCluster is a cluster that the operator runs.
type slurmCluster struct {
	namespace kube.Namespace
	operator  kube.Namespace
	version   string
	password  string
	sshKey    []byte
	// nodeOf returns the Slurm node of a pod; nil if both have the same name.
	nodeOf func(pod string) string
	// interval is the time between the jobs of a ledger, if it is not the default.
	interval time.Duration
}

// slurmNode returns the name of a pod's Slurm node.
func (c *slurmCluster) slurmNode(pod string) string {
	if c.nodeOf == nil {
		return pod
	}
	return c.nodeOf(pod)
}

// startCluster starts the services of a cluster, and two slurmds in plain pods.
func startCluster(t *testing.T, operator kube.Namespace, version string) *slurmCluster {
	t.Helper()
	// Pods that are not the operator's are not prepared to confine jobs.
	cluster := startServices(t, operator, "cluster", version, "ProctrackType=proctrack/linuxproc")
	cluster.namespace.ApplyTemplates(t, manifests, "cluster/nodes.yaml",
		settings{smokeSettings: smokeSettings{Version: version}, ConfServer: "slurm-controller-0:6817", Nodes: 2})
	cluster.namespace.Eventually(t, 2*time.Minute, "two idle nodes", func(ctx context.Context) error {
		return cluster.sinfoShows(ctx, "all* idle 2")
	})
	return cluster
}

// startServices starts a cluster without nodes, in a namespace with the given prefix, with additional lines in
// slurm.conf.
func startServices(t *testing.T, operator kube.Namespace, name, version string, extraConf ...string) *slurmCluster {
	t.Helper()
	private, authorized := sshKeyPair(t)
	cluster := &slurmCluster{
		namespace: kube.NewNamespace(t, name+"-"+strings.ReplaceAll(version, ".", "-")), operator: operator,
		version:  version,
		password: "canary-" + rand.Text(), sshKey: private,
	}
	values := settings{smokeSettings: smokeSettings{Version: version}, AuthorizedKey: authorized, ExtraConf: extraConf}
	cluster.namespace.CreateSecret(t, "mariadb", map[string][]byte{"password": []byte(cluster.password)})
	cluster.namespace.ApplyTemplates(t, manifests, "cluster/database.yaml", values)
	started := time.Now()
	cluster.namespace.ApplyTemplates(t, manifests, "cluster/services.yaml", values)
	becomesReady(t, cluster.namespace, 4*time.Minute,
		"accounting/slurm", "controller.slinky.slurm.net/slurm", "restapi/slurm", "loginset/login", "token/root")
	t.Logf("%s: all services ready %.1f s after they were applied", version, time.Since(started).Seconds())
	return cluster
}

func (c *slurmCluster) addsPartition(t *testing.T) {
	before := c.slurmctldStart(t)
	started := time.Now()
	c.setExtraConf(t,
		"SlurmdTimeout=30\nPartitionName=all Nodes=ALL Default=YES State=UP\nPartitionName=debug Nodes=ALL State=UP")
	c.namespace.Eventually(t, time.Minute, "the partition in sinfo", func(ctx context.Context) error {
		return c.sinfoShows(ctx, "debug idle 2")
	})
	t.Logf("%s: a partition is live %.1f s after it was applied", c.version, time.Since(started).Seconds())
	c.configurationIs(t, "True|Applied")
	if after := c.slurmctldStart(t); after != before {
		t.Errorf("slurmctld's container started at %s, and now at %s", before, after)
	}
}

func (c *slurmCluster) refusesTypo(t *testing.T) {
	before := c.slurmctldStart(t)
	c.setExtraConf(t,
		"SlurmdTimeout=30\nPartitionName=all Nodes=ALL Default=YES State=UP\nSchedulerTpye=sched/backfill")
	c.configurationIs(t, "False|Refused")
	c.namespace.Eventually(t, time.Minute, "the line in the message", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm", "-o",
			`jsonpath={.status.conditions[?(@.type=="ConfigurationApplied")].message}`)
		if err == nil && !strings.Contains(out, "spec.extraConf line 3: SchedulerTpye=sched/backfill") {
			err = fmt.Errorf("the message is %q", out)
		}
		return err
	})
	err := errors.Join(c.sinfoShows(t.Context(), "debug idle 2"),
		conditionIs(t.Context(), c.namespace, "controller.slinky.slurm.net/slurm", "Available", "True|Serving"),
		conditionIs(t.Context(), c.namespace, "controller.slinky.slurm.net/slurm", "Ready", "False|Refused"))
	if err != nil {
		t.Errorf("the cluster does not serve on its last good configuration: %v", err)
	}
	c.repair(t, before)
}

func (c *slurmCluster) refusesBrokenTopology(t *testing.T) {
	before := c.slurmctldStart(t)
	c.namespace.Apply(t,
		[]byte(`{apiVersion: v1, kind: ConfigMap, metadata: {name: files}, data: {topology.conf: "SwitchName=s1 Nodes=slurmd-0 Nonsense=1\n"}}`))
	if _, err := c.namespace.Run(t.Context(), "patch", "controller.slinky.slurm.net/slurm", "--type=merge", "--patch",
		`{"spec":{"configFileRefs":[{"name":"files"}],"extraConf":"SlurmdTimeout=30\nTopologyPlugin=topology/tree\nPartitionName=all Nodes=ALL Default=YES State=UP"}}`); err != nil {
		t.Fatal(err)
	}
	c.configurationIs(t, "False|Refused")
	if err := c.sinfoShows(t.Context(), "all* idle 2"); err != nil {
		t.Errorf("the cluster does not serve on its last good configuration: %v", err)
	}
	if _, err := c.namespace.Run(t.Context(), "patch", "controller.slinky.slurm.net/slurm", "--type=json", "--patch",
		`[{"op":"remove","path":"/spec/configFileRefs"}]`); err != nil {
		t.Fatal(err)
	}
	c.repair(t, before)
}

// repair restores a valid configuration and waits until it is applied, without a restart of slurmctld.
func (c *slurmCluster) repair(t *testing.T, before string) {
	t.Helper()
	c.setExtraConf(t, "SlurmdTimeout=30\nPartitionName=all Nodes=ALL Default=YES State=UP")
	c.configurationIs(t, "True|Applied")
	if after := c.slurmctldStart(t); after != before {
		t.Errorf("slurmctld's container started at %s, and now at %s", before, after)
	}
}

func (c *slurmCluster) keepsStateWhenPodIsDeleted(t *testing.T) {
	job := c.startJob(t)
	started := time.Now()
	c.namespace.DeletePod(t, "slurm-controller-0")
	// A command that starts now succeeds when slurmctld is back, or fails after Slurm's MessageTimeout: it must not
	// hang.
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	asked := time.Now()
	err := c.jobIs(ctx, job, "JobState=RUNNING", "Restarts=0")
	t.Logf("%s: a command that started while slurmctld was down returned after %.1f s: %v", c.version,
		time.Since(asked).Seconds(), err)
	if ctx.Err() != nil {
		t.Error("a command that started while slurmctld was down did not return")
	}
	c.namespace.Eventually(t, time.Minute, "slurmctld back with the running job", func(ctx context.Context) error {
		return c.jobIs(ctx, job, "JobState=RUNNING", "Restarts=0")
	})
	t.Logf("%s: slurmctld answers %.1f s after its pod was deleted, and the job runs", c.version,
		time.Since(started).Seconds())
	c.finishJob(t, job)
}

// I12: slurmctld's Service has an endpoint whenever slurmctld is up, even while the operator is down.
func (c *slurmCluster) isReachableWithoutOperator(t *testing.T) {
	c.scaleOperator(t, 0)
	defer c.scaleOperator(t, 1)
	c.namespace.DeletePod(t, "slurm-controller-0")
	c.namespace.Eventually(t, 2*time.Minute, "an endpoint of slurmctld's Service", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "endpointslices",
			"--selector=kubernetes.io/service-name=slurm-controller",
			"--output=jsonpath={.items[*].endpoints[?(@.conditions.ready==true)].addresses[0]}")
		if err == nil && out == "" {
			err = errors.New("there is none")
		}
		return errors.Join(err, c.sinfoShows(ctx, "all* idle 2"))
	})
}

// scaleOperator changes the number of the operator's pods, and waits until there are so many.
func (c *slurmCluster) scaleOperator(t *testing.T, replicas int) {
	t.Helper()
	c.operator.MustRun(t, "scale", "deployment/slurm-operator", fmt.Sprintf("--replicas=%d", replicas))
	c.operator.Eventually(t, 2*time.Minute, fmt.Sprintf("%d operator pods", replicas), func(ctx context.Context) error {
		out, err := c.operator.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/component=operator",
			"--output=jsonpath={.items[*].status.containerStatuses[0].ready}")
		if ready := strings.Fields(out); err == nil && (len(ready) != replicas || slices.Contains(ready, "false")) {
			err = fmt.Errorf("the pods are ready: %q", out)
		}
		return err
	})
}

func (c *slurmCluster) renewsTokens(t *testing.T) {
	first := c.token(t)
	if err := c.ping(t.Context(), first); err != nil {
		t.Error(err)
	}
	c.namespace.Eventually(t, 90*time.Second, "another token", func(ctx context.Context) error {
		if token := c.token(t); token != first {
			return c.ping(ctx, token)
		}
		return errors.New("it is still the first token")
	})
}

func (c *slurmCluster) rotatesJWTKey(t *testing.T) {
	old := c.token(t)
	key := make([]byte, 32)
	_, _ = rand.Read(key)
	if _, err := c.namespace.Run(t.Context(), "patch", "secret/slurm-auth-jwths256", "--type=merge", "--patch",
		fmt.Sprintf(`{"data":{"jwt_hs256.key":%q}}`, base64.StdEncoding.EncodeToString(key))); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	c.namespace.Eventually(t, 3*time.Minute, "Slurm to accept a token signed with the new key",
		func(ctx context.Context) error {
			token := c.token(t)
			if token == old {
				return errors.New("it is still the old token")
			}
			return c.ping(ctx, token)
		})
	t.Logf("%s: tokens work %.1f s after the JWT key was rotated", c.version, time.Since(started).Seconds())
	becomesReady(t, c.namespace, time.Minute, "controller.slinky.slurm.net/slurm")
}

func (c *slurmCluster) setExtraConf(t *testing.T, conf string) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"extraConf": conf + "\n"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.namespace.Run(t.Context(), "patch", "controller.slinky.slurm.net/slurm", "--type=merge", "--patch",
		string(patch)); err != nil {
		t.Fatal(err)
	}
}

// configurationIs waits for the condition ConfigurationApplied of the latest generation.
func (c *slurmCluster) configurationIs(t *testing.T, want string) {
	t.Helper()
	c.namespace.Eventually(t, 2*time.Minute, "ConfigurationApplied "+want, func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "controller.slinky.slurm.net/slurm", "--output",
			`jsonpath={.metadata.generation}|{range .status.conditions[?(@.type=="ConfigurationApplied")]}{.observedGeneration}|{.status}|{.reason}|{.message}{end}`)
		if err != nil {
			return err
		}
		fields := strings.SplitN(out, "|", 3)
		if len(fields) != 3 || fields[0] != fields[1] || !strings.HasPrefix(fields[2], want) {
			return fmt.Errorf("it is %q", out)
		}
		return nil
	})
}

// slurmctldStart identifies the current start of slurmctld's container.
func (c *slurmCluster) slurmctldStart(t *testing.T) string {
	t.Helper()
	out, err := c.namespace.Run(t.Context(), "get", "pod/slurm-controller-0", "--output",
		`jsonpath={.metadata.uid}{range .status.containerStatuses[?(@.name=="slurmctld")]}|{.restartCount}|{.state.running.startedAt}{end}`)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c *slurmCluster) sinfoShows(ctx context.Context, line string) error {
	out, err := c.login(ctx, "sinfo", "--noheader", "--format=%P %t %D")
	if err == nil && !strings.Contains(out, line+"\n") {
		err = fmt.Errorf("sinfo shows %q", out)
	}
	return err
}

// startJob starts a job that runs until finishJob is called, and waits until it is running.
func (c *slurmCluster) startJob(t *testing.T, options ...string) string {
	t.Helper()
	job := c.submit(t, append(options, "--wrap=until [ -e /tmp/end-$SLURM_JOB_ID ]; do sleep 0.2; done")...)
	c.namespace.Eventually(t, time.Minute, "a running job",
		func(ctx context.Context) error { return c.jobIs(ctx, job, "JobState=RUNNING", "Restarts=0") })
	return job
}

// queueJob submits a short job and checks that it is pending.
func (c *slurmCluster) queueJob(t *testing.T, options ...string) string {
	t.Helper()
	job := c.submit(t, append(options, "--wrap=sleep 1")...)
	if err := c.jobIs(t.Context(), job, "JobState=PENDING"); err != nil {
		t.Error(err)
	}
	return job
}

func (c *slurmCluster) submit(t *testing.T, options ...string) string {
	t.Helper()
	out, err := c.login(t.Context(), append([]string{"sbatch", "--parsable", "--output=/dev/null"}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// finishJob lets a job complete, and checks that it ran only once.
func (c *slurmCluster) finishJob(t *testing.T, job string) {
	t.Helper()
	if _, err := c.namespace.Exec(t.Context(), "pod/"+c.batchHost(t, job), "touch", "/tmp/end-"+job); err != nil {
		t.Fatal(err)
	}
	c.namespace.Eventually(t, time.Minute, "completion of the job",
		func(ctx context.Context) error { return c.jobIs(ctx, job, "JobState=COMPLETED", "Restarts=0") })
}

// batchHost returns the node that runs the script of a job.
func (c *slurmCluster) batchHost(t *testing.T, job string) string {
	t.Helper()
	node, err := c.login(t.Context(), "squeue", "--noheader", "--jobs="+job, "--format=%B")
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(node)
}

// keepsJobs checks that one job still runs and another is still pending, both in their first attempt.
func (c *slurmCluster) keepsJobs(t *testing.T, running, pending string) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, "the jobs from before the change", func(ctx context.Context) error {
		return errors.Join(c.jobIs(ctx, pending, "JobState=PENDING", "Restarts=0"),
			c.jobIs(ctx, running, "JobState=RUNNING", "Restarts=0"))
	})
}

// jobIs returns an error unless scontrol shows all given fields of a job.
func (c *slurmCluster) jobIs(ctx context.Context, job string, shown ...string) error {
	out, err := c.login(ctx, "scontrol", "show", "job", job)
	if err != nil {
		return err
	}
	for _, field := range shown {
		if !slices.Contains(strings.Fields(out), field) {
			return fmt.Errorf("scontrol does not show %s: %q", field, out)
		}
	}
	return nil
}

// login runs a command in the login pod.
func (c *slurmCluster) login(ctx context.Context, command ...string) (string, error) {
	return c.namespace.Exec(ctx, "deployment/login", command...)
}

func (c *slurmCluster) token(t *testing.T) string {
	t.Helper()
	return string(c.secret(t, "root-jwt-root", "SLURM_JWT"))
}

// secret returns a value of a Secret.
func (c *slurmCluster) secret(t *testing.T, name, key string) []byte {
	t.Helper()
	out, err := c.namespace.Run(t.Context(), "get", "secret/"+name,
		"--output=jsonpath={.data."+strings.ReplaceAll(key, ".", `\.`)+"}")
	if err != nil {
		t.Fatal(err)
	}
	value, err := base64.StdEncoding.DecodeString(out)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// ping sends a request with a token to slurmrestd that needs slurmctld to verify the token.
func (c *slurmCluster) ping(ctx context.Context, token string) error {
	body, err := getThroughProxy(ctx, c.namespace.Name, "https:slurm-restapi", token, "/slurm/v0.0.42/nodes/")
	if err != nil {
		return fmt.Errorf("%w: %s", err, body)
	}
	return nil
}
