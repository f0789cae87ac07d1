package command

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/doctor"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
)

func doctorCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	command := &cobra.Command{
		Use:   "doctor [CLUSTER]",
		Short: "Find what is wrong with Slurm clusters, and how to repair it",
		Long: `Examines the Slurm clusters of the namespace, the operator, its webhook and its CRDs. Each finding says what is
wrong, what it means for jobs, and which command repairs it or shows more; nothing is changed.

The exit code is 0 if nothing is wrong, 1 with warnings, and 2 with errors.`,
		Example: `  kubectl slurm doctor
  kubectl slurm doctor slurm --output=json
  kubectl slurm doctor --all-namespaces || echo 'something is wrong'`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: session.complete(session.clusterNames),
		RunE: func(command *cobra.Command, arguments []string) error {
			return session.examine(command, flags, session.clusterIn(arguments))
		},
	}
	flags.addFormat(command)
	flags.addAllNamespaces(command)
	return command
}

func (s *session) examine(command *cobra.Command, flags *outputFlags, name string) error {
	client, namespace, err := s.connect(flags.allNamespaces)
	if err != nil {
		return err
	}
	var found doctor.Result
	err = flags.show(command, func() (any, func(*output.Page), error) {
		snapshot, err := s.snapshot(command.Context(), client, namespace, name)
		if err != nil {
			return nil, nil, err
		}
		found = doctor.Examine(snapshot)
		for i := range found.Findings {
			found.Findings[i].Fix = s.onServer(found.Findings[i].Fix)
		}
		return found, func(page *output.Page) { found.Draw(page) }, nil
	})
	if err == nil && found.ExitCode() != 0 {
		return ExitCode(found.ExitCode())
	}
	return err
}

// snapshot reads what the checks examine. Missing rights are notes.
func (s *session) snapshot(
	ctx context.Context, client *kube.Client, namespace, name string,
) (*doctor.Snapshot, error) {
	objects, err := client.Clusters(ctx, namespace, true)
	if err != nil {
		return nil, missingCRDs(err)
	}
	snapshot := &doctor.Snapshot{
		Now: s.now(), Objects: doctor.Select(objects, name), SlurmNodes: map[string][]slurm.Node{}, Logs: map[string]string{},
	}
	switch {
	case len(snapshot.Objects.Controllers) > 0 || len(objects.Rights.Missing) > 0:
	case name != "":
		return nil, notFound(name, namespace)
	default:
		return nil, noController(namespace)
	}
	rights := &snapshot.Objects.Rights
	for _, err := range readAll(ctx, client, namespace, snapshot) {
		if err := rights.Optional(err); err != nil {
			return nil, err
		}
	}
	snapshot.Notes = rights.Notes()
	s.readDaemons(ctx, client, snapshot)
	return snapshot, nil
}

// list is the answer of the API server to a list of objects.
type list[T any] struct {
	Items []T `json:"items"`
}

// reading returns a function that reads a list.
func reading[T any](
	client *kube.Client, resource schema.GroupVersionResource, namespace string, options metav1.ListOptions,
	into *doctor.List[T],
) func(context.Context) error {
	return func(ctx context.Context) error {
		var answer list[T]
		if err := client.Read(ctx, resource, namespace, options, &answer); err != nil {
			return err
		}
		into.Items, into.Known = answer.Items, true
		return nil
	}
}

// nodeLeases is the namespace of the Leases that kubelets renew.
const nodeLeases = "kube-node-lease"

// readAll reads all lists at the same time, and returns the errors.
func readAll(ctx context.Context, client *kube.Client, namespace string, into *doctor.Snapshot) []error {
	all, operator := metav1.ListOptions{}, metav1.ListOptions{LabelSelector: doctor.OperatorSelector}
	lease := metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, doctor.OperatorLease).String(),
	}
	reads := []func(context.Context) error{
		func(ctx context.Context) error {
			var pods corev1.PodList // may be thousands: protobuf is several times smaller than JSON
			err := client.List(ctx, kube.Pods, namespace, all, &pods)
			into.Pods = doctor.List[corev1.Pod]{Items: pods.Items, Known: err == nil}
			return err
		},
		reading(client, kube.PersistentVolumeClaims, namespace, all, &into.Claims),
		reading(client, kube.Budgets, namespace, all, &into.Budgets),
		reading(client, kube.ResourceQuotas, namespace, all, &into.Quotas),
		reading(client, kube.StorageClasses, "", all, &into.StorageClasses),
		func(ctx context.Context) error {
			var nodes corev1.NodeList
			err := client.List(ctx, kube.Nodes, "", all, &nodes)
			into.Nodes = doctor.List[corev1.Node]{Items: nodes.Items, Known: err == nil}
			return err
		},
		reading(client, kube.Leases, nodeLeases, all, &into.NodeLeases),
		reading(client, kube.Deployments, "", operator, &into.Deployments),
		reading(client, kube.Leases, "", lease, &into.Leases),
		reading(client, kube.Webhooks, "", all, &into.Webhooks),
		reading(client, kube.Endpoints, "", operator, &into.Endpoints),
		reading(client, kube.ResourceTypes, "", all, &into.ResourceTypes),
	}
	errs := make([]error, len(reads))
	var group errgroup.Group
	for i, read := range reads {
		group.Go(func() error {
			errs[i] = read(ctx)
			return nil
		})
	}
	_ = group.Wait() // the errors are in errs
	return errs
}

// readDaemons asks Slurm for its nodes, and reads the logs of daemons that do not become ready. What does not answer is
// a note: it often is what a finding is about.
func (s *session) readDaemons(ctx context.Context, client *kube.Client, snapshot *doctor.Snapshot) {
	for i := range snapshot.Objects.Controllers {
		controller := &snapshot.Objects.Controllers[i]
		run, err := s.slurm(ctx, client, controller)
		if err == nil {
			key := controller.Namespace + "/" + controller.Name
			snapshot.SlurmNodes[key], err = run.Nodes(ctx)
		}
		if err != nil {
			delete(snapshot.SlurmNodes, controller.Namespace+"/"+controller.Name)
			snapshot.Notes = append(snapshot.Notes,
				fmt.Sprintf("the Slurm nodes of %s were not examined: %v", controller.Name, err))
		}
	}
	for _, pod := range unready(snapshot.Pods.Items) {
		if text, err := tail(ctx, client, pod); err == nil {
			snapshot.Logs[pod.Namespace+"/"+pod.Name] = text
		}
	}
}

// Bounds of what is read from logs.
const (
	maxLogs  = 5
	logLines = 40
)

// unready returns a few pods whose daemon runs and is not ready.
func unready(pods []corev1.Pod) []*corev1.Pod {
	var found []*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if pod.Status.Phase == corev1.PodRunning && !kube.IsReady(pod) && daemonOf(pod) != "" && len(found) < maxLogs {
			found = append(found, pod)
		}
	}
	return found
}

// daemonOf returns which daemon runs in a pod, and in its container of that name; empty for others than those whose
// logs say something.
func daemonOf(pod *corev1.Pod) naming.Daemon {
	for _, daemon := range []naming.Daemon{naming.Slurmd, naming.Slurmctld, naming.Login, naming.Slurmdbd} {
		if _, is := naming.Instance(daemon, pod.Labels); is {
			return daemon
		}
	}
	return ""
}

// tail returns the last lines of the log of a pod's daemon.
func tail(ctx context.Context, client *kube.Client, pod *corev1.Pod) (string, error) {
	log, err := client.Logs(ctx, pod.Namespace, pod.Name, &corev1.PodLogOptions{
		Container: string(daemonOf(pod)), TailLines: new(int64(logLines)),
	})
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	return string(text), err
}
