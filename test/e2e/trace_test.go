//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/cluster/audit"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

var idle = flag.Duration("idle", 30*time.Second, "how long TestTrace watches an idle cluster")

// TestTrace checks that the operator's log and events report its decisions, and that an idle cluster produces neither.
// It writes the log and the events to bin/trace-<version>.txt.
func TestTrace(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			setLogLevel(t, operator, "debug")
			run := &traceRun{started: time.Now().Truncate(time.Second)}
			run.nodeSet = startNodeSet(t, operator, version)
			run.step(t, "scale-out", run.scalesOut)
			run.step(t, "scale-in that waits for a job", run.scalesInAfterJob)
			run.step(t, "update with a failing canary", run.updateFails)
			run.step(t, "typo in extraConf", run.reportsTypo)
			run.step(t, "slurmctld lost and back", run.losesSlurmctld)
			t.Run("every write is logged", func(t *testing.T) { run.checkEveryWriteIsLogged(t, own.Plane.AuditLog()) })
			run.write(t)
			t.Run("idle", func(t *testing.T) { run.checkIdleSilence(t, own.Plane.AuditLog()) })
		})
	}
}

// setLogLevel changes the log level of the running operator.
func setLogLevel(t *testing.T, operator kube.Namespace, level string) {
	t.Helper()
	pod := func() string {
		return operator.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/component=operator",
			"--output=jsonpath={.items[*].metadata.uid}")
	}
	if operator.MustRun(t, "get", "configmap/slurm-operator-log-levels",
		"--output=jsonpath={.data.log-level}") == level {
		return
	}
	before := pod()
	changed := time.Now().Truncate(time.Second)
	operator.MustHelm(t, "upgrade", "slurm-operator", "slurm-operator", "--reuse-values", "--set=log.level="+level,
		"--wait", "--timeout=10m")
	operator.Eventually(t, 3*time.Minute, "log level "+level, func(ctx context.Context) error {
		lines, err := readLog(ctx, operator, changed)
		if err == nil && !slices.ContainsFunc(lines, func(line logLine) bool {
			return line.Message == "changed log level" && strings.EqualFold(line.text("to"), level)
		}) {
			err = fmt.Errorf("the operator has not logged the change in %d lines", len(lines))
		}
		return err
	})
	if after := pod(); after != before {
		t.Errorf("the operator's pod was %s and is %s", before, after)
	}
}

// A traceRun is a cluster whose log and events are checked step by step.
type traceRun struct {
	*nodeSet
	started time.Time
	// stepStarted is when the current step started: earlier log lines prove nothing about it.
	stepStarted time.Time
}

// step runs a step as a subtest.
func (r *traceRun) step(t *testing.T, name string, step func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		r.stepStarted = time.Now()
		step(t)
	})
}

func (r *traceRun) scalesOut(t *testing.T) {
	t.Helper()
	r.scale(t, defaultNodes+1)
	r.logs(t, "created Pod", "name=gpu-4", "slurmNode=gpu-4", "cause=Missing")
	r.records(t, "CreatedPods", "created 1 pod: gpu-4")
	r.isUp(t, defaultNodes+1)
}

func (r *traceRun) scalesInAfterJob(t *testing.T) {
	t.Helper()
	// so that no node is idle
	job := r.startJob(t, "--partition=gpu", fmt.Sprintf("--nodes=%d", defaultNodes+1), "--exclusive", "--time=60")
	r.scale(t, defaultNodes)
	r.logs(t, "drained Slurm nodes", "nodes=gpu-4", "cause=ScaleIn", "reason=slurm-operator: scale-in")
	r.records(t, "DrainedNodes", "drained 1 Slurm node for scale-in: gpu-4; 1 of them with jobs, the last until ")
	host, err := r.login(t.Context(), "squeue", "--noheader", "--jobs="+job, "--format=%B")
	if err == nil {
		_, err = r.namespace.Exec(t.Context(), "pod/"+strings.TrimSpace(host), "touch", "/tmp/end-"+job)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.logs(t, "deleted Pod", "name=gpu-4", "slurmNode=gpu-4", "cause=ScaleIn")
	r.records(t, "DeletedPods", "deleted 1 pod for scale-in: gpu-4")
	r.logs(t, "deleted Slurm nodes", "nodes=gpu-4", "cause=NoPod")
	r.isUp(t, defaultNodes)
}

func (r *traceRun) updateFails(t *testing.T) {
	t.Helper()
	image := r.namespace.MustRun(t, "get", "nodeset/gpu", "--output=jsonpath={.spec.slurmd.image}")
	r.patch(t, "nodeset/gpu", map[string]any{
		"registrationTimeout": "20s", "slurmd": map[string]any{"image": image + "-missing"},
	})
	r.logs(t, "deleted Pod", "cause=Update")
	r.logs(t, "updated status of NodeSet", "conditions=", "UpdateStopped")
	r.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "5m", "slurmd": map[string]any{"image": image}})
	r.isUp(t, defaultNodes)
}

func (r *traceRun) reportsTypo(t *testing.T) {
	t.Helper()
	before := r.extraConf(t)
	r.setExtraConf(t, before+"\nSchedulerTpye=sched/backfill")
	r.logs(t, "created Pod", "cause=ConfigurationChanged", "configuration=")
	r.logs(t, "updated status of Controller", "conditions=", "Refused", "spec.extraConf line 3: SchedulerTpye")
	r.setExtraConf(t, before)
	r.configurationIs(t, "True|Applied")
}

func (r *traceRun) losesSlurmctld(t *testing.T) {
	t.Helper()
	r.signal(t, "pod/slurm-controller-0", "slurmctld", "STOP") // a killed one would be back before the operator notices
	r.logs(t, "updated status of Controller", "SlurmReachable=False")
	r.signal(t, "pod/slurm-controller-0", "slurmctld", "CONT")
	r.logs(t, "updated status of Controller", "SlurmReachable=True")
	r.isUp(t, defaultNodes)
}

// isUp waits until the NodeSet is ready and all its nodes are idle.
func (r *traceRun) isUp(t *testing.T, nodes int) {
	t.Helper()
	becomesReady(t, r.namespace, 3*time.Minute, "nodeset/gpu")
	r.namespace.Eventually(t, time.Minute, "idle nodes", func(ctx context.Context) error {
		return r.sinfoShows(ctx, fmt.Sprintf("gpu idle %d", nodes))
	})
}

// logs waits until the operator has logged a line with a message and these texts about the cluster's namespace.
func (r *traceRun) logs(t *testing.T, message string, texts ...string) {
	t.Helper()
	r.namespace.Eventually(t, 3*time.Minute, fmt.Sprintf("a line %q with %q", message, texts),
		func(ctx context.Context) error {
			lines, err := r.lines(ctx)
			if err != nil {
				return err
			}
			for _, line := range lines {
				if text := line.String(); line.Message == message && !line.Time.Before(r.stepStarted) &&
					!slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) }) {
					return nil
				}
			}
			return fmt.Errorf("no such line among %d lines", len(lines))
		})
}

// records waits until the operator has recorded an event.
func (r *traceRun) records(t *testing.T, reason, note string) {
	t.Helper()
	r.namespace.Eventually(t, 2*time.Minute, fmt.Sprintf("an event %s %q", reason, note),
		func(ctx context.Context) error {
			out, err := r.events(ctx)
			if err == nil && !strings.Contains(out, reason+" "+note) {
				err = fmt.Errorf("the events are\n%s", out)
			}
			return err
		})
}

// events returns the events that the operator recorded, oldest first.
func (r *traceRun) events(ctx context.Context) (string, error) {
	return r.namespace.Run(ctx, "get", "events.events.k8s.io", "--sort-by=.metadata.creationTimestamp",
		`--output=jsonpath={range .items[?(@.reportingController=="slurm-operator")]}{.metadata.creationTimestamp} {.type} {.regarding.kind}/{.regarding.name} {.reason} {.note}{"\n"}{end}`)
}

// lines returns the operator's log lines about the cluster's namespace.
func (r *traceRun) lines(ctx context.Context) ([]logLine, error) {
	lines, err := readLog(ctx, r.operator, r.started)
	return slices.DeleteFunc(lines, func(line logLine) bool { return line.namespace() != r.namespace.Name }), err
}

// checkEveryWriteIsLogged compares the API server's audit log with the operator's log: every successful write to an
// object needs a log line about it.
func (r *traceRun) checkEveryWriteIsLogged(t *testing.T, log string) {
	t.Helper()
	writes, err := audit.ReadFile(log, r.started, func(request audit.Request) bool {
		return request.User == operatorUser && request.Namespace == r.namespace.Name && request.IsWrite() &&
			request.Code < 300
	})
	if err != nil || len(writes) == 0 {
		t.Fatalf("%d writes: %v", len(writes), err)
	}
	last := writes[len(writes)-1].At
	wrote := map[string]int{}
	for _, write := range writes {
		wrote[loggedKind(t, write.Resource)+" "+write.Name]++
	}
	r.namespace.Eventually(t, time.Minute, "the log to catch up", func(ctx context.Context) error {
		lines, err := r.lines(ctx)
		if err != nil {
			return err
		}
		logged := map[string]int{}
		for _, line := range lines {
			if about := line.about(); about != "" && !line.Time.After(last.Add(time.Second)) {
				logged[about+" "+line.text("name")]++
			}
		}
		var silent []string
		for _, object := range slices.Sorted(maps.Keys(wrote)) {
			if logged[object] < wrote[object] {
				silent = append(silent, fmt.Sprintf("%s: %d writes, %d lines", object, wrote[object], logged[object]))
			}
		}
		if len(silent) > 0 {
			return fmt.Errorf("writes without a log line:\n%s", strings.Join(silent, "\n"))
		}
		return nil
	})
	t.Logf("%s: %d writes to %d objects, all logged", r.version, len(writes), len(wrote))
}

// writtenKinds maps the resources that the operator writes to their kinds.
var writtenKinds = map[string]string{
	"pods": "Pod", "services": "Service", "configmaps": "ConfigMap", "secrets": "Secret",
	"serviceaccounts":        "ServiceAccount",
	"persistentvolumeclaims": "PersistentVolumeClaim", "statefulsets": "StatefulSet", "deployments": "Deployment",
	"controllerrevisions": "ControllerRevision", "poddisruptionbudgets": "PodDisruptionBudget", "nodesets": "NodeSet",
	"controllers": "Controller", "loginsets": "LoginSet", "accountings": "Accounting", "restapis": "RestApi",
	"tokens": "Token",
}

// loggedKind returns the name of a resource in the log.
func loggedKind(t *testing.T, resource string) string {
	t.Helper()
	name, subresource, _ := strings.Cut(resource, "/")
	kind, known := writtenKinds[name]
	if !known {
		t.Fatalf("the operator wrote to %s", resource)
	}
	if subresource != "" {
		return subresource + " of " + kind
	}
	return kind
}

// checkIdleSilence checks that the operator logs, records and writes nothing while the cluster is idle. The token is
// deleted first, because it would be renewed.
func (r *traceRun) checkIdleSilence(t *testing.T, log string) {
	t.Helper()
	r.namespace.MustRun(t, "delete", "token/root", "--wait")
	r.isUp(t, defaultNodes)
	setLogLevel(t, r.operator, "info")
	// Batched events are recorded after a minute.
	const settle = 75 * time.Second
	pause := time.NewTimer(settle)
	<-pause.C
	idleSince := time.Now().Truncate(time.Second).Add(time.Second)
	events, err := r.events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pause.Reset(*idle)
	<-pause.C
	lines, err := readLog(t.Context(), r.operator, idleSince)
	if err != nil || len(lines) > 0 {
		t.Errorf("%d lines in %s: %v %v", len(lines), *idle, lines, err)
	}
	if now, err := r.events(t.Context()); err != nil || now != events {
		t.Errorf("the events were\n%s\nand are\n%s\n%v", events, now, err)
	}
	writes, err := audit.ReadFile(log, idleSince,
		func(request audit.Request) bool { return request.User == operatorUser && request.IsWrite() })
	if err != nil || len(writes) > 0 {
		t.Errorf("%d writes in %s: %v %v", len(writes), *idle, writes, err)
	}
	t.Logf("%s: idle for %s: %d log lines, %d writes", r.version, *idle, len(lines), len(writes))
}

// write writes the log at level info and the events to a file in bin.
func (r *traceRun) write(t *testing.T) {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := r.lines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events, err := r.events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	for _, line := range lines {
		if line.Level != "DEBUG" {
			fmt.Fprintf(&page, "%s %s %s\n", line.Time.Format(time.TimeOnly), line.Level, line)
		}
	}
	fmt.Fprintf(&page, "\nEvents:\n%s", events)
	if err := os.WriteFile(filepath.Join(root, "bin", "trace-"+r.version+".txt"), []byte(page.String()),
		0o644); err != nil {
		t.Fatal(err)
	}
}

// A logLine is a line of the operator's log.
type logLine struct {
	Time    time.Time `json:"time"`
	Level   string    `json:"level"`
	Message string    `json:"msg"`
	values  map[string]any
}

// readLog reads the operator's log since a time.
func readLog(ctx context.Context, operator kube.Namespace, since time.Time) ([]logLine, error) {
	out, err := operator.Run(ctx, "logs", "deployment/slurm-operator", "--since-time="+since.UTC().Format(time.RFC3339))
	if err != nil {
		return nil, err
	}
	var lines []logLine
	for text := range bytes.Lines([]byte(out)) {
		line := logLine{}
		if err := json.Unmarshal(text, &line); err != nil {
			return nil, fmt.Errorf("the operator logged %q: %w", text, err)
		}
		if err := json.Unmarshal(text, &line.values); err != nil {
			return nil, err
		}
		if !line.Time.Before(since) {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// text returns a value of a line.
func (l logLine) text(key string) string {
	value, known := l.values[key]
	if !known {
		return ""
	}
	return fmt.Sprint(value)
}

// namespace returns the namespace of the reconciled object.
func (l logLine) namespace() string {
	for _, kind := range writtenKinds {
		if namespace, _, found := strings.Cut(l.text(kind), "/"); found {
			return namespace
		}
	}
	return ""
}

// about returns the kind, with its subresource, of the object that a line is about, or "" if it is about none.
func (l logLine) about() string {
	_, what, _ := strings.Cut(l.Message, " ")
	kind := strings.TrimPrefix(what, "status of ")
	if !slices.Contains(slices.Collect(maps.Values(writtenKinds)), kind) {
		return ""
	}
	return what
}

// String returns a line without its time and level.
func (l logLine) String() string {
	var text strings.Builder
	text.WriteString(l.Message)
	for _, key := range slices.Sorted(maps.Keys(l.values)) {
		if !slices.Contains([]string{"time", "level", "msg", "reconcileID", "controller"}, key) {
			fmt.Fprintf(&text, " %s=%v", key, l.values[key])
		}
	}
	return text.String()
}
