// Package clusterconf knows how the configuration of a Slurm cluster follows from its Controller, NodeSets and Accounting.
//
// The controllers make the configuration from it, and the webhook reviews with it what somebody asks for, so that both always agree. It
// decides nothing that depends on the running cluster: what is in force, which release runs, which partitions still have jobs.
package clusterconf

import (
	"cmp"
	"fmt"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// SlurmUser is the user that slurmctld and slurmdbd run as.
const SlurmUser = "slurm"

// maxClusterName is how many characters Slurm takes.
const maxClusterName = 40

// CheckName reports why Slurm does not take the name of a cluster; nil when it does.
func CheckName(controller *slinkyv1beta1.Controller) error {
	if name := naming.ClusterName(controller); len(name) > maxClusterName {
		return fmt.Errorf("the cluster's name %s, made from namespace and name, has %d characters, and Slurm takes %d; set spec.clusterName",
			name, len(name), maxClusterName)
	}
	return nil
}

// Of is what slurm.conf is made from, as far as it follows from the Controller and its Accounting, which may be nil while it is not
// known.
func Of(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) slurmconf.Cluster {
	cluster := slurmconf.Cluster{
		Name: naming.ClusterName(controller), Port: naming.PortSlurmctld, SlurmUser: SlurmUser,
		JWKS: controller.Spec.JWKSKeyRef != nil, Metrics: controller.Spec.Metrics.Enabled, ExtraConf: controller.Spec.ExtraConf,
		Accounting: accountingOf(controller, accounting),
	}
	// Each slurmctld is known by the name of its pod. In every other pod that is the name of the Service in front of it, which has an
	// address also while the pod has none; in the pod itself it is the pod's own address, so that a slurmctld and what runs beside it
	// need no way out and in again.
	for _, pod := range naming.ControllerPods(controller) {
		cluster.Hosts = append(cluster.Hosts, slurmconf.Host{Name: pod})
	}
	return cluster
}

// OfExternal is what the reduced slurm.conf for clients of an external slurmctld is made from.
func OfExternal(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) slurmconf.Cluster {
	external := controller.Spec.ExternalConfig
	return slurmconf.Cluster{
		Name: naming.ClusterName(controller), Hosts: []slurmconf.Host{{Name: external.Host}},
		Port: int(cmp.Or(external.Port, naming.PortSlurmctld)), SlurmUser: SlurmUser, Accounting: accountingOf(controller, accounting),
	}
}

// accountingOf is where the slurmdbd of a Controller listens; nil when it has none.
func accountingOf(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) *slurmconf.Endpoint {
	reference := controller.Spec.AccountingRef
	if reference == nil {
		return nil
	}
	endpoint := &slurmconf.Endpoint{Host: naming.Accounting(reference.Name) + "." + controller.Namespace, Port: naming.PortSlurmdbd}
	switch {
	case accounting == nil:
	case accounting.Spec.External && accounting.Spec.ExternalConfig != nil:
		endpoint.Host, endpoint.Port = accounting.Spec.ExternalConfig.Host, int(cmp.Or(accounting.Spec.ExternalConfig.Port, naming.PortSlurmdbd))
	default:
		endpoint.Port = int(accounting.Spec.Service.Port)
	}
	return endpoint
}

// Database is what slurmdbd.conf is made from, but for the password.
func Database(accounting *slinkyv1beta1.Accounting) slurmconf.Database {
	storage := accounting.Spec.StorageConfig
	return slurmconf.Database{
		Host: naming.AccountingPod(accounting.Name), Port: naming.PortSlurmdbd, SlurmUser: SlurmUser, JWKS: accounting.Spec.JWKSKeyRef != nil,
		Storage: slurmconf.Endpoint{Host: storage.Host, Port: int(storage.Port)},
		User:    storage.Username, Name: storage.Database,
		ExtraConf: accounting.Spec.ExtraConf,
	}
}

// NodeSet is what a NodeSet adds to slurm.conf. Its error is about the NodeSet's own fields, and the GRES are then not known.
func NodeSet(set *slinkyv1beta1.NodeSet) (slurmconf.NodeSet, nodeconf.Node, error) {
	contribution := slurmconf.NodeSet{Name: set.Name}
	if set.Spec.Partition.Enabled {
		contribution.Partition = &set.Spec.Partition.Config
	}
	node, err := nodeconf.Of(set)
	contribution.GresTypes = node.GresTypes()
	return contribution, node, err
}

// MaxNodeCount follows the size of a cluster whose slurm.conf in force has room for so many nodes; zero when there is none.
func MaxNodeCount(controller *slinkyv1beta1.Controller, sets []slinkyv1beta1.NodeSet, inForce int) int {
	desired := 0
	for i := range sets {
		if set := &sets[i]; set.Spec.ScalingMode == slinkyv1beta1.ScalingModeDaemonSet {
			desired += int(set.Status.Desired)
		} else if set.Spec.Replicas != nil {
			desired += int(*set.Spec.Replicas)
		}
	}
	live := 0
	if nodes := controller.Status.Nodes; nodes != nil {
		live = int(nodes.Total)
	}
	return slurmconf.MaxNodeCount(desired, live, inForce, controller.Spec.MaxNodeCount)
}
