// Package podshape defines which fields of a spec determine the pods: a change of one of them replaces the pods, and a
// change of any other does not.
//
// The NodeSet controller distinguishes revisions by them, and the webhook warns of the effects of a change with them.
// Tests next to the code that builds the pods check that the fields are complete.
package podshape

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// NodeSet holds the fields that determine slurmd pods. Its JSON is part of the revisions of existing clusters: a change
// of the format replaces all their pods.
type NodeSet struct {
	Slurmd            slinkyv1beta1.ContainerFragment `json:"slurmd,omitzero"`
	Logfile           slinkyv1beta1.ContainerFragment `json:"logfile,omitzero"`
	SSH               slinkyv1beta1.NodeSetSSH        `json:"ssh,omitzero"`
	Template          slinkyv1beta1.PodTemplate       `json:"template,omitzero"`
	ExtraConf         string                          `json:"extraConf,omitempty"`
	Gres              []slinkyv1beta1.GresRule        `json:"gres,omitempty"`
	OversubscribeNode bool                            `json:"oversubscribeNode,omitempty"`
	CgroupAccess      slinkyv1beta1.CgroupAccess      `json:"cgroupAccess,omitempty"`
	ReservedMemory    *resource.Quantity              `json:"reservedMemory,omitempty"`
	// Elastic is whether the NodeSet is elastic: its slurmds have records in slurm.conf. Its sizes do not matter.
	Elastic bool `json:"elastic,omitempty"`
}

// OfNodeSet returns the shape of a NodeSet's pods.
func OfNodeSet(spec *slinkyv1beta1.NodeSetSpec) NodeSet {
	return NodeSet{
		Slurmd: spec.Slurmd, Logfile: spec.Logfile, SSH: spec.SSH, Template: spec.Template,
		ExtraConf: spec.ExtraConf, Gres: spec.Gres, OversubscribeNode: spec.OversubscribeNode,
		CgroupAccess: spec.CgroupAccess, ReservedMemory: spec.ReservedMemory, Elastic: spec.Elastic != nil,
	}
}

// Controller holds the fields that determine slurmctld's pods.
type Controller struct {
	Slurmctld   slinkyv1beta1.ContainerFragment   `json:"slurmctld,omitzero"`
	Reconfigure slinkyv1beta1.ContainerFragment   `json:"reconfigure,omitzero"`
	Logfile     slinkyv1beta1.ContainerFragment   `json:"logfile,omitzero"`
	Template    slinkyv1beta1.PodTemplate         `json:"template,omitzero"`
	SlurmUser   slinkyv1beta1.SlurmUser           `json:"slurmUser,omitzero"`
	JWTKeyRef   *slinkyv1beta1.SecretKeyReference `json:"jwtKeyRef,omitempty"`
	HA          bool                              `json:"ha.enabled,omitempty"`
}

// OfController returns the shape of a Controller's pods.
func OfController(spec *slinkyv1beta1.ControllerSpec) Controller {
	return Controller{
		Slurmctld: spec.Slurmctld, Reconfigure: spec.Reconfigure, Logfile: spec.Logfile, Template: spec.Template,
		SlurmUser: spec.SlurmUser, JWTKeyRef: spec.JWTKey(), HA: spec.HA.Enabled,
	}
}

// LoginSet holds the fields that determine login pods.
type LoginSet struct {
	Login           slinkyv1beta1.ContainerFragment   `json:"login,omitzero"`
	Initconf        slinkyv1beta1.ContainerFragment   `json:"initconf,omitzero"`
	Template        slinkyv1beta1.PodTemplate         `json:"template,omitzero"`
	ExtraSSHDConfig string                            `json:"extraSshdConfig,omitempty"`
	SSSDConfRef     *slinkyv1beta1.SecretKeyReference `json:"sssdConfRef,omitempty"`
}

// OfLoginSet returns the shape of a LoginSet's pods.
func OfLoginSet(spec *slinkyv1beta1.LoginSetSpec) LoginSet {
	return LoginSet{
		Login: spec.Login, Initconf: spec.Initconf, Template: spec.Template, ExtraSSHDConfig: spec.ExtraSshdConfig,
		SSSDConfRef: spec.SSSDConfRef,
	}
}

// Changed returns the paths of the fields in which two shapes differ.
func Changed[S NodeSet | Controller | LoginSet](before, after S) []string {
	was, is := fields(before), fields(after)
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if !bytes.Equal(was[name], is[name]) {
			changed = append(changed, "spec."+name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, stays := is[name]; !stays {
			changed = append(changed, "spec."+name)
		}
	}
	slices.Sort(changed)
	return changed
}

func fields(shape any) map[string]json.RawMessage {
	data, err := json.Marshal(shape)
	if err == nil {
		var named map[string]json.RawMessage
		if err = json.Unmarshal(data, &named); err == nil {
			return named
		}
	}
	panic(err) // unreachable: API types always encode
}
