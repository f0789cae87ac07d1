package slurm

import (
	"encoding/json"
	"fmt"
)

// An Owner identifies the pod behind a Slurm node. It is stored in the node's comment, as JSON.
type Owner struct {
	Namespace   string `json:"namespace"`
	PodName     string `json:"podName"`
	Node        string `json:"node"` // the Kubernetes node
	NodeSetName string `json:"nodeSetName"`
	NodeSetUID  string `json:"nodeSetUID"`
}

// ParseOwner parses a Slurm node's comment. It fails if the operator did not write the comment, which must then be
// kept.
func ParseOwner(comment string) (Owner, error) {
	var owner Owner
	if err := json.Unmarshal([]byte(comment), &owner); err != nil {
		return Owner{}, fmt.Errorf("comment does not name a pod: %w", err)
	}
	if owner.Namespace == "" || owner.PodName == "" {
		return Owner{}, fmt.Errorf("comment does not name a pod: namespace %q, name %q", owner.Namespace, owner.PodName)
	}
	return owner, nil
}

// Comment encodes the owner as a Slurm node's comment.
func (o Owner) Comment() string {
	comment, err := json.Marshal(o)
	if err != nil {
		panic(err) // never: strings always encode
	}
	return string(comment)
}
