package why

import (
	"os"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// TestEveryReasonIsExplained covers every reason that Slurm 24.11 and 26.05 have.
func TestEveryReasonIsExplained(t *testing.T) {
	content, err := os.ReadFile("testdata/reasons.txt")
	if err != nil {
		t.Fatal(err)
	}
	for reason := range strings.FieldsSeq(string(content)) {
		explanation, known := explain(reason)
		if !known || explanation.Meaning == "" || explanation.Starts == "" {
			t.Errorf("%s is not explained: %+v", reason, explanation)
		}
		if _, limits := explainLimit(reason); limits && explanations[reason].Meaning != "" {
			t.Errorf("%s is explained twice", reason)
		}
	}
}

func TestExplain(t *testing.T) {
	for reason, want := range map[string]string{
		"QOSMaxJobsPerUserLimit":                    "the limit per user of the QOS <qos> is used up: running jobs",
		"AssocGrpGRES":                              "the limit of its association (account <account>, user <user>) is used up: GPUs or other devices",
		"QOSMinGRES":                                "it asks for less than the minimum of the QOS <qos>: GPUs or other devices",
		"AssocMaxWallDurationPerJobLimit":           "it asks for more than the limit per job of its association (account <account>, user <user>): run time",
		"MaxGRESPerAccount":                         "the limit per account of the QOS <qos> is used up: GPUs or other devices",
		"QOSGrpCPURunMinutesLimit":                  "the limit of the QOS <qos> is used up: CPUs over time",
		"ReqNodeNotAvail, UnavailableNodes:gpu-3":   "nodes that it asks for are not available: drained, down or reserved",
		"ReqNodeNotAvail,_Reserved_for_maintenance": "nodes that it asks for are not available: drained, down or reserved",
		"launch_failed_requeued_held":               "it could not be launched, was requeued, and is held",
		"SomethingNew":                              `Slurm's reason is "SomethingNew"`,
	} {
		if got, _ := explain(reason); got.Meaning != want {
			t.Errorf("%s: %q, want %q", reason, got.Meaning, want)
		}
	}
}

func TestUnfulfilledDependencyIsTheReason(t *testing.T) {
	for _, test := range []struct{ reason, dependency, want string }{
		{"Resources", "afterok:4(unfulfilled)", "Dependency"},
		{"", "afterok:4(unfulfilled)", "Dependency"},
		{"JobHeldUser", "afterok:4(unfulfilled)", "JobHeldUser"},
		{"Resources", "", "Resources"},
		{"", "", "None"},
	} {
		if got := reason(&slurmcli.Job{Reason: test.reason, Dependency: test.dependency}); got != test.want {
			t.Errorf("%q with dependency %q: %s, want %s", test.reason, test.dependency, got, test.want)
		}
	}
}
