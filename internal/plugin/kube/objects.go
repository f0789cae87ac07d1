package kube

import (
	"context"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// Objects are the custom resources of Slurm clusters.
type Objects struct {
	Controllers []slinkyv1beta1.Controller
	NodeSets    []slinkyv1beta1.NodeSet
	LoginSets   []slinkyv1beta1.LoginSet
	RestAPIs    []slinkyv1beta1.RestApi
	Accountings []slinkyv1beta1.Accounting
	// Tokens are read only on request.
	Tokens []slinkyv1beta1.Token
	// Rights are those that the user does not have; the lists concerned are empty.
	Rights Rights
}

// Clusters reads the custom resources of a namespace, or of all namespaces if it is empty: one request for each
// resource type, in parallel, whatever the size of the clusters.
func (c *Client) Clusters(ctx context.Context, namespace string, tokens bool) (*Objects, error) {
	var controllers slinkyv1beta1.ControllerList
	var nodeSets slinkyv1beta1.NodeSetList
	var loginSets slinkyv1beta1.LoginSetList
	var restAPIs slinkyv1beta1.RestApiList
	var accountings slinkyv1beta1.AccountingList
	var issued slinkyv1beta1.TokenList
	reads := []struct {
		resource schema.GroupVersionResource
		into     runtime.Object
		err      error
	}{
		{resource: Controllers, into: &controllers}, {resource: NodeSets, into: &nodeSets},
		{resource: LoginSets, into: &loginSets}, {resource: RestAPIs, into: &restAPIs},
		{resource: Accountings, into: &accountings}, {resource: Tokens, into: &issued},
	}
	if !tokens {
		reads = reads[:len(reads)-1]
	}
	var group errgroup.Group
	for i := range reads {
		group.Go(func() error {
			reads[i].err = c.List(ctx, reads[i].resource, namespace, metav1.ListOptions{}, reads[i].into)
			return nil
		})
	}
	_ = group.Wait() // the errors are in reads
	objects := &Objects{}
	for _, read := range reads {
		if err := objects.Rights.Optional(read.err); err != nil {
			return nil, err
		}
	}
	objects.Controllers, objects.NodeSets, objects.LoginSets = controllers.Items, nodeSets.Items, loginSets.Items
	objects.RestAPIs, objects.Accountings, objects.Tokens = restAPIs.Items, accountings.Items, issued.Items
	return objects, nil
}
