package webhook

import (
	"crypto/tls"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slurm-operator/slurm-operator/internal/metric"
)

// An expiry collects when the served certificate expires. There is no value while there is no certificate.
type expiry struct {
	served      func() (*tls.Certificate, error)
	description *prometheus.Desc
}

func newExpiry(served func() (*tls.Certificate, error)) *expiry {
	return &expiry{served, metric.CertificateExpiry.Desc()}
}

// Describe sends the description of the metric.
func (e *expiry) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- e.description }

// Collect sends the expiry.
func (e *expiry) Collect(metrics chan<- prometheus.Metric) {
	certificate, err := e.served()
	if err != nil || certificate.Leaf == nil {
		return
	}
	metrics <- prometheus.MustNewConstMetric(e.description, prometheus.GaugeValue,
		float64(certificate.Leaf.NotAfter.Unix()))
}

// fromDirectory returns a function that reads the certificate that others renew, as the server does when it changes.
func fromDirectory(directory string) func() (*tls.Certificate, error) {
	return func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"))
		return &pair, err
	}
}
