package slurm

import (
	"encoding/json"
	"fmt"
)

// An Owner says which pod is behind a node. It is kept in the node's comment, as JSON.
type Owner struct {
	Namespace   string `json:"namespace"`
	PodName     string `json:"podName"`
	Node        string `json:"node"` // the Kubernetes node
	NodeSetName string `json:"nodeSetName"`
	NodeSetUID  string `json:"nodeSetUID"`
}

// ParseOwner reads a node's comment. It fails when the comment is not one of ours, which is somebody's to keep.
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

// Comment is the owner as a node's comment.
func (o Owner) Comment() string {
	comment, err := json.Marshal(o)
	if err != nil {
		panic(err) // never: strings always encode
	}
	return string(comment)
}
