package cluster

import (
	"context"
	"errors"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slurm-operator/slurm-operator/internal/keys"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/trace"
)

// act applies a plan: Services, configuration, workload.
func (r *Reconciler) act(ctx context.Context, scope *scope, plan *plan) error {
	if scope.controller.Spec.External {
		return r.actExternal(ctx, scope, plan)
	}
	if scope.isForeign() {
		return r.takeOver(ctx, scope, plan)
	}
	return errors.Join(r.restore(ctx, scope), r.applyPlan(ctx, scope, plan))
}

// applyPlan applies a plan for a cluster of this operator.
func (r *Reconciler) applyPlan(ctx context.Context, scope *scope, plan *plan) error {
	if plan.reopens {
		if err := r.advanceConfiguration(ctx, scope, plan); err != nil {
			return err
		}
		return r.refreshFiles(ctx, scope, plan)
	}
	prepared := r.prepare(ctx, scope)
	if prepared != nil && !scope.promoted.isClosed() {
		return prepared
	}
	return errors.Join(prepared, r.rollOut(ctx, scope, plan)) // closed partitions must open, whatever is refused
}

// prepare applies what does not depend on the configuration.
func (r *Reconciler) prepare(ctx context.Context, scope *scope) error {
	if err := r.generateKeys(ctx, scope); err != nil {
		return err
	}
	return r.applyServices(ctx, scope)
}

// rollOut applies a configuration and the workload.
func (r *Reconciler) rollOut(ctx context.Context, scope *scope, plan *plan) error {
	if err := r.advanceConfiguration(ctx, scope, plan); err != nil {
		return err
	}
	if err := r.recordNames(ctx, scope, plan); err != nil {
		return err
	}
	if plan.image == "" || plan.problem != nil {
		return nil // no accepted configuration yet, or nothing may change
	}
	if err := r.applyWorkload(ctx, scope, plan); err != nil {
		return err
	}
	if scope.lacksPods() {
		if err := r.Children.Admits(ctx, scope.statefulSet); err != nil {
			return err
		}
	}
	if pod := replaceable(scope); pod != nil {
		if err := r.replace(ctx, scope, pod); err != nil {
			return errors.Join(err, r.refreshFiles(ctx, scope, plan))
		}
		return nil
	}
	if err := r.refreshFiles(ctx, scope, plan); err != nil {
		return err
	}
	return r.removeHosts(ctx, scope, plan)
}

// actExternal writes the configuration for clients of an external slurmctld.
func (r *Reconciler) actExternal(ctx context.Context, scope *scope, plan *plan) error {
	if plan.stage != promote || plan.problem != nil {
		return nil
	}
	return r.promote(ctx, scope, plan)
}

// promote writes a configuration to the ConfigMap that slurmctld's pods mount.
func (r *Reconciler) promote(ctx context.Context, scope *scope, plan *plan) error {
	live, err := promotedConfigMap(scope, plan)
	if err != nil {
		return err
	}
	return r.Children.Apply(ctx, scope.controller, live, &corev1.ConfigMap{})
}

// generateKeys generates keys that the spec does not reference. They have no ownerReference, so that a re-created
// Controller finds the cluster's keys, as it finds its saved state. A key that is deleted after observe has read it is
// left to the next reconcile, which reports that it is lost.
func (r *Reconciler) generateKeys(ctx context.Context, scope *scope) error {
	name, namespace := scope.controller.Name, scope.controller.Namespace
	if scope.controller.Spec.AccountingRef != nil && scope.accounting == nil {
		return nil // the cluster uses the Accounting's keys once it exists
	}
	for _, key := range []struct {
		wanted   bool
		generate func() *corev1.Secret
	}{
		{
			scope.keys.Slurm == naming.GeneratedSlurmKey(name) && scope.slurmKey == nil && !scope.lostKey(),
			func() *corev1.Secret { return keys.Slurm(namespace, scope.keys.Slurm) },
		},
		{
			scope.keys.JWT == naming.GeneratedJWTKey(name) && scope.jwtKey == nil,
			func() *corev1.Secret { return keys.JWT(namespace, scope.keys.JWT) },
		},
	} {
		if !key.wanted {
			continue
		}
		if err := r.Children.CreateOnce(trace.Because(ctx, "KeyMissing", "the spec names no key, so one is generated"),
			key.generate()); err != nil {
			return err
		}
	}
	return nil
}

// advanceConfiguration moves a configuration to its next stage.
func (r *Reconciler) advanceConfiguration(ctx context.Context, scope *scope, plan *plan) error {
	controller := scope.controller
	ctx = trace.With(ctx, "configuration", plan.candidate.hash)
	if plan.stage == promote {
		if err := r.admitsCostly(ctx, scope, plan); err != nil {
			return err
		}
		ctx := trace.Because(ctx, "ConfigurationAccepted", "slurmctld gets this configuration")
		if err := r.promote(ctx, scope, plan); err != nil {
			return err
		}
	}
	if plan.endValidation {
		if err := r.Children.Delete(trace.Because(ctx, "ValidationDone", "the validation run has ended or is outdated"),
			controller, scope.validation); err != nil {
			return err
		}
	}
	switch plan.stage {
	case begin:
		ctx = trace.Because(ctx, "ConfigurationChanged", "a throwaway slurmctld validates this configuration first")
		files, err := candidateConfigMap(scope, plan.candidate)
		if err != nil {
			return err
		}
		if err := r.Children.Apply(ctx, controller, files, &corev1.ConfigMap{}); err != nil {
			return err
		}
		pod, err := validationPod(scope, plan.candidate)
		if err != nil {
			return err
		}
		return r.Children.Apply(ctx, controller, pod, &corev1.Pod{})
	case promote, settled:
		ctx = trace.Because(ctx, "ValidationDone", "the candidate is no longer needed")
		if scope.hasOwnSet() {
			if err := r.Children.Delete(ctx, controller,
				named(&corev1.ConfigMap{}, controller.Namespace, naming.TakeOver(controller.Name))); err != nil {
				return err
			}
		}
		return r.Children.Delete(ctx, controller,
			named(&corev1.ConfigMap{}, controller.Namespace, naming.Candidate(controller.Name)))
	case notBuilt, validating, refused, validationFailed:
	}
	return nil
}

// applyServices applies the ServiceAccount and the Services, which do not depend on the configuration.
func (r *Reconciler) applyServices(ctx context.Context, scope *scope) error {
	if err := r.Children.Apply(ctx, scope.controller, serviceAccount(scope.controller),
		&corev1.ServiceAccount{}); err != nil {
		return err
	}
	services, err := services(scope.controller)
	if err != nil {
		return err
	}
	for _, service := range services {
		if err := r.Children.Apply(ctx, scope.controller, service, &corev1.Service{}); err != nil {
			return err
		}
	}
	return nil
}

// acceptsServices returns the error with which applyServices would fail.
func (r *Reconciler) acceptsServices(ctx context.Context, scope *scope) error {
	services, err := services(scope.controller)
	if err != nil {
		return err
	}
	var failures []error
	for _, service := range services {
		failures = append(failures, r.Children.Accepts(ctx, scope.controller, service, &corev1.Service{}))
	}
	return errors.Join(failures...)
}

// removeHosts deletes the Services of removed slurmctlds once slurmctld runs with a configuration that does not name
// them: a configured name must resolve.
func (r *Reconciler) removeHosts(ctx context.Context, scope *scope, plan *plan) error {
	controller := scope.controller
	if done, _ := applied(scope, plan.candidate.hash); plan.stage != settled || !done {
		return nil
	}
	for ordinal := len(naming.ControllerPods(controller)); ordinal < naming.MaxControllerPods; ordinal++ {
		service := named(&corev1.Service{}, controller.Namespace, naming.ControllerPod(controller.Name, ordinal))
		if err := r.Children.Delete(ctx, controller, service); err != nil {
			return err
		}
	}
	return nil
}

// lacksPods reports whether the StatefulSet still has no pods after podCreationTimeout.
func (s *scope) lacksPods() bool {
	set := s.statefulSet
	return len(s.pods) == 0 && set != nil && !set.CreationTimestamp.IsZero() &&
		s.now.Sub(set.CreationTimestamp.Time) > podCreationTimeout
}

// applyWorkload applies the PVC, the StatefulSet and the ServiceMonitor.
func (r *Reconciler) applyWorkload(ctx context.Context, scope *scope, plan *plan) error {
	if claim := stateClaim(scope); claim != nil && scope.state == nil {
		if err := r.Children.CreateOnce(ctx, claim); err != nil {
			return err
		}
	}
	statefulSet, err := statefulSet(scope, plan)
	if err != nil {
		return err
	}
	inherit(statefulSet, scope.controller.Spec.Template.Metadata)
	scope.statefulSet = &appsv1.StatefulSet{}
	if err := r.Children.Apply(ctx, scope.controller, statefulSet, scope.statefulSet); err != nil {
		return err
	}
	return r.applyServiceMonitor(ctx, scope)
}

// refreshFiles makes the kubelets update the files in slurmctld's pods at once instead of within a minute, by touching
// the pods. A kubelet that has not yet seen the new ConfigMap syncs the old files, so pods are touched repeatedly.
func (r *Reconciler) refreshFiles(ctx context.Context, scope *scope, plan *plan) error {
	for i := range scope.pods {
		pod := &scope.pods[i]
		state, answers := scope.agents[pod.Name]
		if !answers || state.FilesHash == plan.candidate.hash || !needsTouch(pod, scope.now) ||
			plan.candidate.hash == "" {
			continue
		}
		if err := r.Children.Touch(ctx, pod, annotationTouched, scope.now.UTC().Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

// needsTouch reports whether a pod was not touched within touchInterval.
func needsTouch(pod *corev1.Pod, now time.Time) bool {
	last, err := time.Parse(time.RFC3339, pod.Annotations[annotationTouched])
	return err != nil || now.Sub(last) >= touchInterval
}

// named sets the name of an object.
func named[T client.Object](object T, namespace, name string) T {
	object.SetNamespace(namespace)
	object.SetName(name)
	return object
}
