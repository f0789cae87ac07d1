//go:build slurm

package slurmdbd

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// asCommand in the environment makes the test binary act as `slurm-operator slurmdbd`.
const asCommand = "SLURMDBD_TEST_RUNS_AS_COMMAND"

// keyFile is the JWT key on the host of slurmdbd.
const keyFile = "/etc/slurm/jwt_hs256.key"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	err := Run(ctx, Options{Command: os.Args[1:], Listen: ":6816", Key: keyFile, Log: os.Stderr})
	if err != nil {
		panic(err)
	}
}

// A slurmdbd that converts a table is killed by SIGTERM, and the helper keeps the signal back until it has started.
func TestRealConversionIsNotInterrupted(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			database := conversion{slurmnet.Start(t, slurmnet.Options{Version: version, Accounting: true})}
			program, err := os.ReadFile("/proc/self/exe")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(database.Slurmdbd.Path("/helper"), program, 0o555); err != nil {
				t.Fatal(err)
			}
			database.WaitFor(t, "the tables of the cluster", func(context.Context) error {
				if database.sql(t, "SELECT 1 FROM information_schema.tables WHERE table_name = 'slurmnet_step_table'") == "" {
					return errors.New("they do not exist")
				}
				return nil
			})
			database.Slurmdbd.Stop(t)

			finish := database.begin(t, "/usr/sbin/slurmdbd", "-D")
			log := len(database.Slurmdbd.Logs())
			if !database.Slurmdbd.Terminate(t, time.Minute) {
				t.Error("a converting slurmdbd handles SIGTERM now, and could be terminated without the helper")
			}
			if end := database.Slurmdbd.Logs()[log:]; strings.Contains(end, "SIGTERM received") {
				t.Errorf("its log is %s", end)
			}
			database.sql(t, "KILL USER slurm") // the statement of the killed slurmdbd, which still waits for the lock
			finish()

			finish = database.begin(t, "env", asCommand+"=yes", "/helper", "/usr/sbin/slurmdbd", "-D")
			got := database.report(t)
			if got.Phase != Converting || !strings.HasPrefix(got.Step, "adding column submit_line after ") ||
				got.Since.IsZero() || !strings.HasPrefix(got.Release, version+".") {
				t.Errorf("the helper reports %+v", got)
			}
			if database.Slurmdbd.Terminate(t, 2*time.Second) {
				t.Fatal("slurmdbd was terminated while it converted its database")
			}
			finish()
			if !database.Slurmdbd.Terminate(t, time.Minute) {
				t.Error("slurmdbd was not terminated after it had converted its database")
			}
			if end := database.Slurmdbd.Logs()[log:]; !strings.Contains(end, "slurmdbd version "+got.Release+" started") {
				t.Errorf("it has not started: %s", end)
			}
		})
	}
}

// A conversion is a slurmdbd that has to convert a table of its database, which it cannot lock.
type conversion struct{ *slurmnet.Cluster }

const table = "slurm_acct_db.slurmnet_step_table"

// begin starts slurmdbd with a command, and waits until it converts. The conversion lasts until the returned function
// is called.
func (c conversion) begin(t *testing.T, command ...string) (finish func()) {
	t.Helper()
	c.sql(t, "ALTER TABLE "+table+" DROP COLUMN IF EXISTS submit_line")
	var locked sync.WaitGroup
	locked.Go(func() { // it ends with an error, because the connection is killed
		_, _ = c.MariaDB.Run(t.Context(), "mariadb", "-e", "LOCK TABLES "+table+" READ; DO SLEEP(3600)")
	})
	var id string
	c.WaitFor(t, "the lock", func(context.Context) error {
		id = c.sql(t, "SELECT id FROM information_schema.processlist WHERE info = 'DO SLEEP(3600)'")
		if id == "" {
			return errors.New("it is not locked")
		}
		return nil
	})
	log := len(c.Slurmdbd.Logs())
	c.Slurmdbd.StartWith(t, command...)
	c.WaitFor(t, "the conversion", func(context.Context) error {
		if !strings.Contains(c.Slurmdbd.Logs()[log:], "adding column submit_line") {
			return errors.New("it has not begun")
		}
		return nil
	})
	return func() {
		c.sql(t, "KILL "+id)
		locked.Wait()
	}
}

func (c conversion) sql(t *testing.T, statement string) string {
	t.Helper()
	return c.MariaDB.MustRun(t, "mariadb", "--skip-column-names", "-e", statement)
}

// report returns what the helper reports.
func (c conversion) report(t *testing.T) Report {
	t.Helper()
	key, err := os.ReadFile(c.Slurmdbd.Path(keyFile))
	if err != nil {
		t.Fatal(err)
	}
	var got Report
	c.WaitFor(t, "the report", func(ctx context.Context) error {
		got, err = report.Fetch[Report](ctx, net.JoinHostPort(c.Slurmdbd.Address(), "6816"), ReportPath, key)
		if err != nil {
			return fmt.Errorf("fetching the report: %w", err)
		}
		return nil
	})
	return got
}
