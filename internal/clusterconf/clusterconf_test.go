package clusterconf_test

import (
	"testing"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
)

// Hosts outside Kubernetes are nodes in extraConf, and slurmctld does not start with more nodes than the limit.
func TestMaxNodeCountHasRoomForAllNodes(t *testing.T) {
	const metal = "NodeName=metal[1-1500] CPUs=64\nPartitionName=metal Nodes=ALL"
	replicas := int32(300)
	sets := []slinkyv1beta1.NodeSet{{Spec: slinkyv1beta1.NodeSetSpec{Replicas: &replicas}}}
	for name, test := range map[string]struct {
		extraConf string
		sets      []slinkyv1beta1.NodeSet
		want      int
	}{
		"of extraConf":                {metal, nil, 2048},
		"of extraConf and a NodeSet":  {metal, sets, 4096},
		"of extraConf with a mistake": {metal + "\nmistake", sets, 4096},
	} {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{Spec: slinkyv1beta1.ControllerSpec{ExtraConf: test.extraConf}}
			if got := clusterconf.MaxNodeCount(controller, test.sets, 0); got != test.want {
				t.Errorf("got %d, want %d", got, test.want)
			}
		})
	}
}
