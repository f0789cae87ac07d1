// Package v1beta1 is the operator's API: six resource types in the group slinky.slurm.net that together describe Slurm
// clusters.
//
// A Controller is a Slurm cluster (slurmctld). NodeSets (slurmd), LoginSets (sshd and sackd) and RestApis (slurmrestd)
// refer to it with controllerRef; it refers to its Accounting (slurmdbd) with accountingRef. A Token is independent of
// the others: it keeps a signed JWT in a Secret.
//
// Group, version, kinds and field names are those of existing manifests, so such a manifest applies unchanged. Fields
// that existing manifests do not have say "Addition" in their description; all of them are optional.
//
// All resource types share three ideas:
//
//   - A field that customizes a pod, a container or a Service is a fragment: the API server validates it against
//     Kubernetes' own schema, and the Go type keeps the bytes as written, because merging a fragment onto the
//     operator's defaults must distinguish "false" from "absent".
//   - Everything that can be checked within one object is validated by the API server itself (schema and CEL rules).
//     Every message names the field, the rule and the remedy.
//   - Every status carries the conditions Ready, Available, Progressing and Degraded, with types and reasons from this
//     package.
//
// +kubebuilder:object:generate=true
// +groupName=slinky.slurm.net
package v1beta1
