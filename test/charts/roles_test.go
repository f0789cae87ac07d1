//go:build integration

package charts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"
)

// types are the resource types of the CRDs.
func types(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(charts, "slurm-operator-crds", "templates", "slinky.slurm.net_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "slinky.slurm.net_"), ".yaml")
	}
	return files
}

var (
	readVerbs  = []string{"get", "list", "watch"}
	writeVerbs = []string{"create", "delete", "deletecollection", "patch", "update"}
)

// The API server decides what the ClusterRoles for users allow, in the namespace in which they are bound and elsewhere.
func TestUserRolesGrantOnlyWhatTheySay(t *testing.T) {
	roles, err := render(t.Context(), "slurm-operator", nil, "--show-only=templates/roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var bindings strings.Builder
	bindings.WriteString("{apiVersion: v1, kind: Namespace, metadata: {name: tenant}}\n")
	names := []string{
		"slurm-operator-aggregate-to-view", "slurm-operator-aggregate-to-edit", "slurm-user", "slurm-admin",
	}
	for _, name := range names {
		fmt.Fprintf(&bindings, `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: tenant}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, name)
	}
	create(t, roles)
	create(t, bindings.String())
	check := func(user, group, resource string, verbs []string, want bool) {
		t.Helper()
		resource, subresource, _ := strings.Cut(resource, "/")
		for _, verb := range verbs {
			asked := authorizationv1.ResourceAttributes{
				Namespace: "tenant", Group: group, Resource: resource, Subresource: subresource, Verb: verb,
			}
			if got := becomesAllowed(t, user, asked, want); got != want {
				t.Errorf("%s may %s %s/%s: %v, want %v", user, verb, resource, subresource, got, want)
			}
			asked.Namespace = "default"
			if isAllowed(t, user, asked) {
				t.Errorf("%s may %s %s/%s in another namespace", user, verb, resource, subresource)
			}
		}
	}
	const group = "slinky.slurm.net"
	for _, user := range names {
		reads := user != "slurm-operator-aggregate-to-edit" // edit and admin have the rules of view, too
		writes := user == "slurm-operator-aggregate-to-edit" || user == "slurm-admin"
		for _, resource := range types(t) {
			check(user, group, resource, readVerbs, reads)
			check(user, group, resource, writeVerbs, writes)
			check(user, group, resource+"/status", []string{"patch", "update"}, false)
			check(user, group, resource+"/finalizers", []string{"update"}, false)
		}
		for _, scaled := range []string{"loginsets", "nodesets", "restapis"} {
			check(user, group, scaled+"/scale", []string{"get"}, reads)
			check(user, group, scaled+"/scale", []string{"patch", "update"}, writes)
		}
		check(user, "", "pods", readVerbs, strings.HasPrefix(user, "slurm-") && !strings.Contains(user, "aggregate"))
		check(user, "", "pods", writeVerbs, false)
		for _, denied := range []string{
			"pods/exec", "pods/attach", "pods/portforward", "pods/ephemeralcontainers", "secrets",
		} {
			check(user, "", denied, append([]string{"get"}, writeVerbs...), false)
		}
	}
}

// create applies manifests.
func create(t *testing.T, manifests string) {
	t.Helper()
	if _, err := run(t.Context(), []byte(manifests), server.Kubectl, "--kubeconfig="+server.Kubeconfig, "apply",
		"--server-side", "--filename=-"); err != nil {
		t.Fatal(err)
	}
}

// isAllowed asks the API server whether a user may do something.
func isAllowed(t *testing.T, user string, asked authorizationv1.ResourceAttributes) bool {
	t.Helper()
	review, err := kubernetes.NewForConfigOrDie(server.Config).AuthorizationV1().SubjectAccessReviews().Create(t.Context(),
		&authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user, ResourceAttributes: &asked,
		}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.Allowed
}

// becomesAllowed asks the API server whether a user may do something, until it may if it should: the API server follows
// new roles with some delay.
func becomesAllowed(t *testing.T, user string, asked authorizationv1.ResourceAttributes, should bool) bool {
	t.Helper()
	allowed := false
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true,
		func(context.Context) (bool, error) {
			allowed = isAllowed(t, user, asked)
			return allowed || !should, nil
		})
	if err != nil && !wait.Interrupted(err) {
		t.Fatal(err)
	}
	return allowed
}

// With namespaces, operator and webhook may do nothing in other namespaces, and little in the whole cluster.
func TestNamespacedOperatorIsConfinedToItsNamespaces(t *testing.T) {
	create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: managed}}")
	for component, account := range map[string]string{"operator": "slurm-operator", "webhook": "slurm-operator-webhook"} {
		manifests, err := render(t.Context(), "slurm-operator", values{"namespaces": []string{"managed"}},
			"--show-only=templates/"+component+"/rbac.yaml")
		if err != nil {
			t.Fatal(err)
		}
		create(t, manifests)
		user := "system:serviceaccount:default:" + account
		for _, asked := range granted(t, manifests, "managed") {
			for namespace, want := range map[string]bool{"managed": true, "kube-system": false} {
				asked.Namespace = namespace
				if got := becomesAllowed(t, user, asked, want); got != want {
					t.Errorf("%s may %s %s in %s: %v, want %v", account, asked.Verb, asked.Resource, namespace, got, want)
				}
			}
		}
		for _, resource := range []string{"secrets", "pods", "configmaps", "namespaces", "nodes"} {
			for _, verb := range append(slices.Clone(readVerbs), writeVerbs...) {
				if resource == "nodes" && slices.Contains(readVerbs, verb) {
					continue
				}
				if isAllowed(t, user, authorizationv1.ResourceAttributes{Resource: resource, Verb: verb}) {
					t.Errorf("%s may %s %s in all namespaces", account, verb, resource)
				}
			}
		}
		for _, asked := range []authorizationv1.ResourceAttributes{
			{Resource: "secrets", Verb: "get"}, {Resource: "pods", Verb: "create"}, {Resource: "pods", Verb: "patch"},
			{Resource: "pods", Verb: "delete"},
		} {
			asked.Namespace = "managed"
			want := component == "operator"
			if got := becomesAllowed(t, user, asked, want); got != want {
				t.Errorf("%s may %s %s: %v, want %v", account, asked.Verb, asked.Resource, got, want)
			}
		}
	}
}

// granted returns what the Roles of a namespace grant.
func granted(t *testing.T, manifests, namespace string) []authorizationv1.ResourceAttributes {
	t.Helper()
	var all []authorizationv1.ResourceAttributes
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var role rbacv1.Role
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		if role.Kind != "Role" || role.Namespace != namespace {
			continue
		}
		for _, rule := range role.Rules {
			for _, path := range rule.Resources {
				resource, subresource, _ := strings.Cut(path, "/")
				for _, verb := range rule.Verbs {
					all = append(all, authorizationv1.ResourceAttributes{
						Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: verb,
					})
				}
			}
		}
	}
	if len(all) == 0 {
		t.Fatal("there are no Roles")
	}
	return all
}

// Kubernetes adds the rules of ClusterRoles to its own by labels. The controller that does so does not run here.
func TestUserRolesAreAggregated(t *testing.T) {
	manifests, err := render(t.Context(), "slurm-operator", nil, "--show-only=templates/roles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	added := map[string][]string{}
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(document), &role); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"view", "edit", "admin"} {
			output, err := run(t.Context(), nil, server.Kubectl, "--kubeconfig="+server.Kubeconfig, "get", "clusterrole",
				name, "--output=json")
			if err != nil {
				t.Fatal(err)
			}
			var own rbacv1.ClusterRole
			if err := json.Unmarshal([]byte(output), &own); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(own.AggregationRule.ClusterRoleSelectors, func(selector metav1.LabelSelector) bool {
				matcher, err := metav1.LabelSelectorAsSelector(&selector)
				return err == nil && matcher.Matches(labels.Set(role.Labels))
			}) {
				added[role.Name] = append(added[role.Name], name)
			}
		}
	}
	if got, want := fmt.Sprint(added), "map[slurm-operator-aggregate-to-edit:[edit admin] "+
		"slurm-operator-aggregate-to-view:[view edit admin]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
