package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// roles are the roles of the chart and their bindings. A ClusterRole has no namespace.
type roles struct {
	rules    map[role][]rbacv1.PolicyRule
	objects  map[role]*unstructured.Unstructured
	accounts map[role]string
}

type role struct{ namespace, name string }

func newRoles() roles {
	return roles{map[role][]rbacv1.PolicyRule{}, map[role]*unstructured.Unstructured{}, map[role]string{}}
}

// add adds a Role or a ClusterRole.
func (r roles) add(object *unstructured.Unstructured) error {
	found, err := as[rbacv1.Role](object)
	if err != nil {
		return err
	}
	key := role{object.GetNamespace(), object.GetName()}
	r.rules[key], r.objects[key] = found.Rules, object
	return nil
}

// bind adds a RoleBinding or a ClusterRoleBinding to one ServiceAccount.
func (r roles) bind(object *unstructured.Unstructured) error {
	found, err := as[rbacv1.RoleBinding](object)
	if err != nil {
		return err
	}
	if len(found.Subjects) != 1 || found.Subjects[0].Kind != rbacv1.ServiceAccountKind {
		return fmt.Errorf("%s %s does not bind one ServiceAccount", object.GetKind(), object.GetName())
	}
	key := role{object.GetNamespace(), found.RoleRef.Name}
	if _, exists := r.rules[key]; !exists {
		return fmt.Errorf("%s %s binds an unknown role", object.GetKind(), object.GetName())
	}
	r.accounts[key] = found.Subjects[0].Name
	return nil
}

// permissions returns the rules of each ServiceAccount: those of Roles or those of ClusterRoles.
func (r roles) permissions(ofCluster bool) []operatorsv1alpha1.StrategyDeploymentPermissions {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, key := range slices.SortedFunc(maps.Keys(r.accounts), compareRoles) {
		if (key.namespace == "") == ofCluster {
			rules[r.accounts[key]] = append(rules[r.accounts[key]], r.rules[key]...)
		}
	}
	var permissions []operatorsv1alpha1.StrategyDeploymentPermissions
	for _, account := range slices.Sorted(maps.Keys(rules)) {
		permissions = append(permissions, operatorsv1alpha1.StrategyDeploymentPermissions{
			ServiceAccountName: account, Rules: rules[account],
		})
	}
	return permissions
}

// unbound returns the roles that are for users, who bind them themselves.
func (r roles) unbound() []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for _, key := range slices.SortedFunc(maps.Keys(r.objects), compareRoles) {
		if _, bound := r.accounts[key]; !bound {
			found = append(found, r.objects[key])
		}
	}
	return found
}

func compareRoles(a, b role) int {
	return cmp.Or(strings.Compare(a.namespace, b.namespace), strings.Compare(a.name, b.name))
}
