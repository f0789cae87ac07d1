package sshd

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
)

func TestGeneratedHostKeysAreValid(t *testing.T) {
	secret, err := NewHostKeys("hpc", "login-ssh-host-keys")
	if err != nil {
		t.Fatal(err)
	}
	if secret.Namespace != "hpc" || secret.Name != "login-ssh-host-keys" || len(secret.OwnerReferences) > 0 {
		t.Errorf("the Secret is %s/%s, owned by %v", secret.Namespace, secret.Name, secret.OwnerReferences)
	}
	want := map[string]string{
		"ssh_host_ed25519_key": ssh.KeyAlgoED25519, "ssh_host_ecdsa_key": ssh.KeyAlgoECDSA256,
		"ssh_host_rsa_key": ssh.KeyAlgoRSA,
	}
	got := map[string]string{}
	for _, name := range PrivateKeys(secret) {
		signer, err := ssh.ParsePrivateKey(secret.Data[name])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got[name] = signer.PublicKey().Type()
		public, _, _, _, err := ssh.ParseAuthorizedKey(secret.Data[name+".pub"])
		if err != nil || !bytes.Equal(public.Marshal(), signer.PublicKey().Marshal()) {
			t.Errorf("%s.pub is not its public key: %v", name, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
