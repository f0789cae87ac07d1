package first

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain runs the program under test if the test binary is started as such.
func TestMain(m *testing.M) {
	if command, found := os.LookupEnv("RUN_AS_FIRST"); found {
		code, err := Run([]string{"sh", "-c", command})
		if err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(99)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// first returns a command that runs a script under Run.
func first(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), program)
	command.Env = append(os.Environ(), "RUN_AS_FIRST="+script)
	return command
}

func TestRunReturnsTheExitCode(t *testing.T) {
	for script, want := range map[string]int{"exit 0": 0, "exit 7": 7, "kill -KILL $$": 137} {
		command := first(t, script)
		_ = command.Run()
		if got := command.ProcessState.ExitCode(); got != want {
			t.Errorf("%s: exit code %d, want %d", script, got, want)
		}
	}
}

func TestRunForwardsSignals(t *testing.T) {
	ready := filepath.Join(t.TempDir(), "ready")
	command := first(t, "trap 'exit 3' TERM; touch "+ready+"; while :; do sleep 0.01; done")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	waitForFile(t, ready)
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	if got := command.ProcessState.ExitCode(); got != 3 {
		t.Errorf("exit code %d", got)
	}
}

func TestRunReapsOrphans(t *testing.T) {
	directory := t.TempDir()
	// The inner shell exits at once, so that its child has no parent and then becomes a zombie, unless it is reaped.
	script := "sh -c 'sh -c \"echo \\$\\$ >" + directory + "/orphan; exec sleep 0.05\" &'; " +
		"while [ ! -s " + directory + "/orphan ]; do sleep 0.01; done; " +
		"while [ -d /proc/$(cat " + directory + "/orphan) ]; do sleep 0.01; done; exit 5"
	command := first(t, script)
	_ = command.Run()
	if got := command.ProcessState.ExitCode(); got != 5 {
		t.Errorf("exit code %d", got)
	}
}

func TestFindLooksWhereImagesHaveSlurm(t *testing.T) {
	directory := t.TempDir()
	if err := os.WriteFile(directory+"/slurmd", []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	environment := withDirectories([]string{"A=b", "PATH=/nowhere:" + directory})
	if !slices.Contains(environment, "A=b") || !strings.HasSuffix(environment[1], ":/opt/slurm/sbin:/opt/slurm/bin") {
		t.Error(environment)
	}
	if path, err := Find("slurmd", environment); err != nil || path != directory+"/slurmd" {
		t.Error(path, err)
	}
	if _, err := Find("no-such-daemon", environment); err == nil || !strings.Contains(err.Error(), "no-such-daemon") {
		t.Error(err)
	}
	if environment := withDirectories(nil); !strings.HasPrefix(environment[0], "PATH=/usr/local/sbin:") {
		t.Error(environment)
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal("no file " + path)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
