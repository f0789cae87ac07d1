package report

import (
	"bytes"
	"testing"
	"time"

	slurmjwt "github.com/slurm-operator/slurm-operator/internal/jwt"
)

func TestTokenIsForOneReportOfOnePod(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	key, otherKey := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	token := func(key []byte, audience string, age time.Duration) string {
		text, err := sign(key, audience, now.Add(-age))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	const audience = "10.0.0.1:6816/state"
	slurm, err := slurmjwt.Sign(key, "slurm", now, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	// {"alg":"none"} and {"aud":"10.0.0.1:6816/state","exp":1800000060}
	const unsigned = "eyJhbGciOiJub25lIn0." +
		"eyJhdWQiOiIxMC4wLjAuMTo2ODE2L3N0YXRlIiwiZXhwIjoxODAwMDAwMDYwfQ."
	tests := map[string]struct {
		token string
		valid bool
	}{
		"fresh":                             {token(key, audience, 0), true},
		"of a clock that is behind":         {token(key, audience, 15*time.Minute), true},
		"of a clock that is ahead":          {token(key, audience, -15*time.Minute), true},
		"of a clock that is far behind":     {token(key, audience, 17*time.Minute), false},
		"of a clock that is far ahead":      {token(key, audience, -16*time.Minute), false},
		"signed with another key":           {token(otherKey, audience, 0), false},
		"for another pod":                   {token(key, "10.0.0.2:6816/state", 0), false},
		"for another report":                {token(key, "10.0.0.1:6816/database", 0), false},
		"for Slurm":                         {slurm.Text, false},
		"none":                              {"", false},
		"not a token":                       {"abc", false},
		"without a signature":               {unsigned, false},
		"signed with a prefix of the token": {token(key, audience, 0)[:80], false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := verify(key, test.token, audience, now); (err == nil) != test.valid {
				t.Errorf("valid: %t, want %t: %v", err == nil, test.valid, err)
			}
		})
	}
	if err := verify(nil, token(key, audience, 0), audience, now); err == nil {
		t.Error("a token is valid without a key")
	}
}

// A stolen token of a report must be worth nothing in Slurm.
func TestSlurmRefusesTokensOfReports(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	token, err := sign(key, "10.0.0.1:6816/state", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := slurmjwt.Parse(key, token); err == nil {
		t.Error("the JWT key signed the token")
	}
}

func TestAudienceIsTheAddress(t *testing.T) {
	for address, want := range map[string]string{
		"10.0.0.1:6816": "10.0.0.1:6816/state", "[::ffff:10.0.0.1]:6816": "10.0.0.1:6816/state",
		"[2001:db8::1]:6816": "[2001:db8::1]:6816/state", "[fe80::1%eth0]:6816": "[fe80::1]:6816/state",
	} {
		if got, err := audienceOf(address, "/state"); err != nil || got != want {
			t.Errorf("audience for %s is %q: %v", address, got, err)
		}
	}
	if _, err := audienceOf("slurm.example.com:6816", "/state"); err == nil {
		t.Error("a host name has an audience")
	}
}
