//go:build e2e

package e2e_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"
)

// accounts adds the user alice with an authorized key to the pods of a NodeSet.
const accounts = `template: {spec: {
    initContainers: [{name: accounts, image: %[1]s,
      volumeMounts: [{name: accounts, mountPath: /accounts}], command: [sh, -ec, "
      cp -p /etc/passwd /etc/group /etc/shadow /accounts\n
      echo alice:x:2000:2000::/tmp:/bin/sh >>/accounts/passwd\n
      echo alice:x:2000: >>/accounts/group\n
      echo 'alice:*:20000::::::' >>/accounts/shadow\n
      echo '%[2]s' >/accounts/key"]}],
    containers: [{name: slurmd, volumeMounts: [
      {name: accounts, mountPath: /etc/passwd, subPath: passwd},
      {name: accounts, mountPath: /etc/group, subPath: group},
      {name: accounts, mountPath: /etc/shadow, subPath: shadow},
      {name: accounts, mountPath: /etc/authorized_keys_alice, subPath: key}]}],
    volumes: [{name: accounts, emptyDir: {}}]}}`

// A user can ssh to a node while one of her jobs runs there, and the session becomes part of the job.
func (c *slurmCluster) allowsSSHOnlyWithJob(t *testing.T) {
	private, authorized := sshKeyPair(t)
	c.applyNodeSet(t, "shell", "replicas: 2",
		"ssh: {enabled: true, extraSshdConfig: 'AuthorizedKeysFile /etc/authorized_keys_%u'}",
		fmt.Sprintf(accounts, smokeSettings{}.Image("slurmd", c.version), authorized))
	c.configurationIs(t, "True|Applied")
	if _, err := c.login(t.Context(), "sh", "-c",
		"umask 077; echo "+base64.StdEncoding.EncodeToString(private)+" | base64 --decode >/tmp/alice"); err != nil {
		t.Fatal(err)
	}
	ssh := func(ctx context.Context, node, command string) (string, error) {
		return c.login(ctx, "ssh", "-i", "/tmp/alice", "-o", "StrictHostKeyChecking=accept-new", "-o", "BatchMode=yes",
			"alice@"+node+".slurm-workers", command)
	}
	refused := func(node string) {
		c.namespace.Eventually(t, time.Minute, "a refusal with a reason", func(ctx context.Context) error {
			out, err := ssh(ctx, node, "true")
			if err == nil {
				return fmt.Errorf("ssh succeeded and printed %q", out)
			}
			if !strings.Contains(err.Error(), "you have no active jobs on this node") {
				return err
			}
			return nil
		})
	}
	refused("shell-0")
	job := c.namespace.MustRun(t, "exec", "shell-0", "--", "setpriv", "--reuid=alice", "--regid=alice",
		"--clear-groups",
		"sbatch", "--parsable", "--nodelist=shell-0", "--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 1000")
	c.namespace.Eventually(t, time.Minute, "a session in the job", func(ctx context.Context) error {
		out, err := ssh(ctx, "shell-0", "echo $(id -un)@$(hostname) $SLURM_JOB_ID")
		if err == nil && strings.TrimSpace(out) != "alice@shell-0 "+job {
			err = fmt.Errorf("it is %q", out)
		}
		return err
	})
	refused("shell-1") // her job is elsewhere
	if _, err := c.login(t.Context(), "scancel", job); err != nil {
		t.Fatal(err)
	}
	refused("shell-0")
	c.deleteNodeSet(t, "shell")
}
