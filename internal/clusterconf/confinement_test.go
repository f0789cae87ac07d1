package clusterconf_test

import (
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
)

func TestPreparesPods(t *testing.T) {
	const (
		cgroups = slinkyv1beta1.JobConfinementCgroups
		none    = slinkyv1beta1.JobConfinementNone
	)
	for name, test := range map[string]struct {
		spec            slinkyv1beta1.ControllerSpec
		status          slinkyv1beta1.ControllerStatus
		prepared, known bool
	}{
		"the status does not say it yet": {spec: slinkyv1beta1.ControllerSpec{JobConfinement: cgroups}},
		"pods stay prepared until the configuration has changed": {
			spec:     slinkyv1beta1.ControllerSpec{JobConfinement: none},
			status:   slinkyv1beta1.ControllerStatus{JobConfinement: cgroups},
			prepared: true, known: true,
		},
		"the configuration has changed": {
			spec:   slinkyv1beta1.ControllerSpec{JobConfinement: none},
			status: slinkyv1beta1.ControllerStatus{JobConfinement: none},
			known:  true,
		},
		"an external slurmctld": {spec: slinkyv1beta1.ControllerSpec{External: true}, known: true},
		"an external slurmctld that confines jobs": {
			spec: slinkyv1beta1.ControllerSpec{External: true, JobConfinement: cgroups}, prepared: true, known: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{Spec: test.spec, Status: test.status}
			if prepared, known := clusterconf.PreparesPods(controller); prepared != test.prepared || known != test.known {
				t.Errorf("prepared: %t, known: %t", prepared, known)
			}
		})
	}
}

func TestConfiguresCgroups(t *testing.T) {
	cgroup := []clusterconf.File{{Name: "cgroup.conf"}}
	for name, test := range map[string]struct {
		extraConf  string
		files      []clusterconf.File
		configures bool
	}{
		"nothing":          {},
		"other lines":      {extraConf: "TaskPlugin=task/affinity", files: []clusterconf.File{{Name: "gres.conf"}}},
		"a cgroup.conf":    {files: cgroup, configures: true},
		"a line":           {extraConf: "proctracktype=proctrack/pgid", configures: true},
		"after a bad line": {extraConf: "bad\nProctrackType=proctrack/cgroup", configures: true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := clusterconf.ConfiguresCgroups(test.extraConf, test.files); got != test.configures {
				t.Errorf("%t", got)
			}
		})
	}
}
