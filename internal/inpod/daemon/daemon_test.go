package daemon

import (
	"bytes"
	"context"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lines sends everything that is written to a channel, line by line.
type lines struct {
	received chan string
	rest     string
}

func (l *lines) Write(text []byte) (int, error) {
	l.rest += string(text)
	for {
		line, rest, complete := strings.Cut(l.rest, "\n")
		if !complete {
			return len(text), nil
		}
		l.received <- line
		l.rest = rest
	}
}

func TestSIGTERMIsRepeatedUntilDaemonExits(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	log := &lines{received: make(chan string, 10)}
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, []string{"sh", "-c", `
trap 'echo rotated' USR2
trap 'echo forgotten; trap "exit 0" TERM' TERM
echo up
while :; do sleep 0.05; done`}, log)
	}()
	expect := func(want string) {
		t.Helper()
		select {
		case line := <-log.received:
			if line != want {
				t.Errorf("received %q instead of %q", line, want)
			}
		case <-time.After(5 * time.Minute):
			t.Fatalf("%q was not received", want)
		}
	}
	expect("up")
	if err := syscall.Kill(syscall.Getpid(), syscall.SIGUSR2); err != nil {
		t.Fatal(err)
	}
	expect("rotated")
	stop()
	expect("forgotten")
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Minute):
		t.Error("SIGTERM was not repeated")
	}
}

func TestUnexpectedExitIsAnError(t *testing.T) {
	for command, want := range map[string]string{
		"exit 0":          "sh exited unexpectedly",
		"exit 3":          "running sh: exit status 3",
		"kill -SEGV $$":   "running sh: signal: segmentation fault",
		"echo gone; true": "sh exited unexpectedly",
	} {
		if err := Run(t.Context(), []string{"sh", "-c", command}, io.Discard); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", command, err)
		}
	}
	if err := Run(t.Context(), []string{"/no/such/daemon"}, &bytes.Buffer{}); err == nil {
		t.Error("a daemon that does not exist was run")
	}
}
