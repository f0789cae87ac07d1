// Package status summarizes Slurm clusters from their custom resources alone: a tree of each Controller with what
// belongs to it, problems with the operator's reason and message, and how far rollouts are.
//
// Everything comes from the status fields that the operator keeps up to date, so a cluster of 5,000 nodes costs as many
// requests as one of 5.
package status

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
)

// A Result is the answer of the command.
type Result struct {
	Clusters []Cluster `json:"clusters"`
	// Notes are about what is not shown, such as for missing rights.
	Notes []string `json:"notes,omitempty"`
}

// A Cluster is a Controller and what belongs to it.
type Cluster struct {
	Component
	// SlurmName is Slurm's own name of the cluster.
	SlurmName    string `json:"slurmName,omitempty"`
	SlurmVersion string `json:"slurmVersion,omitempty"`
	APIVersion   string `json:"apiVersion,omitempty"`
	// Active is the pod of the active slurmctld, and Standby are the others. They are known only in wide output.
	Active  string   `json:"active,omitempty"`
	Standby []string `json:"standby,omitempty"`

	Configuration *Configuration            `json:"configuration,omitempty"`
	Nodes         *slinkyv1beta1.NodeCounts `json:"nodes,omitempty"`
	Jobs          *slinkyv1beta1.JobCounts  `json:"jobs,omitempty"`
	// Components are Accounting, RestApis, LoginSets and NodeSets, in this order.
	Components []Component `json:"components,omitempty"`
	Tokens     []Token     `json:"tokens,omitempty"`
}

// A Configuration is what slurmctld runs with.
type Configuration struct {
	Hash    string `json:"hash,omitempty"`
	Applied bool   `json:"applied"`
	// Since is since when it is applied, or since when a newer one is not.
	Since *metav1.Time `json:"since,omitempty"`
}

// A Token is a token that the operator signs, and when it expires.
type Token struct {
	Name      string       `json:"name"`
	Username  string       `json:"username"`
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	Renewed   bool         `json:"renewed"`
	State     State        `json:"state"`
}

// Build makes the result from custom resources; name selects one cluster, and is empty for all. The slurmctld pods are
// optional.
func Build(objects *kube.Objects, slurmctlds []corev1.Pod, name string, now time.Time) Result {
	result := Result{Clusters: []Cluster{}, Notes: objects.Rights.Notes()}
	for _, controller := range controllers(objects) {
		if name != "" && controller.Name != name {
			continue
		}
		result.Clusters = append(result.Clusters, cluster(objects, slurmctlds, &controller, now))
	}
	slices.SortFunc(result.Clusters, func(a, b Cluster) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return result
}

// controllers returns the Controllers, and one without a status for each reference to one that is not there: it does
// not exist, or the user may not read it.
func controllers(objects *kube.Objects) []slinkyv1beta1.Controller {
	type key struct{ namespace, name string }
	known := map[key]bool{}
	all := slices.Clone(objects.Controllers)
	for i := range all {
		known[key{all[i].Namespace, all[i].Name}] = true
	}
	refer := func(namespace string, reference slinkyv1beta1.ObjectReference) {
		if absent := (key{namespace, reference.Name}); !known[absent] && reference.Name != "" {
			known[absent] = true
			all = append(all, slinkyv1beta1.Controller{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: reference.Name},
			})
		}
	}
	for i := range objects.NodeSets {
		refer(objects.NodeSets[i].Namespace, objects.NodeSets[i].Spec.ControllerRef)
	}
	for i := range objects.LoginSets {
		refer(objects.LoginSets[i].Namespace, objects.LoginSets[i].Spec.ControllerRef)
	}
	for i := range objects.RestAPIs {
		refer(objects.RestAPIs[i].Namespace, objects.RestAPIs[i].Spec.ControllerRef)
	}
	return all
}

func cluster(
	objects *kube.Objects, slurmctlds []corev1.Pod, controller *slinkyv1beta1.Controller, now time.Time,
) Cluster {
	is := &controller.Status
	result := Cluster{
		Component: component("Controller", controller.ObjectMeta, is.ObservedGeneration, is.Conditions),
		SlurmName: is.ClusterName, SlurmVersion: is.SlurmVersion, APIVersion: is.APIVersion,
		Nodes: is.Nodes, Jobs: is.Jobs,
	}
	if controller.UID == "" {
		result.State, result.Reason = NotFound, slinkyv1beta1.ReasonControllerNotFound
		result.Message = "other objects refer to this Controller, and it does not exist or you may not read it"
	}
	result.addProblems(is.Conditions, slinkyv1beta1.ConditionSlurmReachable, slinkyv1beta1.ConditionConfigurationApplied)
	if applied := meta.FindStatusCondition(is.Conditions, slinkyv1beta1.ConditionConfigurationApplied); applied != nil {
		result.Configuration = &Configuration{
			Hash: is.AppliedConfigHash, Applied: applied.Status == metav1.ConditionTrue, Since: &applied.LastTransitionTime,
		}
	}
	result.addSlurmctlds(controller, slurmctlds)
	result.Components = components(objects, controller, now)
	for i := range objects.Tokens {
		if token := &objects.Tokens[i]; token.Namespace == controller.Namespace && signs(objects, controller, token) {
			result.Tokens = append(result.Tokens, summarize(token, now))
		}
	}
	return result
}

// addSlurmctlds tells the active slurmctld from those that wait to take over: only the active one is ready.
func (c *Cluster) addSlurmctlds(controller *slinkyv1beta1.Controller, pods []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		instance, _ := naming.Instance(naming.Slurmctld, pod.Labels)
		switch {
		case pod.Namespace != controller.Namespace || instance != controller.Name:
		case kube.IsReady(pod) && c.Active == "":
			c.Active = pod.Name
		default:
			c.Standby = append(c.Standby, pod.Name)
		}
	}
}

// components returns what belongs to a Controller.
func components(objects *kube.Objects, controller *slinkyv1beta1.Controller, now time.Time) []Component {
	var found []Component
	belongs := func(namespace string, reference slinkyv1beta1.ObjectReference) bool {
		return namespace == controller.Namespace && reference.Name == controller.Name
	}
	for i := range objects.Accountings {
		if object := &objects.Accountings[i]; refersTo(controller, object) {
			found = append(found, accounting(object))
		}
	}
	for i := range objects.RestAPIs {
		if object := &objects.RestAPIs[i]; belongs(object.Namespace, object.Spec.ControllerRef) {
			found = append(found, replicated("RestApi", object.ObjectMeta, object.Status.ObservedGeneration,
				object.Status.Conditions, object.Status.Ready))
		}
	}
	for i := range objects.LoginSets {
		if object := &objects.LoginSets[i]; belongs(object.Namespace, object.Spec.ControllerRef) {
			found = append(found, replicated("LoginSet", object.ObjectMeta, object.Status.ObservedGeneration,
				object.Status.Conditions, object.Status.Ready))
		}
	}
	for i := range objects.NodeSets {
		if object := &objects.NodeSets[i]; belongs(object.Namespace, object.Spec.ControllerRef) {
			found = append(found, nodeSet(object, now))
		}
	}
	return found
}

// signs reports whether a token is signed with one of the places where the key of a cluster may be.
func signs(objects *kube.Objects, controller *slinkyv1beta1.Controller, token *slinkyv1beta1.Token) bool {
	var accounting *slinkyv1beta1.Accounting
	for i := range objects.Accountings {
		if object := &objects.Accountings[i]; refersTo(controller, object) {
			accounting = object
		}
	}
	key, keys := token.Spec.JWTKey(), naming.ControllerKeys(controller, accounting)
	return key != nil && (*key == keys.JWT || slices.Contains(keys.JWTNames, *key))
}

// refersTo reports whether a Controller uses an Accounting.
func refersTo(controller *slinkyv1beta1.Controller, accounting *slinkyv1beta1.Accounting) bool {
	return controller.Spec.AccountingRef != nil && accounting.Namespace == controller.Namespace &&
		accounting.Name == controller.Spec.AccountingRef.Name
}

// summarize returns when a token expires.
func summarize(token *slinkyv1beta1.Token, now time.Time) Token {
	result := Token{
		Name: token.Name, Username: token.Spec.Username, ExpiresAt: token.Status.ExpiresAt,
		Renewed: token.Spec.Refresh == nil || *token.Spec.Refresh,
		State: component("Token", token.ObjectMeta, token.Status.ObservedGeneration,
			token.Status.Conditions).State,
	}
	if result.ExpiresAt != nil && !now.Before(result.ExpiresAt.Time) {
		result.State = Degraded
	}
	return result
}
