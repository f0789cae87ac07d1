//go:build e2e

package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// smokeSettings are the values for the manifest templates.
type smokeSettings struct{ Version string }

// Image returns the name of an image.
func (smokeSettings) Image(name, tag string) string { return *imagePrefix + "/" + name + ":" + tag }

// Repository returns what the names of all images begin with.
func (smokeSettings) Repository() string { return *imagePrefix }

// Restricted returns a pod security context for daemons that need no privileges and run as the Slurm user.
func (smokeSettings) Restricted() string {
	return "{runAsNonRoot: true, fsGroup: 64030, seccompProfile: {type: RuntimeDefault}}"
}

// Locked returns the security context of a container that needs no privileges.
func (smokeSettings) Locked() string {
	return "{allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}"
}

func slurmdbdConf(password string) string {
	return strings.Join([]string{
		"AuthType=auth/slurm",
		"AuthAltTypes=auth/jwt",
		"AuthAltParameters=jwt_key=/etc/slurm/jwt_hs256.key",
		"DbdHost=slurmdbd",
		"SlurmUser=slurm",
		"PidFile=/run/slurmdbd/slurmdbd.pid",
		"StorageType=accounting_storage/mysql",
		"StorageHost=mariadb",
		"StorageUser=slurm",
		"StoragePass=" + password,
		"StorageLoc=slurm_acct_db",
		"",
	}, "\n")
}

// get sends a request to slurmrestd through the API server's proxy, because the test may not be able to reach pods.
func (s smokeSlurm) get(t *testing.T, path string) []byte {
	t.Helper()
	now := time.Now()
	token, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iat": now.Unix(), "exp": now.Add(time.Minute).Unix(), "sun": "slurm",
	}).SignedString(s.jwtKey)
	if err != nil {
		t.Fatal(err)
	}
	body, err := getThroughProxy(t.Context(), s.namespace.Name, "slurmrestd", token, path)
	if err != nil {
		t.Fatalf("GET %s: %v\n%s", path, err, body)
	}
	return body
}

// getThroughProxy sends a request to a slurmrestd through the API server's proxy. The name of its Service follows
// https: if it serves TLS; the API server does not verify it.
func getThroughProxy(ctx context.Context, namespace, service, token, path string) ([]byte, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	proxied := fmt.Sprintf("/api/v1/namespaces/%s/services/%s:6820/proxy%s", namespace, service, path)
	return client.RESTClient().Verb(http.MethodGet).AbsPath(proxied).SetHeader("X-SLURM-USER-TOKEN", token).DoRaw(ctx)
}
