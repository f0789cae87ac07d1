package kube

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// fieldManager is the plugin's name in server-side apply.
const fieldManager = "kubectl-slurm"

// DryRun asks the API server and its webhooks what would become of an object if it were applied, and changes nothing.
// It returns the object with all defaults, and the warnings.
func (c *Client) DryRun(
	ctx context.Context, resource schema.GroupVersionResource, namespace, name string, object []byte,
) (applied []byte, warnings []string, err error) {
	client := c.clients[resource.GroupVersion()]
	if client == nil {
		client = c.clients[corev1.SchemeGroupVersion]
	}
	collect := &collector{}
	applied, err = client.Patch(types.ApplyPatchType).NamespaceIfScoped(namespace, namespace != "").
		Resource(resource.Resource).Name(name).Param("dryRun", metav1.DryRunAll).Param("fieldManager", fieldManager).
		Param("force", "true").WarningHandler(collect).Body(object).Do(ctx).Raw()
	return applied, collect.texts, denied(err, "patch", resource.GroupResource(), namespace)
}

// A collector collects the warnings of a request.
type collector struct{ texts []string }

// HandleWarningHeader adds a warning.
func (c *collector) HandleWarningHeader(_ int, _, text string) { c.texts = append(c.texts, text) }
