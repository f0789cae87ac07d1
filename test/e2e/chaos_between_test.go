//go:build e2e

package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slurm-operator/slurm-operator/test/cluster/network"
)

// An answer is what somebody between the operator and slurmrestd says to the nth request; the truth is what slurmrestd says.
type answer func(n int64, truth http.Handler) http.HandlerFunc

// slowly is the truth, late.
func slowly(_ int64, truth http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(4 * time.Second):
			truth.ServeHTTP(w, r)
		}
	}
}

// with is always the same.
func with(code int, body string) answer {
	return func(int64, http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
}

// withNonsense is the truth and a lie by turns. The lies are those which somebody might take for empty nodes, or for none at all.
func withNonsense(n int64, truth http.Handler) http.HandlerFunc {
	if n%2 == 0 {
		return truth.ServeHTTP
	}
	const drained = `{"nodes":[{"name":"gpu-0","state":["IDLE","DRAIN"],"alloc_cpus":0,"alloc_memory":0}],"last_update":{"set":true,"number":1},`
	lies := []http.HandlerFunc{
		with(200, "<html>It works!</html>")(n, truth),
		with(200, drained)(n, truth),
		with(200, drained+`"errors":[{"error_number":0,"error":"No error"}]}`)(n, truth),
		with(200, "{}")(n, truth),
		with(204, "")(n, truth),
		with(404, `{"errors":[{"error_number":2018}]}`)(n, truth),
		with(500, drained+`"errors":[]}`)(n, truth),
	}
	return lies[n/2%int64(len(lies))]
}

// answered puts the test between all pods and slurmrestd, and lasts at least until somebody has asked.
func answered(answer answer) fault {
	return func(t *testing.T, day *day) func() error {
		t.Helper()
		behind := day.address(t, "pod", "--selector=app.kubernetes.io/name=slurmrestd", "--output=jsonpath={.items[0].status.podIP}:6820")
		truth := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: behind.String()})
		var asked atomic.Int64
		server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer(asked.Add(1), truth)(w, r)
		})}
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", network.HostAddress+":0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(listener) }()
		end := sync.OnceValue(func() error {
			return errors.Join(day.machines.EndDiversion(context.WithoutCancel(t.Context())), server.Close())
		})
		t.Cleanup(func() { _ = end() }) // in case that nobody asks
		service := day.address(t, "service/slurm-restapi", "--output=jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
		if err := day.machines.Divert(t.Context(), service, behind, listener.Addr().(*net.TCPAddr).AddrPort()); err != nil {
			t.Fatal(err)
		}
		day.namespace.Eventually(t, time.Minute, "questions", func(context.Context) error {
			if n := asked.Load(); n < 3 {
				return fmt.Errorf("there were %d", n)
			}
			return nil
		})
		return func() error {
			t.Logf("%s: %d requests were answered so", day.version, asked.Load())
			return end()
		}
	}
}

// address is what kubectl prints of an object.
func (d *day) address(t *testing.T, object ...string) netip.AddrPort {
	t.Helper()
	address, err := netip.ParseAddrPort(d.namespace.MustRun(t, append([]string{"get"}, object...)...))
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// everythingIsTouched annotates the NodeSet, its pods and slurmctld's StatefulSet many times a second, while the administrator does every chore.
func everythingIsTouched(t *testing.T, day *day) func() error {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // as fast as it can
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"/apis/slinky.slurm.net/v1beta1/namespaces/" + day.namespace.Name + "/nodesets/gpu",
		"/apis/apps/v1/namespaces/" + day.namespace.Name + "/statefulsets/slurm-controller",
	}
	for ordinal := range wanted + 2 {
		paths = append(paths, fmt.Sprintf("/api/v1/namespaces/%s/pods/gpu-%d", day.namespace.Name, ordinal))
	}
	ctx, stop := context.WithCancel(t.Context())
	var touching sync.WaitGroup
	var touches atomic.Int64
	for _, path := range paths {
		touching.Go(func() {
			for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				patch, _ := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{"example.com/touched": time.Now().Format(time.RFC3339Nano)}}})
				// Pods come and go.
				if client.RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error() == nil {
					touches.Add(1)
				}
			}
		})
	}
	for range 3 {
		day.works(t)
		day.moment(t, 5*time.Second)
	}
	return func() error {
		stop()
		touching.Wait()
		t.Logf("%s: objects were changed %d times", day.version, touches.Load())
		return nil
	}
}
