package certificate

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"testing"
	"time"
)

const (
	name     = "slurm-operator-webhook.slurm-operator.svc"
	day      = 24 * time.Hour
	lifetime = 360 * day
)

var (
	start = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	year  = Schedule{Names: []string{name}, Lifetime: lifetime}
)

func TestSchedule(t *testing.T) {
	good, next := makePair(t, name, start), makePair(t, name, start.Add(240*day))
	tests := map[string]struct {
		is  Set
		now time.Time
		// current, next and previous name the expected certificate: an existing one, a new one, or none.
		current, next, previous string
		changed                 bool
	}{
		"generates the first certificate": {Set{}, start, "new", "none", "none", true},
		"keeps a fresh certificate": {
			Set{Current: good}, start.Add(239 * day), "good", "none", "none", false,
		},
		"generates a successor when a third is left": {
			Set{Current: good}, start.Add(241 * day), "good", "new", "none", true,
		},
		"does not serve the successor yet": {
			Set{Current: good, Next: next}, start.Add(299 * day), "good", "next", "none", false,
		},
		"serves the successor when a sixth is left": {
			Set{Current: good, Next: next}, start.Add(301 * day), "next", "none", "good", true,
		},
		"trusts the predecessor while it is valid": {
			Set{Current: next, Previous: good.Certificate}, start.Add(359 * day), "next", "none", "good", false,
		},
		"drops the predecessor when it has expired": {
			Set{Current: next, Previous: good.Certificate}, start.Add(361 * day), "next", "none", "none", true,
		},
		"generates a new one after a missed rotation": {
			Set{Current: good}, start.Add(361 * day), "new", "none", "good", true,
		},
		"serves the successor after a missed rotation": {
			Set{Current: good, Next: next}, start.Add(361 * day), "next", "none", "good", true,
		},
		"generates a new one for another name": {
			Set{Current: makePair(t, "other", start)}, start, "new", "none", "other", true,
		},
		"generates a new one when the certificate is damaged": {
			Set{Current: Pair{[]byte("x"), good.Key}}, start, "new", "none", "other", true,
		},
		"generates a new one when the key does not match": {
			Set{Current: Pair{good.Certificate, next.Key}}, start, "new", "none", "good", true,
		},
		"generates another successor when it is damaged": {
			Set{Current: good, Next: Pair{[]byte("x"), nil}}, start.Add(241 * day), "good", "new", "none", true,
		},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			got, changed, err := year.Advance(test.is, test.now)
			if err != nil {
				t.Fatal(err)
			}
			called := func(certificate []byte) string {
				switch {
				case len(certificate) == 0:
					return "none"
				case bytes.Equal(certificate, good.Certificate):
					return "good"
				case bytes.Equal(certificate, next.Certificate):
					return "next"
				case bytes.Equal(certificate, test.is.Current.Certificate):
					return "other"
				}
				return "new"
			}
			current, next, previous := called(got.Current.Certificate), called(got.Next.Certificate), called(
				got.Previous)
			if current != test.current || next != test.next || previous != test.previous || changed != test.changed {
				t.Errorf("current is %s, next %s, previous %s, changed %t, want %s, %s, %s, %t",
					current, next, previous, changed, test.current, test.next, test.previous, test.changed)
			}
			if again := ReadSet(got.Data()); !bytes.Equal(again.Bundle(test.now), got.Bundle(test.now)) {
				t.Error("the Secret does not hold all certificates")
			}
		})
	}
}

// Replicas read the Secret with a delay, and API servers get the trusted certificates with a delay. With any delay of
// less than a twelfth of the lifetime, every API server trusts the certificate that any replica serves.
func TestCertificateIsTrustedDespiteDelays(t *testing.T) {
	const late = 29 * day
	random := rand.New(rand.NewPCG(1, 2))
	type server struct {
		bundle []byte
		at     time.Time
	}
	now := start
	held, _, err := year.Advance(Set{}, now)
	if err != nil {
		t.Fatal(err)
	}
	served := []*tls.Certificate{load(t, held.Current), load(t, held.Current)}
	servedAt := []time.Time{now, now}
	servers := []server{{held.Bundle(now), now}, {held.Bundle(now), now}}
	rotations := 0
	for now.Before(start.Add(4 * lifetime)) {
		now = now.Add(time.Duration(random.Int64N(int64(8 * day))))
		before := held.Current.Certificate
		if held, _, err = year.Advance(held, now); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(before, held.Current.Certificate) {
			rotations++
		}
		for i := range served {
			if random.IntN(20) == 0 || now.Sub(servedAt[i]) > late {
				served[i], servedAt[i] = load(t, held.Current), now
			}
		}
		for i := range servers {
			if random.IntN(20) == 0 || now.Sub(servers[i].at) > late {
				servers[i] = server{held.Bundle(now), now}
			}
			for _, certificate := range served {
				trust(t, servers[i].bundle, certificate.Leaf, now)
			}
		}
	}
	if rotations < 4 {
		t.Errorf("%d rotations in four lifetimes", rotations)
	}
}

// trust verifies a certificate as an API server does.
func trust(t *testing.T, bundle []byte, certificate *x509.Certificate, now time.Time) {
	t.Helper()
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(bundle) {
		t.Fatal("the bundle is empty")
	}
	if _, err := certificate.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: now}); err != nil {
		t.Fatalf("on %s: %v", now.Format(time.DateOnly), err)
	}
}

func makePair(t *testing.T, name string, now time.Time) Pair {
	t.Helper()
	made, err := NewPair([]string{name}, now, lifetime)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func load(t *testing.T, pair Pair) *tls.Certificate {
	t.Helper()
	loaded, err := pair.Load()
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}
