package rest_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

// Over HTTPS, only a server with a certificate of the configured CA is trusted.
func TestTLS(t *testing.T) {
	cluster := slurmtest.New(t, slurmtest.Release2605)
	behind, err := url.Parse(cluster.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewUnstartedServer(httputil.NewSingleHostReverseProxy(behind))
	proxy.Config.ErrorLog = log.New(t.Output(), "", 0)
	proxy.StartTLS()
	t.Cleanup(proxy.Close)
	ping := func(settings *tls.Config) error {
		_, err := connect(t, cluster, func(options *rest.Options) { options.URL, options.TLS = proxy.URL, settings }).
			Diag(t.Context())
		return err
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(proxy.Certificate())
	if err := ping(&tls.Config{RootCAs: trusted}); err != nil {
		t.Errorf("with its CA: %v", err)
	}
	for name, settings := range map[string]*tls.Config{"Go's defaults": nil,
		"another CA": {RootCAs: x509.NewCertPool()}} {
		if err := ping(settings); !errors.Is(err, slurm.Unreachable) {
			t.Errorf("with %s: %v", name, err)
		}
	}
}
