// Package v1beta1 is the API of the operator: six kinds in the group slinky.slurm.net that together describe Slurm
// clusters.
//
// A Controller is a Slurm cluster (slurmctld). NodeSets (slurmd), LoginSets (sshd and sackd) and RestApis (slurmrestd)
// point at it with controllerRef; it points at the Accounting (slurmdbd) that it reports to with accountingRef. A Token
// stands alone: it keeps a signed JWT in a Secret.
//
// The group, version, kinds and field names are those that existing manifests use, so such a manifest applies unchanged.
// What such manifests do not have says "Addition" in its description; all of it is optional.
//
// Three ideas run through all kinds:
//
//   - Where the user may shape a pod, a container or a Service, the field is a fragment: the server checks it against
//     Kubernetes' own schema, and the Go type keeps the bytes as written, because "false" and "absent" are different
//     answers when a fragment is merged onto the operator's defaults.
//   - What one object can tell is validated by the API server itself (schema and CEL rules). Every message names the
//     field, the rule and the remedy.
//   - Every status carries the conditions Ready, Progressing and Degraded, with types and reasons from this package.
//
// +kubebuilder:object:generate=true
// +groupName=slinky.slurm.net
package v1beta1
