package slurmdbd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
)

const (
	unreachable = "[2026-11-15T05:21:06.022] error: mysql_real_connect failed: 2002 Can't connect to server on " +
		"'mariadb' (115)\n" +
		"[2026-11-15T05:21:06.022] error: The database must be up when starting the MYSQL plugin.  Trying again in " +
		"5 seconds.\n"
	denied = "slurmdbd: error: mysql_real_connect failed: 1045 Access denied for user 'slurm'@'slurmdbd' (using " +
		"password: YES)\n"
	running = "slurmdbd: slurmdbd version 24.11.5 started\n"
)

func TestWatch(t *testing.T) {
	tests := map[string]struct {
		log   string
		after time.Duration
		want  Report
	}{
		"reports nothing at first": {},
		"reports an unreachable server": {
			log: unreachable, want: Report{2002, "Can't connect to server on 'mariadb' (115)"},
		},
		"reports a wrong password": {
			log: denied, want: Report{1045, "Access denied for user 'slurm'@'slurmdbd' (using password: YES)"},
		},
		"reports the last error": {
			log:  unreachable + denied,
			want: Report{1045, "Access denied for user 'slurm'@'slurmdbd' (using password: YES)"},
		},
		"clears the error when slurmdbd starts": {log: denied + running},
		"reports a later error": {
			log: denied + running + unreachable, want: Report{2002, "Can't connect to server on 'mariadb' (115)"},
		},
		"reports the error for a while": {
			log: unreachable, after: errorTTL, want: Report{2002, "Can't connect to server on 'mariadb' (115)"},
		},
		"drops an old error": {log: unreachable, after: errorTTL + 1},
		"handles long lines": {
			log:  strings.Repeat("x", 1<<20) + "\n" + unreachable,
			want: Report{2002, "Can't connect to server on 'mariadb' (115)"},
		},
		"waits for the end of the line": {log: strings.TrimSpace(denied)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := time.Unix(1_800_000_000, 0)
			watch := &watch{now: func() time.Time { return now }}
			for chunk := range bytes.SplitSeq([]byte(test.log), []byte("r")) { // a pipe splits anywhere
				if _, err := watch.Write(chunk); err != nil {
					t.Fatal(err)
				}
				if _, err := watch.Write([]byte("r")); err != nil {
					t.Fatal(err)
				}
			}
			now = now.Add(test.after)
			if got := watch.Report(); got != test.want {
				t.Errorf("reports %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestRunServesReportUntilContextIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	address, key := freeAddress(t), filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	var log bytes.Buffer
	go func() {
		script := "printf %s \"$0\" >&2; trap 'echo bye; exit 0' TERM; while :; do sleep 0.1; done"
		ended <- Run(ctx, Options{Command: []string{"sh", "-c", script, denied}, Listen: address, Key: key, Log: &log})
	}()
	for {
		current, err := report.Fetch[Report](ctx, address, ReportPath, []byte("0123456789abcdef"))
		if err == nil && current.Code == 1045 {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("it has exited: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	if _, err := report.Fetch[Report](ctx, address, ReportPath, []byte("another key")); err == nil {
		t.Error("another key reads the report")
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("it exited with %v", err)
	}
	if log.String() != denied+"bye\n" {
		t.Errorf("the log is %q", log.String())
	}
}

func TestRunFailsWhenSlurmdbdExits(t *testing.T) {
	for name, command := range map[string][]string{
		"that cannot start": {"/no/such/slurmdbd"},
		"that fails":        {"false"},
		"that exits":        {"true"},
		"that is killed":    {"sh", "-c", "kill -KILL $$"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Run(t.Context(), Options{Command: command, Listen: "127.0.0.1:0", Log: &bytes.Buffer{}})
			if err == nil || errors.Is(err, context.Canceled) {
				t.Errorf("the error is %v", err)
			}
		})
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
