//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// TestTakeOver checks that a running cluster of another operator, with its jobs, comes along.
func TestTakeOver(t *testing.T) {
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			addOtherImages(t, version)
			c, settings := startForeignCluster(t, operator, version, "")
			t.Run("jobs come along", c.takesOver)
			t.Run("and back again", func(t *testing.T) { c.goesBack(t, settings) })
		})
	}
}

// foreignSettings are the values for the manifests of a cluster of another operator.
type foreignSettings struct {
	smokeSettings
	Password string
	Ordinals []int
	// Machine is the Kubernetes node of slurmds that confine jobs; empty if they do not.
	Machine string
	// uids are the UIDs of the custom resources by kind.
	uids map[string]string
}

// Owner returns the ownerReference to a custom resource.
func (s foreignSettings) Owner(kind, name string) string {
	return fmt.Sprintf("{apiVersion: slinky.slurm.net/v1beta1, kind: %s, name: %s, uid: %s, controller: true, "+
		"blockOwnerDeletion: true}", kind, name, s.uids[kind])
}

// foreignResources are the custom resources of the cluster.
var foreignResources = map[string]string{
	"Accounting": "accounting/slurm", "Controller": "controller.slinky.slurm.net/slurm", "RestApi": "restapi/slurm",
	"NodeSet": "nodeset/slurm-worker-slinky",
}

// startForeignCluster starts a cluster as another operator would have made it, while this one does not run. Its jobs
// are confined if it gets a machine for them.
func startForeignCluster(t *testing.T, operator kube.Namespace, version, machine string) (
	*slurmCluster, foreignSettings) {
	t.Helper()
	c := &slurmCluster{
		namespace: kube.NewNamespace(t, "takeover-"+strings.ReplaceAll(version, ".", "-")), operator: operator,
		version: version, password: rand.Text(),
		nodeOf: func(pod string) string { return strings.TrimPrefix(pod, "slurm-worker-") },
	}
	c.scaleOperator(t, 0)
	t.Cleanup(func() {
		_, err := c.operator.Run(context.WithoutCancel(t.Context()), "scale", "deployment/slurm-operator", "--replicas=1")
		if err != nil {
			t.Error(err)
		}
	})
	key := make([]byte, 1024)
	_, _ = rand.Read(key) // never fails
	c.namespace.CreateSecret(t, "mariadb", map[string][]byte{"password": []byte(c.password)})
	c.namespace.CreateSecret(t, "slurm-auth-slurm", map[string][]byte{"slurm.key": key})
	c.namespace.CreateSecret(t, "slurm-auth-jwths256", map[string][]byte{"jwt_hs256.key": bytes.Clone(key[:32])})
	values := foreignSettings{smokeSettings: smokeSettings{Version: version}, Password: c.password,
		Ordinals: []int{0, 1}, Machine: machine, uids: map[string]string{}}
	c.namespace.ApplyTemplates(t, manifests, "cluster/database.yaml", values)
	c.namespace.ApplyTemplates(t, manifests, "takeover/resources.yaml", values)
	for kind, object := range foreignResources {
		values.uids[kind] = c.namespace.MustRun(t, "get", object, "--output=jsonpath={.metadata.uid}")
	}
	c.namespace.ApplyTemplates(t, manifests, "takeover/children.yaml", values)
	c.namespace.Eventually(t, 5*time.Minute, "two idle nodes", func(ctx context.Context) error {
		return c.sinfoShows(ctx, "slinky* idle 2")
	})
	return c, values
}

// identities returns what must not change before the takeover.
func (c *slurmCluster) identities(t *testing.T) string {
	t.Helper()
	return c.namespace.MustRun(t, "get", "configmap/slurm-config", "service/slurm-controller", "service/slurm-restapi",
		"service/slurm-accounting", "secret/slurm-accounting", "pod/slurm-worker-slinky-0", "pod/slurm-worker-slinky-1",
		"pod/slurm-controller-0", "pod/slurm-accounting-0", "statefulset/slurm-controller",
		"statefulset/slurm-accounting", "deployment/slurm-restapi", "--output",
		`jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid} {.metadata.generation} {.metadata.labels} `+
			`{.data}{"\n"}{end}`)
}

func (c *slurmCluster) takesOver(t *testing.T) {
	before := c.identities(t)
	first := c.startJob(t, "--nodelist=slinky-0", "--mem=64M", "--partition=slinky", "--time=UNLIMITED")
	jobs := c.submitJobs(t, "takeover", "slinky")
	away := c.watchSlurmctld(t)

	c.scaleOperator(t, 1)
	c.namespace.Eventually(t, 2*time.Minute, "the refusal to touch the cluster", func(ctx context.Context) error {
		var faults []error
		for _, object := range foreignResources {
			faults = append(faults, conditionIs(ctx, c.namespace, object, "Ready", "False|NotTakenOver|another operator made"))
		}
		return errors.Join(faults...)
	})
	c.isUnchanged(t, before)

	t.Log("a configuration that slurmctld refuses")
	c.setExtraConf(t, "SelectTypo=yes")
	const annotation = "controller.slinky.slurm.net/take-over"
	c.namespace.MustRun(t, "annotate", foreignResources["Controller"], annotation+"=true")
	c.namespace.Eventually(t, 2*time.Minute, "the refusal of the configuration", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, foreignResources["Controller"], "ConfigurationApplied", "False|Refused|")
	})
	c.isUnchanged(t, before)

	t.Log("the takeover, as docs/migrate.md describes it; the operator is killed in the middle")
	c.namespace.MustRun(t, "annotate", foreignResources["Controller"], annotation+"-")
	c.setExtraConf(t, "PartitionName=all Nodes=slinky State=UP")
	killed := make(chan error)
	go func() { killed <- c.killOperatorInTakeOver(t.Context()) }()
	c.shellFor(t, "docs/migrate.md").runSection(t, "Take over")
	if err := <-killed; err != nil {
		t.Error(err)
	}
	becomesReady(t, c.namespace, 4*time.Minute, "controller.slinky.slurm.net/slurm", "restapi/slurm", "accounting/slurm")
	c.keptState(t)
	c.replacesPods(t, first)
	jobs.stop(t)
	jobs.checkAllCompleted(t)
	if out, err := c.login(t.Context(), "srun", "--partition=all", "--nodes=2", "--mem=64M", "hostname"); err != nil {
		t.Errorf("srun printed %q: %v", out, err)
	}
	t.Logf("%s: slurmctld did not answer for %.1f s at most", c.version, away().Seconds())
}

// replacesPods waits until the slurmd pods of the other operator are replaced, that with a long job when it has ended.
func (c *slurmCluster) replacesPods(t *testing.T, long string) {
	t.Helper()
	t.Log("the pod with the long job is not replaced before the job ends")
	c.namespace.Eventually(t, 3*time.Minute, "the replacement of the idle pod", func(ctx context.Context) error {
		return c.hasRevision(ctx, "slurm-worker-slinky-1")
	})
	if err := c.jobIs(t.Context(), long, "JobState=RUNNING", "Restarts=0"); err != nil {
		t.Error(err)
	}
	if err := c.hasRevision(t.Context(), "slurm-worker-slinky-0"); err == nil {
		t.Error("the pod with the long job was replaced")
	}
	c.namespace.MustRun(t, "exec", "slurm-worker-slinky-0", "--container=slurmd", "--", "touch", "/tmp/end-"+long)
	c.namespace.Eventually(t, time.Minute, "the end of the long job", func(ctx context.Context) error {
		return c.jobIs(ctx, long, "JobState=COMPLETED", "Restarts=0")
	})
	c.namespace.Eventually(t, 3*time.Minute, "the replacement of the last pod", func(ctx context.Context) error {
		return c.hasRevision(ctx, "slurm-worker-slinky-0")
	})
	becomesReady(t, c.namespace, 3*time.Minute, "nodeset/slurm-worker-slinky")
}

// goesBack checks that the other operator can run the cluster again, as docs/migrate.md describes it.
func (c *slurmCluster) goesBack(t *testing.T, values foreignSettings) {
	t.Helper()
	running := c.startJob(t, "--nodelist=slinky-0", "--mem=64M", "--partition=slinky", "--time=UNLIMITED")
	jobs := c.submitJobs(t, "back", "slinky")
	c.shellFor(t, "docs/migrate.md").runSection(t, "Go back")
	values.Ordinals = nil // the other operator adopts the slurmd pods
	c.namespace.TakeTemplates(t, naming.ManagedBy, manifests, "takeover/children.yaml", values)
	for _, workload := range []string{"statefulset/slurm-controller", "statefulset/slurm-accounting",
		"deployment/slurm-restapi"} {
		c.namespace.MustRun(t, "rollout", "status", workload, "--timeout=5m")
	}
	if command := c.namespace.MustRun(t, "get", "pod/slurm-controller-0",
		"--output=jsonpath={.spec.containers[*].command}"); command != `["slurmctld","-D"]` {
		t.Errorf("slurmctld's pod has the command %s, which is not that of the other operator", command)
	}
	c.namespace.Eventually(t, 3*time.Minute, "an answer of slurmctld", func(ctx context.Context) error {
		return c.jobIs(ctx, running, "JobState=RUNNING", "Restarts=0")
	})
	c.namespace.MustRun(t, "exec", "slurm-worker-slinky-0", "--container=slurmd", "--", "touch", "/tmp/end-"+running)
	jobs.stop(t)
	jobs.checkAllCompleted(t)
	if err := c.jobIs(t.Context(), running, "JobState=COMPLETED", "Restarts=0"); err != nil {
		t.Error(err)
	}
}

// killOperatorInTakeOver kills the operator when it has deleted the StatefulSet of the other one.
func (c *slurmCluster) killOperatorInTakeOver(ctx context.Context) error {
	for {
		out, err := c.namespace.Run(ctx, "get", "statefulset/slurm-controller", "--ignore-not-found",
			"--output=jsonpath={.spec.volumeClaimTemplates[*].metadata.name}")
		if err == nil && out == "" {
			_, err = c.operator.Run(ctx, "delete", "pods", "--selector=app.kubernetes.io/component=operator", "--force",
				"--grace-period=0")
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// isUnchanged checks that the cluster of the other operator serves its users as before.
func (c *slurmCluster) isUnchanged(t *testing.T, before string) {
	t.Helper()
	if now := c.identities(t); now != before {
		t.Errorf("the operator has changed objects that it has not taken over:\n%s\nbefore:\n%s", now, before)
	}
	if out, err := c.login(t.Context(), "srun", "--partition=slinky", "--mem=64M", "hostname"); err != nil {
		t.Errorf("srun printed %q: %v", out, err)
	}
}

// hasRevision returns an error unless this operator has made a slurmd pod.
func (c *slurmCluster) hasRevision(ctx context.Context, pod string) error {
	out, err := c.namespace.Run(ctx, "get", "pod/"+pod,
		"--output=jsonpath={.metadata.labels.controller-revision-hash} {.status.phase}")
	if revision, phase, _ := strings.Cut(out, " "); err == nil && (revision == "" || phase != "Running") {
		err = fmt.Errorf("pod %s has the revision %q and is %s", pod, revision, phase)
	}
	return err
}

// keptState checks that slurmctld uses the volume and the user of the other operator, and that nothing else is left.
func (c *slurmCluster) keptState(t *testing.T) {
	t.Helper()
	claims := c.namespace.MustRun(t, "get", "pod/slurm-controller-0",
		"--output=jsonpath={.spec.volumes[*].persistentVolumeClaim.claimName}")
	if claims != "statesave-slurm-controller-0" {
		t.Errorf("slurmctld's pod has the PVC %q", claims)
	}
	if user := c.namespace.MustRun(t, "get", foreignResources["Controller"],
		"--output=jsonpath={.status.slurmUser.uid}"); user != "401" {
		t.Errorf("the user of the cluster is %q", user)
	}
	if all := c.namespace.MustRun(t, "get", "pvc", "--output=name"); strings.Contains(all, "controller-state") {
		t.Errorf("there are the PVCs %q", all)
	}
	if files := c.namespace.MustRun(t, "get", "configmap/slurm-config",
		"--output=jsonpath={.data}"); strings.Contains(files, "scrontab.conf") {
		t.Error("a file of the other operator is left in the configuration")
	}
}

// watchSlurmctld queries slurmctld until the returned function is called, which returns for how long it did not answer
// at most.
func (c *slurmCluster) watchSlurmctld(t *testing.T) (longest func() time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var away atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for last := time.Now(); ctx.Err() == nil; {
			query, stop := context.WithTimeout(ctx, 5*time.Second)
			_, err := c.login(query, "squeue", "--noheader")
			stop()
			if err == nil {
				away.Store(max(away.Load(), int64(time.Since(last))))
				last = time.Now()
			}
		}
	}()
	t.Cleanup(cancel)
	return func() time.Duration {
		cancel()
		<-done
		return time.Duration(away.Load())
	}
}
