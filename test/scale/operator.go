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

// OperatorUser is as whom the operator writes.
const OperatorUser = "slurm-operator"

const operatorTimeout = 10 * time.Minute

// Operator is the operator's manager: the real program, as a process of its own, so that what it uses is its own.
type Operator struct {
	cluster  *simulated.Cluster
	profiles string // where it serves them
}

// StartOperator installs the CRDs and runs the operator in a cluster until that ends.
//
// Services have no addresses in a simulated cluster, so the operator reaches slurmrestd as it would through a company's proxy: by
// asking slurmURL for every host. Its connection to the API server has no proxy, because that is on this machine.
func StartOperator(t *testing.T, cluster *simulated.Cluster, slurmURL string) *Operator {
	t.Helper()
	root, err := repo.Root()
	must(t, "finding the repository", err)
	log.SetLogger(logr.Discard()) // envtest insists on one
	_, err = envtest.InstallCRDs(cluster.Config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(root, "config", "crd", "bases")}})
	must(t, "installing the CRDs", err)
	program := filepath.Join(t.TempDir(), "slurm-operator")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./cmd/slurm-operator")
	build.Dir, build.Stderr = root, t.Output()
	must(t, "building the operator", build.Run())
	profiles := "127.0.0.1:" + ports.Free(t)
	must(t, "starting the operator", cluster.Plane.Processes.Start(process.Spec{
		Name: OperatorUser, Path: program,
		Args: []string{
			"manager", "--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--pprof-bind-address=" + profiles,
		},
		Env: []string{"KUBECONFIG=" + cluster.KubeconfigFor(t, OperatorUser), "HTTP_PROXY=" + slurmURL, "NO_PROXY="},
	}))
	operator := &Operator{cluster: cluster, profiles: "http://" + profiles}
	ctx, cancel := context.WithTimeout(t.Context(), operatorTimeout)
	defer cancel()
	must(t, "waiting for the operator", wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := operator.heap(ctx)
		return err == nil, nil
	}))
	return operator
}

// CPU is how much processor time it has used so far.
func (o *Operator) CPU(t *testing.T) time.Duration {
	t.Helper()
	return o.cluster.UsageOf(t, OperatorUser).CPU
}

// Heap is how many bytes its objects take after a garbage collection.
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
		return 0, errors.New("the profile says nothing of HeapAlloc")
	}
	return strconv.ParseInt(strings.TrimSpace(string(number)), 10, 64)
}

// Profile asks it for one of its profiles.
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
		return nil, fmt.Errorf("asking for profile %s: %s", profile, response.Status)
	}
	return io.ReadAll(response.Body)
}

func must(t *testing.T, doing string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", doing, err)
	}
}
