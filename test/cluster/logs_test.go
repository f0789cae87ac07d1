package cluster_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slurm-operator/slurm-operator/test/cluster"
	"github.com/slurm-operator/slurm-operator/test/cluster/controlplane"
	"github.com/slurm-operator/slurm-operator/test/cluster/node"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
)

func TestLogsOfDeletedPodsAreKept(t *testing.T) {
	group := process.Group{Dir: t.TempDir()}
	made := &cluster.Cluster{
		Plane: controlplane.Plane{Processes: group}, Nodes: []node.Node{{Name: "node-1", Processes: group}},
	}
	pod := filepath.Join(made.Nodes[0].PodLogs(), "slurm_login_1234")
	log := filepath.Join(pod, "login", "0.log")
	if err := os.MkdirAll(filepath.Dir(log), 0o755); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	kept, err := made.KeepLogs()
	if err != nil {
		t.Fatal(err)
	}
	read := func() map[string]string {
		t.Helper()
		logs, err := kept.Read("slurm")
		if err != nil {
			t.Fatal(err)
		}
		return logs
	}
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 5*time.Minute, true,
		func(context.Context) (bool, error) { return len(read()) == 1, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("written later"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(pod); err != nil {
		t.Fatal(err)
	}
	if err := kept.Stop(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"slurm_login_1234_login_0.log": "written later"}, read()); diff != "" {
		t.Error(diff)
	}
}
