//go:build e2e

package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestPluginDoctor breaks a cluster in many ways. doctor must find each, and the command that it prints must repair it.
func TestPluginDoctor(t *testing.T) {
	installPlugin(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			cluster := pluginCluster{startNodeSet(t, operator, version)}
			t.Run("a healthy cluster has no errors", cluster.hasNoErrors)
			for _, each := range slices.Concat(cluster.breakages(), cluster.objectBreakages(), cluster.clusterBreakages()) {
				t.Run(each.name, func(t *testing.T) { cluster.isFoundAndRepaired(t, &each) })
			}
			t.Run("config", cluster.explainsConfiguration)
			t.Run("plan", cluster.forecasts)
			t.Run("logs and events", cluster.showsLogsAndEvents)
			t.Run("upgrade plan", cluster.plansUpgrade)
			t.Run("a report has no secrets", cluster.reportsNoSecrets)
		})
	}
}

// A breakage is something that is wrong, and how to repair it.
type breakage struct {
	name    string
	provoke func(*testing.T)
	// check and object are those of the finding.
	check, object string
	// repair undoes it if the printed command only shows more; otherwise the test runs that command.
	repair func(*testing.T)
	// cleanUp removes what is left after the repair; nil if nothing is.
	cleanUp func(*testing.T)
}

// A finding is one that doctor prints.
type finding struct {
	Severity, Check, Object, Namespace, Problem, Effect, Advice, Fix, Docs string
}

// findings runs doctor. Its exit code is not 0 if it finds something.
func (c pluginCluster) findings(ctx context.Context) ([]finding, error) {
	out, err := c.run(ctx, "", "doctor", "--output=json")
	var result struct{ Findings []finding }
	if json.Unmarshal([]byte(out), &result) != nil {
		return nil, fmt.Errorf("doctor printed no result: %w", err)
	}
	return result.Findings, nil
}

func (c pluginCluster) hasNoErrors(t *testing.T) {
	c.namespace.Eventually(t, time.Minute, "a healthy cluster", func(ctx context.Context) error {
		found, err := c.findings(ctx)
		for _, each := range found {
			if each.Severity == "Error" {
				err = errors.Join(err, fmt.Errorf("%+v", each))
			}
		}
		return err
	})
}

// find waits until doctor has a finding.
func (c pluginCluster) find(t *testing.T, check, object string) finding {
	t.Helper()
	var found finding
	c.namespace.Eventually(t, 5*time.Minute, check+" of "+object, func(ctx context.Context) error {
		all, err := c.findings(ctx)
		for _, each := range all {
			if each.Check == check && strings.HasPrefix(each.Object, object) {
				found = each
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("doctor finds only %+v", all))
	})
	return found
}

// isFoundAndRepaired breaks something, and repairs it with what doctor prints.
func (c pluginCluster) isFoundAndRepaired(t *testing.T, each *breakage) {
	t.Helper()
	each.provoke(t)
	if each.cleanUp != nil {
		defer each.cleanUp(t)
	}
	found := c.find(t, each.check, each.object)
	if found.Problem == "" || found.Effect == "" || found.Docs == "" || found.Fix == "" {
		t.Errorf("incomplete: %+v", found)
	}
	if each.repair != nil {
		each.repair(t)
	} else {
		t.Logf("%s: %s", found.Problem, found.Fix)
		if out, err := exec.CommandContext(t.Context(), "sh", "-c", found.Fix).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", found.Fix, err, out)
		}
	}
	c.namespace.Eventually(t, 5*time.Minute, each.check+" repaired", func(ctx context.Context) error {
		all, err := c.findings(ctx)
		for _, other := range all {
			if other.Check == each.check && strings.HasPrefix(other.Object, each.object) {
				err = errors.Join(err, fmt.Errorf("%+v", other))
			}
		}
		return err
	})
}

// extraNodeSet returns a manifest of another NodeSet, which runs no jobs.
func extraNodeSet(name, spec string) []byte {
	return fmt.Appendf(nil, `{apiVersion: slinky.slurm.net/v1beta1, kind: NodeSet, metadata: {name: %s, annotations: `+
		`{nodeset.slinky.slurm.net/delete-without-drain: "true"}}, spec: {%s, controllerRef: {name: slurm}, replicas: 1, `+
		`oversubscribeNode: true}}`, name, spec)
}

// breakages returns what is broken, in an order in which nothing is left behind.
func (c pluginCluster) breakages() []breakage {
	kubectl := func(arguments ...string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			c.namespace.MustRun(t, arguments...)
		}
	}
	apply := func(manifest []byte) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			c.namespace.Apply(t, manifest)
		}
	}
	const field = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/reservedMemory"
	crd := "customresourcedefinition/nodesets.slinky.slurm.net"
	return []breakage{
		{
			name: "a typo in extraConf", check: "Refused", object: "Controller/slurm",
			provoke: func(t *testing.T) {
				t.Helper()
				c.setExtraConf(t, strings.TrimRight(c.extraConf(t), "\n")+"\nSchedulerTpye=sched/backfill\n")
			},
		},
		{
			name: "the webhook is down", check: "WebhookDown", object: "ValidatingWebhookConfiguration/",
			provoke: func(t *testing.T) {
				t.Helper()
				c.operator.MustRun(t, "scale", "deployment/slurm-operator-webhook", "--replicas=0")
			},
		},
		{
			name: "the operator is down", check: "OperatorDown", object: "Deployment/slurm-operator",
			provoke: func(t *testing.T) {
				t.Helper()
				c.operator.MustRun(t, "scale", "deployment/slurm-operator", "--replicas=0")
			},
		},
		{
			name: "an image that does not exist", check: "ImagePull", object: "Pod/broken-",
			provoke: apply(extraNodeSet("broken", "slurmd: {image: slurm-operator/slurmd:no-such-tag}")),
			// No image has ever run here, so doctor proposes to edit the NodeSet, which needs a terminal.
			repair: kubectl("delete", "nodeset/broken", "--timeout=5m"),
		},
		{
			name: "a pod that fits no Kubernetes node", check: "Unscheduled", object: "Pod/nowhere-",
			provoke: apply(extraNodeSet("nowhere", "template: {spec: {nodeSelector: {no-such: label}}}")),
			repair:  kubectl("delete", "nodeset/nowhere", "--timeout=5m"),
		},
		{
			name: "a StorageClass that does not exist", check: "PVCPending", object: "PersistentVolumeClaim/",
			provoke: apply(extraNodeSet("stored", "volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: "+
				"no-such-class, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]")),
			repair: func(t *testing.T) {
				t.Helper()
				kubectl("delete", "nodeset/stored", "--timeout=5m")(t)
				kubectl("delete", "persistentvolumeclaims", "--selector=app.kubernetes.io/instance=stored")(t)
			},
		},
		{
			name: "no protection from evictions", check: "EvictionAllowed", object: "NodeSet/gpu",
			provoke: kubectl("patch", "nodeset/gpu", "--type=merge",
				`--patch={"spec":{"workloadDisruptionProtection":false}}`),
		},
		{
			name: "a budget of others", check: "ForeignBudget", object: "PodDisruptionBudget/everything",
			provoke: apply([]byte("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: everything}, " +
				"spec: {maxUnavailable: 1, selector: {}}}")),
		},
		{
			name: "a drain by an administrator", check: "NodesDrained", object: "Controller/slurm",
			provoke: func(t *testing.T) {
				t.Helper()
				c.scontrol(t, "update", "nodename=gpu-1", "state=drain", "reason=broken fan")
			},
		},
		{
			name: "a quota without room", check: "Quota", object: "ResourceQuota/full",
			provoke: func(t *testing.T) {
				t.Helper()
				apply([]byte("{apiVersion: v1, kind: ResourceQuota, metadata: {name: full}, spec: {hard: {pods: 1}}}"))(t)
				c.namespace.MustRun(t, "scale", "nodeset/gpu", "--replicas=5")
			},
			repair: func(t *testing.T) {
				t.Helper()
				c.namespace.MustRun(t, "scale", "nodeset/gpu", "--replicas=4")
				c.namespace.MustRun(t, "delete", "resourcequota/full")
			},
		},
		{
			name: "a pod of others with a slurmd pod's name", check: "NameTaken", object: "Pod/taken-0",
			provoke: func(t *testing.T) {
				t.Helper()
				apply([]byte("{apiVersion: v1, kind: Pod, metadata: {name: taken-0}, spec: {containers: [{name: x, " +
					"image: slurm-operator/no-such-image}]}}"))(t)
				apply(extraNodeSet("taken", "minReadySeconds: 0"))(t)
			},
			cleanUp: kubectl("delete", "nodeset/taken", "--timeout=5m"),
		},
		{
			name: "an old CRD", check: "OldCRD", object: "CustomResourceDefinition/nodesets.",
			provoke: kubectl("patch", crd, "--type=json", `--patch=[{"op":"remove","path":"`+field+`"}]`),
			repair: kubectl("patch", crd, "--type=json", `--patch=[{"op":"add","path":"`+field+`","value":`+
				`{"anyOf":[{"type":"integer"},{"type":"string"}],"x-kubernetes-int-or-string":true}}]`),
		},
	}
}

func (c pluginCluster) explainsConfiguration(t *testing.T) {
	c.waitUntilAllIdle(t)
	c.namespace.Eventually(t, 2*time.Minute, "the applied configuration", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "controller.slinky.slurm.net/slurm", "ConfigurationApplied", "True|Applied")
	})
	c.shows(t, []string{"config"}, "ClusterName=", "# the operator: it is set from the Controller",
		"PartitionName=gpu Nodes=gpu", "# NodeSet gpu, spec.partition")
	c.shows(t, []string{"config", "diff"}, "the same", "Next        none")
	changed := filepath.Join(t.TempDir(), "changed.yaml")
	check := func(partition string) {
		manifest := extraNodeSet("checked", "partition: {enabled: true, config: "+partition+"}")
		if err := os.WriteFile(changed, manifest, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("MaxTime=60")
	c.shows(t, []string{"config", "check", "--filename=" + changed}, "+ PartitionName=checked Nodes=checked MaxTime=60",
		"the API server and its webhooks, with a dry run")
	check("Nodes=ALL")
	c.fails(t, "Nodes is the NodeSet's own name", "config", "check", "--filename="+changed)
	if out, err := c.namespace.Run(t.Context(), "get", "nodeset/checked"); err == nil {
		t.Errorf("the check has created it: %s", out)
	}
	check("MaxTime=60")
	c.shows(t, []string{"config", "check", "--filename=" + changed, "--slurmctld"}, "slurmctld "+c.version,
		"accepts it, in a validation run")
	typo := fmt.Sprintf("{apiVersion: slinky.slurm.net/v1beta1, kind: Controller, metadata: {name: slurm}, spec: "+
		"{extraConf: %q}}", strings.TrimRight(c.extraConf(t), "\n")+"\nSchedulerTpye=sched/backfill\n")
	if err := os.WriteFile(changed, []byte(typo), 0o600); err != nil {
		t.Fatal(err)
	}
	c.fails(t, "refuses it: ", "config", "check", "--filename="+changed, "--slurmctld")
	c.namespace.Eventually(t, 2*time.Minute, "nothing left of validation runs", func(ctx context.Context) error {
		left, err := c.namespace.Run(ctx, "get", "pods,configmaps", "--selector=app.kubernetes.io/name=kubectl-slurm-check",
			"--output=name")
		if err == nil && left != "" {
			err = errors.New(left)
		}
		return err
	})
	c.shows(t, []string{"config", "diff"}, "the same", "Next        none")
}

func (c pluginCluster) forecasts(t *testing.T) {
	job := c.startJob(t, "--nodes=4", "--exclusive", "--time=30")
	c.shows(t, []string{"plan", "--nodeset=gpu"}, "NodeSet gpu: 4 desired", "nothing to do")
	manifest := c.namespace.MustRun(t, "get", "nodeset/gpu", "--output=json")
	var object map[string]any
	if err := json.Unmarshal([]byte(manifest), &object); err != nil {
		t.Fatal(err)
	}
	delete(object, "status")
	object["metadata"] = map[string]any{"name": "gpu"}
	object["spec"].(map[string]any)["replicas"] = 2
	changed, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.run(t.Context(), string(changed), "plan", "--filename=-")
	for _, want := range []string{"as changed: 2 desired", "drain gpu-[", "runs job " + job + " until"} {
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("the plan does not show %q: %v\n%s", want, err, out)
		}
	}
	if err := c.jobIs(t.Context(), job, "JobState=RUNNING"); err != nil {
		t.Error(err)
	}
	c.finishJob(t, job)
	c.waitUntilAllIdle(t)
}

func (c pluginCluster) showsLogsAndEvents(t *testing.T) {
	job := c.startJob(t, "--nodelist=gpu-2", "--time=30")
	c.finishJob(t, job)
	c.waitUntilAllIdle(t)
	c.shows(t, []string{"logs", "--job=" + job}, "slurm-controller-0/slurmctld", "JobId="+job)
	c.shows(t, []string{"logs", "--node=gpu-2", "--tail=50"}, "  gpu-2  ")
	c.shows(t, []string{"events"}, "NodeSet/gpu")
}

func (c pluginCluster) plansUpgrade(t *testing.T) {
	if c.version != "26.05" {
		c.shows(t, []string{"upgrade", "plan", "--to=26.05"}, "From Slurm "+c.version, "slurmdbd: Accounting slurm",
			"slurmctld: Controller slurm", "slurmd: NodeSet gpu", ":26.05")
	}
	c.fails(t, "is not known", "upgrade", "plan", "--to=99.99")
}

// reportsNoSecrets searches a report for the values of all Secrets of the cluster.
func (c pluginCluster) reportsNoSecrets(t *testing.T) {
	files := c.report(t)
	for _, want := range []string{
		"doctor.json", "slurm/config.txt", "slurm/sdiag.txt", "configmaps/", "logs/", "objects/pods/",
	} {
		found := false
		for name := range files {
			found = found || strings.Contains(name, want)
		}
		if !found {
			t.Errorf("the report has no %s", want)
		}
	}
	var secrets struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string][]byte
		}
	}
	listed := c.namespace.MustRun(t, "get", "secrets", "--output=json")
	if err := json.Unmarshal([]byte(listed), &secrets); err != nil || len(secrets.Items) == 0 {
		t.Fatalf("%d Secrets: %v", len(secrets.Items), err)
	}
	for _, secret := range secrets.Items {
		for key, value := range secret.Data {
			for _, form := range []string{string(value), base64.StdEncoding.EncodeToString(value)} {
				for name, content := range files {
					if len(value) >= 8 && strings.Contains(content, form) {
						t.Errorf("%s has the value of %s in the Secret %s", name, key, secret.Metadata.Name)
					}
				}
			}
		}
	}
}

// report returns the files of a report.
func (c pluginCluster) report(t *testing.T) map[string]string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.tar.gz")
	c.shows(t, []string{"report", "--file=" + file}, file+" has ")
	return unpackReport(t, file)
}

func unpackReport(t *testing.T, file string) map[string]string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	compressed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(compressed); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(text)
	}
}
