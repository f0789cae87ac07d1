// Package certificate generates and rotates serving certificates, and derives from the Secret of a server how its
// clients verify it.
//
// Generated certificates are self-signed, so there is no CA key to manage. One Secret holds the current certificate,
// its successor before it is served, and its predecessor afterwards; clients trust all of them. A successor is
// generated when a third of the lifetime is left and served when a sixth is left, so that every client trusts it by
// then. The predecessor stays trusted until it expires, because a server that reads the Secret late still serves it.
package certificate

import (
	"bytes"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret, in addition to tls.crt and tls.key.
const (
	nextCertificateKey     = "next.crt"
	nextPrivateKey         = "next.key"
	previousCertificateKey = "previous.crt"
)

// A Set is the content of the Secret. Missing parts are empty.
type Set struct {
	// Current is the pair that is served.
	Current Pair
	// Next is the pair that is served next; it is trusted already.
	Next Pair
	// Previous is the certificate that was served before. A server that reads the Secret late still serves it.
	Previous []byte
}

// ReadSet returns the set that a Secret holds.
func ReadSet(data map[string][]byte) Set {
	return Set{
		Current:  Pair{data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]},
		Next:     Pair{data[nextCertificateKey], data[nextPrivateKey]},
		Previous: data[previousCertificateKey],
	}
}

// Data returns the content of the Secret.
func (s Set) Data() map[string][]byte {
	data := map[string][]byte{}
	for key, value := range map[string][]byte{
		corev1.TLSCertKey: s.Current.Certificate, corev1.TLSPrivateKeyKey: s.Current.Key,
		nextCertificateKey: s.Next.Certificate, nextPrivateKey: s.Next.Key,
		previousCertificateKey: s.Previous,
	} {
		if len(value) > 0 {
			data[key] = value
		}
	}
	return data
}

// Bundle returns all certificates that clients must trust, as PEM. It is the same before and after the successor is
// served.
func (s Set) Bundle(now time.Time) []byte {
	var trusted [][]byte
	for _, certificate := range [][]byte{s.Previous, s.Current.Certificate, s.Next.Certificate} {
		if isValid(certificate, now) {
			trusted = append(trusted, certificate)
		}
	}
	return bytes.Join(trusted, nil)
}

// A Schedule holds the DNS names and the lifetime of the certificates.
type Schedule struct {
	Names    []string
	Lifetime time.Duration
}

// Advance takes the rotation step that is due, if any.
func (c Schedule) Advance(s Set, now time.Time) (next Set, changed bool, err error) {
	left, nextLeft := s.Current.remaining(c.Names, now), s.Next.remaining(c.Names, now)
	switch {
	case left == 0 && nextLeft == 0:
		s.Previous = s.Current.Certificate
		s.Current, err = NewPair(c.Names, now, c.Lifetime)
		s.Next = Pair{}
		return s, true, err
	case left < c.Lifetime/6 && nextLeft > 0:
		return Set{Current: s.Next, Previous: s.Current.Certificate}, true, nil
	case left < c.Lifetime/3 && nextLeft == 0:
		s.Next, err = NewPair(c.Names, now, c.Lifetime)
		return s, true, err
	case len(s.Previous) > 0 && !isValid(s.Previous, now):
		s.Previous = nil
		return s, true, nil
	}
	return s, false, nil
}

// Due returns when the next rotation step of a set is due, if no step is due now.
func (c Schedule) Due(s Set) time.Time {
	due := s.Current.expiry(c.Names).Add(-c.Lifetime / 3)
	if len(s.Next.Certificate) > 0 {
		due = due.Add(c.Lifetime / 6)
	}
	if previous, err := parse(s.Previous); err == nil && previous.NotAfter.Before(due) {
		due = previous.NotAfter
	}
	return due
}

// isValid reports whether a certificate can be parsed and has not expired.
func isValid(certificate []byte, now time.Time) bool {
	parsed, err := parse(certificate)
	return err == nil && now.Before(parsed.NotAfter)
}
