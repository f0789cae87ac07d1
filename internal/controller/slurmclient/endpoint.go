package slurmclient

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/clock"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/jwt"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
)

// An endpoint is the address of a cluster.
type endpoint struct {
	url     string
	metrics string // slurmctld itself, for its counts of nodes; empty if metrics are off
	ready   bool
}

// decide chooses the RestApi to use: ready ones first, then by name, so that the choice is stable.
func decide(scope *scope) (endpoint, bool) {
	if len(scope.restAPIs) == 0 || scope.jwtKey == nil || scope.controller.DeletionTimestamp != nil {
		return endpoint{}, false
	}
	chosen := slices.MinFunc(scope.restAPIs, func(a, b slinkyv1beta1.RestApi) int {
		return cmp.Or(compareReady(a, b), cmp.Compare(a.Name, b.Name))
	})
	found := endpoint{
		url:   fmt.Sprintf("http://%s.%s:%d", naming.RestAPI(chosen.Name), chosen.Namespace, chosen.Spec.Service.Port),
		ready: ready(chosen),
	}
	if scope.controller.Spec.Metrics.Enabled && !scope.controller.Spec.External {
		found.metrics = fmt.Sprintf("http://%s.%s:%d", naming.Controller(scope.controller.Name), scope.controller.Namespace, scope.controller.Spec.Service.Port)
	}
	return found, true
}

func compareReady(a, b slinkyv1beta1.RestApi) int {
	switch {
	case ready(a) == ready(b):
		return 0
	case ready(a):
		return -1
	}
	return 1
}

func ready(restAPI slinkyv1beta1.RestApi) bool {
	return meta.IsStatusConditionTrue(restAPI.Status.Conditions, slinkyv1beta1.ConditionReady)
}

// identity returns a value that changes if the session must be replaced.
func (e endpoint) identity(key []byte) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\n%s", e.url, e.metrics)
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
