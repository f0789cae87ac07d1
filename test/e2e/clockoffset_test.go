//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	ociv1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/slurm-operator/slurm-operator/hack/cache"
	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// clockOffset is by how much the clock of the API server is ahead of that of the operator.
const clockOffset = 5 * time.Second

// TestProtectionEndsDespiteClockOffset drains a Kubernetes node right after a pod has started there. For an operator
// whose clock is behind, the pod is created in the future, so that everything it reads of Slurm seems to precede it.
func TestProtectionEndsDespiteClockOffset(t *testing.T) {
	operator := startOperator(t)
	offsetClock(t, operator)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			set := startNodeSet(t, operator, version)
			for round := range 3 {
				set.drainsNodeOfNewPod(t, fmt.Sprintf("gpu-%d", round))
			}
		})
	}
}

// drainsNodeOfNewPod deletes a pod, and drains the Kubernetes node of the next one of that name as soon as it is ready.
func (n *nodeSet) drainsNodeOfNewPod(t *testing.T, name string) {
	t.Helper()
	before := n.uids(t)[name]
	n.namespace.DeletePod(t, name)
	n.namespace.Eventually(t, time.Minute, "the next pod "+name, func(ctx context.Context) error {
		out, err := n.namespace.Run(ctx, "get", "pod", name,
			"--output=jsonpath={.metadata.uid} {.status.conditions[?(@.type=='Ready')].status}")
		if uid, ready, _ := strings.Cut(out, " "); err == nil && (uid == before || ready != "True") {
			err = errors.New(out)
		}
		return err
	})
	node := n.kubernetesNodeOf(t, name)
	defer func() {
		n.namespace.MustRun(t, "uncordon", node)
		n.waitUntilAllIdle(t)
	}()
	started := time.Now()
	n.namespace.MustRun(t, "drain", node, "--pod-selector=app.kubernetes.io/name=slurmd", "--delete-emptydir-data",
		"--force", "--timeout=5m")
	t.Logf("%s: kubectl drain took %.1f s", n.version, time.Since(started).Seconds())
}

// offsetClock replaces the operator until the test ends by one whose clock is behind: the same code, compiled with
// another time.Now.
func offsetClock(t *testing.T, operator kube.Namespace) {
	t.Helper()
	binary := buildWithOffset(t, clockOffset)
	key, err := cache.KeyOfTree(binary)
	if err != nil {
		t.Fatal(err)
	}
	image := "slurm-operator/slurm-operator:" + key // nodes keep the images of earlier runs
	if err := images.AddScratch(image, images.Scratch{
		Files:  map[string]string{"/slurm-operator": binary},
		Config: ociv1.ImageConfig{User: "65532:65532", Entrypoint: []string{"/slurm-operator"}},
	}); err != nil {
		t.Fatal(err)
	}
	container := operator.MustRun(t, "get", "deployment/slurm-operator",
		"--output=jsonpath={.spec.template.spec.containers[0].name} {.spec.template.spec.containers[0].image}")
	name, original, _ := strings.Cut(container, " ")
	use := func(t *testing.T, image string) {
		t.Helper()
		operator.MustRun(t, "set", "image", "deployment/slurm-operator", name+"="+image)
		operator.MustRun(t, "rollout", "status", "deployment/slurm-operator", "--timeout=5m")
	}
	use(t, image)
	t.Cleanup(func() {
		if _, err := operator.Run(context.WithoutCancel(t.Context()), "set", "image", "deployment/slurm-operator",
			name+"="+original); err != nil {
			t.Error(err)
		}
	})
}

// buildWithOffset compiles the operator with a clock that is behind.
func buildWithOffset(t *testing.T, offset time.Duration) string {
	t.Helper()
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(goroot)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const read = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	changed := strings.Replace(string(text), read, fmt.Sprintf("%s\tsec -= %d\n", read, int(offset.Seconds())), 1)
	if changed == string(text) {
		t.Fatalf("time.Now of %s is not as expected", runtime.Version())
	}
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(dir, "time.go")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "time.go"), []byte(changed), 0o644),
		os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o644)); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "slurm-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-overlay", filepath.Join(dir, "overlay.json"),
		"-ldflags", "-s -w", "-o", binary, "./cmd/slurm-operator")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the operator: %v\n%s", err, out)
	}
	return binary
}
