package naming

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// LabelController on a slurmd pod is the name of its Controller.
const LabelController = slinkyv1beta1.GroupName + "/controller"

// LabelElastic is on the slurmd pods of elastic NodeSets, whose Slurm nodes have records in slurm.conf.
const LabelElastic = "nodeset." + slinkyv1beta1.GroupName + "/elastic"

// WorkerHosts returns the name of the headless Service that gives each slurmd pod of a Controller a DNS name. All
// NodeSets share it, so that every Slurm node of the cluster resolves by its short name in one search domain.
func WorkerHosts(controller string) string { return controller + "-workers" }

// WorkerSelector selects the slurmd pods of all NodeSets of a Controller.
func WorkerSelector(controller string) map[string]string {
	return map[string]string{labelName: string(Slurmd), LabelController: controller}
}

// DaemonSelector selects all pods of a daemon, of all custom resources.
func DaemonSelector(daemon Daemon) map[string]string {
	return map[string]string{labelName: string(daemon)}
}

// WorkerDomain returns the DNS domain of a Slurm cluster's nodes.
func WorkerDomain(namespace, controller, clusterDomain string) string {
	return WorkerHosts(controller) + "." + namespace + ".svc." + clusterDomain
}

// WorkerPod returns the name of the slurmd pod with an ordinal.
func WorkerPod(nodeSet *slinkyv1beta1.NodeSet, ordinal int) string {
	return nodeSet.Name + "-" + padded(nodeSet, ordinal)
}

// WorkerHost returns the hostname of the slurmd pod with an ordinal, which is the Slurm node name.
func WorkerHost(nodeSet *slinkyv1beta1.NodeSet, ordinal int) string {
	if prefix := hostPrefix(nodeSet); prefix != "" {
		return prefix + padded(nodeSet, ordinal)
	}
	return WorkerPod(nodeSet, ordinal)
}

// WorkerOrdinals returns a function that returns the ordinal of a Slurm node, if it is one of the NodeSet.
func WorkerOrdinals(nodeSet *slinkyv1beta1.NodeSet) func(slurmNode string) (ordinal int, own bool) {
	prefix := strings.TrimSuffix(WorkerHost(nodeSet, 0), padded(nodeSet, 0))
	return func(slurmNode string) (int, bool) {
		digits, found := strings.CutPrefix(slurmNode, prefix)
		if !found {
			return 0, false
		}
		ordinal, err := strconv.Atoi(digits)
		return ordinal, err == nil && ordinal >= 0 && prefix+padded(nodeSet, ordinal) == slurmNode
	}
}

// WorkerGroup returns the name that the Slurm nodes of a NodeSet have in common: their host name prefix without the '-'
// at its end, or the NodeSet's name if it has no prefix. Slurm nodes have it as a feature.
func WorkerGroup(nodeSet *slinkyv1beta1.NodeSet) string {
	return cmp.Or(strings.TrimRight(hostPrefix(nodeSet), "-"), nodeSet.Name)
}

// NodeWorkerPod returns the name of the slurmd pod for a Kubernetes node, in DaemonSet mode.
func NodeWorkerPod(nodeSet *slinkyv1beta1.NodeSet, node string) string {
	return label(nodeSet.Name + "-" + node)
}

// NodeWorkerHost returns the hostname of the slurmd pod for a Kubernetes node, in DaemonSet mode, which is the Slurm
// node name. It is the name of the Kubernetes node if that is a valid hostname.
func NodeWorkerHost(nodeSet *slinkyv1beta1.NodeSet, node string) string {
	return label(hostPrefix(nodeSet) + node)
}

func padded(nodeSet *slinkyv1beta1.NodeSet, ordinal int) string {
	return fmt.Sprintf("%0*d", int(nodeSet.Spec.OrdinalPadding), ordinal)
}

// hostPrefix returns the user's prefix of hostnames.
func hostPrefix(nodeSet *slinkyv1beta1.NodeSet) string {
	var spec struct {
		Hostname string `json:"hostname"`
	}
	if raw := nodeSet.Spec.Template.Spec.Raw; len(raw) == 0 || json.Unmarshal(raw, &spec) != nil {
		return "" // an invalid pod spec is rejected elsewhere
	}
	return spec.Hostname
}

const maxLabel = 63

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)

// label converts a name to a DNS label: the name itself if it is valid, otherwise a truncated name with a hash of the
// full name, because different names must give different labels.
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
