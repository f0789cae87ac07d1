package rest_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

func TestCensusShowsWhatSlurmctldDoesByItself(t *testing.T) {
	server := slurmtest.New(t, slurmtest.Release2605)
	server.AddNodes("node-0", "node-1")
	client := connect(t, server, func(o *rest.Options) { o.Metrics = server.URL })
	before, err := client.Census(t.Context())
	if err != nil || len(before) == 0 {
		t.Fatalf("census is %v: %v", before, err)
	}
	server.Heartbeat()
	if again, err := client.Census(t.Context()); err != nil || !maps.Equal(before, again) {
		t.Errorf("a heartbeat changed %v to %v: %v", before, again, err)
	}
	server.SetFlag("node-0", "NOT_RESPONDING", true)
	if after, err := client.Census(t.Context()); err != nil || maps.Equal(before, after) {
		t.Errorf("a node that went silent does not show in %v: %v", after, err)
	}
}

func TestCensusIsNotThereForAll(t *testing.T) {
	server := slurmtest.New(t, slurmtest.Release2411)
	without := connect(t, server, nil)
	if _, err := without.Census(t.Context()); !errors.Is(err, slurm.Unsupported) {
		t.Errorf("without a URL: %v", err)
	}
	with := connect(t, server, func(o *rest.Options) { o.Metrics = server.URL })
	if _, err := with.Census(t.Context()); err == nil {
		t.Error("24.11 has no metrics")
	}
}
