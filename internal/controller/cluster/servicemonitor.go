package cluster

import (
	"cmp"
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

// scrapeInterval is the default interval of scrapes: each locks slurmctld, for longer the more jobs there are.
const scrapeInterval = "1m"

// serviceMonitor returns the ServiceMonitor for slurmctld's own metrics.
func serviceMonitor(controller *slinkyv1beta1.Controller) *unstructured.Unstructured {
	settings := controller.Spec.Metrics.ServiceMonitor
	var endpoints []any
	for _, endpoint := range settings.Endpoints {
		one := map[string]any{
			"port": portName, "path": endpoint.Path, "relabelings": relabelings(controller),
			"interval": string(cmp.Or(endpoint.Interval, settings.Interval, scrapeInterval)),
		}
		if timeout := cmp.Or(endpoint.ScrapeTimeout, settings.ScrapeTimeout); timeout != "" {
			one["scrapeTimeout"] = string(timeout)
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

// relabelings are changes to the targets. A standby, which is never ready, redirects scrapes to the first slurmctld, so
// that every series would be there twice: it is no target. All series get the labels that the operator's metrics of the
// cluster have.
func relabelings(controller *slinkyv1beta1.Controller) []any {
	drop := func(label string) any {
		return map[string]any{"action": "drop", "sourceLabels": []any{label}, "regex": "false"}
	}
	set := func(label, value string) any {
		return map[string]any{"action": "replace", "targetLabel": label, "replacement": value}
	}
	return []any{
		drop("__meta_kubernetes_endpoint_ready"), drop("__meta_kubernetes_endpointslice_endpoint_conditions_ready"),
		set("controller_namespace", controller.Namespace), set("controller", controller.Name),
	}
}
