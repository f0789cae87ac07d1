package command

import (
	"context"
	"os"
	"os/signal"

	"golang.org/x/term"
	"k8s.io/client-go/tools/remotecommand"
)

// sizes are the sizes of a terminal: the first one, and each new one after the user has changed it.
type sizes struct {
	ctx        context.Context //nolint:containedctx // the interface of client-go has none
	descriptor int
	changes    chan os.Signal
}

func newSizes(ctx context.Context, descriptor int) *sizes {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, resized...)
	context.AfterFunc(ctx, func() { signal.Stop(changes) })
	changes <- os.Interrupt // the first size is wanted at once; the value does not matter
	return &sizes{ctx: ctx, descriptor: descriptor, changes: changes}
}

// Next waits for the next size; nil at the end.
func (s *sizes) Next() *remotecommand.TerminalSize {
	select {
	case <-s.ctx.Done():
		return nil
	case <-s.changes:
	}
	width, height, err := term.GetSize(s.descriptor)
	if err != nil {
		return nil
	}
	return &remotecommand.TerminalSize{Width: uint16(width), Height: uint16(height)} //nolint:gosec // both are small
}
