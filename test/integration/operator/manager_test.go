//go:build integration

// Package operator_test runs the whole manager against a real API server.
package operator_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slurm-operator/slurm-operator/internal/operator"
)

func TestManagerLeadsIsReadyAndHandsOverWhenStopped(t *testing.T) {
	config := server.Config
	health := freeAddress(t)
	stop := startManager(t, config, health)

	eventually(t, func(ctx context.Context) error { return get(ctx, "http://"+health+"/readyz") })
	if err := get(t.Context(), "http://"+health+"/healthz"); err != nil {
		t.Error(err)
	}
	eventually(t, func(ctx context.Context) error { return leads(ctx, config) })

	stop()
	if err := leads(t.Context(), config); err == nil {
		t.Error("the stopped manager still holds the lease, so the next one would wait for it to run out")
	}
}

// startManager runs the manager and returns a function that stops it and waits for its end.
func startManager(t *testing.T, config *rest.Config, health string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- operator.Run(ctx, config, operator.Options{
			MetricsAddress: "0", HealthAddress: health, LeaderElection: true, LeaderElectionNamespace: metav1.NamespaceDefault,
			Registerer: prometheus.NewRegistry(),
		})
	}()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended with %v", err)
		}
	}
}

// leads reports why no manager holds the lease.
func leads(ctx context.Context, config *rest.Config) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	lease, err := client.CoordinationV1().Leases(metav1.NamespaceDefault).Get(ctx, "slurm-operator", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if holder := lease.Spec.HolderIdentity; holder == nil || *holder == "" {
		return fmt.Errorf("nobody holds the lease %s", lease.Name)
	}
	return nil
}

func get(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

func eventually(t *testing.T, check func(ctx context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%v: %v", err, last)
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}
