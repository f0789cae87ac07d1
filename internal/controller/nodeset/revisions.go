package nodeset

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podshape"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

// A revision is a version of what shapes pods. Pods carry its hash, which identifies those of an older one.
type revision struct {
	hash       string
	data       []byte
	collisions *int32
	// history are all stored revisions; live is this one among them, nil if it is new.
	history []appsv1.ControllerRevision
	live    *appsv1.ControllerRevision
}

// origin is what shapes pods, and nothing else: other changes replace no pod. It excludes on purpose how this version
// of the operator builds pods, so that an upgrade of the operator replaces none.
type origin struct {
	// Spec is the part of the NodeSet's spec; restoring it is a rollback.
	Spec podshape.NodeSet `json:"spec"`
	// Image, Endpoints and SlurmKey come from elsewhere.
	Image     string                           `json:"image"`
	Endpoints []string                         `json:"endpoints"`
	SlurmKey  slinkyv1beta1.SecretKeyReference `json:"slurmKey"`
	// Confined is true if the pods are prepared to confine jobs.
	Confined bool `json:"confined,omitempty"`
}

// observeRevision builds the template of new pods, and finds its revision among the stored ones.
func (r *Reconciler) observeRevision(ctx context.Context, scope *scope) error {
	set := scope.set
	list := &appsv1.ControllerRevisionList{}
	err := r.Client.List(ctx, list, client.InNamespace(set.Namespace),
		client.MatchingLabels(naming.Selector(naming.Slurmd, set.Name)))
	if err != nil {
		return err
	}
	scope.revision.history = slices.DeleteFunc(list.Items, func(stored appsv1.ControllerRevision) bool {
		return !metav1.IsControlledBy(&stored, set) || !namedLikeRevision(set, &stored)
	})
	slices.SortFunc(scope.revision.history,
		func(a, b appsv1.ControllerRevision) int { return cmp.Compare(a.Revision, b.Revision) })
	scope.revision.hash, scope.revision.collisions = set.Status.NodeSetHash, set.Status.CollisionCount
	if scope.controller == nil {
		scope.problem = status.Problem(slinkyv1beta1.ReasonControllerNotFound,
			"spec.controllerRef names Controller %s, which does not exist; create it", set.Spec.ControllerRef.Name)
		return nil
	}
	key, err := r.slurmKey(ctx, scope)
	if err != nil || scope.problem != nil {
		return err
	}
	confined, known := clusterconf.PreparesPods(scope.controller)
	if _, found := clusterconf.User(scope.controller); !known || !found {
		return nil // the Controller is new, and its status will say so
	}
	all := worker.Set{
		NodeSet: set, Controller: scope.controller, Images: r.Images, SlurmKey: key, ClusterDomain: r.ClusterDomain,
		SlurmUser: clusterconf.RequiredUID(scope.controller), Confined: confined,
	}
	template, err := worker.Template(all)
	if err != nil {
		scope.problem = status.Problem(slinkyv1beta1.ReasonInvalidSpec, "%s", err.Error())
		return nil // the status reports it
	}
	scope.template = &template
	return scope.revision.find(set, origin{
		Spec:  podshape.OfNodeSet(&set.Spec),
		Image: r.Images.For(naming.Slurmd), Endpoints: naming.ControllerEndpoints(scope.controller), SlurmKey: key,
		Confined: confined,
	})
}

// slurmKey returns the key that the cluster's daemons share. It may come from the Accounting: without that the key is
// unknown, and a pod with another key would be refused.
func (r *Reconciler) slurmKey(ctx context.Context, scope *scope) (slinkyv1beta1.SecretKeyReference, error) {
	var accounting *slinkyv1beta1.Accounting
	if ref := scope.controller.Spec.AccountingRef; ref != nil {
		var err error
		accounting, err = reference.Object(ctx, r.Client, scope.set.Namespace, ref.Name, &slinkyv1beta1.Accounting{})
		if err != nil {
			return slinkyv1beta1.SecretKeyReference{}, err
		}
		if accounting == nil {
			scope.problem = status.Problem(slinkyv1beta1.ReasonAccountingNotReady,
				"Controller %s names Accounting %s, which does not exist; create it", scope.controller.Name, ref.Name)
		}
	}
	return naming.ControllerKeys(scope.controller, accounting).Slurm, nil
}

// find sets the hash of the revision. If another stored revision has the same name, the number of collisions changes
// the hash.
func (v *revision) find(set *slinkyv1beta1.NodeSet, from origin) error {
	data, err := canonical(from)
	if err != nil {
		return fmt.Errorf("encoding the revision: %w", err)
	}
	v.data = data
	for {
		v.hash, v.live = hash(data, v.collisions), nil
		for i := range v.history {
			if v.history[i].Name == revisionName(set, v.hash) {
				v.live = &v.history[i]
			}
		}
		if v.live == nil || bytes.Equal(v.live.Data.Raw, data) {
			return nil
		}
		v.collisions = new(deref(v.collisions) + 1)
	}
}

// canonical encodes as the API server does. It must find nothing to change in the data of a revision, which is
// immutable, when the rest is patched: otherwise the garbage collector could not remove an ownerReference.
func canonical(from origin) ([]byte, error) {
	data, err := json.Marshal(from)
	if err != nil {
		return nil, err
	}
	var sorted map[string]any
	if err := json.Unmarshal(data, &sorted); err != nil {
		return nil, err
	}
	return json.Marshal(sorted)
}

func deref(count *int32) int32 {
	if count == nil {
		return 0
	}
	return *count
}

func hash(data []byte, collisions *int32) string {
	sum := sha256.Sum256(append(slices.Clone(data), strconv.Itoa(int(deref(collisions)))...))
	return hex.EncodeToString(sum[:5])
}

func revisionName(set *slinkyv1beta1.NodeSet, hash string) string { return set.Name + "-" + hash }

// namedLikeRevision reports whether an object can be a revision that was stored for a NodeSet. A ControllerRevision of
// somebody else may have the labels too.
func namedLikeRevision(set *slinkyv1beta1.NodeSet, object client.Object) bool {
	return strings.HasPrefix(object.GetName(), revisionName(set, ""))
}

// storeRevision stores the current revision as the newest, and deletes old ones beyond the limit that no pod uses.
func (r *Reconciler) storeRevision(ctx context.Context, scope *scope, result *outcome) error {
	current := &scope.revision
	if scope.template == nil {
		return nil
	}
	newest := int64(0)
	if len(current.history) > 0 {
		newest = current.history[len(current.history)-1].Revision
	}
	switch {
	case current.live == nil:
		if err := r.createRevision(ctx, scope, newest+1, result); err != nil {
			return err
		}
	case current.live.Revision != newest: // a rollback
		patch := fmt.Appendf(nil, `{"revision":%d}`, newest+1)
		live := &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Namespace: current.live.Namespace, Name: current.live.Name},
		}
		if err := r.Client.Patch(ctx, live, client.RawPatch("application/merge-patch+json", patch),
			client.FieldOwner(naming.ManagedBy)); err != nil {
			return fmt.Errorf("making revision %s the newest: %w", current.live.Name, err)
		}
	}
	return r.deleteOldRevisions(ctx, scope)
}

func (r *Reconciler) createRevision(ctx context.Context, scope *scope, number int64, result *outcome) error {
	set := scope.set
	created := &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: set.Namespace, Name: revisionName(set, scope.revision.hash),
			Labels: naming.Labels(naming.Slurmd, set.Name),
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(set, slinkyv1beta1.SchemeGroupVersion.WithKind("NodeSet")),
			},
		},
		Data: runtime.RawExtension{Raw: scope.revision.data}, Revision: number,
	}
	err := r.Client.Create(ctx, created, client.FieldOwner(naming.ManagedBy))
	if err == nil {
		return nil
	}
	if live := (&appsv1.ControllerRevision{}); apierrors.IsAlreadyExists(err) &&
		r.Live.Get(ctx, client.ObjectKeyFromObject(created), live) == nil {
		if bytes.Equal(live.Data.Raw, created.Data.Raw) {
			return nil // the cache is behind
		}
		result.collisions = new(deref(scope.revision.collisions) + 1) // the status stores it, and the next hash differs
	}
	return fmt.Errorf("storing revision %s: %w", created.Name, err)
}

// deleteOldRevisions deletes the oldest unused revisions beyond the limit.
func (r *Reconciler) deleteOldRevisions(ctx context.Context, scope *scope) error {
	used := map[string]bool{scope.revision.hash: true}
	for i := range scope.snapshot.Pods {
		used[scope.snapshot.Pods[i].Revision] = true
	}
	var unused []*appsv1.ControllerRevision
	for i := range scope.revision.history {
		stored := &scope.revision.history[i]
		if !used[strings.TrimPrefix(stored.Name, revisionName(scope.set, ""))] && stored.DeletionTimestamp == nil {
			unused = append(unused, stored)
		}
	}
	limit := int(deref(scope.set.Spec.RevisionHistoryLimit))
	for _, old := range unused[:max(len(unused)-limit, 0)] {
		if err := r.Client.Delete(ctx, old, client.Preconditions{UID: &old.UID}); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting revision %s: %w", old.Name, err)
		}
	}
	return nil
}
