//go:build slurm

package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/sshd"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// TestRealSSHRequiresAJob logs in to a Slurm node as a user without and with a job on it.
func TestRealSSHRequiresAJob(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			slurm := slurmnet.Start(t, slurmnet.Options{Version: version, Nodes: 1})
			node := startSSH(t, slurm)
			slurm.Login.MustRun(t, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "/root/key")
			key := slurm.Login.MustRun(t, "cat", "/root/key.pub")
			for _, host := range []*slurmnet.Daemon{slurm.Login, node} {
				host.MustRun(t, "sh", "-ec", `
echo alice:x:2000:2000::/tmp:/bin/sh >>/etc/passwd
echo 'alice:*:20000::::::' >>/etc/shadow
echo alice:x:2000: >>/etc/group
echo "$1" >/etc/authorized_keys_alice`, "sh", key)
			}
			ssh := func(ctx context.Context, command string) (string, error) {
				return slurm.Login.Run(ctx, "ssh", "-i", "/root/key", "-o", "StrictHostKeyChecking=no", "-o",
					"BatchMode=yes", "alice@node-0", command)
			}
			refused := func(ctx context.Context) error {
				_, err := ssh(ctx, "true")
				if err == nil {
					return errors.New("login without a job succeeded")
				}
				if !strings.Contains(err.Error(), "you have no active jobs on this node") {
					return err
				}
				return nil
			}
			slurm.WaitFor(t, "login to be refused without a job", refused)
			job := slurm.Login.MustRun(t, "setpriv", "--reuid=2000", "--regid=2000", "--clear-groups", "sbatch",
				"--parsable", "--partition=gpu", "--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 1000")
			slurm.WaitFor(t, "login to the job", func(ctx context.Context) error {
				out, err := ssh(ctx, "echo $(id -un) $SLURM_JOB_ID")
				if err == nil && strings.TrimSpace(out) != "alice "+job {
					t.Fatalf("the session has user and job %q, want alice and job %s", out, job)
				}
				return err
			})
			slurm.Login.MustRun(t, "scancel", job)
			slurm.WaitFor(t, "login to be refused after the job", refused)
		})
	}
}

// startSSH starts slurmd and sshd on a host, as a pod of a NodeSet would.
func startSSH(t *testing.T, slurm *slurmnet.Cluster) *slurmnet.Daemon {
	t.Helper()
	node, set := slurm.Nodes[0], nodeSet("gpu", "")
	set.Spec.SSH.Enabled, set.Spec.SSH.ExtraSshdConfig = true, "AuthorizedKeysFile /etc/authorized_keys_%u"
	node.Stop(t)
	slurm.Login.MustRun(t, "scontrol", "delete", "NodeName="+node.Name)
	configure(t, slurm, set)
	template, err := worker.Template(worker.Set{NodeSet: set, Controller: external()})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sshd.NewHostKeys("hpc", "keys")
	if err != nil {
		t.Fatal(err)
	}
	// Kubernetes would mount it from the annotation.
	keys.Data["sshd_config"] = []byte(template.Annotations["nodeset.slinky.slurm.net/sshd-config"])
	for name, content := range keys.Data {
		node.Write(t, "/etc/ssh/nodeset/"+name, string(content))
	}
	start(t, node, set)
	idle(t, slurm, node.Name)
	return node
}
