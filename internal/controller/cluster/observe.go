package cluster

import (
	"bytes"
	"context"
	"encoding/json"
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
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/reference"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

// A scope is what a reconcile observes.
type scope struct {
	controller *slinkyv1beta1.Controller
	accounting *slinkyv1beta1.Accounting // nil without
	nodeSets   []slinkyv1beta1.NodeSet
	keys       naming.Keys
	// slurmKey and jwtKey are the keys themselves; nil while they do not exist.
	slurmKey, jwtKey []byte
	// missing says what the spec refers to and does not exist.
	missing []string
	// mismatch tells that Controller and Accounting have different keys.
	mismatch bool

	// files are those of the ConfigMaps that the spec names.
	files map[clusterconf.Use][]clusterconf.File
	jwks  string

	// promoted is the configuration that slurmctld runs or starts with; nil before the first.
	promoted *promoted
	// trial is the pod that tries, or tried, a configuration; nil when there is none.
	trial *corev1.Pod
	// image is what slurmctld is to run, and slurmVersion its release as a trial found it; empty when unknown.
	image, slurmVersion string

	// state is the claim with the saved state; nil when there is none.
	state       *corev1.PersistentVolumeClaim
	statefulSet *appsv1.StatefulSet // nil when there is none
	pods        []corev1.Pod
	agents      map[string]AgentState // by the name of the pod
	nodes       *slurm.Snapshot       // nil while Slurm does not answer
	// queue is the jobs, asked for in this reconcile; nil when nobody waits for their end, or Slurm does not answer.
	queue *slurm.Queue

	images naming.Images
	now    time.Time
}

// promoted is what the live ConfigMap holds.
type promoted struct {
	files map[string]string
	hash  string
	// image and slurmVersion are what the trial ran that let it through.
	image, slurmVersion string
	// slurmKey is the digest of the key that all daemons share.
	slurmKey string
	// leaving are the partitions in it that take no new jobs, and go when they have none.
	leaving []string
	// whole is the hash of the candidate that slurmctld refused for the changes of the NodeSets in refused; empty when it is all in.
	whole   string
	refused []leftOut
}

// document is its slurm.conf. A line that somebody has spoiled is left out: it is as if it had not been in force.
func (p *promoted) document() slurmconf.Document {
	document, _ := slurmconf.Parse(p.files[slurmconf.FileName])
	return document
}

func (r *Reconciler) observe(ctx context.Context, request ctrl.Request) (*scope, error) {
	controller, err := reference.Object(ctx, r.Client, request.Namespace, request.Name, &slinkyv1beta1.Controller{})
	if err != nil || controller == nil {
		return nil, err // what it owns goes with it
	}
	steps := []func(context.Context, *scope) error{r.observeReferences, r.observeFiles, r.observeConfiguration, r.observeState, r.observePods, r.observeNodes, r.observeJobs}
	scope := &scope{controller: controller, now: r.Clock.Now(), images: r.Images}
	scope.image = imageOf(controller.Spec.Slurmctld, r.Images.For(naming.Slurmctld))
	for _, step := range steps {
		if err := step(ctx, scope); err != nil {
			return nil, err
		}
	}
	return scope, nil
}

// observeReferences reads the other objects that make up the cluster.
func (r *Reconciler) observeReferences(ctx context.Context, scope *scope) error {
	controller := scope.controller
	var err error
	if name := controller.Spec.AccountingRef; name != nil {
		if scope.accounting, err = reference.Object(ctx, r.Client, controller.Namespace, name.Name, &slinkyv1beta1.Accounting{}); err != nil {
			return err
		}
		if scope.accounting == nil {
			scope.missing = append(scope.missing, fmt.Sprintf("Accounting %s, which spec.accountingRef names, does not exist; create it", name.Name))
		}
	}
	sets := &slinkyv1beta1.NodeSetList{}
	if err := index.NodeSetsByController.List(ctx, r.Client, client.ObjectKeyFromObject(controller), sets); err != nil {
		return err
	}
	scope.nodeSets = slices.DeleteFunc(sets.Items, func(set slinkyv1beta1.NodeSet) bool { return set.DeletionTimestamp != nil && set.Status.Replicas == 0 })
	scope.keys = naming.ControllerKeys(controller, scope.accounting)
	return r.observeKeys(ctx, scope)
}

// observeKeys looks whether the keys exist that nobody generates, and whether all agree on them.
func (r *Reconciler) observeKeys(ctx context.Context, scope *scope) error {
	namespace := scope.controller.Namespace
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
			scope.missing = append(scope.missing, reference.Missing(key.field, "Secret", key.reference.Name, key.reference.Key))
		}
	}
	if scope.accounting == nil {
		return nil
	}
	theirs, err := reference.SecretValue(ctx, r.Client, namespace, naming.AccountingKeys(scope.accounting).Slurm)
	scope.mismatch = theirs != nil && scope.slurmKey != nil && !bytes.Equal(theirs, scope.slurmKey)
	return err
}

// generates tells whether a key is one that is generated for this Controller.
func (s *scope) generates(key slinkyv1beta1.SecretKeyReference) bool {
	name := s.controller.Name
	return key == naming.GeneratedSlurmKey(name) || key == naming.GeneratedJWTKey(name)
}

// lostKey tells that the key is gone by which the daemons of a cluster that runs believe each other.
func (s *scope) lostKey() bool {
	return s.slurmKey == nil && s.promoted != nil && s.promoted.slurmKey != ""
}

// observeFiles reads the ConfigMaps that the spec names.
func (r *Reconciler) observeFiles(ctx context.Context, scope *scope) error {
	scope.files = map[clusterconf.Use][]clusterconf.File{}
	for _, group := range clusterconf.Groups(scope.controller) {
		for _, name := range group.References {
			configMap, err := reference.Object(ctx, r.Client, scope.controller.Namespace, name.Name, &corev1.ConfigMap{})
			if err != nil {
				return err
			}
			if configMap == nil {
				scope.missing = append(scope.missing, fmt.Sprintf("ConfigMap %s, which %s names, does not exist; create it", name.Name, group.Field))
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

// observeConfiguration reads how far earlier configurations came.
func (r *Reconciler) observeConfiguration(ctx context.Context, scope *scope) error {
	controller := scope.controller
	live, err := reference.Object(ctx, r.Client, controller.Namespace, naming.Configuration(controller.Name), &corev1.ConfigMap{})
	if err != nil {
		return err
	}
	if live != nil && live.Annotations[annotationHash] != "" {
		scope.promoted = &promoted{
			files: live.Data, hash: live.Annotations[annotationHash],
			image: live.Annotations[annotationImage], slurmVersion: live.Annotations[annotationVersion],
			slurmKey: live.Annotations[annotationSlurmKey],
			leaving:  strings.FieldsFunc(live.Annotations[annotationLeaving], func(r rune) bool { return r == ',' }),
			whole:    live.Annotations[annotationWhole],
		}
		// An annotation that was tampered with only makes the message less precise.
		_ = json.Unmarshal([]byte(live.Annotations[annotationRefused]), &scope.promoted.refused)
	}
	trials, err := reference.Pods(ctx, r.Client, naming.Trials, controller)
	if err != nil {
		return err
	}
	for i := range trials {
		// The youngest counts; the others are about to go.
		if pod := &trials[i]; pod.DeletionTimestamp == nil && (scope.trial == nil || pod.CreationTimestamp.After(scope.trial.CreationTimestamp.Time)) {
			scope.trial = pod
		}
	}
	scope.slurmVersion = releaseOf(scope)
	return nil
}

// observePods reads slurmctld's pods and asks their agents.
func (r *Reconciler) observePods(ctx context.Context, scope *scope) error {
	controller := scope.controller
	var err error
	if scope.statefulSet, err = reference.Object(ctx, r.Client, controller.Namespace, naming.Controller(controller.Name), &appsv1.StatefulSet{}); err != nil {
		return err
	}
	if scope.pods, err = reference.Pods(ctx, r.Client, naming.Slurmctld, controller); err != nil {
		return err
	}
	slices.SortFunc(scope.pods, func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
	scope.agents = map[string]AgentState{}
	for _, pod := range scope.pods {
		if pod.Status.PodIP == "" || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		// An agent that does not answer has not yet applied anything.
		if state, err := r.Agent(ctx, pod.Status.PodIP); err == nil {
			scope.agents[pod.Name] = state
		}
	}
	return nil
}
