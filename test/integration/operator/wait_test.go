//go:build integration

package operator_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientrest "k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/token"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// A failedTest is a test that only remembers how it fails.
type failedTest struct {
	testing.TB
	message string
}

// Fatalf ends the test.
func (f *failedTest) Fatalf(format string, arguments ...any) {
	f.message = fmt.Sprintf(format, arguments...)
	runtime.Goexit()
}

// Helper does nothing.
func (f *failedTest) Helper() {}

// failure returns how a test fails.
func failure(t *testing.T, test func(tb testing.TB)) string {
	t.Helper()
	failed := &failedTest{TB: t}
	var running sync.WaitGroup
	running.Go(func() { test(failed) })
	running.Wait()
	if failed.message == "" {
		t.Fatal("the wait did not fail")
	}
	if lines := strings.Count(failed.message, "\n"); lines > maxDescribed+10 {
		t.Errorf("the message has %d lines", lines)
	}
	return failed.message
}

const idle = "nothing can change any more: the operator is idle since "

func hasAll(t *testing.T, message string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(message, text) {
			t.Errorf("there is no %q in: %s", text, message)
		}
	}
}

var errNever = errors.New("it is not blue")

// A wait for what never comes ends when the operator is idle, even if it polls, and shows the object without secrets.
func TestWaitEndsWhenOperatorIsIdle(t *testing.T) {
	t.Parallel()
	t.Run("without a cluster", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.create(t, newToken("alice"), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: "mine"}, StringData: map[string]string{"password": "hunter2"},
		})
		message := failure(t, func(tb testing.TB) {
			tb.Helper()
			w.eventually(tb, "mine", &corev1.Secret{}, func() error { return errNever })
		})
		hasAll(t, message, "waiting for *v1.Secret mine: it is not blue", idle, "password: 12 characters")
		if strings.Contains(message, "aHVudGVyMg==") || strings.Contains(message, "hunter2") {
			t.Errorf("the message has a password: %s", message)
		}
		t.Log(message)
	})
	t.Run("with a cluster", func(t *testing.T) {
		t.Parallel()
		w := newNodeWorld(t, newNodeSet(1))
		message := failure(t, func(tb testing.TB) {
			tb.Helper()
			w.eventually(tb, w.set.Name, w.set, func() error { return errNever })
		})
		hasAll(t, message, "waiting for *v1beta1.NodeSet gpu: it is not blue", idle, "Ready=True AsExpected",
			"slurmclient: slurm at", "created Pod", "replicas: 1")
		t.Log(message)
	})
	t.Run("for an object that does not exist", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		message := failure(t, func(tb testing.TB) {
			tb.Helper()
			w.eventually(tb, "mine", &corev1.ConfigMap{}, func() error { return nil })
		})
		hasAll(t, message, `configmaps "mine" not found`, idle)
	})
	t.Run("for a deletion that something else must do", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Finalizers: []string{"example.com/keep"}}}
		w.create(t, kept)
		if err := w.Delete(t.Context(), kept); err != nil {
			t.Fatal(err)
		}
		message := failure(t, func(tb testing.TB) {
			tb.Helper()
			w.gone(tb, "kept", kept)
		})
		hasAll(t, message, "it exists", idle, "example.com/keep")
	})
}

// A timer of the operator, and a job that ends, are waited for.
func TestWaitOutlastsTimers(t *testing.T) {
	t.Parallel()
	t.Run("of the operator", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		tokens := w.queue(t, token.Name)
		due := time.Now().Add(10 * time.Second)
		tokens.AddAfter(reconcile.Request{
			NamespacedName: types.NamespacedName{Namespace: w.namespace, Name: "absent"},
		}, time.Until(due))
		message := failure(t, func(tb testing.TB) {
			tb.Helper()
			w.await(tb, "something", nil, func(context.Context) error { return errNever })
		})
		hasAll(t, message, idle)
		if time.Now().Before(due) {
			t.Errorf("the wait ended before %s: %s", due, message)
		}
	})
	t.Run("of Slurm", func(t *testing.T) {
		t.Parallel()
		w := newNodeWorld(t, newNodeSet(1))
		job, err := w.slurm.Submitter("root").Submit(t.Context(), slurmtest.JobRequest{
			Name: "short", Script: "#!/bin/sh\nsleep 45", Nodes: 1, RequiredNodes: []string{"gpu-0"}, TimeLimit: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.until(t, "the end of a job that is longer than all polls of the operator", func(ctx context.Context) error {
			is, err := w.admin.Job(ctx, job)
			if err == nil && is.States[0] != "COMPLETED" {
				err = fmt.Errorf("its state is %v", is.States)
			}
			return err
		})
	})
}

// An event that the API server has sent, and that the operator has not received yet, is waited for.
func TestWaitOutlastsDelayedEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stopManager()
	gate := &gate{}
	defer w.run(t, gate.through(countWrites(server.Config, &w.writes)))()
	w.create(t, newController("before"))
	w.eventually(t, "before-auth-slurm", &corev1.Secret{}, func() error { return nil })
	gate.close()
	defer gate.open()
	w.create(t, newController("slurm"))
	watch := &vigil{world: w, deadline: time.Now().Add(pollTimeout)}
	for range 3 * watchRounds {
		if watch.look(t.Context(), errNever); watch.over {
			t.Fatal("the operator is taken for idle although it has not received an object")
		}
		time.Sleep(pollInterval)
	}
	hasAll(t, watch.why, "it has not received the last change of ")
	gate.open()
	w.eventually(t, "slurm-auth-slurm", &corev1.Secret{}, func() error { return nil })
}

func newController(name string) *slinkyv1beta1.Controller {
	return &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// A gate delays the events of all watches while it is closed.
type gate struct {
	mu     sync.Mutex
	opened chan struct{} // nil while it is open
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened = make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.opened != nil {
		close(g.opened)
		g.opened = nil
	}
}

// through returns a configuration whose watches go through the gate.
func (g *gate) through(config *clientrest.Config) *clientrest.Config {
	gated := clientrest.CopyConfig(config)
	gated.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") != "" {
				response.Body = &gatedBody{response.Body, g}
			}
			return response, err
		})
	})
	return gated
}

type gatedBody struct {
	io.ReadCloser
	gate *gate
}

// Read reads what has arrived as soon as the gate is open.
func (b *gatedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.gate.mu.Lock()
	opened := b.gate.opened
	b.gate.mu.Unlock()
	if opened != nil {
		<-opened
	}
	return n, err
}

// queue returns the work queue of a controller of the running operator.
func (w *world) queue(t *testing.T, name string) *observedQueue {
	t.Helper()
	var found *observedQueue
	w.await(t, "the start of the controller "+name, nil, func(context.Context) error {
		w.operator.mu.Lock()
		defer w.operator.mu.Unlock()
		for _, queue := range w.operator.queues {
			if queue.name == name && queue.started() {
				found = queue
				return nil
			}
		}
		return errors.New("it has not been started")
	})
	return found
}
