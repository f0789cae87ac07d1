//go:build e2e

package e2e_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/test/cluster"
)

// TestRestAPITLS checks on the wire that nobody can read tokens between clients and slurmrestd, and that neither new
// certificates nor the upgrade of a cluster with plain HTTP costs a request or a job.
func TestRestAPITLS(t *testing.T) {
	own := ownCluster(t)
	operator := startOperator(t)
	for version := range strings.SplitSeq(*slurmVersions, ",") {
		t.Run(version, func(t *testing.T) {
			run := &tlsRun{nodeSet: startNodeSet(t, operator, version), devcluster: own}
			t.Run("tokens cannot be read on the wire", run.hidesTokens)
			t.Run("tokens can be read in plain HTTP", run.showsTokensInPlainHTTP)
			t.Run("the certificate is rotated under load", run.rotatesCertificate)
			t.Run("a given certificate is served", run.servesGivenCertificate)
			t.Run("a cluster with plain HTTP is upgraded", run.upgradesFromPlainHTTP)
		})
	}
}

type tlsRun struct {
	*nodeSet
	devcluster *cluster.Cluster
}

// restPort is slurmrestd's port in its pod.
const restPort = 6820

// slurmrestdPod returns a value of the only pod of slurmrestd that is not being deleted.
func (c *slurmCluster) slurmrestdPod(t *testing.T, path string) string {
	t.Helper()
	var value string
	c.namespace.Eventually(t, 2*time.Minute, "one pod of slurmrestd", func(ctx context.Context) error {
		out, err := c.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmrestd",
			"--output=jsonpath={.items[*]"+path+"}")
		if err == nil && len(strings.Fields(out)) != 1 {
			err = fmt.Errorf("there are %q", out)
		}
		value = out
		return err
	})
	return value
}

// trusted returns the settings of a client that verifies slurmrestd with what the operator publishes.
func (c *slurmCluster) trusted(t *testing.T) *tls.Config {
	t.Helper()
	settings, err := c.trust(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return settings
}

func (c *slurmCluster) trust(ctx context.Context) (*tls.Config, error) {
	bundle, err := c.namespace.Run(ctx, "get", "configmap/slurm-restapi-ca", `--output=jsonpath={.data.ca\.crt}`)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(bundle)) {
		return nil, errors.New("the ConfigMap has no certificate")
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "slurm-restapi." + c.namespace.Name + ".svc",
	}, nil
}

// served returns the settings of a server with slurmrestd's certificate.
func (c *slurmCluster) served(t *testing.T) *tls.Config {
	t.Helper()
	pair, err := certificate.Pair{
		Certificate: c.secret(t, "slurm-restapi-tls", "tls.crt"), Key: c.secret(t, "slurm-restapi-tls", "tls.key"),
	}.Load()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{*pair}}
}

// tlsKey returns the secret part of slurmrestd's key: the rest of its encoding is also in certificates.
func (c *slurmCluster) tlsKey(t *testing.T) []byte {
	t.Helper()
	key, ok := c.served(t).Certificates[0].PrivateKey.(*ecdsa.PrivateKey)
	if !ok {
		t.Fatal("it is of another type")
	}
	secret, err := key.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// request sends a request of a user to slurmrestd's pod, over a connection of its own.
func (r *tlsRun) request(ctx context.Context, scheme, address, token string, settings *tls.Config) (status int,
	body string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s://%s:%d/slurm/v0.0.42/nodes/", scheme, address, restPort), http.NoBody)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("X-SLURM-USER-TOKEN", token)
	client := &http.Client{
		Timeout: time.Minute, Transport: &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true},
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	return response.StatusCode, string(content), err
}

// captured returns what was sent from and to slurmrestd's port while work ran.
func (r *tlsRun) captured(t *testing.T, work func()) []byte {
	t.Helper()
	capture, err := r.devcluster.Capture(r.slurmrestdPod(t, ".metadata.uid"), restPort)
	if err != nil {
		t.Fatal(err)
	}
	work()
	segments, err := capture.Stop()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: captured %d segments", r.version, len(segments))
	if len(segments) < 20 {
		t.Errorf("captured only %d segments", len(segments))
	}
	return slices.Concat(segments...)
}

// readable returns which parts of requests with a token can be read in captured data.
func readable(data []byte, token string) (found []string) {
	// All tokens begin with the same bytes, also the operator's.
	for _, part := range []string{token, "eyJ", "X-SLURM-USER-TOKEN", "X-Slurm-User-Token", "/slurm/v0.0."} {
		if bytes.Contains(data, []byte(part)) {
			found = append(found, part)
		}
	}
	return found
}

func (r *tlsRun) hidesTokens(t *testing.T) {
	address, token, settings := r.slurmrestdPod(t, ".status.podIP"), r.token(t), r.trusted(t)
	data := r.captured(t, func() {
		for range 5 {
			if status, body, err := r.request(t.Context(), "https", address, token, settings); err != nil || status != 200 {
				t.Fatalf("got %d %s, error %v", status, body, err)
			}
		}
		r.resizeTo(t, defaultNodes+1) // the operator drains nodes
		r.resizeTo(t, defaultNodes)
	})
	if found := readable(data, token); len(found) > 0 {
		t.Errorf("%d parts of requests can be read on the wire", len(found))
	}
}

func (r *tlsRun) showsTokensInPlainHTTP(t *testing.T) {
	address, token := r.slurmrestdPod(t, ".status.podIP"), "not-a-token"
	status, body, err := r.request(t.Context(), "http", address, token, nil)
	if err != nil || status != http.StatusBadRequest || !strings.Contains(body, "spec.tls.plainHTTP") {
		t.Fatalf("plain HTTP: got %d %s, error %v", status, body, err)
	}
	r.setTLS(t, `{"plainHTTP": "Allowed"}`)
	address, token = r.slurmrestdPod(t, ".status.podIP"), r.token(t)
	data := r.captured(t, func() {
		for range 5 {
			if status, body, err := r.request(t.Context(), "http", address, token, nil); err != nil || status != 200 {
				t.Fatalf("got %d %s, error %v", status, body, err)
			}
		}
	})
	if found := readable(data, token); !slices.Contains(found, token) {
		t.Errorf("the capture does not show the token; it shows %d other parts", len(found))
	}
	r.setTLS(t, `{"plainHTTP": null}`)
}

// setTLS changes spec.tls of the RestApi and waits until its pods are replaced and the operator is connected.
func (r *tlsRun) setTLS(t *testing.T, patch string) {
	t.Helper()
	before := r.slurmrestdPod(t, ".metadata.uid")
	r.namespace.MustRun(t, "patch", "restapi/slurm", "--type=merge", `--patch={"spec":{"tls":`+patch+`}}`)
	r.namespace.Eventually(t, 3*time.Minute, "another pod of slurmrestd", func(ctx context.Context) error {
		out, err := r.namespace.Run(ctx, "get", "pods", "--selector=app.kubernetes.io/name=slurmrestd",
			"--output=jsonpath={.items[*].metadata.uid}")
		if err == nil && strings.Contains(out, before) {
			err = errors.New("it is still the same")
		}
		return err
	})
	r.isConnected(t)
}

// isConnected waits until RestApi and Controller are ready.
func (r *tlsRun) isConnected(t *testing.T) {
	t.Helper()
	becomesReady(t, r.namespace, 3*time.Minute, "restapi/slurm", "controller.slinky.slurm.net/slurm")
	r.namespace.Eventually(t, 3*time.Minute, "the operator's connection", func(ctx context.Context) error {
		return conditionIs(ctx, r.namespace, "controller.slinky.slurm.net/slurm", "SlurmReachable", "True")
	})
}

// requests sends requests, each with a new connection, until the returned function is called, which fails the test if
// any of them failed.
func (r *tlsRun) requests(t *testing.T) (stop func()) {
	t.Helper()
	address := r.slurmrestdPod(t, ".status.podIP")
	ctx, cancel := context.WithCancel(t.Context())
	var sending sync.WaitGroup
	var failures []error
	sent := 0
	sending.Go(func() {
		for ctx.Err() == nil {
			status, err := r.requestOnce(ctx, address)
			if ctx.Err() != nil {
				return
			}
			if sent++; err != nil || status != 200 {
				failures = append(failures, fmt.Errorf("request %d: status %d, error %w", sent, status, err))
			}
		}
	})
	return func() {
		t.Helper()
		cancel()
		sending.Wait()
		t.Logf("%s: %d requests", r.version, sent)
		if err := errors.Join(failures...); err != nil || sent == 0 {
			t.Errorf("%d of %d requests failed: %v", len(failures), sent, err)
		}
	}
}

// requestOnce sends a request with the current token and verifies slurmrestd with what the operator publishes now.
func (r *tlsRun) requestOnce(ctx context.Context, address string) (status int, err error) {
	settings, err := r.trust(ctx)
	if err != nil {
		return 0, err
	}
	encoded, err := r.namespace.Run(ctx, "get", "secret/root-jwt-root", "--output=jsonpath={.data.SLURM_JWT}")
	if err != nil {
		return 0, err
	}
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return 0, err
	}
	status, _, err = r.request(ctx, "https", address, string(token), settings)
	return status, err
}

// serves waits until slurmrestd's pod serves a certificate.
func (r *tlsRun) serves(t *testing.T, pair certificate.Pair, settings *tls.Config) {
	t.Helper()
	wanted, err := pair.Load()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("%s:%d", r.slurmrestdPod(t, ".status.podIP"), restPort)
	r.namespace.Eventually(t, 4*time.Minute, "the new certificate", func(ctx context.Context) error {
		connection, err := (&tls.Dialer{Config: settings}).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		defer connection.Close()
		if !connection.(*tls.Conn).ConnectionState().PeerCertificates[0].Equal(wanted.Leaf) {
			return errors.New("the former certificate is served")
		}
		return nil
	})
}

// rotatesCertificate takes both steps of a rotation, which the operator takes 8 and 10 months after a certificate was
// generated.
func (r *tlsRun) rotatesCertificate(t *testing.T) {
	jobs := r.submitJobs(t, "certificate", "gpu")
	running := r.startJob(t, "--partition=gpu", "--mem=64M")
	pod := r.slurmrestdPod(t, ".metadata.uid")
	current, err := certificate.Pair{
		Certificate: r.secret(t, "slurm-restapi-tls", "tls.crt"), Key: r.secret(t, "slurm-restapi-tls", "tls.key"),
	}.Load()
	if err != nil {
		t.Fatal(err)
	}
	next, err := certificate.NewPair(current.Leaf.DNSNames, time.Now(), 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	stop := r.requests(t)
	r.setCertificate(t, map[string][]byte{"next.crt": next.Certificate, "next.key": next.Key})
	r.namespace.Eventually(t, time.Minute, "clients that trust the next certificate", func(ctx context.Context) error {
		out, err := r.namespace.Run(ctx, "get", "configmap/slurm-restapi-ca", `--output=jsonpath={.data.ca\.crt}`)
		if err == nil && !strings.Contains(out, strings.TrimSpace(string(next.Certificate))) {
			err = errors.New("it is not published yet")
		}
		return err
	})
	r.isConnected(t)
	r.setCertificate(t, map[string][]byte{
		"tls.crt": next.Certificate, "tls.key": next.Key, "previous.crt": r.secret(t, "slurm-restapi-tls", "tls.crt"),
		"next.crt": nil, "next.key": nil,
	})
	r.serves(t, next, r.trusted(t))
	r.isConnected(t)
	stop()
	if r.slurmrestdPod(t, ".metadata.uid") != pod {
		t.Error("slurmrestd was restarted")
	}
	r.finishJob(t, running)
	jobs.stop(t)
	jobs.checkAllCompleted(t)
}

// setCertificate changes values of the Secret with slurmrestd's certificate.
func (r *tlsRun) setCertificate(t *testing.T, values map[string][]byte) {
	t.Helper()
	data := map[string]any{}
	for key, value := range values {
		if data[key] = value; value == nil {
			data[key] = nil // removes it
		}
	}
	patch, err := json.Marshal(map[string]any{"data": data})
	if err != nil {
		t.Fatal(err)
	}
	r.namespace.MustRun(t, "patch", "secret/slurm-restapi-tls", "--type=merge", "--patch="+string(patch))
}

func (r *tlsRun) servesGivenCertificate(t *testing.T) {
	running := r.startJob(t, "--partition=gpu", "--mem=64M")
	const name = "slurm.example.com"
	pair, err := certificate.NewPair([]string{name}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	r.namespace.CreateSecret(t, "mine", map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key})
	r.setTLS(t, `{"certificateRef": {"name": "mine"}}`)
	settings := r.trusted(t)
	settings.ServerName = name
	r.serves(t, pair, settings)
	r.setTLS(t, `{"certificateRef": null}`)
	r.finishJob(t, running)
}

// plainLaunch is how slurmrestd was started before it had TLS.
const plainLaunch = `"$0" "$@" & trap "kill -INT $!; wait $!; exit \$?" TERM; wait $!`

// upgradesFromPlainHTTP starts an operator that finds slurmrestd as operators without TLS ran it.
func (r *tlsRun) upgradesFromPlainHTTP(t *testing.T) {
	jobs := r.submitJobs(t, "plain-http", "gpu")
	running := r.startJob(t, "--partition=gpu", "--mem=64M")
	before := r.jobPods(t)
	r.scaleOperator(t, 0)
	defer r.scaleOperator(t, 1) // in case of a failure
	count := len(strings.Fields(r.namespace.MustRun(t, "get", "deployment/slurm-restapi",
		"--output=jsonpath={.spec.template.spec.containers[0].args[*]}")))
	patch, err := json.Marshal([]map[string]any{
		{"op": "remove", "path": "/spec/template/spec/containers/1"},
		{"op": "replace", "path": "/spec/template/spec/containers/0/command/2", "value": plainLaunch},
		{"op": "replace", "path": fmt.Sprintf("/spec/template/spec/containers/0/args/%d", count-1), "value": ":6820"},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.namespace.MustRun(t, "patch", "deployment/slurm-restapi", "--type=json", "--patch="+string(patch))
	r.namespace.MustRun(t, "rollout", "status", "deployment/slurm-restapi", "--timeout=10m")
	plain := func(ctx context.Context) error {
		_, err := getThroughProxy(ctx, r.namespace.Name, "slurm-restapi", r.token(t), "/slurm/v0.0.42/nodes/")
		return err
	}
	r.namespace.Eventually(t, time.Minute, "plain HTTP", plain)

	r.scaleOperator(t, 1)
	started := time.Now()
	r.namespace.Eventually(t, 3*time.Minute, "TLS", func(ctx context.Context) error { return r.ping(ctx, r.token(t)) })
	r.namespace.Eventually(t, 3*time.Minute, "refusal of plain HTTP", func(ctx context.Context) error {
		if plain(ctx) == nil {
			return errors.New("it is accepted")
		}
		return nil
	})
	r.isConnected(t)
	t.Logf("%s: connected with TLS %.1f s after the operator was started", r.version, time.Since(started).Seconds())
	if now := r.jobPods(t); now != before {
		t.Errorf("the pods were\n%s\nand are now\n%s", before, now)
	}
	r.resizeTo(t, defaultNodes+1)
	r.resizeTo(t, defaultNodes)
	r.namespace.Eventually(t, time.Minute, "the job from before the upgrade", func(ctx context.Context) error {
		return r.jobIs(ctx, running, "JobState=RUNNING", "Restarts=0")
	})
	r.finishJob(t, running)
	jobs.stop(t)
	jobs.checkAllCompleted(t)
}
