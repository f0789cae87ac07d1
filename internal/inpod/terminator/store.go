package terminator

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// A store holds the certificate of a directory.
type store struct {
	directory string
	served    atomic.Pointer[tls.Certificate]
	// certificate and key are the files that were loaded last.
	certificate, key []byte
}

// get returns the current certificate, for a tls.Config.
func (s *store) get(*tls.ClientHelloInfo) (*tls.Certificate, error) { return s.served.Load(), nil }

// reload loads the files if they have changed. If they are damaged, the certificate before them stays in use.
func (s *store) reload() error {
	certificate, err := os.ReadFile(filepath.Join(s.directory, "tls.crt"))
	if err != nil {
		return err
	}
	key, err := os.ReadFile(filepath.Join(s.directory, "tls.key"))
	if err != nil {
		return err
	}
	if bytes.Equal(certificate, s.certificate) && bytes.Equal(key, s.key) {
		return nil
	}
	loaded, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("loading the certificate in %s: %w", s.directory, err)
	}
	s.certificate, s.key = certificate, key
	s.served.Store(&loaded)
	return nil
}

// follow reloads the files until the context is done. The kubelet may replace them between two reads, so an error is
// logged only if it lasts.
func (s *store) follow(ctx context.Context, interval time.Duration, log *slog.Logger) {
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
		}
		before := s.served.Load()
		err := s.reload()
		switch {
		case err != nil:
			if failures++; failures == 2 {
				log.Error("cannot load the new certificate; the one before it is still served", "error", err)
			}
		case s.served.Load() != before:
			failures = 0
			log.Info("loaded a new certificate", "expires", s.served.Load().Leaf.NotAfter.UTC().Format(time.RFC3339))
		default:
			failures = 0
		}
	}
}
