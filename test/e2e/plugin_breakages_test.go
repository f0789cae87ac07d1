//go:build e2e

package e2e_test

import (
	"context"
	"errors"
	"testing"
	"time"
)

// objectBreakages returns breakages of custom resources that are made for them.
func (c pluginCluster) objectBreakages() []breakage {
	kubectl := func(arguments ...string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			c.namespace.MustRun(t, arguments...)
		}
	}
	apply := func(manifest string) func(*testing.T) {
		return func(t *testing.T) {
			t.Helper()
			c.namespace.ApplyDespiteWarnings(t, []byte(manifest))
		}
	}
	const token = "{apiVersion: slinky.slurm.net/v1beta1, kind: Token, metadata: {name: short}, spec: {username: root, " +
		"refresh: false, jwtKeyRef: {name: slurm-auth-jwt, key: jwt_hs256.key}, "
	return []breakage{
		{
			name: "a container that crashes", check: "ContainerFails", object: "Pod/crashing-",
			provoke: apply(string(extraNodeSet("crashing", "slurmd: {command: [/bin/false]}"))),
			repair:  kubectl("delete", "nodeset/crashing", "--timeout=5m"),
		},
		{
			name: "a token that will expire", check: "TokenExpires", object: "Token/short",
			provoke: apply(token + "lifetime: 1h}}"),
			cleanUp: kubectl("delete", "token/short"),
		},
		{
			name: "a token that has expired", check: "Expired", object: "Token/short",
			provoke: apply(token + "lifetime: 1m}}"),
			cleanUp: kubectl("delete", "token/short"),
		},
		{
			name: "a Secret of others in the place of a token", check: "SecretConflict", object: "Token/short",
			provoke: func(t *testing.T) {
				t.Helper()
				kubectl("create", "secret", "generic", "precious", "--from-literal=SLURM_JWT=precious")(t)
				apply(token + "lifetime: 1h, secretRef: {name: precious}}}")(t)
			},
			repair: kubectl("delete", "token/short", "secret/precious"),
		},
		{
			name: "a Secret that does not exist", check: "ReferenceNotFound", object: "LoginSet/lost",
			provoke: apply("{apiVersion: slinky.slurm.net/v1beta1, kind: LoginSet, metadata: {name: lost}, spec: " +
				"{controllerRef: {name: slurm}, sssdConfRef: {name: no-such-secret, key: sssd.conf}}}"),
			repair: kubectl("delete", "loginset/lost"),
		},
		{
			name: "a Controller that does not exist", check: "ControllerNotFound", object: "LoginSet/orphan",
			provoke: apply("{apiVersion: slinky.slurm.net/v1beta1, kind: LoginSet, metadata: {name: orphan}, spec: " +
				"{controllerRef: {name: no-such-cluster}}}"),
			repair: kubectl("delete", "loginset/orphan"),
		},
		{
			name: "a database that does not exist", check: "DatabaseUnreachable", object: "Accounting/lost",
			provoke: apply("{apiVersion: slinky.slurm.net/v1beta1, kind: Accounting, metadata: {name: lost}, spec: " +
				"{storageConfig: {host: no-such-host, username: slurm, passwordKeyRef: {name: mariadb, key: password}}, " +
				"slurmdbd: {image: " + smokeSettings{}.Image("slurmdbd", c.version) + "}}}"),
			repair: kubectl("delete", "accounting/lost", "--timeout=5m"),
		},
	}
}

// clusterBreakages returns breakages of the cluster itself.
func (c pluginCluster) clusterBreakages() []breakage {
	const label = "pod-security.kubernetes.io/enforce"
	return []breakage{
		{
			name: "a node that an administrator has set down", check: "NodesDown", object: "Controller/slurm",
			provoke: func(t *testing.T) {
				t.Helper()
				c.scontrol(t, "update", "nodename=gpu-2", "state=down", "reason=burnt")
			},
		},
		{
			name: "a namespace that does not allow slurmd", check: "PodSecurity", object: "NodeSet/forbidden",
			provoke: func(t *testing.T) {
				t.Helper()
				c.namespace.MustRun(t, "label", "--overwrite", "namespace", c.namespace.Name, label+"=baseline")
				c.namespace.Apply(t, extraNodeSet("forbidden", "minReadySeconds: 0"))
			},
			cleanUp: func(t *testing.T) {
				t.Helper()
				c.namespace.MustRun(t, "delete", "nodeset/forbidden", "--timeout=5m")
				c.namespace.MustRun(t, "label", "namespace", c.namespace.Name, label+"-")
			},
		},
		{
			name: "a webhook that API servers do not trust", check: "WebhookCertificate",
			object: "ValidatingWebhookConfiguration/",
			provoke: func(t *testing.T) {
				t.Helper()
				c.operator.MustRun(t, "scale", "deployment/slurm-operator-webhook", "--replicas=0")
				c.namespace.Eventually(t, 2*time.Minute, "no webhook", func(ctx context.Context) error {
					pods, err := c.operator.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/component=webhook", "--output=name")
					if err == nil && pods != "" {
						err = errors.New(pods)
					}
					return err
				})
				c.operator.MustRun(t, "patch", "validatingwebhookconfiguration/slurm-operator-webhook", "--type=json",
					`--patch=[{"op":"remove","path":"/webhooks/0/clientConfig/caBundle"}]`)
			},
			// It writes its certificate there when it starts.
			repair: func(t *testing.T) {
				t.Helper()
				c.operator.MustRun(t, "scale", "deployment/slurm-operator-webhook", "--replicas=1")
			},
		},
	}
}
