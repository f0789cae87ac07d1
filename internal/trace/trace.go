// Package trace logs every change that the operator makes in Kubernetes and in Slurm, with one line per change.
//
// The lines are logged by the clients through which all changes go, so that no change is missed. Only the caller knows
// the reason of a change and puts it into the context: see Because. Changes that follow from decisions are logged at
// level info. Bookkeeping, which changes with every job and would hide the decisions in a busy cluster, is logged at
// level debug: see Quietly.
package trace

import (
	"context"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Because returns a context whose changes are logged with a cause, in one word, and an explanation.
func Because[C ~string](ctx context.Context, cause C, why string) context.Context {
	return With(ctx, "cause", string(cause), "why", why)
}

// With returns a context whose changes are logged with additional values, such as the Slurm node of a pod.
func With(ctx context.Context, keysAndValues ...any) context.Context {
	return log.IntoContext(ctx, log.FromContext(ctx).WithValues(keysAndValues...))
}

// debug is the verbosity of slog's level debug.
const debug = 4

// Quietly returns a context whose changes are logged at level debug, because they are bookkeeping.
func Quietly(ctx context.Context) context.Context {
	return log.IntoContext(ctx, log.FromContext(ctx).V(debug))
}

// Debug returns the logger for level debug.
func Debug(ctx context.Context) logr.Logger { return log.FromContext(ctx).V(debug) }
