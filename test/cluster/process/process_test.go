package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

func start(t *testing.T, group process.Group, script string) {
	t.Helper()
	if err := group.Start(process.Spec{Name: "daemon", Path: "/bin/sh", Args: []string{"-c", script}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := group.KillAll(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

func TestStopTerminatesDaemon(t *testing.T) {
	for name, script := range map[string]string{
		"that handles SIGTERM": "echo up; exec sleep 300",
		"that ignores SIGTERM": "trap '' TERM; echo up; while :; do sleep 1; done",
	} {
		t.Run(name, func(t *testing.T) {
			group := process.Group{Dir: t.TempDir()}
			start(t, group, script)
			waitForLog(t, group, "up")
			if err := group.Stop(t.Context(), "daemon", 200*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if group.Running("daemon") {
				t.Error("the daemon still runs after Stop")
			}
		})
	}
}

func TestStopTerminatesPausedDaemon(t *testing.T) {
	group := process.Group{Dir: t.TempDir()}
	start(t, group, "exec sleep 300")
	if err := group.Signal("daemon", syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := group.Stop(t.Context(), "daemon", time.Minute); err != nil {
		t.Fatal(err)
	}
}

func TestKillAllFindsProcessesWithoutPidFiles(t *testing.T) {
	group := process.Group{Dir: t.TempDir()}
	start(t, group, "sleep 300 & echo up; wait")
	waitForLog(t, group, "up")
	if err := os.RemoveAll(filepath.Join(group.Dir, "run")); err != nil {
		t.Fatal(err)
	}
	if err := group.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left, err := group.Marked(); err != nil || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestReusedPidIsNotTheDaemon(t *testing.T) {
	group := process.Group{Dir: t.TempDir()}
	start(t, group, "exec sleep 300")
	pid, err := group.Pid("daemon")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(group.Dir, "run", "daemon.pid")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	earlier := strings.Fields(string(content))[0] + " 1"
	if err := os.WriteFile(file, []byte(earlier), 0o644); err != nil {
		t.Fatal(err)
	}
	if group.Running("daemon") {
		t.Errorf("process %d is taken for the daemon although it started at another time", pid)
	}
}

func waitForLog(t *testing.T, group process.Group, want string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), time.Millisecond, 5*time.Minute, true,
		func(context.Context) (bool, error) {
			content, err := os.ReadFile(group.LogFile("daemon"))
			return strings.Contains(string(content), want), err
		})
	if err != nil {
		t.Fatalf("waiting for %q in the log: %v", want, err)
	}
}
