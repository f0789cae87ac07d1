package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/doctor"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/report"
)

func reportCommand(session *session) *cobra.Command {
	var file string
	var lines int64
	command := &cobra.Command{
		Use:   "report",
		Short: "Collect what a maintainer needs to debug a cluster, without secrets",
		Long: `Writes an archive with the custom resources, pods, events, the operator's configuration of Slurm, the last lines
of all daemons' logs, Slurm's configuration, nodes, partitions and statistics, and what doctor finds.

It never reads Secrets, nor scripts and environments of jobs. Of objects it has only listed fields, without the values
of environment variables and the arguments of containers, and texts that look like a secret are replaced. Still, read
it before you pass it on: it has names of users, hosts, images and partitions.`,
		Example: `  kubectl slurm report
  kubectl slurm report --file=- | tar --list --gzip`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return session.report(command, file, lines) },
	}
	command.Flags().StringVar(&file, "file", "", "file to write; - for standard output; by default a name with the date")
	command.Flags().Int64Var(&lines, "lines", 2000, "number of lines of each container's log")
	return command
}

func (s *session) report(command *cobra.Command, file string, lines int64) error {
	ctx := command.Context()
	connected, err := s.connectSlurm(ctx)
	if err != nil {
		return err
	}
	name := "slurm-report-" + connected.controller.Namespace + "-" + s.now().UTC().Format("20060102-150405")
	input := &report.Input{
		Objects: map[string][]report.Object{}, Logs: map[string]string{}, Commands: map[string]string{},
		Results: map[string]string{},
	}
	for _, collect := range []func(context.Context, *session, *report.Input) error{
		connected.collectObjects, connected.collectConfigMaps, connected.collectSlurm, connected.collectFindings,
	} {
		if err := collect(ctx, s, input); err != nil {
			return err
		}
	}
	connected.collectLogs(ctx, input, lines)
	input.Notes = append(input.Notes, connected.allNotes()...)
	files, err := report.Files(input)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := report.Write(&archive, name, files, s.now()); err != nil {
		return err
	}
	if file == "-" {
		_, err := command.OutOrStdout().Write(archive.Bytes())
		return err
	}
	if file == "" {
		file = name + ".tar.gz"
	}
	if err := os.WriteFile(file, archive.Bytes(), 0o600); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	for _, note := range input.Notes {
		fmt.Fprintln(command.ErrOrStderr(), "note:", note)
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "%s has %d files; read them before you pass them on\n", file, len(files))
	return err
}

// collected are the resources of a report's kinds.
var collected = []struct {
	kind     string
	resource schema.GroupVersionResource
	// everywhere says that the resource has no namespace, or is read in all.
	everywhere bool
	selector   string
}{
	{kind: "Controller", resource: kube.Controllers}, {kind: "NodeSet", resource: kube.NodeSets},
	{kind: "LoginSet", resource: kube.LoginSets}, {kind: "RestApi", resource: kube.RestAPIs},
	{kind: "Accounting", resource: kube.Accountings}, {kind: "Token", resource: kube.Tokens},
	{kind: "Pod", resource: kube.Pods}, {kind: "Event", resource: kube.Events},
	{kind: "PodDisruptionBudget", resource: kube.Budgets}, {kind: "ResourceQuota", resource: kube.ResourceQuotas},
	{kind: "PersistentVolumeClaim", resource: kube.PersistentVolumeClaims},
	{kind: "Node", resource: kube.Nodes, everywhere: true},
	{kind: "Deployment", resource: kube.Deployments, everywhere: true, selector: doctor.OperatorSelector},
}

// maxObjects bounds the objects of one kind: a report of 5,000 nodes must stay one that can be passed on.
const maxObjects = 1000

func (c *cluster) collectObjects(ctx context.Context, _ *session, into *report.Input) error {
	for _, source := range collected {
		namespace := c.controller.Namespace
		if source.everywhere {
			namespace = ""
		}
		var answer list[report.Object]
		err := c.client.Read(ctx, source.resource, namespace,
			metav1.ListOptions{Limit: maxObjects, LabelSelector: source.selector}, &answer)
		if err := c.rights.Optional(err); err != nil {
			return err
		}
		if len(answer.Items) == maxObjects {
			into.Notes = append(into.Notes,
				fmt.Sprintf("there may be more than %d objects of the kind %s", maxObjects, source.kind))
		}
		into.Objects[source.kind] = answer.Items
	}
	return nil
}

// collectConfigMaps reads the ConfigMaps that the operator writes, and no others.
func (c *cluster) collectConfigMaps(ctx context.Context, _ *session, into *report.Input) error {
	for _, name := range []string{naming.Configuration(c.controller.Name), naming.Candidate(c.controller.Name)} {
		found, err := configMap(ctx, c.client, c.controller.Namespace, name)
		if forbidden, is := errors.AsType[*kube.Forbidden](err); is {
			c.rights.Missing = append(c.rights.Missing, forbidden)
			return nil
		}
		if err != nil || found == nil {
			continue // there is none
		}
		encoded, err := json.Marshal(found)
		if err != nil {
			return fmt.Errorf("encoding ConfigMap %s: %w", name, err)
		}
		var object report.Object
		if err := json.Unmarshal(encoded, &object); err != nil {
			return fmt.Errorf("encoding ConfigMap %s: %w", name, err)
		}
		into.ConfigMaps = append(into.ConfigMaps, object)
	}
	return nil
}

// questions are Slurm's commands whose output is in a report. None of them shows scripts or environments of jobs.
var questions = map[string][]string{
	"config": {"scontrol", "show", "config"}, "nodes": {"scontrol", "show", "nodes"},
	"partitions": {"scontrol", "show", "partitions"}, "reservations": {"scontrol", "show", "reservations"},
	"ping": {"scontrol", "ping"}, "sdiag": {"sdiag"}, "reasons": {"sinfo", "--list-reasons"},
	"versions": {"sinfo", "--format=%n %v %T"},
}

func (c *cluster) collectSlurm(ctx context.Context, _ *session, into *report.Input) error {
	for name, question := range questions {
		if c.run == nil {
			return nil
		}
		answer, err := c.run(ctx, question...)
		if err != nil {
			into.Notes = append(into.Notes, err.Error())
			if errors.Is(err, context.Canceled) {
				return err
			}
			continue
		}
		into.Commands[name] = string(answer)
	}
	return nil
}

func (c *cluster) collectFindings(ctx context.Context, session *session, into *report.Input) error {
	snapshot, err := session.snapshot(ctx, c.client, c.controller.Namespace, c.controller.Name)
	if err != nil {
		return err
	}
	encoded, err := json.MarshalIndent(doctor.Examine(snapshot), "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the findings: %w", err)
	}
	into.Results["doctor"] = string(encoded)
	return nil
}

// maxPods bounds the slurmd pods whose logs are in a report; those that are not ready come first.
const maxPods = 20

// collectLogs reads the logs of the cluster's pods, also those of containers that have crashed.
func (c *cluster) collectLogs(ctx context.Context, into *report.Input, lines int64) {
	var pods corev1.PodList
	err := c.client.List(ctx, kube.Pods, c.controller.Namespace, metav1.ListOptions{}, &pods)
	if err != nil {
		into.Notes = append(into.Notes, err.Error())
		return
	}
	for _, pod := range worthReading(pods.Items) {
		for i := range pod.Status.ContainerStatuses {
			container := &pod.Status.ContainerStatuses[i]
			for _, previous := range []bool{false, true} {
				if previous && container.RestartCount == 0 {
					continue
				}
				name := strings.Join([]string{pod.Namespace, pod.Name, container.Name}, "/")
				if previous {
					name += "-previous"
				}
				text, err := read(ctx, c.client, pod, &corev1.PodLogOptions{
					Container: container.Name, TailLines: &lines, Timestamps: true, Previous: previous,
				})
				if err != nil {
					into.Notes = append(into.Notes, fmt.Sprintf("the log of %s was not read: %v", name, err))
					continue
				}
				into.Logs[name] = text
			}
		}
	}
}

// worthReading returns the pods whose logs are in a report: all but slurmds beyond the limit, those that are not ready
// first.
func worthReading(pods []corev1.Pod) []*corev1.Pod {
	var found []*corev1.Pod
	workers := 0
	for _, ready := range []bool{false, true} {
		for i := range pods {
			pod := &pods[i]
			if !naming.IsManaged(pod.Labels) || kube.IsReady(pod) != ready {
				continue
			}
			if _, worker := naming.Instance(naming.Slurmd, pod.Labels); worker {
				if workers++; workers > maxPods {
					continue
				}
			}
			found = append(found, pod)
		}
	}
	return found
}

// read returns a log.
func read(ctx context.Context, client *kube.Client, pod *corev1.Pod, options *corev1.PodLogOptions) (string, error) {
	log, err := client.Logs(ctx, pod.Namespace, pod.Name, options)
	if err != nil {
		return "", err
	}
	defer log.Close()
	text, err := io.ReadAll(log)
	return string(text), err
}
