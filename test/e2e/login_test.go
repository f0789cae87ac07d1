//go:build e2e

package e2e_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func (c *slurmCluster) allowsSSHLogin(t *testing.T) {
	next, authorized := sshKeyPair(t)
	c.namespace.CreateSecret(t, "ssh-client", map[string][]byte{"first": c.sshKey, "next": next})
	c.namespace.Apply(t, fmt.Appendf(nil, `
apiVersion: v1
kind: Pod
metadata: {name: ssh-client}
spec:
  containers:
  - name: ssh
    image: %s/login:%s
    command: [sleep, infinity]
    volumeMounts: [{name: key, mountPath: /key}]
  volumes: [{name: key, secret: {secretName: ssh-client, defaultMode: 0400}}]
`, *imagePrefix, c.version))
	c.namespace.Eventually(t, time.Minute, "srun through ssh", func(ctx context.Context) error {
		out, err := c.ssh(ctx, "first", "sinfo --noheader --format=%D && srun --nodes=2 hostname")
		if err == nil && len(strings.Fields(out)) != 3 {
			err = fmt.Errorf("it printed %q", out)
		}
		return err
	})
	if _, err := c.ssh(t.Context(), "next", "true"); err == nil {
		t.Error("ssh accepts a key that is not authorized")
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"rootSshAuthorizedKeys": authorized}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.namespace.Run(t.Context(), "patch", "loginset/login", "--type=merge", "--patch",
		string(patch)); err != nil {
		t.Fatal(err)
	}
	changed := time.Now()
	c.namespace.Eventually(t, 2*time.Minute, "ssh to accept the new key", func(ctx context.Context) error {
		_, err := c.ssh(ctx, "next", "true")
		return err
	})
	t.Logf("%s: ssh accepts a new authorized key after %.1f s", c.version, time.Since(changed).Seconds())
	if _, err := c.ssh(t.Context(), "first", "true"); err == nil {
		t.Error("ssh accepts a key that is no longer authorized")
	}
}

// ssh runs a command on the login node through ssh, with one of two keys.
func (c *slurmCluster) ssh(ctx context.Context, key, command string) (string, error) {
	return c.namespace.Exec(ctx, "pod/ssh-client", "ssh", "-i", "/key/"+key, "-o", "StrictHostKeyChecking=accept-new",
		"-o", "ConnectTimeout=5", "root@login", command)
}

// sshKeyPair generates a private key in OpenSSH format and its authorized_keys line.
func sshKeyPair(t *testing.T) (private []byte, authorized string) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "e2e")
	if err != nil {
		t.Fatal(err)
	}
	converted, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(block), strings.TrimSpace(string(ssh.MarshalAuthorizedKey(converted)))
}
