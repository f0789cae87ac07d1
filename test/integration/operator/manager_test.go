//go:build integration

// Package operator_test runs the whole manager against a real API server.
package operator_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slurm-operator/slurm-operator/internal/operator"
	"github.com/slurm-operator/slurm-operator/internal/process"
	"github.com/slurm-operator/slurm-operator/test/ports"
)

func TestManagerIsReadyAndReleasesLeaseOnStop(t *testing.T) {
	config := server.Config
	health := "127.0.0.1:" + ports.Free(t)
	stop := startManager(t, config, health)

	eventually(t, func(ctx context.Context) error { return get(ctx, "http://"+health+"/readyz") })
	if err := get(t.Context(), "http://"+health+"/healthz"); err != nil {
		t.Error(err)
	}
	eventually(t, func(ctx context.Context) error { return leads(ctx, config, metav1.NamespaceDefault) })

	stop()
	if err := leads(t.Context(), config, metav1.NamespaceDefault); err == nil {
		t.Error("the stopped manager still holds the lease, so the next one would wait for it to expire")
	}
}

// TestMetricsReportSessionsAndConditions uses controller-runtime's global registry, the only one that is served.
func TestMetricsReportSessionsAndConditions(t *testing.T) {
	world := newWorld(t)
	world.readyController(t)
	address := "127.0.0.1:" + ports.Free(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, server.Config, operator.Options{
			Settings: process.Settings{MetricsAddress: address, MetricsInsecure: true, HealthAddress: "0",
				Namespaces: []string{world.namespace}}, Workers: 1,
			Images: testImages, Dial: world.dial, Agent: world.agent,
		})
	}()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}()
	for _, line := range []string{
		`slurm_operator_slurm_reachable{controller="slurm",controller_namespace="` + world.namespace + `"} 1`,
		`slurm_operator_slurm_nodes{controller="slurm",controller_namespace="` + world.namespace + `",state="idle"} 1`,
		`slurm_operator_condition{condition="Ready",kind="Controller",name="slurm",object_namespace="` +
			world.namespace + `",reason="AsExpected",status="True"} 1`,
		`slurm_operator_slurm_requests_total{call="nodes",controller="slurm",controller_namespace="` + world.namespace +
			`",result="ok"}`,
	} {
		eventually(t, func(ctx context.Context) error {
			body, err := read(ctx, "http://"+address+"/metrics")
			if err == nil && !strings.Contains(body, line) {
				err = fmt.Errorf("there is no %s", line)
			}
			return err
		})
	}
}

// startManager runs the manager and returns a function that stops it and waits until it has exited.
func startManager(t *testing.T, config *rest.Config, health string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, config, operator.Options{
			Settings: process.Settings{MetricsAddress: "0", HealthAddress: health}, LeaderElection: true,
			LeaderElectionNamespace: metav1.NamespaceDefault,
			Registerer:              prometheus.NewRegistry(),
		})
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}
}

// leads returns an error unless a manager holds the lease of a namespace.
func leads(ctx context.Context, config *rest.Config, namespace string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	lease, err := client.CoordinationV1().Leases(namespace).Get(ctx, "slurm-operator", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
		return fmt.Errorf("no manager holds the lease %s", lease.Name)
	}
	return nil
}

func get(ctx context.Context, url string) error {
	_, err := read(ctx, url)
	return err
}

func read(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s", url, response.Status)
	}
	return string(body), err
}

func eventually(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, pollTimeout, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}
