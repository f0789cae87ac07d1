package doctor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// expected are the reasons that are no problem, however long they last: what is waited for is a job, or a user.
var expected = map[string]bool{
	slinkyv1beta1.ReasonAsExpected: true, slinkyv1beta1.ReasonServing: true, slinkyv1beta1.ReasonDeleting: true,
	slinkyv1beta1.ReasonExternal: true, slinkyv1beta1.ReasonConnected: true, slinkyv1beta1.ReasonApplied: true,
	slinkyv1beta1.ReasonScalingIn: true, slinkyv1beta1.ReasonDraining: true, slinkyv1beta1.ReasonNoExcess: true,
	slinkyv1beta1.ReasonUpdating: true, slinkyv1beta1.ReasonUpdateScheduled: true,
	slinkyv1beta1.ReasonUpToDate: true, slinkyv1beta1.ReasonIssued: true,
}

// runbook returns the page about a reason.
func runbook(reason string) string { return "docs/runbooks/" + reason + ".md" }

// conditions returns a finding for each reason of a condition that has a remedy, once for each object.
func conditions(s *Snapshot) []Finding {
	var findings []Finding
	for _, object := range s.reported() {
		seen := map[string]bool{}
		for i := range object.conditions {
			condition := &object.conditions[i]
			remedy, known := remedyOf(condition)
			// Degraded, Progressing and Available repeat what Ready says.
			repeated := condition.Type == slinkyv1beta1.ConditionDegraded ||
				condition.Type == slinkyv1beta1.ConditionProgressing || condition.Type == slinkyv1beta1.ConditionAvailable
			if !known || repeated || seen[condition.Reason] || !isBad(condition) ||
				s.Now.Sub(condition.LastTransitionTime.Time) < remedy.after {
				continue
			}
			seen[condition.Reason] = true
			finding := object.finding(remedy.severity, condition.Reason, condition.Message)
			finding.Effect, finding.Advice, finding.Fix = remedy.effect, remedy.advice, object.fill(remedy.fix)
			if remedy.after > 0 {
				finding.Problem = fmt.Sprintf("for %s: %s", s.age(condition.LastTransitionTime.Time), finding.Problem)
			}
			if fix := withoutLine(object.extraConf, condition.Message); fix != "" {
				finding.Advice = "correct the line in the message; until then this removes it"
				finding.Fix = kubectl(object.namespace, "patch", "controller", object.name, "--type=merge", "--patch="+fix)
			}
			findings = append(findings, finding)
		}
	}
	return findings
}

// remedyOf returns what to do about the reason of a condition.
func remedyOf(condition *metav1.Condition) (remedy, bool) {
	known, found := remedies[condition.Reason]
	if condition.Type == slinkyv1beta1.ConditionTopologyApplied &&
		condition.Reason == slinkyv1beta1.ReasonUnsupportedVersion {
		known = remedies[slinkyv1beta1.ReasonTopologyRefused]
		known.advice = "use Slurm 25.05 or later, or describe the topology in topology.conf"
	}
	return known, found
}

// isBad reports whether a condition says that something is wrong.
func isBad(condition *metav1.Condition) bool {
	if condition.Type == slinkyv1beta1.ConditionCapacityUnavailable {
		return condition.Status == metav1.ConditionTrue
	}
	return condition.Status != metav1.ConditionTrue
}

// refusedLine matches how the operator names a line of spec.extraConf.
var refusedLine = regexp.MustCompile(`spec\.extraConf line (\d+): `)

// longest is the size of an extraConf that still fits into a command.
const longest = 2000

// withoutLine returns the quoted patch that removes a refused line from extraConf; empty if there is none, or if it is
// continued on the next line.
func withoutLine(extraConf, message string) string {
	match := refusedLine.FindStringSubmatch(message)
	if match == nil || len(extraConf) > longest || strings.Contains(extraConf, "'") {
		return ""
	}
	number, _ := strconv.Atoi(match[1]) // digits
	lines := strings.Split(extraConf, "\n")
	if number < 1 || number > len(lines) || strings.HasSuffix(strings.TrimSpace(lines[number-1]), `\`) {
		return ""
	}
	rest := strings.Join(append(lines[:number-1:number-1], lines[number:]...), "\n")
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"extraConf": rest}})
	if err != nil {
		return ""
	}
	return "'" + string(patch) + "'"
}
