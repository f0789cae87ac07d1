package slurm

import (
	"encoding/json"
	"fmt"
)

// An Owner identifies the pod and the NodeSet behind a Slurm node, as JSON in the node's record. slurmd brings the pod
// with its registration, as the instance ID. The operator writes the NodeSet as the comment, which is the same for all
// its Slurm nodes: one request describes any number of them. If slurmd does not bring the pod, the comment names both.
type Owner struct {
	Namespace   string `json:"namespace"`
	PodName     string `json:"podName,omitempty"`
	Node        string `json:"node,omitempty"` // the Kubernetes node
	NodeSetName string `json:"nodeSetName,omitempty"`
	NodeSetUID  string `json:"nodeSetUID,omitempty"`
}

// ParseOwner parses the comment or the instance ID of a Slurm node. It fails if the operator did not write it, in which
// case it must be kept.
func ParseOwner(text string) (Owner, error) {
	var owner Owner
	if err := json.Unmarshal([]byte(text), &owner); err != nil {
		return Owner{}, fmt.Errorf("it does not name an owner: %w", err)
	}
	if owner.Namespace == "" || owner.PodName == "" && owner.NodeSetUID == "" {
		return Owner{}, fmt.Errorf("it does not name an owner: namespace %q, pod %q, NodeSet %q", owner.Namespace,
			owner.PodName, owner.NodeSetUID)
	}
	return owner, nil
}

// Pod returns only what identifies the pod.
func (o Owner) Pod() Owner { return Owner{Namespace: o.Namespace, PodName: o.PodName, Node: o.Node} }

// NodeSet returns only what identifies the NodeSet.
func (o Owner) NodeSet() Owner {
	return Owner{Namespace: o.Namespace, NodeSetName: o.NodeSetName, NodeSetUID: o.NodeSetUID}
}

// String encodes the owner for the record of a Slurm node.
func (o Owner) String() string {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err) // never: strings always encode
	}
	return string(text)
}
