// Package ci tests the script .ci/run with a Makefile whose targets do nothing.
package ci

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// makefile has a target for every part. With FAIL, the unit tests fail; with FAIL=beside, when the tests of Slurm run,
// which never end, and have started a process in a group of its own.
const makefile = `
.DEFAULT:
	@echo "this is $@ $(E2E)"
ifdef FAIL
test:
	@test $(FAIL) != beside || until test -s sleeper; do sleep 0.1; done
	@echo '=== FAIL: internal/a TestA (0.00s)'
	@echo '    reproduce it with -seed=7'
	@exit 1
endif
test-slurm:
	@test -z "$(FAIL)" || { setsid sleep infinity & echo $$! >sleeper; wait; }
`

// run runs the script with arguments, and returns its output and whether it succeeded.
func run(t *testing.T, dir string, environment []string, arguments ...string) (string, bool) {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(dir, ".ci", "run"), arguments...)
	command.Env = append(os.Environ(), append(environment, "SLURM_OPERATOR_CACHE="+filepath.Join(dir, "cache"))...)
	output, err := command.CombinedOutput()
	return string(output), err == nil
}

// tree returns a directory with the script and the Makefile.
func tree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	script, err := os.ReadFile("../../.ci/run")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".ci"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".ci", "run"), script, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(makefile), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// assertContains checks that the output has all parts, in this order.
func assertContains(t *testing.T, output string, parts ...string) {
	t.Helper()
	rest := output
	for _, part := range parts {
		var found bool
		if _, rest, found = strings.Cut(rest, part); !found {
			t.Fatalf("the output does not have %q at its place:\n%s", part, output)
		}
	}
}

func TestAllPartsRunAndAreComparedWithTheRecord(t *testing.T) {
	dir := tree(t)
	output, passed := run(t, dir, nil, "--record", "cold")
	if !passed {
		t.Fatal(output)
	}
	assertContains(t, output, "=== operator passed after ", "this is build", "=== requirements passed after ",
		"this is cluster-down",
		"\n=== passed")
	record := filepath.Join(dir, ".ci", "times", "cold")
	content, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	list, _ := run(t, dir, nil, "--list")
	for line := range strings.Lines(list) {
		if name := strings.Fields(line)[0]; !strings.Contains(string(content), "\n"+name+" ") {
			t.Errorf("the record does not have %s:\n%s", name, content)
		}
	}
	if err := os.WriteFile(record, []byte("# yesterday\nunit 100 80\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	output, _ = run(t, dir, nil, "unit")
	assertContains(t, output, "this is test", "# yesterday", "\nunit ", " 100  much faster\n", "\n=== passed")
	if strings.Contains(output, "cluster-down") {
		t.Errorf("a run without the test cluster stops it:\n%s", output)
	}
}

func TestFailedPartIsNamedWithItsCommandAndSeed(t *testing.T) {
	output, passed := run(t, tree(t), []string{"FAIL=yes"}, "lint-is-no-part")
	if passed {
		t.Error("an unknown part is accepted")
	}
	assertContains(t, output, "there is no part lint-is-no-part")

	output, passed = run(t, tree(t), []string{"FAIL=yes"}, "unit", "docs")
	if passed || strings.Contains(output, "this is docs") {
		t.Errorf("a part ran after one that failed:\n%s", output)
	}
	assertContains(t, output, "=== FAILED: unit, ", "\nmake test\n", "FAIL: internal/a TestA", "-seed=7", "\n=== FAILED\n")

	output, _ = run(t, tree(t), nil, "e2e")
	assertContains(t, output, "=== e2e: make test-e2e SLURM=26.05 'E2E=^(TestQuickstart|",
		"\nthis is test-e2e ^(TestQuickstart|TestFirstHour|TestServicesOfACluster|TestPlugin)$\n")
}

func TestFailedPartStopsAllOthers(t *testing.T) {
	dir := tree(t)
	output, passed := run(t, dir, []string{"FAIL=beside"})
	if passed {
		t.Error(output)
	}
	assertContains(t, output, "\nunit ", "=== FAILED: unit, ", "=== stopped: slurm, ", "\n=== FAILED\n")
	sleeper, err := os.ReadFile(filepath.Join(dir, "sleeper"))
	if err != nil {
		t.Fatal(err)
	}
	// It dies a moment after it is killed, and may stay as a zombie, which has no command line.
	for {
		command, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(sleeper)), "cmdline"))
		if err != nil || len(command) == 0 {
			break
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%q still runs", command)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
