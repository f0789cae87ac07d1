package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

var serviceMonitorKind = schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "ServiceMonitor"}

// applyServiceMonitor applies or deletes the ServiceMonitor, if the Prometheus Operator is installed.
func (r *Reconciler) applyServiceMonitor(ctx context.Context, scope *scope) error {
	controller := scope.controller
	if _, err := r.Client.RESTMapper().
		RESTMapping(serviceMonitorKind.GroupKind(), serviceMonitorKind.Version); err != nil {
		if meta.IsNoMatchError(err) {
			return nil
		}
		return err
	}
	live := named(&unstructured.Unstructured{}, controller.Namespace, naming.Controller(controller.Name))
	live.SetGroupVersionKind(serviceMonitorKind)
	metrics := controller.Spec.Metrics
	if !metrics.Enabled || !metrics.ServiceMonitor.Enabled {
		return r.Children.Delete(ctx, controller, live)
	}
	return r.Children.Apply(ctx, controller, client.ApplyConfigurationFromUnstructured(serviceMonitor(controller)),
		live)
}

// serviceMonitor returns the ServiceMonitor for slurmctld's own metrics.
func serviceMonitor(controller *slinkyv1beta1.Controller) *unstructured.Unstructured {
	settings := controller.Spec.Metrics.ServiceMonitor
	var endpoints []any
	for _, endpoint := range settings.Endpoints {
		one := map[string]any{"port": portName, "path": endpoint.Path}
		for field, choices := range map[string][2]slinkyv1beta1.PrometheusDuration{
			"interval":      {endpoint.Interval, settings.Interval},
			"scrapeTimeout": {endpoint.ScrapeTimeout, settings.ScrapeTimeout},
		} {
			for _, choice := range choices {
				if choice != "" {
					one[field] = string(choice)
					break
				}
			}
		}
		endpoints = append(endpoints, one)
	}
	selector := map[string]any{}
	for key, value := range naming.Selector(naming.Slurmctld, controller.Name) {
		selector[key] = value
	}
	monitor := named(&unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector":  map[string]any{"matchLabels": selector},
		"endpoints": endpoints,
	}}}, controller.Namespace, naming.Controller(controller.Name))
	monitor.SetGroupVersionKind(serviceMonitorKind)
	monitor.SetLabels(naming.Merge(settings.Labels, labels(controller)))
	monitor.SetAnnotations(settings.Annotations)
	return monitor
}
