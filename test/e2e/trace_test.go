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

var idle = flag.Duration("idle", 30*time.Second, "for how long TestTrace watches an idle cluster")

// TestTrace holds that the log and the events of the operator tell what it decides, and that an idle cluster is silent. It writes the log
// and the events of the story to bin/trace-<version>.txt.
func TestTrace(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			setLogLevel(t, operator, "debug")
			story := &story{begun: time.Now().Truncate(time.Second)}
			story.nodeSet = startNodeSet(t, operator, version)
			story.tells(t, "scale-out", story.scalesOut)
			story.tells(t, "scale-in that waits for a job", story.scalesInAfterAJob)
			story.tells(t, "update with a failing canary", story.updateFails)
			story.tells(t, "typo in extraConf", story.refusesATypo)
			story.tells(t, "slurmctld lost and back", story.losesSlurmctld)
			t.Run("every write has a line", func(t *testing.T) { story.everyWriteHasALine(t, own.Plane.AuditLog()) })
			story.write(t)
			t.Run("idle", func(t *testing.T) { story.isSilentWhenIdle(t, own.Plane.AuditLog()) })
		})
	}
}

// setLogLevel changes what the running operator logs.
func setLogLevel(t *testing.T, operator kube.Namespace, level string) {
	t.Helper()
	pod := func() string {
		return operator.MustRun(t, "get", "pods", "--selector=app.kubernetes.io/component=operator", "--output=jsonpath={.items[*].metadata.uid}")
	}
	if operator.MustRun(t, "get", "configmap/slurm-operator-log-levels", "--output=jsonpath={.data.log-level}") == level {
		return
	}
	before := pod()
	changed := time.Now().Truncate(time.Second)
	operator.MustHelm(t, "upgrade", "slurm-operator", "slurm-operator", "--reuse-values", "--set=log.level="+level, "--wait", "--timeout=10m")
	operator.Eventually(t, 3*time.Minute, "log level "+level, func(ctx context.Context) error {
		lines, err := readLog(ctx, operator, changed)
		if err == nil && !slices.ContainsFunc(lines, func(line logLine) bool {
			return line.Message == "changed log level" && strings.EqualFold(line.text("to"), level)
		}) {
			err = fmt.Errorf("the operator has not said so in %d lines", len(lines))
		}
		return err
	})
	if after := pod(); after != before {
		t.Errorf("the operator's pod was %s and is %s", before, after)
	}
}

// A story is what happens to a cluster while its log is read.
type story struct {
	*nodeSet
	begun time.Time
	// chapter is when the present step began: what was logged before proves nothing about it.
	chapter time.Time
}

// tells runs one step of the story.
func (s *story) tells(t *testing.T, name string, step func(*testing.T)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		s.chapter = time.Now()
		step(t)
	})
}

func (s *story) scalesOut(t *testing.T) {
	t.Helper()
	s.scale(t, wanted+1)
	s.logs(t, "created Pod", "name=gpu-4", "slurmNode=gpu-4", "cause=Missing")
	s.records(t, "CreatedPods", "created 1 pod: gpu-4")
	s.isUp(t, wanted+1)
}

func (s *story) scalesInAfterAJob(t *testing.T) {
	t.Helper()
	job := s.startsAJob(t, "--partition=gpu", fmt.Sprintf("--nodes=%d", wanted+1), "--exclusive", "--time=60") // so that no node is idle
	s.scale(t, wanted)
	s.logs(t, "drained Slurm nodes", "nodes=gpu-4", "cause=ScaleIn", "reason=slurm-operator: scale-in")
	s.records(t, "DrainedNodes", "drained 1 Slurm node for scale-in: gpu-4; 1 of them with jobs, the last until ")
	host, err := s.login(t.Context(), "squeue", "--noheader", "--jobs="+job, "--format=%B")
	if err == nil {
		_, err = s.namespace.Exec(t.Context(), "pod/"+strings.TrimSpace(host), "touch", "/tmp/end-"+job)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.logs(t, "deleted Pod", "name=gpu-4", "slurmNode=gpu-4", "cause=ScaleIn")
	s.records(t, "DeletedPods", "deleted 1 pod for scale-in: gpu-4")
	s.logs(t, "deleted Slurm nodes", "nodes=gpu-4", "cause=NoPod")
	s.isUp(t, wanted)
}

func (s *story) updateFails(t *testing.T) {
	t.Helper()
	image := s.namespace.MustRun(t, "get", "nodeset/gpu", "--output=jsonpath={.spec.slurmd.image}")
	s.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "20s", "slurmd": map[string]any{"image": image + "-missing"}})
	s.logs(t, "deleted Pod", "cause=Update")
	s.logs(t, "updated status of NodeSet", "conditions=", "UpdateStopped")
	s.patch(t, "nodeset/gpu", map[string]any{"registrationTimeout": "5m", "slurmd": map[string]any{"image": image}})
	s.isUp(t, wanted)
}

func (s *story) refusesATypo(t *testing.T) {
	t.Helper()
	before := s.extraConf(t)
	s.setExtraConf(t, before+"\nSchedulerTpye=sched/backfill")
	s.logs(t, "created Pod", "cause=ConfigurationChanged", "configuration=")
	s.logs(t, "updated status of Controller", "conditions=", "Refused", "spec.extraConf line 3: SchedulerTpye")
	s.setExtraConf(t, before)
	s.configurationIs(t, "True|Applied")
}

func (s *story) losesSlurmctld(t *testing.T) {
	t.Helper()
	s.signal(t, "pod/slurm-controller-0", "slurmctld", "STOP") // a killed one would be back before the operator notices
	s.logs(t, "updated status of Controller", "SlurmReachable=False")
	s.signal(t, "pod/slurm-controller-0", "slurmctld", "CONT")
	s.logs(t, "updated status of Controller", "SlurmReachable=True")
	s.isUp(t, wanted)
}

// isUp waits until the NodeSet is ready with so many nodes.
func (s *story) isUp(t *testing.T, nodes int) {
	t.Helper()
	becomesReady(t, s.namespace, 3*time.Minute, "nodeset/gpu")
	s.namespace.Eventually(t, time.Minute, "nodes that take jobs", func(ctx context.Context) error {
		return s.sinfoShows(ctx, fmt.Sprintf("gpu idle %d", nodes))
	})
}

// logs waits until the operator has logged a line with a message and these texts about the story's namespace.
func (s *story) logs(t *testing.T, message string, texts ...string) {
	t.Helper()
	s.namespace.Eventually(t, 3*time.Minute, fmt.Sprintf("a line %q with %q", message, texts), func(ctx context.Context) error {
		lines, err := s.lines(ctx)
		if err != nil {
			return err
		}
		for _, line := range lines {
			if text := line.String(); line.Message == message && !line.Time.Before(s.chapter) && !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) }) {
				return nil
			}
		}
		return fmt.Errorf("there is none among %d lines", len(lines))
	})
}

// records waits until the operator has recorded an event of the NodeSet.
func (s *story) records(t *testing.T, reason, note string) {
	t.Helper()
	s.namespace.Eventually(t, 2*time.Minute, fmt.Sprintf("an event %s %q", reason, note), func(ctx context.Context) error {
		out, err := s.events(ctx)
		if err == nil && !strings.Contains(out, reason+" "+note) {
			err = fmt.Errorf("the events are\n%s", out)
		}
		return err
	})
}

// events are those of the operator's own resources, oldest first.
func (s *story) events(ctx context.Context) (string, error) {
	return s.namespace.Run(ctx, "get", "events.events.k8s.io", "--sort-by=.metadata.creationTimestamp",
		`--output=jsonpath={range .items[?(@.reportingController=="slurm-operator")]}{.metadata.creationTimestamp} {.type} {.regarding.kind}/{.regarding.name} {.reason} {.note}{"\n"}{end}`)
}

// lines are what the operator has logged about the story's namespace.
func (s *story) lines(ctx context.Context) ([]logLine, error) {
	lines, err := readLog(ctx, s.operator, s.begun)
	return slices.DeleteFunc(lines, func(line logLine) bool { return line.namespace() != s.namespace.Name }), err
}

// everyWriteHasALine compares the API server's audit log with the operator's log: as many successful writes to an object as lines about it.
func (s *story) everyWriteHasALine(t *testing.T, log string) {
	t.Helper()
	writes, err := audit.ReadFile(log, s.begun, func(request audit.Request) bool {
		return request.User == operatorUser && request.Namespace == s.namespace.Name && request.IsWrite() && request.Code < 300
	})
	if err != nil || len(writes) == 0 {
		t.Fatalf("%d writes: %v", len(writes), err)
	}
	last := writes[len(writes)-1].At
	wrote := map[string]int{}
	for _, write := range writes {
		wrote[written(t, write.Resource)+" "+write.Name]++
	}
	s.namespace.Eventually(t, time.Minute, "the log to catch up", func(ctx context.Context) error {
		lines, err := s.lines(ctx)
		if err != nil {
			return err
		}
		told := map[string]int{}
		for _, line := range lines {
			if about := line.about(); about != "" && !line.Time.After(last.Add(time.Second)) {
				told[about+" "+line.text("name")]++
			}
		}
		var silent []string
		for _, object := range slices.Sorted(maps.Keys(wrote)) {
			if told[object] < wrote[object] {
				silent = append(silent, fmt.Sprintf("%s: %d writes, %d lines", object, wrote[object], told[object]))
			}
		}
		if len(silent) > 0 {
			return fmt.Errorf("writes without a line:\n%s", strings.Join(silent, "\n"))
		}
		return nil
	})
	t.Logf("%s: %d writes to %d objects, each with a line", s.version, len(writes), len(wrote))
}

// writtenKinds are those that the operator writes, by their resources.
var writtenKinds = map[string]string{
	"pods": "Pod", "services": "Service", "configmaps": "ConfigMap", "secrets": "Secret", "serviceaccounts": "ServiceAccount",
	"persistentvolumeclaims": "PersistentVolumeClaim", "statefulsets": "StatefulSet", "deployments": "Deployment",
	"controllerrevisions": "ControllerRevision", "poddisruptionbudgets": "PodDisruptionBudget", "nodesets": "NodeSet",
	"controllers": "Controller", "loginsets": "LoginSet", "accountings": "Accounting", "restapis": "RestApi", "tokens": "Token",
}

// written is a resource as a line of the log calls it.
func written(t *testing.T, resource string) string {
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

// isSilentWhenIdle holds that an idle cluster makes the operator log, record and write nothing. A token is renewed: it goes first.
func (s *story) isSilentWhenIdle(t *testing.T, log string) {
	t.Helper()
	s.namespace.MustRun(t, "delete", "token/root", "--wait")
	s.isUp(t, wanted)
	setLogLevel(t, s.operator, "info")
	// What is batched in events is told after a minute.
	const settle = 75 * time.Second
	pause := time.NewTimer(settle)
	<-pause.C
	begun := time.Now().Truncate(time.Second).Add(time.Second)
	events, err := s.events(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pause.Reset(*idle)
	<-pause.C
	lines, err := readLog(t.Context(), s.operator, begun)
	if err != nil || len(lines) > 0 {
		t.Errorf("%d lines in %s: %v %v", len(lines), *idle, lines, err)
	}
	if now, err := s.events(t.Context()); err != nil || now != events {
		t.Errorf("the events were\n%s\nand are\n%s\n%v", events, now, err)
	}
	writes, err := audit.ReadFile(log, begun, func(request audit.Request) bool { return request.User == operatorUser && request.IsWrite() })
	if err != nil || len(writes) > 0 {
		t.Errorf("%d writes in %s: %v %v", len(writes), *idle, writes, err)
	}
	t.Logf("%s: idle for %s: %d log lines, %d writes", s.version, *idle, len(lines), len(writes))
}

// write keeps the log at level info and the events, for people.
func (s *story) write(t *testing.T) {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	lines, err := s.lines(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	events, err := s.events(t.Context())
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
	if err := os.WriteFile(filepath.Join(root, "bin", "trace-"+s.version+".txt"), []byte(page.String()), 0o644); err != nil {
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

// readLog reads what the operator has logged since a time.
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

// text is a value of a line.
func (l logLine) text(key string) string {
	value, known := l.values[key]
	if !known {
		return ""
	}
	return fmt.Sprint(value)
}

// namespace is that of the object that was reconciled.
func (l logLine) namespace() string {
	for _, kind := range writtenKinds {
		if namespace, _, found := strings.Cut(l.text(kind), "/"); found {
			return namespace
		}
	}
	return ""
}

// about is the kind that a line is about, with its subresource; empty when it is about none.
func (l logLine) about() string {
	_, what, _ := strings.Cut(l.Message, " ")
	kind := strings.TrimPrefix(what, "status of ")
	if !slices.Contains(slices.Collect(maps.Values(writtenKinds)), kind) {
		return ""
	}
	return what
}

// String is a line without its time and level.
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
