#!/bin/sh
# Generates everything that follows from the API types, the definitions of metrics and the controllers' markers: deep
# copies, apply configurations, CRDs, the references of the API, of metrics and of the plugin for kubectl, the roles of
# operator and webhook, and the webhook configurations. "make verify" runs it and fails if the result differs from the
# committed files.
set -eu
cd "$(dirname "$0")/.."

module=github.com/slurm-operator/slurm-operator

tool() { hack/tool hack/tools "$@"; }

# external lists the apply configurations of the Kubernetes types that the API embeds.
external() {
	for type in PersistentVolumeClaimSpec TypedLocalObjectReference TypedObjectReference VolumeResourceRequirements; do
		printf 'k8s.io/api/core/v1.%s:k8s.io/client-go/applyconfigurations/core/v1,' "$type"
	done
	printf 'k8s.io/api/apps/v1.DeploymentStrategy:k8s.io/client-go/applyconfigurations/apps/v1'
}

tool controller-gen object "paths=./api/v1beta1;./internal/provisioning"

rm -rf api/applyconfiguration
tool applyconfiguration-gen --go-header-file /dev/null --external-applyconfigurations "$(external)" \
	--output-dir api/applyconfiguration --output-pkg "$module/api/applyconfiguration" "$module/api/v1beta1"

rm -f config/crd/bases/*.yaml
go -C hack/tools run ./crds ../.. ./api/v1beta1 config/crd/bases
go -C hack/tools run ./apiref ../../config/crd/bases >docs/reference/api.md
go run ./hack/metrics docs/reference/metrics.md
go run ./hack/pluginref >docs/reference/kubectl-slurm.md
go run ./hack/pictures internal/plugin docs/pictures

tool controller-gen rbac:roleName=slurm-operator "paths=./internal/controller/...;./internal/operator" output:rbac:dir=config/rbac
tool controller-gen rbac:roleName=slurm-operator-webhook,fileName=webhook_role.yaml output:rbac:dir=config/rbac \
	webhook output:webhook:dir=config/webhook paths=./internal/webhook
