package naming

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// LabelController on a slurmd pod is the name of the Controller whose cluster it is a node of.
const LabelController = slinkyv1beta1.GroupName + "/controller"

// WorkerHosts names the headless Service that gives each slurmd pod of a Controller a name in DNS. It is one for all
// NodeSets, so that one search domain finds every node of the cluster by its bare name.
func WorkerHosts(controller string) string { return controller + "-workers" }

// WorkerSelector selects the slurmd pods of all NodeSets of a Controller.
func WorkerSelector(controller string) map[string]string {
	return map[string]string{labelName: string(Slurmd), LabelController: controller}
}

// DaemonSelector selects all pods of a daemon, whatever they belong to.
func DaemonSelector(daemon Daemon) map[string]string {
	return map[string]string{labelName: string(daemon)}
}

// WorkerDomain is the domain, within that of the Kubernetes cluster, in which the nodes of a Slurm cluster have names.
func WorkerDomain(namespace, controller, clusterDomain string) string {
	return WorkerHosts(controller) + "." + namespace + ".svc." + clusterDomain
}

// WorkerPod names the slurmd pod with an ordinal.
func WorkerPod(nodeSet *slinkyv1beta1.NodeSet, ordinal int) string {
	return nodeSet.Name + "-" + padded(nodeSet, ordinal)
}

// WorkerHost is the host name of the slurmd pod with an ordinal, and the name of the Slurm node.
func WorkerHost(nodeSet *slinkyv1beta1.NodeSet, ordinal int) string {
	if prefix := hostPrefix(nodeSet); prefix != "" {
		return prefix + padded(nodeSet, ordinal)
	}
	return WorkerPod(nodeSet, ordinal)
}

// NodeWorkerPod names the slurmd pod for a Kubernetes node, in DaemonSet mode.
func NodeWorkerPod(nodeSet *slinkyv1beta1.NodeSet, node string) string {
	return label(nodeSet.Name + "-" + node)
}

// NodeWorkerHost is the host name of the slurmd pod for a Kubernetes node, in DaemonSet mode, and the name of the Slurm
// node. It is the Kubernetes node's own as far as that can be a host name.
func NodeWorkerHost(nodeSet *slinkyv1beta1.NodeSet, node string) string {
	return label(hostPrefix(nodeSet) + node)
}

func padded(nodeSet *slinkyv1beta1.NodeSet, ordinal int) string {
	return fmt.Sprintf("%0*d", int(nodeSet.Spec.OrdinalPadding), ordinal)
}

// hostPrefix is what the user wants host names to begin with.
func hostPrefix(nodeSet *slinkyv1beta1.NodeSet) string {
	var spec struct {
		Hostname string `json:"hostname"`
	}
	if raw := nodeSet.Spec.Template.Spec.Raw; len(raw) == 0 || json.Unmarshal(raw, &spec) != nil {
		return "" // what is not a pod spec is refused elsewhere
	}
	return spec.Hostname
}

const maxLabel = 63

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// label makes a DNS label of a name: the name itself if it is one, else as much of it as fits and a hash of it all, because
// two names must not become one.
func label(name string) string {
	if len(name) <= maxLabel && dnsLabel.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:4])
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	plain = strings.Trim(plain[:min(len(plain), maxLabel-len(hash)-1)], "-")
	return strings.TrimLeft(plain+"-"+hash, "-")
}
