//go:build e2e

package e2e_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
)

// servesExternalDaemons checks what the operator offers for a slurmctld and a slurmdbd that it does not run: given only
// their addresses and keys, a login pod and a REST API in another namespace, and a second cluster in the same
// accounting.
func (c *slurmCluster) servesExternalDaemons(t *testing.T) {
	outside := &slurmCluster{
		namespace: kube.NewNamespace(t, c.namespace.Name+"-outside"), operator: c.operator, version: c.version,
	}
	outside.namespace.CreateSecret(t, "keys", map[string][]byte{
		"slurm.key":     c.secret(t, "slurm-auth-slurm", "slurm.key"),
		"jwt_hs256.key": c.secret(t, "slurm-auth-jwths256", "jwt_hs256.key"),
	})
	outside.namespace.ApplyTemplates(t, manifests, "external/*.yaml", settings{
		smokeSettings: smokeSettings{Version: c.version}, Elsewhere: c.namespace.Name,
	})
	becomesReady(t, outside.namespace, 3*time.Minute, "accounting/elsewhere", "controller.slinky.slurm.net/elsewhere",
		"restapi/elsewhere", "loginset/login")
	if out, err := outside.namespace.Run(t.Context(), "get", "pods", "--selector=app.kubernetes.io/instance=elsewhere",
		"--output=jsonpath={.items[*].metadata.labels.app\\.kubernetes\\.io/name}"); err != nil || out != "slurmrestd" {
		t.Errorf("the pods for external daemons are %q (%v)", out, err)
	}
	outside.namespace.Eventually(t, time.Minute, "sinfo of the external cluster", func(ctx context.Context) error {
		return outside.sinfoShows(ctx, "all* idle 2")
	})
	for _, path := range []string{"/slurm/v0.0.42/nodes/", "/slurmdb/v0.0.42/clusters/"} {
		outside.namespace.Eventually(t, time.Minute, "a response to GET "+path, func(ctx context.Context) error {
			body, err := getThroughProxy(ctx, outside.namespace.Name, "https:elsewhere-restapi", outside.token(t), path)
			if err == nil && !strings.Contains(string(body), "e2e") && !strings.Contains(string(body), "slurmd-1") {
				err = fmt.Errorf("the response is %s", body)
			}
			return err
		})
	}
	outside.namespace.Eventually(t, 2*time.Minute, "a second cluster in the same accounting",
		func(ctx context.Context) error {
			return c.accountingKnows(ctx, "second")
		})
}

// acceptsForeignTokens tests jwksKeyRef: an externally signed token is accepted once its public key is configured, and
// the cluster's own tokens still are.
func (c *slurmCluster) acceptsForeignTokens(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	before := c.slurmctldStart(t)
	set, err := json.Marshal(map[string]any{"keys": []any{map[string]string{
		"kty": "RSA", "alg": "RS256", "use": "sig", "kid": "others",
		"n": base64.RawURLEncoding.EncodeToString(key.N.Bytes()),
		"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes()),
	}}})
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]string{"name": "jwks"}, "data": map[string]string{
			"jwks.json": string(set),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.namespace.Apply(t, manifest)
	if err := c.ping(t.Context(), c.signed(t, key)); err == nil {
		t.Error("Slurm accepts a token signed with an unknown key")
	}
	if _, err := c.namespace.Run(t.Context(), "patch", "controller.slinky.slurm.net/slurm", "--type=merge", "--patch",
		`{"spec":{"jwksKeyRef":{"name":"jwks","key":"jwks.json"}}}`); err != nil {
		t.Fatal(err)
	}
	c.configurationIs(t, "True|Applied")
	c.namespace.Eventually(t, time.Minute, "both tokens to be accepted", func(ctx context.Context) error {
		if err := c.ping(ctx, c.signed(t, key)); err != nil {
			return err
		}
		return c.ping(ctx, c.token(t))
	})
	if after := c.slurmctldStart(t); after != before {
		t.Errorf("slurmctld's container started at %s, and now at %s", before, after)
	}
}

// signed returns a token for root that the operator did not sign.
func (c *slurmCluster) signed(t *testing.T, key *rsa.PrivateKey) string {
	t.Helper()
	now := time.Now()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, jwt.MapClaims{
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "sun": "root",
	})
	token.Header["kid"] = "others"
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}
