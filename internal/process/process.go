// Package process holds the settings that the operator and its webhook have in common: logging, metrics, health probes
// and the namespaces they watch.
package process

import (
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Settings are the common settings of operator and webhook.
type Settings struct {
	Logging
	// MetricsAddress is where metrics are served; "0" disables them.
	MetricsAddress string
	// MetricsInsecure serves metrics over plain HTTP without authorization, instead of over HTTPS with authorization.
	MetricsInsecure bool
	// HealthAddress is where /healthz and /readyz are served.
	HealthAddress string
	// Namespaces are the watched namespaces; all if empty.
	Namespaces []string
}

// AddFlags adds a flag for each setting.
func (s *Settings) AddFlags(flags *pflag.FlagSet) {
	s.Logging.AddFlags(flags)
	flags.StringVar(&s.MetricsAddress, "metrics-bind-address", ":8080",
		"address on which metrics are served; 0 disables them")
	flags.BoolVar(&s.MetricsInsecure, "metrics-insecure", false,
		"serve metrics over plain HTTP to everyone, instead of over HTTPS to those who may get /metrics")
	flags.StringVar(&s.HealthAddress, "health-probe-bind-address", ":8081",
		"address on which /healthz and /readyz are served")
	flags.StringSliceVar(&s.Namespaces, "namespaces", nil, "namespaces to watch, separated by commas; all by default")
}

// Metrics returns the options of the metrics server.
func (s Settings) Metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: s.MetricsAddress}
	if !s.MetricsInsecure {
		options.SecureServing, options.FilterProvider = true, filters.WithAuthenticationAndAuthorization
	}
	return options
}

// Cache returns cache options that keep unused data out of memory.
func (s Settings) Cache() cache.Options {
	options := cache.Options{DefaultTransform: cache.TransformStripManagedFields()}
	if len(s.Namespaces) > 0 {
		options.DefaultNamespaces = map[string]cache.Config{}
		for _, namespace := range s.Namespaces {
			options.DefaultNamespaces[namespace] = cache.Config{}
		}
	}
	return options
}
