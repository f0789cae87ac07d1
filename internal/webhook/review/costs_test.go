package review_test

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/webhook/review"
)

// inForce returns a result with the configuration in force of the Controller x.
func inForce(conf string) review.Found {
	return existing(map[review.Target]metav1.Object{
		{Kind: review.ConfigMapKind, Name: "x-config"}: configMap(map[string]string{"slurm.conf": conf}),
	})
}

// ofController returns a result with the Controller c, its configuration in force, and NodeSets.
func ofController(spec slinkyv1beta1.ControllerSpec, conf string, sets ...slinkyv1beta1.NodeSet) review.Found {
	found := existing(map[review.Target]metav1.Object{
		{Kind: review.ControllerKind, Name: "c"}: &slinkyv1beta1.Controller{
			ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: spec,
		},
		{Kind: review.ConfigMapKind, Name: "c-config"}: configMap(map[string]string{"slurm.conf": conf}),
	})
	found.NodeSets = sets
	return found
}

const (
	// confInForce is a configuration as new clusters have it.
	confInForce = "PrologFlags=Contain\nSelectType=select/cons_tres\nSlurmdSpoolDir=/var/spool/slurmd\n"
	// despite is the metadata of a Controller that lets keys change while jobs run.
	despite = "metadata: {name: x, namespace: hpc, annotations: {controller.slinky.slurm.net/change-despite-jobs: " +
		"\"selecttype,MaxJobCount\"}}\n"
)

var controllerCostTests = map[string]test{
	"that changes what costs jobs": {
		was:   "spec: {}",
		is:    "spec: {extraConf: \"SELECTTYPE=select/linear\\nSlurmdSpoolDir=/scratch\\nMaxJobCount=500\"}",
		found: inForce(confInForce + "MaxJobCount=20000\n"),
	},
	"that removes lines of nodes": {
		was: "spec: {extraConf: \"NodeName=bm[1-3] CPUs=4\"}", is: "spec: {extraConf: \"NodeName=bm2 CPUs=4 Weight=2\"}",
		found: inForce(confInForce + "NodeName=bm[1-3] CPUs=4\n"),
	},
	"that adds the first flag for prologs": {
		was: "spec: {}", is: "spec: {extraConf: \"PrologFlags=Serial\\nPrologFlags=Alloc\"}", found: inForce(""),
	},
	"that adds another flag for prologs": {
		was: "spec: {}", is: "spec: {extraConf: PrologFlags=X11}", found: inForce(confInForce), silent: true,
	},
	"that sets a key twice, as it is in force in the end": {
		was: "spec: {}", is: "spec: {extraConf: \"SelectType=select/linear\\nSelectType=select/cons_tres\"}",
		found: inForce(confInForce), silent: true,
	},
	"that writes the default": {
		was: "spec: {}", is: "spec: {extraConf: MaxJobCount=10000}", found: inForce(confInForce), silent: true,
	},
	"that takes back a change that waits": {
		was: "spec: {extraConf: SelectType=select/linear}", is: "spec: {}", found: inForce(confInForce), silent: true,
	},
	"that takes back a change that is in force": {
		was: "spec: {extraConf: SlurmdSpoolDir=/scratch}", is: "spec: {}", found: inForce("SlurmdSpoolDir=/scratch\n"),
	},
	"that changes something else while a change waits": {
		was: "spec: {extraConf: SelectType=select/linear}",
		is:  "spec: {extraConf: \"SelectType=select/linear\\nSlurmdTimeout=60\"}", found: inForce(confInForce), silent: true,
	},
	"that changes what costs jobs, in spite of them": {
		was: despite + "spec: {}", is: despite + "spec: {extraConf: \"SelectType=select/linear\\nMaxJobCount=500\"}",
		found: inForce(confInForce),
	},
	"that no longer lets a change wait": {
		was: "spec: {extraConf: SelectType=select/linear}", is: despite + "spec: {extraConf: SelectType=select/linear}",
		found: inForce(confInForce),
	},
	"that lets keys change that do not change": {
		was: "spec: {}", is: despite + "spec: {}", found: inForce(confInForce), silent: true,
	},
	"that removes a GRES type and a partition": {
		was:   "spec: {extraConf: \"GresTypes=fpga,gpu\\nPartitionName=old Nodes=ALL\"}",
		is:    "spec: {extraConf: GresTypes=gpu}",
		found: inForce(confInForce + "GresTypes=fpga,gpu\nPartitionName=old Nodes=ALL\n"),
	},
	"that changes what costs jobs before slurmctld has a configuration": {
		was: "spec: {}", is: "spec: {extraConf: SelectType=select/linear}", silent: true,
		found: missing(review.Target{Kind: review.ConfigMapKind, Name: "x-config"}),
	},
	"that changes what costs jobs, with a configuration that could not be looked up": {
		was: "spec: {}", is: "spec: {extraConf: SelectType=select/linear}", silent: true,
	},
	"that changes what costs jobs, and is refused": {
		was: "spec: {}", is: "spec: {extraConf: \"SelectType=select/linear\\nClusterName=other\"}",
		found: inForce(confInForce), refused: true,
	},
	"that gets another image without a volume": {
		was: "spec: {persistence: {enabled: false}}", is: "spec: {persistence: {enabled: false}, slurmctld: {image: other}}",
	},
	"that gets another image and a volume": {
		was: "spec: {persistence: {enabled: false}}", is: "spec: {slurmctld: {image: other}}",
	},
}

// gpuInForce is the configuration with a NodeSet that has GPUs and a partition.
const gpuInForce = confInForce + "GresTypes=gpu\nNodeSet=x Feature=x\nPartitionName=x Nodes=x\n"

var nodeSetCostTests = map[string]test{
	"that loses its GRES and its partition": {
		was: "spec: {controllerRef: {name: c}, extraConf: \"Gres=gpu:2\", partition: {enabled: true}}",
		is:  "spec: {controllerRef: {name: c}}", found: ofController(slinkyv1beta1.ControllerSpec{}, gpuInForce),
	},
	"that loses GRES which another one has": {
		was: "spec: {controllerRef: {name: c}, extraConf: \"Gres=gpu:2\"}", is: "spec: {controllerRef: {name: c}}",
		found: ofController(slinkyv1beta1.ControllerSpec{}, confInForce+"GresTypes=gpu\n", gpuNodeSet("other")), silent: true,
	},
	"that loses GRES which extraConf has": {
		was: "spec: {controllerRef: {name: c}, extraConf: \"Gres=gpu:2\"}", is: "spec: {controllerRef: {name: c}}",
		found:  ofController(slinkyv1beta1.ControllerSpec{ExtraConf: "GresTypes=gpu"}, confInForce+"GresTypes=gpu\n"),
		silent: true,
	},
	"that is the first one with sshd": {
		was:   "spec: {controllerRef: {name: c}}",
		is:    "spec: {controllerRef: {name: c}, ssh: {enabled: true}}",
		found: ofController(slinkyv1beta1.ControllerSpec{}, "PrologFlags=Serial\n"),
	},
	"with sshd in a cluster that has the flag for it": {
		was:   "spec: {controllerRef: {name: c}}",
		is:    "spec: {controllerRef: {name: c}, ssh: {enabled: true}}",
		found: ofController(slinkyv1beta1.ControllerSpec{}, confInForce), silent: true,
	},
	"that loses its GRES in an external cluster": {
		was: "spec: {controllerRef: {name: c}, extraConf: \"Gres=gpu:2\"}", is: "spec: {controllerRef: {name: c}}",
		found: ofController(slinkyv1beta1.ControllerSpec{External: true}, gpuInForce), silent: true,
	},
	"that gets a mistake, and so keeps its partition": {
		was:   "spec: {controllerRef: {name: c}, partition: {enabled: true}}",
		is:    "spec: {controllerRef: {name: c}, partition: {enabled: true, config: Default}}",
		found: ofController(slinkyv1beta1.ControllerSpec{}, gpuInForce), refused: true,
	},
	"that is scaled beside one with a mistake": {
		was:   "spec: {controllerRef: {name: c}, replicas: 1, partition: {enabled: true}}",
		is:    "spec: {controllerRef: {name: c}, replicas: 2, partition: {enabled: true}}",
		found: ofController(slinkyv1beta1.ControllerSpec{}, gpuInForce, mistakenNodeSet("other")), silent: true,
	},
}

// gpuNodeSet returns a NodeSet with GPUs.
func gpuNodeSet(name string) slinkyv1beta1.NodeSet {
	set := nodeSet(name, 1)
	set.Spec.ExtraConf = "Gres=gpu:1"
	return set
}

// mistakenNodeSet returns a NodeSet whose partition cannot be read.
func mistakenNodeSet(name string) slinkyv1beta1.NodeSet {
	set := nodeSet(name, 1)
	set.Spec.Partition.Config = "Default"
	return set
}
