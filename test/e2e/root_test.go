//go:build e2e

package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// R31: the operator's namespace enforces the restricted Pod Security Standard, and no process of the operator runs as
// root.
func (c *slurmCluster) operatorIsNotRoot(t *testing.T) {
	enforced := c.operator.MustRun(t, "get", "namespace", c.operator.Name, "--output",
		`jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}`)
	if enforced != "restricted" {
		t.Errorf("the operator's namespace enforces %q", enforced)
	}
	users, err := usersOf("/slurm-operator")
	if err != nil || len(users) == 0 {
		t.Fatalf("no process of the operator: %v", err)
	}
	for process, user := range users {
		if user == "0" {
			t.Errorf("process %s of the operator runs as root", process)
		}
	}
}

// usersOf returns the users of all processes of a program on this computer, in any container.
func usersOf(program string) (map[string]string, error) {
	directories, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil, err
	}
	users := map[string]string{}
	for _, directory := range directories {
		arguments, err := os.ReadFile(filepath.Join(directory, "cmdline"))
		if err != nil || !strings.HasPrefix(string(arguments), program+"\x00") {
			continue // it may have exited
		}
		status, err := os.ReadFile(filepath.Join(directory, "status"))
		if err != nil {
			continue
		}
		_, rest, found := strings.Cut(string(status), "\nUid:")
		fields := strings.Fields(rest)
		if !found || len(fields) < 2 {
			return nil, fmt.Errorf("%s has no user", directory)
		}
		users[directory] = fields[1] // the effective one
	}
	return users, nil
}
