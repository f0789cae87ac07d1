package loginset

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSplitAtMatch(t *testing.T) {
	tests := map[string]struct{ config, global, matches string }{
		"nothing":                       {},
		"only global lines":             {config: "A 1\nB 2\n", global: "A 1\nB 2"},
		"only a Match":                  {config: "Match all\n  A 1\n", matches: "Match all\n  A 1"},
		"both, in any case":             {config: "A 1\n\tmATCH User x\n  B 2\nMatch all\n", global: "A 1", matches: "\tmATCH User x\n  B 2\nMatch all"},
		"an equals sign":                {config: "Match=User x\nB 2", matches: "Match=User x\nB 2"},
		"a word that begins like Match": {config: "Matching no\n", global: "Matching no"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			global, matches := splitAtMatch(test.config)
			if global != test.global || matches != test.matches {
				t.Errorf("global %q, matches %q", global, matches)
			}
		})
	}
}

func TestDigest(t *testing.T) {
	before := digest(fullest(), "config")
	if same := digest(fullest(), "config"); same != before {
		t.Errorf("the digest of the same is %s and %s", before, same)
	}
	tests := map[string]struct {
		change func(*scope)
		rolls  bool
	}{
		"replaces pods for another sssd.conf": {func(s *scope) { s.sssdConf = []byte("other") }, true},
		"replaces pods for another slurm.key": {func(s *scope) { s.slurmKey = []byte("other") }, true},
		"replaces pods for another host key":  {func(s *scope) { s.hostKeys.Data["ssh_host_rsa_key"] = []byte("other") }, true},
		"tells one file from the next":        {func(s *scope) { s.sssdConf, s.slurmKey = append(s.sssdConf, s.slurmKey[0]), s.slurmKey[1:] }, true},
		"lets pods be for other notes":        {func(s *scope) { s.hostKeys.Data["notes"] = []byte("other") }, false},
		"lets pods be for authorized keys":    {func(s *scope) { s.set.Spec.RootSSHAuthorizedKeys = "other" }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scope := fullest()
			test.change(scope)
			if rolls := digest(scope, sshdConfig(scope.set, nil)) != digest(fullest(), sshdConfig(fullest().set, nil)); rolls != test.rolls {
				t.Errorf("replaces pods: %v", rolls)
			}
		})
	}
}

func TestNothingSecretIsInThePodTemplateOrTheConfigMap(t *testing.T) {
	scope := fullest()
	scope.slurmKey, scope.sssdConf = []byte("canary-1"), []byte("canary-2")
	scope.hostKeys = &corev1.Secret{Data: map[string][]byte{"ssh_host_rsa_key": []byte("canary-3")}}
	children, err := build(scope, testImages)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(toYAML(t, children), "canary") {
		t.Error("a child of the LoginSet gives a secret away")
	}
}
