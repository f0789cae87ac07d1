package slurmclient

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// An endpoint is the address of a cluster.
type endpoint struct {
	// url names slurmrestd, and address (host:port) is where to connect to.
	url, address string
	// server is how slurmrestd is verified.
	server certificate.Server
	// metrics and metricsAddress are those of slurmctld itself, for its counts of nodes; empty if metrics are off.
	metrics, metricsAddress string
	// ready is true if slurmrestd is.
	ready bool
}

// identity returns a value that changes if the session must be replaced.
func (e endpoint) identity(key []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s\n%s\n%s\n%s\n%s", e.url, e.address, e.metrics, e.metricsAddress, e.server.Name,
		e.server.Bundle)
	return hex.EncodeToString(mac.Sum(nil))
}

// The operator's own tokens.
const (
	// tokenUser has all privileges in Slurm.
	tokenUser = "slurm"
	// tokenLifetime is short to limit the use of a leaked token.
	tokenLifetime = 10 * time.Minute
)

// tokens returns a source that signs tokens on demand and uses each for half of its lifetime.
func tokens(key []byte, clock clock.PassiveClock) rest.TokenSource {
	var mu sync.Mutex
	var current jwt.Token
	return func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		now := clock.Now()
		if now.Before(current.Issued.Add(tokenLifetime/2)) && !now.Before(current.Issued) {
			return current.Text, nil
		}
		token, err := jwt.Sign(key, tokenUser, now, tokenLifetime)
		if err != nil {
			return "", err
		}
		current = token
		return current.Text, nil
	}
}
