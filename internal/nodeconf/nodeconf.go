// Package nodeconf generates the parameters with which the slurmds of a NodeSet register their nodes.
//
// A dynamic node is described by its own slurmd: CPUs and memory are the limits of slurmd's container or of its pod,
// less the memory that jobs cannot get, GRES are the devices that it requests, and the NodeSet's name and the prefix of
// its host names are features by which slurm.conf selects the nodes of the set. The user's extraConf overrides these
// values key by key; only the features stay, or the node would be in no partition.
//
// GRES need more than the registration: slurm.conf names their types, and a GPU counts only with a device file.
// Node.Gres is what a node has, from whichever source; Node.GresConf and Node.DeviceScript set it up in a pod.
package nodeconf

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/invalid"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// Container is the name of slurmd's container.
const Container = "slurmd"

// A Node holds the registration parameters of a NodeSet's nodes.
type Node struct {
	pairs []slurmconf.Pair
	// limit is the memory limit of slurmd's container in bytes, of which jobs get memory; both are 0 without a limit.
	limit, memory int64
	// Gres are the generic resources of a node.
	Gres []Gres
}

// Of returns the registration parameters of a NodeSet's nodes. Its error is an *invalid.Field.
func Of(nodeSet *slinkyv1beta1.NodeSet) (Node, error) {
	bare := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: Container}}}}
	merged, err := podtemplate.Merge(bare, nodeSet.Spec.Template, podtemplate.Part{
		Container: Container, Fragment: nodeSet.Spec.Slurmd,
	})
	if err != nil {
		return Node{}, err
	}
	at := slices.IndexFunc(merged.Spec.Containers,
		func(container corev1.Container) bool { return container.Name == Container })
	if at < 0 {
		return Node{}, invalid.New("spec.template.spec.containers", "it removes the container slurmd, which must stay")
	}
	extra, err := slurmconf.ParseNode(nodeSet.Spec.ExtraConf)
	if err != nil {
		return Node{}, invalid.New("spec.extraConf", "%w", err)
	}
	given := limits(merged.Spec.Containers[at].Resources, merged.Spec.Resources)
	memory, err := jobMemory(given, nodeSet.Spec.ReservedMemory, merged.Spec.Volumes)
	if err != nil {
		return Node{}, err
	}
	devices := requested(given, nodeSet.Spec.Gres)
	node, err := overlay(extra, parameters(ownFeatures(nodeSet), given, memory, devices), devices)
	node.limit, node.memory = given.Memory().Value(), memory
	if err == nil && nodeSet.Spec.Elastic != nil {
		err = node.checkRecord()
	}
	return node, err
}

// checkRecord returns what a Slurm node without a pod lacks for its record. Without a record that has the same CPUs and
// memory as the pods, Slurm would refuse their slurmds, or not schedule jobs to them.
func (n Node) checkRecord() error {
	const missing = "an elastic NodeSet needs a limit for %s, because Slurm schedules jobs to its nodes before they " +
		"have a pod; set spec.slurmd.resources.limits.%s"
	arranged := slices.ContainsFunc(n.pairs,
		func(pair slurmconf.Pair) bool { return slices.Contains(layout, canonical(pair.Key)) })
	switch {
	case n.CPUs() < 1 && !arranged:
		return invalid.New("spec.slurmd.resources.limits.cpu", missing, "CPUs", "cpu")
	case n.number("realmemory") < 1:
		return invalid.New("spec.slurmd.resources.limits.memory", missing, "memory", "memory")
	}
	return nil
}

// Parameters returns the parameters of a node, for a record in slurm.conf.
func (n Node) Parameters() []slurmconf.Pair { return slices.Clone(n.pairs) }

// ownFeatures returns the features by which slurm.conf may select the nodes of a NodeSet. Which of them it uses depends
// on the other NodeSets and on the configuration in force, which can change while a pod runs.
func ownFeatures(nodeSet *slinkyv1beta1.NodeSet) []string {
	own := []string{nodeSet.Name}
	if group := naming.WorkerGroup(nodeSet); group != nodeSet.Name && slurmconf.IsNodeSetName(group) {
		own = append(own, group)
	}
	return own
}

// limits returns the limits of a container, and those of its pod where it has none of its own. Requests do not count: a
// container without a limit may use all of the Kubernetes node.
func limits(container corev1.ResourceRequirements, pod *corev1.ResourceRequirements) corev1.ResourceList {
	limits := corev1.ResourceList{}
	if pod != nil {
		maps.Copy(limits, pod.Limits)
	}
	maps.Copy(limits, container.Limits)
	return limits
}

// parameters returns the operator's parameters of a node. slurmd detects what the container does not limit.
func parameters(own []string, given corev1.ResourceList, memory int64, gres []Gres) []slurmconf.Pair {
	pairs := []slurmconf.Pair{{Key: features, Value: strings.Join(own, ",")}}
	if cpu, ok := given[corev1.ResourceCPU]; ok && cpu.Sign() > 0 {
		pairs = append(pairs, slurmconf.Pair{Key: "CPUs", Value: strconv.FormatInt(max(1, cpu.MilliValue()/1000), 10)})
	}
	if memory > 0 {
		pairs = append(pairs, slurmconf.Pair{Key: "RealMemory", Value: strconv.FormatInt(max(1, memory>>20), 10)})
	}
	if len(gres) > 0 {
		pairs = append(pairs, slurmconf.Pair{Key: gresKey, Value: renderGres(gres)})
	}
	return pairs
}

const (
	features = "Features"
	gresKey  = "Gres"
)

// identity are the parameters that identify the node. The pod determines them.
var identity = []string{"NodeName", "NodeHostname", "NodeAddr", "Port"}

// aliases maps alternative parameter names, in lower case.
var aliases = map[string]string{"feature": "features", "procs": "cpus"}

// layout are the parameters, in lower case, from which Slurm computes the CPUs, and with which our CPUs could conflict.
var layout = []string{"boards", "sockets", "socketsperboard", "corespersocket", "threadspercore"}

// canonical returns the canonical name of a parameter.
func canonical(key string) string {
	key = strings.ToLower(key)
	if name, ok := aliases[key]; ok {
		return name
	}
	return key
}

// overlay applies the user's parameters on top of the operator's.
func overlay(extra, own []slurmconf.Pair, devices []Gres) (Node, error) {
	node := Node{pairs: own, Gres: devices}
	if slices.ContainsFunc(extra,
		func(pair slurmconf.Pair) bool { return slices.Contains(layout, canonical(pair.Key)) }) {
		node.pairs = slices.DeleteFunc(node.pairs,
			func(pair slurmconf.Pair) bool { return canonical(pair.Key) == "cpus" })
	}
	for _, pair := range extra {
		for _, key := range identity {
			if strings.EqualFold(pair.Key, key) {
				return Node{}, invalid.New("spec.extraConf", "%s is set by the operator; remove it", pair.Key)
			}
		}
		switch canonical(pair.Key) {
		case "features":
			pair = slurmconf.Pair{Key: features, Value: join(own[0].Value, pair.Value)}
		case "gres":
			node.Gres = parseGres(pair.Value, devices)
		}
		node.put(pair)
	}
	return node, nil
}

// put sets a parameter in place, or appends it if it is new.
func (n *Node) put(pair slurmconf.Pair) {
	at := slices.IndexFunc(n.pairs,
		func(other slurmconf.Pair) bool { return canonical(other.Key) == canonical(pair.Key) })
	if at < 0 {
		n.pairs = append(n.pairs, pair)
		return
	}
	n.pairs[at] = pair
}

// join adds the user's features to the NodeSet's own.
func join(own, list string) string {
	joined := strings.Split(own, ",")
	for feature := range strings.SplitSeq(list, ",") {
		if feature = strings.TrimSpace(feature); feature != "" && !slices.Contains(joined, feature) {
			joined = append(joined, feature)
		}
	}
	return strings.Join(joined, ",")
}

// Conf returns the value of slurmd's option --conf.
func (n Node) Conf() string { return slurmconf.RenderNode(n.pairs) }
