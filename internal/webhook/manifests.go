package webhook

// The webhook configurations. The API server ignores an unreachable webhook and does not call it for deletions. Updates
// that do not change the spec, such as the removal of a finalizer by the operator, are not reviewed, except for an
// annotation that makes a change cost jobs.
//
// +kubebuilder:webhookconfiguration:mutating=false,name=slurm-operator
// +kubebuilder:webhookconfiguration:mutating=true,name=slurm-operator
//
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-accounting,name=accountings.slinky.slurm.net,groups=slinky.slurm.net,versions=v1beta1,resources=accountings,verbs=create;update,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,admissionReviewVersions=v1,serviceName=slurm-operator-webhook,serviceNamespace=slurm-operator,patch=`{"matchConditions":[{"name":"spec-changes","expression":"oldObject == null || object.spec != oldObject.spec"}]}`
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-controller,name=controllers.slinky.slurm.net,groups=slinky.slurm.net,versions=v1beta1,resources=controllers,verbs=create;update,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,admissionReviewVersions=v1,serviceName=slurm-operator-webhook,serviceNamespace=slurm-operator,patch=`{"matchConditions":[{"name":"spec-changes","expression":"oldObject == null || object.spec != oldObject.spec || object.metadata.?annotations[?'controller.slinky.slurm.net/change-despite-jobs'].orValue('') != oldObject.metadata.?annotations[?'controller.slinky.slurm.net/change-despite-jobs'].orValue('')"}]}`
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-loginset,name=loginsets.slinky.slurm.net,groups=slinky.slurm.net,versions=v1beta1,resources=loginsets,verbs=create;update,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,admissionReviewVersions=v1,serviceName=slurm-operator-webhook,serviceNamespace=slurm-operator,patch=`{"matchConditions":[{"name":"spec-changes","expression":"oldObject == null || object.spec != oldObject.spec"}]}`
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-nodeset,name=nodesets.slinky.slurm.net,groups=slinky.slurm.net,versions=v1beta1,resources=nodesets,verbs=create;update,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,admissionReviewVersions=v1,serviceName=slurm-operator-webhook,serviceNamespace=slurm-operator,patch=`{"matchConditions":[{"name":"spec-changes","expression":"oldObject == null || object.spec != oldObject.spec"}]}`
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-restapi,name=restapis.slinky.slurm.net,groups=slinky.slurm.net,versions=v1beta1,resources=restapis,verbs=create;update,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,admissionReviewVersions=v1,serviceName=slurm-operator-webhook,serviceNamespace=slurm-operator,patch=`{"matchConditions":[{"name":"spec-changes","expression":"oldObject == null || object.spec != oldObject.spec"}]}`
// +kubebuilder:webhook:path=/validate-slinky-slurm-net-v1beta1-token,name=tokens.slinky.slurm.net,groups=slinky.slurm.net,versions=v1beta1,resources=tokens,verbs=create;update,mutating=false,failurePolicy=ignore,timeoutSeconds=5,sideEffects=None,admissionReviewVersions=v1,serviceName=slurm-operator-webhook,serviceNamespace=slurm-operator,patch=`{"matchConditions":[{"name":"spec-changes","expression":"oldObject == null || object.spec != oldObject.spec"}]}`
//
// Pods in kube-system must not depend on this webhook.
// +kubebuilder:webhook:path=/mutate--v1-binding,name=bindings.slinky.slurm.net,groups=core,versions=v1,resources=pods/binding,verbs=create,mutating=true,failurePolicy=ignore,timeoutSeconds=2,sideEffects=None,admissionReviewVersions=v1,serviceName=slurm-operator-webhook,serviceNamespace=slurm-operator,patch=`{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["kube-system"]}]}}`

// Permissions of the webhook in the namespaces whose objects it reviews: all, or the configured ones. Secrets have a
// separate role: without permission to read them, the webhook does not warn about missing ones.
//
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=accountings;controllers,verbs=get;list
// +kubebuilder:rbac:groups=slinky.slurm.net,resources=nodesets,verbs=list;watch
// +kubebuilder:rbac:groups=core,resources=configmaps;persistentvolumeclaims;pods,verbs=get
// +kubebuilder:rbac:roleName=slurm-operator-webhook-secrets,groups=core,resources=secrets,verbs=get
//
// Permissions at cluster scope and in the webhook's own namespace.
//
// +kubebuilder:rbac:roleName=slurm-operator-webhook-cluster,groups=core,resources=nodes,verbs=get
// +kubebuilder:rbac:roleName=slurm-operator-webhook-cluster,groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations;validatingwebhookconfigurations,resourceNames=slurm-operator,verbs=get;update
// +kubebuilder:rbac:roleName=slurm-operator-webhook-cluster,groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:roleName=slurm-operator-webhook-cluster,groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:namespace=slurm-operator,roleName=slurm-operator-webhook-certificate,groups=core,resources=secrets,resourceNames=slurm-operator-webhook-certificate,verbs=get;update
