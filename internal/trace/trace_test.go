package trace_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// logTo returns a context that logs to a buffer, without times.
func logTo(t *testing.T, level slog.Level) (context.Context, *bytes.Buffer) {
	t.Helper()
	text := &bytes.Buffer{}
	handler := slog.NewTextHandler(text,
		&slog.HandlerOptions{Level: level, ReplaceAttr: func(_ []string, attribute slog.Attr) slog.Attr {
			if attribute.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return attribute
		}})
	return log.IntoContext(t.Context(), logr.FromSlogHandler(handler)), text
}

func TestEveryChangeInKubernetesIsLogged(t *testing.T) {
	ctx, text := logTo(t, slog.LevelInfo)
	ctx = trace.Because(ctx, "ScaleIn", "two pods too many")
	traced := trace.Kubernetes(fake.NewClientBuilder().WithStatusSubresource(&corev1.Pod{}).Build())
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "slurm", Name: "gpu-1"}}
	patch := client.RawPatch(client.Merge.Type(), []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	for _, change := range []func() error{
		func() error { return traced.Create(ctx, pod.DeepCopy(), client.DryRunAll) },
		func() error { return traced.Create(ctx, pod) },
		func() error { return traced.Update(ctx, pod) },
		func() error { return traced.Patch(ctx, pod, patch) },
		func() error { return traced.Patch(trace.Quietly(ctx), pod, patch) },
		func() error { return traced.Status().Patch(ctx, pod, patch) },
		func() error { return traced.Delete(ctx, pod) },
		func() error { return client.IgnoreNotFound(traced.Delete(ctx, pod)) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
	}
	var want strings.Builder
	for _, did := range []string{"created", "updated", "patched", "patched status of", "deleted"} {
		want.WriteString(`level=INFO msg="` + did + ` Pod" cause=ScaleIn why="two pods too many" name=gpu-1` + "\n")
	}
	if text.String() != want.String() {
		t.Errorf("got log\n%swant\n%s", text, &want)
	}
}

// A recorder is a fake Slurm client that accepts or rejects every change.
type recorder struct {
	slurm.Client
	err    error
	closed bool
}

func (r *recorder) UpdateNodes(context.Context, []string, slurm.NodeUpdate) error { return r.err }
func (r *recorder) DeleteNodes(context.Context, []string) error                   { return r.err }
func (r *recorder) CreateReservation(context.Context, slurm.Reservation) error    { return r.err }
func (r *recorder) DeleteReservation(context.Context, string) error               { return r.err }
func (r *recorder) Close()                                                        { r.closed = true }

func TestEveryChangeInSlurmIsLogged(t *testing.T) {
	nodes := []string{"gpu-0", "gpu-1", "gpu-3"}
	changes := func(ctx context.Context, client slurm.Client) error {
		return errors.Join(
			client.UpdateNodes(ctx, nodes, slurm.NodeUpdate{State: slurm.Drain, Reason: "slurm-operator: scale-in"}),
			client.UpdateNodes(ctx, nodes[:1], slurm.NodeUpdate{State: slurm.Undrain, Reason: slurm.NoReason}),
			client.UpdateNodes(ctx, nodes[:1], slurm.NodeUpdate{Features: &[]string{"a100", "nvlink"}}),
			client.DeleteNodes(ctx, nodes),
			client.CreateReservation(ctx, slurm.Reservation{Name: "update", Nodes: "gpu-[0-3]"}),
			client.DeleteReservation(ctx, "update"))
	}
	ctx, text := logTo(t, slog.LevelInfo)
	accepts := &recorder{}
	traced := trace.Slurm(accepts)
	if err := changes(ctx, traced); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`msg="drained Slurm nodes" nodes=gpu-[0-1,3] reason="slurm-operator: scale-in"`,
		`msg="undrained Slurm nodes" nodes=gpu-0`,
		`msg="updated Slurm nodes" nodes=gpu-0 features=a100,nvlink`,
		`msg="deleted Slurm nodes" nodes=gpu-[0-1,3]`,
		`msg="created Slurm reservation" name=update nodes=gpu-[0-3]`,
		`msg="deleted Slurm reservation" name=update`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the log does not contain %s:\n%s", want, text)
		}
	}
	if lines := strings.Count(text.String(), "\n"); lines != 6 {
		t.Errorf("the log has %d lines:\n%s", lines, text)
	}
	if traced.(interface{ Close() }).Close(); !accepts.closed {
		t.Error("the client was not closed")
	}

	ctx, text = logTo(t, slog.LevelInfo)
	if err := changes(ctx, trace.Slurm(&recorder{err: slurm.Rejected})); err == nil || text.Len() > 0 {
		t.Errorf("after rejected changes, the error is %v and the log is %q", err, text)
	}
}

func TestPartialChangeInSlurmIsLogged(t *testing.T) {
	ctx, text := logTo(t, slog.LevelInfo)
	traced := trace.Slurm(&recorder{err: slurm.PartialEffect})
	err := traced.UpdateNodes(ctx, []string{"gpu-0", "gpu-1"}, slurm.NodeUpdate{
		State: slurm.Drain, Reason: "slurm-operator: scale-in",
	})
	if err == nil || !strings.Contains(text.String(), `msg="drained some Slurm nodes" nodes=gpu-[0-1]`) {
		t.Errorf("the error is %v and the log is %q", err, text)
	}
}

func TestAppliedFields(t *testing.T) {
	before := map[string]any{
		"data":     map[string]any{"slurm.conf": "a", "gres.conf": "b"},
		"metadata": map[string]any{"labels": map[string]any{"x": "1"}},
	}
	after := map[string]any{
		"data":     map[string]any{"slurm.conf": "secret", "cgroup.conf": "c"},
		"metadata": map[string]any{"labels": map[string]any{"x": "1"}},
	}
	if fields := trace.Fields(before, after); !slices.Equal(fields,
		[]string{"data.cgroup.conf", "data.gres.conf", "data.slurm.conf"}) {
		t.Errorf("got fields %q", fields)
	}
	ctx, text := logTo(t, slog.LevelDebug)
	trace.Applied(ctx, "ConfigMap", "slurm", true, nil)
	trace.Applied(ctx, "ConfigMap", "slurm", false, nil)
	trace.Applied(ctx, "ConfigMap", "slurm", false, trace.Fields(before, after))
	want := "level=INFO msg=\"created ConfigMap\" name=slurm\n" +
		"level=DEBUG msg=\"applied ConfigMap\" name=slurm\n" +
		"level=INFO msg=\"changed ConfigMap\" name=slurm fields=\"[data.cgroup.conf data.gres.conf data.slurm.conf]\"\n"
	if text.String() != want {
		t.Errorf("got log\n%swant\n%s", text, want)
	}
}
