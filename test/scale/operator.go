package scale

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slurm-operator/slurm-operator/hack/repo"
	"github.com/slurm-operator/slurm-operator/test/cluster/process"
	"github.com/slurm-operator/slurm-operator/test/ports"
	"github.com/slurm-operator/slurm-operator/test/scale/simulated"
)

// OperatorUser is the operator's user name.
const OperatorUser = "slurm-operator"

const operatorTimeout = 10 * time.Minute

// Operator is the operator's manager: the real program in a separate process, so that its resource usage can be
// measured.
type Operator struct {
	cluster  *simulated.Cluster
	profiles string // URL of its profiles
	spec     process.Spec
}

// StartOperator installs the CRDs and runs the operator in a cluster until the cluster is stopped.
func StartOperator(t *testing.T, cluster *simulated.Cluster) *Operator {
	t.Helper()
	root, err := repo.Root()
	must(t, "finding the repository", err)
	log.SetLogger(logr.Discard()) // envtest requires one
	_, err = envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(root, "config", "crd", "bases")}, MaxTime: operatorTimeout,
	})
	must(t, "installing the CRDs", err)
	program := filepath.Join(t.TempDir(), "slurm-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/slurm-operator")
	build.Dir, build.Stderr = root, t.Output()
	must(t, "building the operator", build.Run())
	profiles := "127.0.0.1:" + ports.Free(t)
	operator := &Operator{cluster: cluster, profiles: "http://" + profiles, spec: process.Spec{
		Name: OperatorUser, Path: program,
		Args: []string{
			"manager", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0",
			"--pprof-bind-address=" + profiles,
		},
		Env: []string{"KUBECONFIG=" + cluster.KubeconfigFor(t, OperatorUser)},
	}}
	operator.start(t)
	return operator
}

// Restart stops the operator and starts it again, as when another replica takes over, but without a standby that has
// filled its caches.
func (o *Operator) Restart(t *testing.T) {
	t.Helper()
	must(t, "stopping the operator", o.cluster.Plane.Processes.Stop(t.Context(), OperatorUser, time.Minute))
	o.start(t)
}

// start starts the operator and waits until it answers.
func (o *Operator) start(t *testing.T) {
	t.Helper()
	must(t, "starting the operator", o.cluster.Plane.Processes.Start(o.spec))
	ctx, cancel := context.WithTimeout(t.Context(), operatorTimeout)
	defer cancel()
	must(t, "waiting for the operator",
		wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			_, err := o.heap(ctx)
			return err == nil, nil
		}))
}

// CPU returns the CPU time that it has used so far.
func (o *Operator) CPU(t *testing.T) time.Duration {
	t.Helper()
	return o.cluster.UsageOf(t, OperatorUser).CPU
}

// Heap returns the size of its heap in bytes after a garbage collection.
func (o *Operator) Heap(t *testing.T) int64 {
	t.Helper()
	bytes, err := o.heap(t.Context())
	must(t, "reading the operator's heap", err)
	return bytes
}

func (o *Operator) heap(ctx context.Context) (int64, error) {
	profile, err := o.Profile(ctx, "heap?gc=1&debug=1")
	if err != nil {
		return 0, err
	}
	_, rest, found := bytes.Cut(profile, []byte("\n# HeapAlloc = "))
	number, _, _ := bytes.Cut(rest, []byte("\n"))
	if !found {
		return 0, errors.New("the profile has no HeapAlloc")
	}
	return strconv.ParseInt(strings.TrimSpace(string(number)), 10, 64)
}

// Profile reads one of its pprof profiles.
func (o *Operator) Profile(ctx context.Context, profile string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, o.profiles+"/debug/pprof/"+profile, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("reading profile %s: %s", profile, response.Status)
	}
	return io.ReadAll(response.Body)
}

func must(t *testing.T, doing string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}
