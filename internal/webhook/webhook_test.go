package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/webhook"
	"github.com/slurm-operator/slurm-operator/internal/webhook/certificate"
)

func TestRunNamesMissingOptions(t *testing.T) {
	complete := certificate.Options{
		Namespace: "slurm-operator", Service: "webhook", Secret: "certificate", Configuration: "slurm-operator",
		Lifetime: time.Hour,
	}
	for name, test := range map[string]struct {
		change func(*certificate.Options)
		want   string
	}{
		"without a namespace":     {func(o *certificate.Options) { o.Namespace = "" }, "POD_NAMESPACE"},
		"without a Service":       {func(o *certificate.Options) { o.Service = "" }, "--service"},
		"without a Secret":        {func(o *certificate.Options) { o.Secret = "" }, "--certificate-secret"},
		"without a configuration": {func(o *certificate.Options) { o.Configuration = "" }, "--configuration"},
		"without a lifetime":      {func(o *certificate.Options) { o.Lifetime = 0 }, "--certificate-lifetime"},
	} {
		t.Run(name, func(t *testing.T) {
			options := webhook.Options{Certificate: complete}
			test.change(&options.Certificate)
			if err := webhook.Run(t.Context(), nil, options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want one about %s", err, test.want)
			}
		})
	}
}
