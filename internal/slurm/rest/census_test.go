package rest_test

import (
	"cmp"
	"errors"
	"maps"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
)

func TestCensusDetectsNonRespondingNodes(t *testing.T) {
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
		t.Errorf("a node that stopped responding does not show in %v: %v", after, err)
	}
}

func TestCensusNeedsSlurmctldMetrics(t *testing.T) {
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

func TestJobCensus(t *testing.T) {
	server := slurmtest.New(t, slurmtest.Release2605)
	server.AddNodes("node-0")
	client := connect(t, server, func(o *rest.Options) { o.Metrics = server.URL })
	var first int64
	for range 3 {
		id, err := server.Submitter("root").Submit(t.Context(), slurmtest.JobRequest{Script: "sleep 100", Nodes: 1})
		if err != nil {
			t.Fatal(err)
		}
		first = cmp.Or(first, id)
	}
	want := slurm.JobCensus{Jobs: 3, Pending: 1, Running: 2}
	if census, err := client.JobCensus(t.Context()); err != nil || census != want {
		t.Errorf("census is %+v, want %+v: %v", census, want, err)
	}
	server.SuspendJob(first)
	if census, err := client.JobCensus(t.Context()); err != nil || census.Hidden != 1 {
		t.Errorf("census is %+v with a suspended job: %v", census, err)
	}
	// Disabled or incomplete metrics prove nothing.
	for _, body := range []string{"", "slurm_jobs 5\n"} {
		server.Inject(slurmtest.Fault{Times: 1, Respond: slurmtest.Answer(200, body)})
		if census, err := client.JobCensus(t.Context()); !errors.Is(err, slurm.Malformed) {
			t.Errorf("census of %q is %+v: %v", body, census, err)
		}
	}
}
