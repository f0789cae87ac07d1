package kube

import (
	"context"
	"errors"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// A Container is where a command runs.
type Container struct{ Namespace, Pod, Container string }

// Streams are the streams of a command in a container. With a terminal, standard error is part of the output.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Terminal bool
	Sizes    remotecommand.TerminalSizeQueue
}

// Exec runs a command in a container, as kubectl exec does: over WebSockets, or SPDY for API servers and proxies
// without them. A command that fails returns an error with its exit code (k8s.io/client-go/util/exec.CodeExitError).
func (c *Client) Exec(ctx context.Context, in Container, streams Streams, command ...string) error {
	url := c.clients[corev1.SchemeGroupVersion].Post().Namespace(in.Namespace).Resource(Pods.Resource).Name(in.Pod).
		SubResource("exec").VersionedParams(&corev1.PodExecOptions{
		Container: in.Container, Command: command,
		Stdin: streams.In != nil, Stdout: streams.Out != nil, Stderr: streams.Err != nil && !streams.Terminal,
		TTY: streams.Terminal,
	}, c.parameters).URL()
	spdy, err := remotecommand.NewSPDYExecutor(c.config, "POST", url)
	if err != nil {
		return fmt.Errorf("preparing to run a command in pod %s: %w", in.Pod, err)
	}
	webSocket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", url.String())
	if err != nil {
		return fmt.Errorf("preparing to run a command in pod %s: %w", in.Pod, err)
	}
	options := remotecommand.StreamOptions{
		Stdin: streams.In, Stdout: streams.Out, Stderr: streams.errors(), Tty: streams.Terminal,
		TerminalSizeQueue: streams.Sizes,
	}
	err = webSocket.StreamWithContext(ctx, options)
	refusal, upgrade := errors.AsType[*httpstream.UpgradeFailureError](err)
	if !upgrade && !httpstream.IsHTTPSProxyError(err) {
		return err
	}
	// The right to "get" pods/exec, which WebSockets need, is often missing where the right to "create" is granted.
	err = spdy.StreamWithContext(ctx, options)
	if err != nil && upgrade && apierrors.IsForbidden(refusal.Cause) {
		return &Forbidden{Verb: "create", Resource: subresource(Pods, "exec"), Namespace: in.Namespace}
	}
	return err
}

// errors returns the writer for standard error: none with a terminal, which has one output.
func (s *Streams) errors() io.Writer {
	if s.Terminal {
		return nil
	}
	return s.Err
}
