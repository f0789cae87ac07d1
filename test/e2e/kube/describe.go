package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Limits of what Describe logs of one kind, in lines.
const maxObjects, maxEvents, maxLog = 60, 40, 30

// conditions is a template that prints the conditions of custom resources, never their specs.
const conditions = `go-template={{range .items}}{{.kind}} {{.metadata.name}}, generation {{.metadata.generation}}:
{{range .status.conditions}}  {{.type}}={{.status}} {{.reason}} (generation {{.observedGeneration}}, since {{` +
	`.lastTransitionTime}}): {{.message}}
{{end}}{{end}}`

// Describe logs the objects, conditions, events and logs that are most useful after a failure, with what the operator
// has logged last about the namespace.
func (n Namespace) Describe(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	defer cancel()
	t.Logf("namespace %s at %s", n.Name, time.Now().UTC().Format(time.RFC3339))
	for _, part := range []struct {
		most      int
		arguments []string
	}{
		{maxObjects, []string{"get", "slurm"}},
		{maxObjects, []string{"get", "slurm", "--output=" + conditions}},
		{maxObjects, []string{"get", "pods", "--output=wide"}},
		{maxEvents, []string{"get", "events", "--sort-by=.lastTimestamp"}},
		{maxObjects, []string{"logs", "--selector=app", "--all-containers", "--prefix", "--tail=20", "--ignore-errors"}},
		{maxObjects, []string{
			"logs", "--selector=app.kubernetes.io/name", "--all-containers", "--prefix", "--tail=20", "--ignore-errors",
		}},
	} {
		out, err := n.Run(ctx, part.arguments...)
		command, _, _ := strings.Cut(strings.Join(part.arguments, " "), "={{")
		t.Logf("kubectl %s:\n%s", command, last(out, part.most))
		if err != nil {
			t.Log(err)
		}
	}
	out, err := n.operatorLog(ctx)
	t.Logf("the operator's log about namespace %s:\n%s", n.Name, last(out, maxLog))
	if err != nil {
		t.Log(err)
	}
}

// operatorLog returns the lines about a namespace in the logs of all operators of the Kubernetes cluster.
func (n Namespace) operatorLog(ctx context.Context) (string, error) {
	pods, err := n.Run(ctx, "get", "pods", "--all-namespaces", "--selector=app.kubernetes.io/name=slurm-operator",
		"--output=jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name}{\"\\n\"}{end}")
	if err != nil {
		return "", err
	}
	var lines []string
	for pod := range strings.Lines(pods) {
		namespace, name, _ := strings.Cut(strings.TrimSpace(pod), " ")
		log, err := Namespace{namespace}.Run(ctx, "logs", name, "--tail=5000")
		if err != nil {
			return strings.Join(lines, ""), err
		}
		for line := range strings.Lines(log) {
			if strings.Contains(line, `"`+n.Name+"/") || strings.Contains(line, "="+n.Name+"/") {
				lines = append(lines, name+": "+line)
			}
		}
	}
	return strings.Join(lines, ""), nil
}

// last returns the last lines of a text.
func last(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines) <= most {
		return text
	}
	return fmt.Sprintf("(the last %d of %d lines)\n%s", most, len(lines), strings.Join(lines[len(lines)-most:], "\n"))
}
