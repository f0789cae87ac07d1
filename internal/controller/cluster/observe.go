package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/index"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/report"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/podtemplate"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A scope is the state that one reconcile observes.
type scope struct {
	controller *slinkyv1beta1.Controller
	accounting *slinkyv1beta1.Accounting // nil if there is none
	nodeSets   []slinkyv1beta1.NodeSet
	keys       naming.Keys
	// slurmKey and jwtKey are the contents of the keys; nil if they do not exist.
	slurmKey, jwtKey []byte
	// missing describes the references of the spec that do not exist.
	missing []string
	// mismatch is true if Controller and Accounting have different keys.
	mismatch bool

	// files are the files from the ConfigMaps that the spec references.
	files map[clusterconf.Use][]clusterconf.File
	jwks  string

	// promoted is the configuration that slurmctld runs or starts with; nil if there is none yet.
	promoted *promoted
	// accepted is the configuration that ends a takeover; nil unless one has begun.
	accepted *accepted
	// validation is the pod of the latest validation run; nil if there is none.
	validation *corev1.Pod
	// endingRuns are the pods of earlier validation runs that have not terminated yet.
	endingRuns []corev1.Pod
	// image is slurmctld's desired image, and slurmVersion its release as a validation run found it; empty if unknown.
	image, slurmVersion string

	// prepared and unprepared are the numbers of slurmd pods that can and cannot confine jobs, and fileless that of those
	// without a cgroup.conf of their own; they are counted only if they matter. foreignSlurmds is the number of
	// unprepared pods that use the cgroup.conf of another operator.
	prepared, unprepared, fileless, foreignSlurmds int
	// claim is the name of the PVC with the saved state, or empty if it is not kept, and state that PVC; nil if there is
	// none.
	claim       string
	state       *corev1.PersistentVolumeClaim
	statefulSet *appsv1.StatefulSet // nil if there is none
	pods        []corev1.Pod
	agents      map[string]agent.Report // by pod name
	nodes       *slurm.Snapshot         // nil if Slurm does not answer
	// drained is an earlier snapshot than nodes; nil unless a record or line of a node may be changed.
	drained *slurm.Snapshot
	// dynamic are the Slurm nodes of pods whose slurmds exit if they find a record; only in clusters with elastic
	// NodeSets.
	dynamic map[string]bool
	// recorded are the Slurm nodes of pods whose slurmds need a record; as above.
	recorded map[string]bool
	// jobFree is true if a query of this reconcile shows that no job holds a Slurm node, and queue holds the jobs by
	// partition as that query shows them; nil if nothing waits for jobs, or they are not known.
	jobFree bool
	queue   *slurm.Queue

	images naming.Images
	now    time.Time
}

// promoted is the content of the live ConfigMap.
type promoted struct {
	files map[string]string
	// foreign is true if another operator wrote it; then there is nothing else.
	foreign bool
	hash    string
	// image and slurmVersion are those of the validation run that accepted it.
	image, slurmVersion string
	// slurmKey is the digest of the auth/slurm key that all daemons share.
	slurmKey string
	// user is the user that slurmctld runs as; nil in a configuration from before it was recorded.
	user *slinkyv1beta1.SlurmUser
	// closedBefore are the hashes of the validated configurations one of which follows this one, if no job starts with
	// it.
	closedBefore []string
	// openStates are the states that lines of partitions had before they were closed, by the name of the partition.
	openStates map[string]string
	// leaving are partitions in it that accept no new jobs and are removed once they have none.
	leaving []string
	// refusedHash is the hash of the candidate that slurmctld refused because of the NodeSets in refused; empty if
	// nothing is left out.
	refusedHash string
	refused     []leftOut
}

// makesChange reports whether no job starts with it, because it makes a costly change, which slurmds have to follow.
func (p *promoted) makesChange() bool { return len(p.closedBefore) == 1 }

// promotedOf returns the configuration in a live ConfigMap of this operator.
func promotedOf(files, annotations map[string]string) *promoted {
	live := &promoted{
		files: files, hash: annotations[annotationHash],
		image: annotations[annotationImage], slurmVersion: annotations[annotationVersion],
		slurmKey:     annotations[annotationSlurmKey],
		leaving:      splitList(annotations[annotationLeaving]),
		refusedHash:  annotations[annotationRefusedHash],
		closedBefore: splitList(annotations[annotationClosedBefore]),
		user:         clusterconf.ParseUser(annotations[annotationUser]),
	}
	// An invalid annotation only makes the message less precise, or the partitions wait to be opened.
	_ = json.Unmarshal([]byte(annotations[annotationRefused]), &live.refused)
	_ = json.Unmarshal([]byte(annotations[annotationOpenStates]), &live.openStates)
	return live
}

// isClosed reports whether no job starts with it, because a costly change is about to be made.
func (p *promoted) isClosed() bool { return p != nil && len(p.closedBefore) > 0 }

// splitList returns the elements of an annotation.
func splitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// document returns its slurm.conf. Lines that cannot be parsed, because the ConfigMap was edited, count as not in
// force.
func (p *promoted) document() slurmconf.Document {
	if p.foreign {
		return p.foreignDocument()
	}
	document, _ := slurmconf.Parse(p.files[slurmconf.FileName])
	return document
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	controller, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.Controller{})
	if err != nil || controller == nil {
		return nil, err // objects that it owns are garbage-collected
	}
	steps := []func(context.Context, *scope) error{
		r.observeReferences, r.observeFiles, r.observePods, r.observeConfiguration, r.observeSlurmds, r.observeAccepted,
		r.observeState, r.observeNodes, r.observeRecords, r.observeJobs,
	}
	scope := &scope{controller: controller, now: r.Clock.Now(), images: r.Images}
	scope.image = imageOf(controller.Spec.Slurmctld, r.Images.For(naming.Slurmctld))
	for _, step := range steps {
		if err := step(ctx, scope); err != nil {
			return nil, err
		}
	}
	return scope, nil
}

// observeReferences reads the other custom resources of the cluster.
func (r *Reconciler) observeReferences(ctx context.Context, scope *scope) error {
	controller := scope.controller
	var err error
	if name := controller.Spec.AccountingRef; name != nil {
		if scope.accounting, err = reference.Object(ctx, r.Client, controller.Namespace, name.Name,
			&slinkyv1beta1.Accounting{}); err != nil {
			return err
		}
		if scope.accounting == nil {
			scope.missing = append(scope.missing,
				fmt.Sprintf("Accounting %s, which spec.accountingRef names, does not exist; create it", name.Name))
		}
	}
	sets := &slinkyv1beta1.NodeSetList{}
	if err := index.NodeSetsByController.List(ctx, r.Client, client.ObjectKeyFromObject(controller), sets); err != nil {
		return err
	}
	scope.nodeSets = slices.DeleteFunc(sets.Items,
		func(set slinkyv1beta1.NodeSet) bool { return set.DeletionTimestamp != nil && set.Status.Replicas == 0 })
	scope.keys = naming.ControllerKeys(controller, scope.accounting)
	return r.observeKeys(ctx, scope)
}

// observeKeys reads the keys, checks that those which the operator does not generate exist, and compares them with the
// Accounting's.
func (r *Reconciler) observeKeys(ctx context.Context, scope *scope) error {
	namespace := scope.controller.Namespace
	found, jwtKey, err := reference.FirstSecretValue(ctx, r.Client, namespace, scope.keys.JWTNames...)
	if err != nil {
		return err
	}
	if jwtKey != nil {
		scope.keys.JWT = found
	}
	for _, key := range []struct {
		field     string
		reference slinkyv1beta1.SecretKeyReference
		value     *[]byte
	}{
		{"spec.slurmKeyRef", scope.keys.Slurm, &scope.slurmKey},
		{"spec.jwtKeyRef", scope.keys.JWT, &scope.jwtKey},
	} {
		value, err := reference.SecretValue(ctx, r.Client, namespace, key.reference)
		if err != nil {
			return err
		}
		if *key.value = value; value == nil && !scope.generates(key.reference) {
			scope.missing = append(scope.missing,
				reference.Missing(key.field, "Secret", key.reference.Name, key.reference.Key))
		}
	}
	if scope.accounting == nil {
		return nil
	}
	theirs, err := reference.SecretValue(ctx, r.Client, namespace, naming.AccountingKeys(scope.accounting).Slurm)
	scope.mismatch = theirs != nil && scope.slurmKey != nil && !bytes.Equal(theirs, scope.slurmKey)
	return err
}

// generates reports whether the operator generates a key for this Controller.
func (s *scope) generates(key slinkyv1beta1.SecretKeyReference) bool {
	name := s.controller.Name
	return key == naming.GeneratedSlurmKey(name) || key == naming.GeneratedJWTKey(name)
}

// lostKey reports whether the auth/slurm key of a running cluster no longer exists.
func (s *scope) lostKey() bool {
	return s.slurmKey == nil && s.promoted != nil && s.promoted.slurmKey != ""
}

// observeFiles reads the ConfigMaps that the spec references.
func (r *Reconciler) observeFiles(ctx context.Context, scope *scope) error {
	scope.files = map[clusterconf.Use][]clusterconf.File{}
	for _, group := range clusterconf.Groups(scope.controller) {
		for _, name := range group.References {
			configMap, err := reference.Object(ctx, r.Client, scope.controller.Namespace, name.Name,
				&corev1.ConfigMap{})
			if err != nil {
				return err
			}
			if configMap == nil {
				scope.missing = append(scope.missing,
					fmt.Sprintf("ConfigMap %s, which %s names, does not exist; create it", name.Name, group.Field))
				continue
			}
			scope.files[group.Use] = append(scope.files[group.Use], clusterconf.FilesOf(name.Name, configMap.Data)...)
		}
	}
	if key := scope.controller.Spec.JWKSKeyRef; key != nil {
		var err error
		if scope.jwks, err = reference.ConfigMapValue(ctx, r.Client, scope.controller.Namespace, *key); err != nil {
			return err
		}
		if scope.jwks == "" {
			scope.missing = append(scope.missing, reference.Missing("spec.jwksKeyRef", "ConfigMap", key.Name, key.Key))
		}
	}
	return nil
}

// observeConfiguration reads the promoted configuration and the latest validation run.
func (r *Reconciler) observeConfiguration(ctx context.Context, scope *scope) error {
	controller := scope.controller
	live, err := reference.Object(ctx, r.Client, controller.Namespace, naming.Configuration(controller.Name),
		&corev1.ConfigMap{})
	if err != nil {
		return err
	}
	if live != nil && live.Annotations[annotationHash] == "" && !scope.hasOwnSet() {
		scope.promoted = &promoted{files: live.Data, foreign: true}
	}
	if live != nil && live.Annotations[annotationHash] != "" {
		scope.promoted = promotedOf(live.Data, live.Annotations)
	}
	runs, err := reference.OwnPods(ctx, r.Client, naming.Validation, controller)
	if err != nil {
		return err
	}
	for i := range runs {
		// The latest run counts; the others are being deleted.
		switch pod := &runs[i]; {
		case pod.DeletionTimestamp != nil:
			scope.endingRuns = append(scope.endingRuns, *pod)
		case scope.validation == nil || pod.CreationTimestamp.After(scope.validation.CreationTimestamp.Time):
			scope.validation = pod
		}
	}
	scope.slurmVersion = releaseOf(scope)
	return nil
}

// observePods reads slurmctld's pods and queries their agents.
func (r *Reconciler) observePods(ctx context.Context, scope *scope) error {
	controller := scope.controller
	var err error
	if scope.statefulSet, err = reference.Object(ctx, r.Client, controller.Namespace,
		naming.Controller(controller.Name), &appsv1.StatefulSet{}); err != nil {
		return err
	}
	if scope.pods, err = reference.StatefulSetPods(ctx, r.Client, naming.Slurmctld, controller,
		naming.Controller(controller.Name), scope.statefulSet); err != nil {
		return err
	}
	slices.SortFunc(scope.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	scope.agents = map[string]agent.Report{}
	for _, pod := range scope.pods {
		if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		if state, answers := r.queryAgent(ctx, &pod, scope.jwtKey); answers {
			scope.agents[pod.Name] = state
		}
	}
	return nil
}

// queryAgent queries the agent in a pod. An agent that does not answer, or that does not have the cluster's key, counts
// as not having applied anything. The latter is up nevertheless: after a change of the key, its pod must be touched or
// replaced.
func (r *Reconciler) queryAgent(ctx context.Context, pod *corev1.Pod, key []byte) (state agent.Report, answers bool) {
	switch {
	case !podtemplate.AuthenticatesReports(pod):
		key = nil
	case len(key) == 0:
		return agent.Report{LastError: "without a JWT key, the agent's report cannot be authenticated"}, true
	}
	state, err := r.Agent(ctx, pod.Status.PodIP, key)
	if errors.Is(err, report.ErrNotAuthenticated) {
		return agent.Report{LastError: err.Error()}, true
	}
	return state, err == nil
}
