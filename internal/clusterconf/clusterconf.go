// Package clusterconf derives the configuration of a Slurm cluster from its Controller, NodeSets and Accounting.
//
// The controllers build the configuration with it, and the webhook reviews specs with it, so that both always agree. It
// does not depend on the running cluster: the configuration in force, the release, or partitions that still have jobs.
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

// maxClusterName is the maximum length of a cluster name in Slurm.
const maxClusterName = 40

// CheckName returns why Slurm does not accept the name of a cluster; nil if it does.
func CheckName(controller *slinkyv1beta1.Controller) error {
	if name := naming.ClusterName(controller); len(name) > maxClusterName {
		return fmt.Errorf(
			"the cluster's name %s, made from namespace and name, has %d characters, and Slurm takes %d; create "+
				"the Controller with spec.clusterName, which cannot be added later",
			name, len(name), maxClusterName)
	}
	return nil
}

// Of returns the input of slurm.conf that follows from the Controller and its Accounting, which is nil if it is not
// known.
func Of(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) slurmconf.Cluster {
	cluster := slurmconf.Cluster{
		Name: naming.ClusterName(controller), Port: naming.PortSlurmctld, SlurmUser: SlurmUser,
		JWKS: controller.Spec.JWKSKeyRef != nil, Metrics: controller.Spec.Metrics.Enabled,
		ExtraConf:  controller.Spec.ExtraConf,
		Exclusive:  controller.Spec.JobConfinement == slinkyv1beta1.JobConfinementNone,
		Accounting: accountingOf(controller, accounting),
	}
	// Each slurmctld is addressed by the name of its pod. In every other pod that name resolves to the Service in front
	// of it, which has an address even while the pod has none. In the pod itself it resolves to the pod's own address,
	// so that slurmctld and its sidecars do not depend on the Service.
	for _, pod := range naming.ControllerPods(controller) {
		cluster.Hosts = append(cluster.Hosts, slurmconf.Host{Name: pod})
	}
	return cluster
}

// OfExternal returns the input of the reduced slurm.conf for clients of an external slurmctld.
func OfExternal(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) slurmconf.Cluster {
	external := controller.Spec.ExternalConfig
	return slurmconf.Cluster{
		Name: naming.ClusterName(controller), Hosts: []slurmconf.Host{{Name: external.Host}},
		Port: int(cmp.Or(external.Port, naming.PortSlurmctld)), SlurmUser: SlurmUser,
		Accounting: accountingOf(controller, accounting),
	}
}

// accountingOf returns the address of a Controller's slurmdbd; nil if it has none.
func accountingOf(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) *slurmconf.Endpoint {
	reference := controller.Spec.AccountingRef
	if reference == nil {
		return nil
	}
	endpoint := &slurmconf.Endpoint{
		Host: naming.Accounting(reference.Name) + "." + controller.Namespace, Port: naming.PortSlurmdbd,
	}
	switch {
	case accounting == nil:
	case accounting.Spec.External && accounting.Spec.ExternalConfig != nil:
		endpoint.Host, endpoint.Port = accounting.Spec.ExternalConfig.Host, int(
			cmp.Or(accounting.Spec.ExternalConfig.Port, naming.PortSlurmdbd))
	default:
		endpoint.Port = int(accounting.Spec.Service.Port)
	}
	return endpoint
}

// Database returns the input of slurmdbd.conf without the password.
func Database(accounting *slinkyv1beta1.Accounting) slurmconf.Database {
	storage := accounting.Spec.StorageConfig
	tls := storage.TLS
	return slurmconf.Database{
		Host: naming.AccountingPod(accounting.Name), Port: naming.PortSlurmdbd, SlurmUser: SlurmUser,
		JWKS:    accounting.Spec.JWKSKeyRef != nil,
		Storage: slurmconf.Endpoint{Host: storage.Host, Port: int(storage.Port)},
		User:    storage.Username, Name: storage.Database,
		TLS: tls != nil, ClientCertificate: tls != nil && tls.ClientCertificateRef != nil,
		ExtraConf: accounting.Spec.ExtraConf,
	}
}

// NodeSet returns what a NodeSet adds to slurm.conf. An error is about the NodeSet's own fields; its GRES are then
// unknown.
func NodeSet(set *slinkyv1beta1.NodeSet) (slurmconf.NodeSet, nodeconf.Node, error) {
	contribution := slurmconf.NodeSet{Name: set.Name}
	if set.Spec.Partition.Enabled {
		contribution.Partition = &set.Spec.Partition.Config
	}
	node, err := nodeconf.Of(set)
	contribution.GresTypes, contribution.MemoryPerCPU = node.GresTypes(), node.MemoryPerCPU()
	return contribution, node, err
}

// MaxNodeCount derives the limit from the size of a cluster: its NodeSets, and the nodes in extraConf. inForce is the
// limit in force; zero if there is none.
func MaxNodeCount(controller *slinkyv1beta1.Controller, sets []slinkyv1beta1.NodeSet, inForce int) int {
	written := slurmconf.Written(controller.Spec.ExtraConf)
	desired := slurmconf.CountNodes(written)
	for i := range sets {
		if set := &sets[i]; set.Spec.ScalingMode == slinkyv1beta1.ScalingModeDaemonSet {
			desired += int(set.Status.Desired)
		} else if set.Spec.Elastic != nil {
			desired += int(set.Spec.Elastic.MaxReplicas)
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
