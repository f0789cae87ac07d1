package desired

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestUnknownGres(t *testing.T) {
	conf := func(hash, types string) string {
		var document slurmconf.Document
		document.Set("GresTypes", types)
		return slurmconf.WithHash(document, hash).Render()
	}
	for name, test := range map[string]struct {
		conf, running string
		want          []string
	}{
		"waits for the first configuration": {want: []string{"gpu", "nic"}},
		"waits for a configuration with all GRES": {
			conf: conf("new", "gpu"), running: "new", want: []string{"nic"},
		},
		"waits until slurmctld runs with it": {
			conf: conf("new", "gpu,nic"), running: "old", want: []string{"gpu", "nic"},
		},
		"waits for a slurmctld that never ran":      {conf: conf("new", "gpu,nic"), want: []string{"gpu", "nic"}},
		"does not wait if slurmctld knows all GRES": {conf: conf("new", "bandwidth,gpu,nic"), running: "new"},
	} {
		t.Run(name, func(t *testing.T) {
			got := UnknownGres([]string{"gpu", "nic"}, test.conf, test.running)
			if diff := cmp.Diff(test.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
