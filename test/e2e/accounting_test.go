//go:build e2e

package e2e_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// reportsWrongPassword checks that a wrong database password shows in the Accounting's conditions, and that slurmdbd
// recovers when the password is corrected.
func (c *slurmCluster) reportsWrongPassword(t *testing.T) {
	c.setPassword(t, "wrong")
	c.databaseIs(t, "False|DatabaseAccessDenied|", "Access denied for user", "the password in Secret mariadb")
	c.namespace.Eventually(t, time.Minute, "the Accounting degraded", func(ctx context.Context) error {
		return conditionIs(ctx, c.namespace, "accounting/slurm", "Degraded", "True|DatabaseAccessDenied")
	})
	c.setPassword(t, c.password)
	corrected := time.Now()
	c.databaseIs(t, "True|AsExpected|")
	becomesReady(t, c.namespace, time.Minute, "accounting/slurm")
	t.Logf("%s: slurmdbd is connected %.1f s after its password was corrected", c.version,
		time.Since(corrected).Seconds())
}

// runsJobsWithoutDatabase checks that jobs start and finish while the database is down, and that accounting records
// them when it is back.
func (c *slurmCluster) runsJobsWithoutDatabase(t *testing.T) {
	c.scaleDatabase(t, "0")
	gone := time.Now()
	c.databaseIs(t, "False|DatabaseUnreachable|", "check that the server runs")
	t.Logf("%s: the loss of the database is reported after %.1f s", c.version, time.Since(gone).Seconds())
	job := c.startJob(t)
	c.finishJob(t, job)

	c.scaleDatabase(t, "1")
	back := time.Now()
	c.databaseIs(t, "True|AsExpected|")
	t.Logf("%s: slurmdbd is connected %.1f s after the database was started", c.version, time.Since(back).Seconds())
	c.namespace.Eventually(t, 2*time.Minute, "the job in accounting", func(ctx context.Context) error {
		out, err := c.login(ctx, "sacct", "--noheader", "--parsable2", "--allocations", "--jobs="+job, "--format=state")
		if err == nil && strings.TrimSpace(out) != "COMPLETED" {
			err = fmt.Errorf("sacct shows %q", out)
		}
		return err
	})
	becomesReady(t, c.namespace, time.Minute, "accounting/slurm", "controller.slinky.slurm.net/slurm")
}

func (c *slurmCluster) isRegisteredInAccounting(t *testing.T) {
	t.Helper()
	c.namespace.Eventually(t, time.Minute, "the cluster in the accounting database", func(ctx context.Context) error {
		return c.accountingKnows(ctx, "e2e")
	})
}

// accountingKnows returns an error unless a cluster is registered with an address.
func (c *slurmCluster) accountingKnows(ctx context.Context, name string) error {
	out, err := c.login(ctx, "sacctmgr", "--noheader", "--parsable2", "show", "cluster",
		"format=cluster,controlhost,controlport")
	if err != nil {
		return err
	}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSpace(line), "|")
		if len(fields) == 3 && fields[0] == name && fields[1] != "" && fields[2] == "6817" {
			return nil
		}
	}
	return fmt.Errorf("sacctmgr shows %q", out)
}

// databaseIs waits for the condition DatabaseReachable, with all words in its message.
func (c *slurmCluster) databaseIs(t *testing.T, want string, words ...string) {
	t.Helper()
	c.namespace.Eventually(t, 2*time.Minute, "DatabaseReachable "+want, func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "accounting/slurm", "--output",
			`jsonpath={range .status.conditions[?(@.type=="DatabaseReachable")]}{.status}|{.reason}|{.message}{end}`)
		if err != nil {
			return err
		}
		for _, word := range words {
			if !strings.Contains(out, word) {
				err = errors.Join(err, fmt.Errorf("%q is missing", word))
			}
		}
		if !strings.HasPrefix(out, want) || err != nil {
			return errors.Join(fmt.Errorf("the condition is %q", out), err)
		}
		return nil
	})
}

// setPassword changes the password that slurmdbd uses. The database server read its own when it started.
func (c *slurmCluster) setPassword(t *testing.T, password string) {
	t.Helper()
	if _, err := c.namespace.Run(t.Context(), "patch", "secret/mariadb", "--type=merge", "--patch",
		fmt.Sprintf(`{"data":{"password":%q}}`, base64.StdEncoding.EncodeToString([]byte(password)))); err != nil {
		t.Fatal(err)
	}
}

func (c *slurmCluster) scaleDatabase(t *testing.T, replicas string) {
	t.Helper()
	if _, err := c.namespace.Run(t.Context(), "scale", "statefulset/mariadb", "--replicas="+replicas); err != nil {
		t.Fatal(err)
	}
	if _, err := c.namespace.Run(t.Context(), "rollout", "status", "statefulset/mariadb", "--timeout=10m"); err != nil {
		t.Fatal(err)
	}
}
