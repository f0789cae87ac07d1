//go:build e2e

package e2e_test

import (
	"context"
	"crypto/tls"
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

// A responder is a proxy between the operator and slurmrestd: it handles the nth request, and upstream is slurmrestd.
type responder func(n int64, upstream http.Handler) http.HandlerFunc

// delayed forwards requests after a delay.
func delayed(_ int64, upstream http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(4 * time.Second):
			upstream.ServeHTTP(w, r)
		}
	}
}

// respond always returns the same response.
func respond(code int, body string) responder {
	return func(int64, http.Handler) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
}

// alternateWithInvalid alternates between slurmrestd's responses and invalid ones that could be mistaken for drained
// nodes or for an empty node list.
func alternateWithInvalid(n int64, upstream http.Handler) http.HandlerFunc {
	if n%2 == 0 {
		return upstream.ServeHTTP
	}
	const drained = `{"nodes":[{"name":"gpu-0","state":["IDLE","DRAIN"],"alloc_cpus":0,"alloc_memory":0}],"last_update":{"set":true,"number":1},`
	invalid := []http.HandlerFunc{
		respond(200, "<html>It works!</html>")(n, upstream),
		respond(200, drained)(n, upstream),
		respond(200, drained+`"errors":[{"error_number":0,"error":"No error"}]}`)(n, upstream),
		respond(200, "{}")(n, upstream),
		respond(204, "")(n, upstream),
		respond(404, `{"errors":[{"error_number":2018}]}`)(n, upstream),
		respond(500, drained+`"errors":[]}`)(n, upstream),
	}
	return invalid[n/2%int64(len(invalid))]
}

// intercepted puts a proxy between all pods and slurmrestd, and lasts until at least three requests went through it.
func intercepted(respond responder) fault {
	return func(t *testing.T, run *chaosRun) func() error {
		t.Helper()
		behind := run.address(t, "pod", "--selector=app.kubernetes.io/name=slurmrestd",
			"--output=jsonpath={.items[0].status.podIP}:6820")
		upstream := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "https", Host: behind.String()})
		upstream.Transport = &http.Transport{TLSClientConfig: run.trusted(t)}
		var requests atomic.Int64
		server := &http.Server{ReadHeaderTimeout: time.Minute,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				respond(requests.Add(1), upstream)(w, r)
			})}
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", network.HostAddress+":0")
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = server.Serve(tls.NewListener(listener, run.served(t))) }()
		end := sync.OnceValue(func() error {
			return errors.Join(run.devcluster.EndDiversion(context.WithoutCancel(t.Context())), server.Close())
		})
		t.Cleanup(func() { _ = end() }) // in case no requests arrive
		service := run.address(t, "service/slurm-restapi", "--output=jsonpath={.spec.clusterIP}:{.spec.ports[0].port}")
		if err := run.devcluster.Divert(t.Context(), service, behind,
			listener.Addr().(*net.TCPAddr).AddrPort()); err != nil {
			t.Fatal(err)
		}
		run.namespace.Eventually(t, time.Minute, "requests to slurmrestd", func(context.Context) error {
			if n := requests.Load(); n < 3 {
				return fmt.Errorf("there were %d", n)
			}
			return nil
		})
		return func() error {
			t.Logf("%s: %d requests were intercepted", run.version, requests.Load())
			return end()
		}
	}
}

// address returns the address that kubectl prints for an object.
func (r *chaosRun) address(t *testing.T, object ...string) netip.AddrPort {
	t.Helper()
	address, err := netip.ParseAddrPort(r.namespace.MustRun(t, append([]string{"get"}, object...)...))
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// touchEverything annotates the NodeSet, its pods and slurmctld's StatefulSet many times a second, while the
// administrator does chores.
func touchEverything(t *testing.T, run *chaosRun) func() error {
	t.Helper()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1 // no client-side rate limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	paths := []string{
		"/apis/slinky.slurm.net/v1beta1/namespaces/" + run.namespace.Name + "/nodesets/gpu",
		"/apis/apps/v1/namespaces/" + run.namespace.Name + "/statefulsets/slurm-controller",
	}
	for ordinal := range defaultNodes + 2 {
		paths = append(paths, fmt.Sprintf("/api/v1/namespaces/%s/pods/gpu-%d", run.namespace.Name, ordinal))
	}
	ctx, stop := context.WithCancel(t.Context())
	var touching sync.WaitGroup
	var touches atomic.Int64
	for _, path := range paths {
		touching.Go(func() {
			for tick := time.NewTicker(50 * time.Millisecond); ctx.Err() == nil; <-tick.C {
				patch, _ := json.Marshal(map[string]any{
					"metadata": map[string]any{
						"annotations": map[string]string{"example.com/touched": time.Now().Format(time.RFC3339Nano)},
					},
				})
				// A pod may not exist at the moment.
				if client.RESTClient().Patch(types.MergePatchType).AbsPath(path).Body(patch).Do(ctx).Error() == nil {
					touches.Add(1)
				}
			}
		})
	}
	for range 3 {
		run.doChore(t)
		run.waitRandomly(t, 5*time.Second)
	}
	return func() error {
		stop()
		touching.Wait()
		t.Logf("%s: objects were changed %d times", run.version, touches.Load())
		return nil
	}
}
