package command

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/why"
)

func whyCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	command := &cobra.Command{
		Use:   "why NODE|POD|JOB",
		Short: "Explain the state of a node or a job, and what to do",
		Long: `Explains a Slurm node: everything that keeps it from taking jobs and who may lift it, why its pod is to be deleted,
and everything that keeps the pod until then. Explains a job: Slurm's reason in words, and what would start it.

A number is a job, and any other name a Slurm node or its pod. To be explicit, write node/…, pod/… or job/….`,
		Example: `  kubectl slurm why gpu-3
  kubectl slurm why 4711`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: session.complete(session.nodeNames, session.jobIDs),
		RunE: func(command *cobra.Command, arguments []string) error {
			kind, name := target(arguments[0])
			return flags.show(command, func() (any, func(*output.Page), error) {
				connected, err := session.connectSlurm(command.Context())
				if err != nil {
					return nil, nil, err
				}
				if kind == "job" {
					return session.whyJob(command.Context(), connected, name)
				}
				return session.whyNode(command.Context(), connected, name)
			})
		},
	}
	flags.addFormat(command)
	flags.addWatch(command)
	return command
}

// jobNumber matches the number of a job, of an array task or of a part of a heterogeneous job.
var jobNumber = regexp.MustCompile(`^\d+([_+].*)?$`)

// target returns what an argument names: a job or a node, which may be named by its pod.
func target(argument string) (kind, name string) {
	if kind, name, explicit := strings.Cut(argument, "/"); explicit {
		return kind, name
	}
	if jobNumber.MatchString(argument) {
		return "job", argument
	}
	return "node", argument
}

func (s *session) whyJob(ctx context.Context, connected *cluster, id string) (any, func(*output.Page), error) {
	if connected.run == nil {
		return nil, nil, connected.notAsked
	}
	jobs, err := connected.run.Job(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	if len(jobs) == 0 {
		return nil, nil, fmt.Errorf("slurmctld has no job %s; it forgets jobs minutes after their end: see kubectl slurm -- "+
			"sacct --jobs=%s", id, id)
	}
	input, err := connected.nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	joined, now := nodes.Join(input), s.now()
	results := make([]why.Job, len(jobs))
	for i := range jobs {
		results[i] = why.ExplainJob(&jobs[i], joined, now)
		results[i].Starts = s.asCalled(results[i].Starts)
		results[i].Notes = connected.allNotes()
	}
	if len(results) == 1 {
		return results[0], func(page *output.Page) { results[0].Draw(page, now) }, nil
	}
	return results, func(page *output.Page) {
		for i := range results {
			if i > 0 {
				page.Line("")
			}
			results[i].Draw(page, now)
		}
	}, nil
}

func (s *session) whyNode(ctx context.Context, connected *cluster, name string) (any, func(*output.Page), error) {
	all, err := connected.nodes(ctx)
	if err != nil {
		return nil, nil, err
	}
	joined := nodes.Join(all)
	at := slices.IndexFunc(joined, func(node nodes.Node) bool { return node.Name == name || node.Pod == name })
	if at < 0 {
		return nil, nil, unknownNode(name, connected)
	}
	input := &why.Input{Name: joined[at].Name, Asked: all.Asked, Joined: joined[at], Now: s.now()}
	for i := range all.Slurm {
		if all.Slurm[i].Name == input.Name {
			input.Record = &all.Slurm[i]
		}
	}
	for i := range all.Pods {
		if kube.SlurmNode(&all.Pods[i]) == input.Name {
			input.Pod = &all.Pods[i]
		}
	}
	for i := range all.Jobs {
		if slices.Contains(input.Joined.Jobs, all.Jobs[i].ID) {
			input.Jobs = append(input.Jobs, all.Jobs[i])
		}
	}
	if err := connected.addObjects(ctx, input); err != nil {
		return nil, nil, err
	}
	result := why.ExplainNode(input)
	for _, findings := range [][]why.Finding{result.Closing, result.Leaving, result.Holding} {
		for i := range findings {
			findings[i].Remedy = s.asCalled(findings[i].Remedy)
		}
	}
	result.Notes = connected.allNotes()
	return result, func(page *output.Page) { result.Draw(page) }, nil
}

// addObjects adds the NodeSet and the Kubernetes node of a node, as far as the user may read them.
func (c *cluster) addObjects(ctx context.Context, input *why.Input) error {
	if name := input.Joined.NodeSet; name != "" {
		set := &slinkyv1beta1.NodeSet{}
		switch err := c.client.Get(ctx, kube.NodeSets, c.controller.Namespace, name, set); {
		case err == nil:
			input.NodeSet = set
		case c.rights.Optional(ignoreNotFound(err)) != nil:
			return err
		}
	}
	if name := input.Joined.KubernetesNode; name != "" {
		node := &corev1.Node{}
		switch err := c.client.Get(ctx, kube.Nodes, "", name, node); {
		case err == nil:
			input.KubernetesNode = node
		case c.rights.Optional(ignoreNotFound(err)) != nil:
			return err
		}
	}
	return nil
}

// unknownNode is the error about a name that is neither a Slurm node nor a pod.
func unknownNode(name string, connected *cluster) error {
	err := fmt.Errorf("neither Slurm nor the namespace %s has a node %s; see kubectl slurm nodes",
		connected.controller.Namespace, name)
	if connected.notAsked != nil {
		return fmt.Errorf("%w (Slurm was not asked: %w)", err, connected.notAsked)
	}
	return err
}
