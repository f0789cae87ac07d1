//go:build e2e

package e2e_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/e2e/kube"
	"github.com/slurm-operator/slurm-operator/test/leak"
)

// tokenStart is the beginning of every token, also of the short-lived ones that the operator sends to slurmrestd and of
// those of ServiceAccounts: the encoding of {"alg":.
const tokenStart = "eyJhbGciOi"

// secrets returns the secrets of the cluster.
func (c *slurmCluster) secrets(t *testing.T) map[string][]byte {
	t.Helper()
	return map[string][]byte{
		"the database password": []byte(c.password), "a token": []byte(c.token(t)),
		"the beginning of a token": []byte(tokenStart),
		"slurm.key":                c.secret(t, "slurm-auth-slurm", "slurm.key"),
		"the JWT key":              c.secret(t, "slurm-auth-jwths256", "jwt_hs256.key"),
		"the TLS key":              c.tlsKey(t),
	}
}

// I7: no secret bytes in logs, events, statuses or ConfigMaps. TestNoSecretInObjectsOrMetrics covers the metrics.
func (c *slurmCluster) leaksNoSecrets(t *testing.T) {
	c.checkTexts(t, c.secrets(t), c.publicTexts(t))
}

// checkTexts checks that texts contain no secrets, and that a leak would be found.
func (c *slurmCluster) checkTexts(t *testing.T, secrets map[string][]byte, texts map[string]string) {
	t.Helper()
	for place, text := range texts {
		if found := leak.Find(text, secrets); len(found) > 0 {
			t.Errorf("%s has %v", place, found)
		}
	}
	planted := map[string][]byte{"a planted key": randomBytes(t, 32)}
	c.namespace.Apply(t,
		fmt.Appendf(nil, "{apiVersion: v1, kind: ConfigMap, metadata: {name: leak}, data: {key: %x}}",
			planted["a planted key"]))
	defer c.namespace.MustRun(t, "delete", "configmap/leak")
	if found := leak.Find(c.publicTexts(t)["objects"], planted); len(found) != 1 {
		t.Errorf("a planted key in a ConfigMap is found as %v", found)
	}
}

// publicTexts returns all objects and logs that non-administrators may read.
func (c *slurmCluster) publicTexts(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{
		"objects": c.namespace.MustRun(t, "get",
			"slurm,configmaps,events,pods,services,statefulsets,deployments,controllerrevisions", "--output=yaml"),
	}
	for _, namespace := range []kube.Namespace{c.namespace, c.operator} {
		for pod := range strings.FieldsSeq(namespace.MustRun(t, "get", "pods", "--output=name")) {
			// A pod may be deleted meanwhile, or have a container that has not started.
			log, err := namespace.Run(t.Context(), "logs", pod, "--all-containers", "--ignore-errors")
			if err != nil {
				t.Logf("no log of %s: %v", pod, err)
			}
			texts["the log of "+pod] = log
		}
	}
	return texts
}

// plant remembers the secrets before the faults, which replace some, and keeps the logs of all pods.
func (r *chaosRun) plant(t *testing.T) {
	t.Helper()
	r.planted = r.secrets(t)
	var err error
	if r.logs, err = r.devcluster.KeepLogs(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.logs.Stop(); err != nil {
			t.Error(err)
		}
	})
}

// leakedNoSecrets searches everything that non-administrators may read for the secrets of before the faults and of now,
// and the logs of pods that were deleted.
func (r *chaosRun) leakedNoSecrets(t *testing.T) {
	secrets := r.secrets(t)
	for name, value := range r.planted {
		secrets[name+" before the faults"] = value
	}
	texts := r.publicTexts(t)
	for _, namespace := range []kube.Namespace{r.namespace, r.operator} {
		logs, err := r.logs.Read(namespace.Name)
		if err != nil || len(logs) == 0 {
			t.Errorf("%d logs of %s were kept: %v", len(logs), namespace.Name, err)
		}
		maps.Copy(texts, logs)
	}
	texts["events in the operator's namespace"] = r.operator.MustRun(t, "get", "events,configmaps", "--output=yaml")
	maps.Copy(texts, r.operatorMetrics(t))
	installPlugin(t)
	for name, content := range (pluginCluster{r.nodeSet}).report(t) {
		texts["the report's "+name] = content
	}
	r.checkTexts(t, secrets, texts)
}

// operatorMetrics returns the metrics of all pods of the operator, as Prometheus reads them.
func (c *slurmCluster) operatorMetrics(t *testing.T) map[string]string {
	t.Helper()
	c.operator.Apply(t, fmt.Appendf(nil, `
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: e2e-metrics},
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: slurm-operator-metrics-reader},
  subjects: [{kind: ServiceAccount, name: default, namespace: %s}]}`, c.operator.Name))
	defer c.operator.MustRun(t, "delete", "clusterrolebinding/e2e-metrics")
	token := c.operator.MustRun(t, "create", "token", "default")
	metrics := map[string]string{}
	for pod := range strings.FieldsSeq(c.operator.MustRun(t, "get", "pods",
		"--selector=app.kubernetes.io/component=operator", "--field-selector=status.phase=Running", "--output=name")) {
		text, err := c.readMetrics(t.Context(), pod, token)
		if err != nil || !strings.Contains(text, "slurm_operator_") {
			t.Errorf("%s has no metrics: %q, %v", pod, text, err)
		}
		metrics["metrics of "+pod] = text
	}
	return metrics
}

// readMetrics reads the metrics of a pod of the operator through a forwarded port.
func (c *slurmCluster) readMetrics(ctx context.Context, pod, token string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forward := exec.CommandContext(ctx, "kubectl", "--namespace", c.operator.Name, "port-forward", pod, ":8080")
	out, err := forward.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := forward.Start(); err != nil {
		return "", err
	}
	defer func() { cancel(); _ = forward.Wait() }() // it was killed
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("kubectl port-forward printed %q: %w", line, err)
	}
	address, _, _ := strings.Cut(strings.TrimPrefix(line, "Forwarding from "), " ")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		return "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // its certificate is for another name
	}}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}
