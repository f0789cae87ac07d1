package certificate

import (
	"bytes"
	"time"
)

// Keys of the Secret.
const (
	certificateKey         = "tls.crt"
	privateKey             = "tls.key"
	nextCertificateKey     = "next.crt"
	nextPrivateKey         = "next.key"
	previousCertificateKey = "previous.crt"
)

// A set is the content of the Secret. Missing parts are empty.
type set struct {
	// current is the pair that is served.
	current pair
	// next is the pair that is served next; it is trusted already.
	next pair
	// previous is the certificate that was served before. A late replica may still serve it.
	previous []byte
}

func readSet(data map[string][]byte) set {
	return set{
		current:  pair{data[certificateKey], data[privateKey]},
		next:     pair{data[nextCertificateKey], data[nextPrivateKey]},
		previous: data[previousCertificateKey],
	}
}

func (s set) data() map[string][]byte {
	data := map[string][]byte{}
	for key, value := range map[string][]byte{
		certificateKey: s.current.certificate, privateKey: s.current.key,
		nextCertificateKey: s.next.certificate, nextPrivateKey: s.next.key,
		previousCertificateKey: s.previous,
	} {
		if len(value) > 0 {
			data[key] = value
		}
	}
	return data
}

// A schedule holds the name and the lifetime of the certificates.
type schedule struct {
	name     string
	lifetime time.Duration
}

// advance takes the rotation step that is due, if any.
func (c schedule) advance(s set, now time.Time) (next set, changed bool, err error) {
	left, nextLeft := s.current.remaining(c.name, now), s.next.remaining(c.name, now)
	switch {
	case left == 0 && nextLeft == 0:
		s.previous = s.current.certificate
		s.current, err = newPair(c.name, now, c.lifetime)
		s.next = pair{}
		return s, true, err
	case left < c.lifetime/6 && nextLeft > 0:
		return set{current: s.next, previous: s.current.certificate}, true, nil
	case left < c.lifetime/3 && nextLeft == 0:
		s.next, err = newPair(c.name, now, c.lifetime)
		return s, true, err
	case len(s.previous) > 0 && !isValid(s.previous, now):
		s.previous = nil
		return s, true, nil
	}
	return s, false, nil
}

// bundle returns all certificates that must be trusted.
func (s set) bundle(now time.Time) []byte {
	var trusted [][]byte
	for _, certificate := range [][]byte{s.previous, s.current.certificate, s.next.certificate} {
		if isValid(certificate, now) {
			trusted = append(trusted, certificate)
		}
	}
	return bytes.Join(trusted, nil)
}

// isValid reports whether a certificate can be parsed and has not expired.
func isValid(certificate []byte, now time.Time) bool {
	parsed, err := parse(certificate)
	return err == nil && now.Before(parsed.NotAfter)
}
