package sshd

import "testing"

func TestSplitAtMatch(t *testing.T) {
	tests := map[string]struct{ config, global, matches string }{
		"nothing":           {},
		"only global lines": {config: "A 1\nB 2\n", global: "A 1\nB 2"},
		"only a Match":      {config: "Match all\n  A 1\n", matches: "Match all\n  A 1"},
		"both, in any case": {
			config: "A 1\n\tmATCH User x\n  B 2\nMatch all\n", global: "A 1",
			matches: "\tmATCH User x\n  B 2\nMatch all",
		},
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
