package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// migrated runs "migrate values" and returns what it writes to standard output and to standard error.
func migrated(t *testing.T, input string, arguments ...string) (output, notes string, err error) {
	t.Helper()
	command := New("slurm-operator")
	var out, log bytes.Buffer
	command.SetIn(strings.NewReader(input))
	command.SetOut(&out)
	command.SetErr(&log)
	command.SetArgs(append([]string{"values"}, arguments...))
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(t.Context())
	return out.String(), log.String(), err
}

func TestMigrateWritesValuesAndNotes(t *testing.T) {
	const (
		given  = "operator: {logLevel: 3}\n"
		output = "log:\n  level: debug\n"
		notes  = "operator.logLevel: moved to log.level\n"
	)
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(given), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		input     string
		arguments []string
	}{
		"from standard input": {given, nil},
		"from a file":         {"", []string{"--file=" + file}},
	} {
		t.Run(name, func(t *testing.T) {
			gotOutput, gotNotes, err := migrated(t, test.input, append(test.arguments, "--chart=slurm-operator")...)
			if err != nil || gotOutput != output || gotNotes != notes {
				t.Errorf("%v, output %q, notes %q", err, gotOutput, gotNotes)
			}
		})
	}
}

func TestMigrateRefusesWhatIsNotValues(t *testing.T) {
	for name, test := range map[string]struct{ input, chart, want string }{
		"an unknown chart": {"", "slurm-operator-crds", "choose slurm or slurm-operator"},
		"a list":           {"[1]", "slurm", "reading the values"},
		"a key twice":      {"a: 1\na: 2", "slurm", "reading the values"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := migrated(t, test.input, "--chart="+test.chart); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}
