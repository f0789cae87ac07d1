package desired

import (
	"maps"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
)

// Pins are the Kubernetes nodes that ordinals return to with spec.pinToNode, by ordinal: each to the one that it first
// ran on.
type Pins map[int]string

// ordinalsPerShard is how many pins one ConfigMap holds: those of thousands of ordinals do not fit into one object.
const ordinalsPerShard = 1000

// PinShards returns how many ConfigMaps hold the pins of ordinals up to the last.
func PinShards(lastOrdinal int) int { return lastOrdinal/ordinalsPerShard + 1 }

// Add adds the pins of one ConfigMap.
func (p Pins) Add(data map[string]string) {
	for key, node := range data {
		if ordinal, err := strconv.Atoi(key); err == nil {
			p[ordinal] = node
		}
	}
}

// Missing returns the data of those ConfigMaps, by shard, that lack the pin of a scheduled pod.
func (p Pins) Missing(pods []corev1.Pod) map[int]map[string]string {
	pins, changed := maps.Clone(p), map[int]map[string]string{}
	for i := range pods {
		ordinal, numbered := worker.Ordinal(&pods[i])
		if _, pinned := pins[ordinal]; !numbered || pinned || pods[i].Spec.NodeName == "" ||
			pods[i].DeletionTimestamp != nil {
			continue
		}
		pins[ordinal] = pods[i].Spec.NodeName
		changed[ordinal/ordinalsPerShard] = map[string]string{}
	}
	for ordinal, node := range pins {
		if data := changed[ordinal/ordinalsPerShard]; data != nil {
			data[strconv.Itoa(ordinal)] = node
		}
	}
	return changed
}

// Status returns the pins that the status of a NodeSet shows.
func (p Pins) Status() map[string]string {
	if len(p) == 0 {
		return nil
	}
	shown := map[string]string{}
	for ordinal, node := range p {
		if ordinal < slinkyv1beta1.MaxOrdinalToNode {
			shown[strconv.Itoa(ordinal)] = node
		}
	}
	return shown
}
