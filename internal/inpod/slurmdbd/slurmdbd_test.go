package slurmdbd

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
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
	connects   = "slurmdbd: MySQL server version is: 11.8.2-MariaDB\n"
	converting = "slurmdbd: pre-converting cluster resource table\n" +
		"slurmdbd: pre-converting job table for linux\n"
	addsColumn = "[2026-11-15T05:21:07.022] adding column segment_size after script_hash_inx in table " +
		"\"linux_job_table\"\n"
	converted = "slurmdbd: Conversion done: success!\n"
	running   = "slurmdbd: slurmdbd version 24.11.5 started\n"
)

func TestWatch(t *testing.T) {
	const deniedText = "Access denied for user 'slurm'@'slurmdbd' (using password: YES)"
	const unreachableText = "Can't connect to server on 'mariadb' (115)"
	begin := time.Unix(1_800_000_000, 0)
	tests := map[string]struct {
		log   string
		after time.Duration
		want  Report
	}{
		"is starting at first": {want: Report{Phase: Starting}},
		"reports an unreachable server": {
			log: unreachable, want: Report{Code: 2002, Text: unreachableText, Phase: Waiting},
		},
		"reports a wrong password": {log: denied, want: Report{Code: 1045, Text: deniedText, Phase: Waiting}},
		"reports the last error": {
			log: unreachable + denied, want: Report{Code: 1045, Text: deniedText, Phase: Waiting},
		},
		"clears the error when slurmdbd starts": {log: denied + running, want: Report{Phase: Started, Release: "24.11.5"}},
		"reports a later error": {
			log:  denied + running + unreachable,
			want: Report{Code: 2002, Text: unreachableText, Phase: Started, Release: "24.11.5"},
		},
		"waits until the next attempt": {
			log: unreachable, after: attemptTTL, want: Report{Code: 2002, Text: unreachableText, Phase: Waiting},
		},
		"may convert when no further attempt fails": {
			log: unreachable, after: attemptTTL + 1, want: Report{Code: 2002, Text: unreachableText, Phase: Starting},
		},
		"reports the error for a while": {
			log: unreachable, after: errorTTL, want: Report{Code: 2002, Text: unreachableText, Phase: Starting},
		},
		"drops an old error":                     {log: unreachable, after: errorTTL + 1, want: Report{Phase: Starting}},
		"may convert as soon as it is connected": {log: denied + connects, want: Report{Phase: Starting}},
		"reports the last step of a conversion": {
			log:  connects + converting,
			want: Report{Phase: Converting, Since: begin, Step: "pre-converting job table for linux"},
		},
		"reports a conversion however long it takes": {
			log: denied + connects + converting, after: 48 * time.Hour,
			want: Report{Phase: Converting, Since: begin, Step: "pre-converting job table for linux"},
		},
		"reports changed columns": {
			log: connects + addsColumn, want: Report{Phase: Converting, Since: begin,
				Step: `adding column segment_size after script_hash_inx in table "linux_job_table"`},
		},
		"converts until it has started": {
			log:  connects + converting + converted,
			want: Report{Phase: Converting, Since: begin, Step: "Conversion done: success!"},
		},
		"ends the conversion when slurmdbd starts": {
			log: connects + converting + converted + running, want: Report{Phase: Started, Release: "24.11.5"},
		},
		"ignores changed tables of a slurmdbd that has started": {
			log: running + addsColumn, want: Report{Phase: Started, Release: "24.11.5"},
		},
		"handles long lines": {
			log:  strings.Repeat("x", 1<<20) + "\n" + unreachable,
			want: Report{Code: 2002, Text: unreachableText, Phase: Waiting},
		},
		"waits for the end of the line": {log: strings.TrimSpace(denied), want: Report{Phase: Starting}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			now := begin
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

// Each line of a conversion is one, and none of an ordinary start is.
func TestStepsOfConversionAreRecognized(t *testing.T) {
	for line, want := range map[string]bool{
		"pre-converting cluster resource table":                                                                    true,
		"pre-converting job table for linux":                                                                       true,
		"pre-converting step table for linux":                                                                      true,
		"post-converting assoc table for linux":                                                                    true,
		"Setting cluster id '12' on cluster linux":                                                                 true,
		"adding column id after mod_time in table cluster_table":                                                   true,
		"adding column id at the beginning of table cluster_table":                                                 true,
		"dropping column lft from table \"linux_assoc_table\"":                                                     true,
		"adding unique index udex (name(42)) to table qos_table":                                                   true,
		"adding key user (user(42)) to table acct_coord_table":                                                     true,
		"dropping key reserv_id from table \"linux_job_table\"":                                                    true,
		"dropping unique index udex from table \"linux_assoc_table\"":                                              true,
		"MariaDB >= 10.2.1 in use with a table from an earlier version or from MySQL. Updating table qos_table...": true,
		"Conversion done: success!":                                                                                true,
		"MySQL server version is: 11.8.2-MariaDB":                                                                  false,
		"accounting_storage/as_mysql: _check_database_variables: info":                                             false,
		"slurmdbd version 26.05.1 started":                                                                         false,
		"error: Database settings not recommended values: innodb_buffer_pool_size innodb_lock_wait_timeout":        false,
	} {
		if got := step.MatchString("[2026-11-15T05:21:06.022] " + line); got != want {
			t.Errorf("%q is a step of a conversion: %v", line, got)
		}
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

// A slurmdbd that converts its database has no handler for SIGTERM, and is killed by it.
func TestConvertingSlurmdbdIsNotTerminated(t *testing.T) {
	const handler, none = "trap 'echo exits; exit 0' TERM; while :; do sleep 0.1; done", "exec sleep 1000"
	for name, test := range map[string]struct {
		log, converted, then string
	}{
		"until it has started":                    {connects + converting, running, none},
		"until it waits for its database":         {"", denied, none},
		"until it has started at a low log level": {"", "", handler},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, terminate := context.WithCancel(t.Context())
			defer terminate()
			// It converts for another second after it should have been terminated.
			requested := filepath.Join(t.TempDir(), "requested")
			script := `printf %s "$0"; while [ ! -e "$2" ]; do sleep 0.1; done; sleep 1; printf %s "$1"; ` + test.then
			log, ended := newSignalled(), make(chan error, 1)
			go func() {
				ended <- Run(ctx, Options{
					Command: []string{"sh", "-c", script, test.log + "begun\n", test.converted + "converted\n", requested},
					Listen:  "127.0.0.1:0", Log: log,
				})
			}()
			log.await(t, "begun")
			terminate()
			if err := os.WriteFile(requested, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			err := <-ended
			want := test.log + "begun\n" + test.converted + "converted\n"
			if test.then == handler {
				want += "exits\n"
			}
			if log.String() != want || (err == nil) != (test.then == handler) {
				t.Errorf("it exited with %v and the log %q", err, log)
			}
		})
	}
}

// Without its database, slurmdbd handles SIGTERM and may never exit.
func TestSlurmdbdThatDoesNotExitIsKilled(t *testing.T) {
	ctx, terminate := context.WithCancel(t.Context())
	defer terminate()
	log, ended := newSignalled(), make(chan error, 1)
	go func() {
		script := `trap '' TERM; printf %s "$0"; while :; do sleep 0.1; done`
		ended <- Run(ctx, Options{
			Command: []string{"sh", "-c", script, running}, Listen: "127.0.0.1:0", Log: log, ExitTimeout: time.Millisecond,
		})
	}()
	log.await(t, running)
	terminate()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("it exited with %v", err)
	}
}

func TestReleaseIsReportedBeforeSlurmdbdLogsIt(t *testing.T) {
	for name, test := range map[string]struct{ script, want string }{
		"of Slurm":            {"echo slurm 26.05.1", "26.05.1"},
		"of Slurm in Debian":  {"echo slurm-wlm 24.11.5", "24.11.5"},
		"none without output": {"true", ""},
		"none of a failure":   {"echo slurm 26.05.1; exit 1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "slurmdbd")
			script := "#!/bin/sh\n[ \"$*\" = -V ] || exit 1\n" + test.script + "\n"
			if err := os.WriteFile(program, []byte(script), 0o700); err != nil { //nolint:gosec // it is executed
				t.Fatal(err)
			}
			if got := releaseOf(t.Context(), program); got != test.want {
				t.Errorf("the release is %q", got)
			}
		})
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

// A signalled is a log that a test can wait for.
type signalled struct {
	mutex   sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newSignalled() *signalled { return &signalled{changed: make(chan struct{}, 1)} }

func (s *signalled) Write(data []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return s.text.Write(data)
}

func (s *signalled) String() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.text.String()
}

// await waits until the log contains a text.
func (s *signalled) await(t *testing.T, text string) {
	t.Helper()
	for !strings.Contains(s.String(), text) {
		select {
		case <-s.changed:
		case <-t.Context().Done():
			t.Fatalf("the log is %q", s)
		}
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
