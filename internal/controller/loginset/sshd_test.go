package loginset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestDigest(t *testing.T) {
	before := digest(fullest(), "config")
	if same := digest(fullest(), "config"); same != before {
		t.Errorf("the digest of the same scope is %s and %s", before, same)
	}
	tests := map[string]struct {
		change func(*scope)
		rolls  bool
	}{
		"replaces pods for another sssd.conf": {func(s *scope) { s.sssdConf = []byte("other") }, true},
		"replaces pods for another slurm.key": {func(s *scope) { s.slurmKey = []byte("other") }, true},
		"replaces pods for another host key": {
			func(s *scope) { s.hostKeys.Data["ssh_host_rsa_key"] = []byte("other") }, true},
		"distinguishes adjacent files": {
			func(s *scope) { s.sssdConf, s.slurmKey = append(s.sssdConf, s.slurmKey[0]), s.slurmKey[1:] }, true},
		"keeps pods for other notes":     {func(s *scope) { s.hostKeys.Data["notes"] = []byte("other") }, false},
		"keeps pods for authorized keys": {func(s *scope) { s.set.Spec.RootSSHAuthorizedKeys = "other" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := fullest()
			test.change(scope)
			if rolls := digest(scope, sshdConfig(scope.set, nil)) != digest(fullest(),
				sshdConfig(fullest().set, nil)); rolls != test.rolls {
				t.Errorf("replaces pods: %v", rolls)
			}
		})
	}
}

func TestChildrenContainNoSecrets(t *testing.T) {
	scope := fullest()
	scope.slurmKey, scope.sssdConf = []byte("canary-1"), []byte("canary-2")
	scope.hostKeys = &corev1.Secret{Data: map[string][]byte{"ssh_host_rsa_key": []byte("canary-3")}}
	children, err := build(scope, testImages)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(toYAML(t, children), "canary") {
		t.Error("a child of the LoginSet contains a secret")
	}
}
