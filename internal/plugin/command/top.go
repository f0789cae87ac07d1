package command

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/plugin/top"
)

// defaultRows is how many rows a table of top has.
const defaultRows = 20

func topCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var order string
	var limit int
	command := &cobra.Command{
		Use:   "top [" + strings.Join(top.Views, "|") + "]",
		Short: "Show what is allocated and used, by node, user, account and GPU type",
		Long: `Shows how much of the CPUs, memory and GPUs is allocated to jobs: in all, by node, by user and account, or by type of
GPU. It asks Slurm, which needs the right to create pods/exec.

What is used is known in part. The load of a node is that of its Kubernetes node, as slurmd reports it. What a slurmd
pod uses, jobs included, is shown if the cluster serves metrics.k8s.io and you may read it. Slurm does not know how busy
GPUs are.`,
		Example: `  kubectl slurm top
  kubectl slurm top nodes --sort-by=load
  kubectl slurm top users --sort-by=pending --limit=0`,
		Args:      cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		ValidArgs: top.Views,
		RunE: func(command *cobra.Command, arguments []string) error {
			view := top.Overview
			if len(arguments) > 0 {
				view = top.View(arguments[0])
			}
			if order == "" {
				order = top.DefaultOrder(view)
			}
			if err := top.CheckOrder(view, order); err != nil {
				return err
			}
			return flags.show(command, func() (any, func(*output.Page), error) {
				result, err := session.top(command.Context(), view)
				if err != nil {
					return nil, nil, err
				}
				result.Sort(order)
				return result, func(page *output.Page) { result.Draw(page, limit) }, nil
			})
		},
	}
	flags.addFormat(command)
	flags.addWatch(command)
	command.Flags().StringVar(&order, "sort-by", "",
		"order of the rows, largest first: "+strings.Join(top.Orders(top.Users), ", ")+"; for nodes also load")
	command.Flags().IntVar(&limit, "limit", defaultRows, "number of rows of each table in texts; 0 for all")
	_ = command.RegisterFlagCompletionFunc("sort-by", completeOrder)
	return command
}

// completeOrder completes --sort-by for the view in the arguments.
func completeOrder(_ *cobra.Command, arguments []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	view := top.Overview
	if len(arguments) > 0 {
		view = top.View(arguments[0])
	}
	return top.Orders(view), cobra.ShellCompDirectiveNoFileComp
}

// top reads what a view adds up.
func (s *session) top(ctx context.Context, view top.View) (*top.Result, error) {
	connected, err := s.connectSlurm(ctx)
	if err != nil {
		return nil, err
	}
	if connected.run == nil {
		return nil, connected.notAsked
	}
	records, loads, err := connected.run.NodesAndLoads(ctx)
	if err != nil {
		return nil, err
	}
	input := &top.Input{Loads: loads}
	if input.Jobs, err = connected.run.Allocations(ctx); err != nil {
		return nil, err
	}
	joining := &nodes.Input{Slurm: records, Asked: true}
	if view == top.Nodes { // the only one that shows pods, and jobs of nodes
		if joining.Pods, err = connected.pods(ctx); err != nil {
			return nil, err
		}
		if joining.Jobs, err = connected.run.Jobs(ctx, slurmcli.OnNodes); err != nil {
			return nil, err
		}
		if input.Pods, err = connected.podUsage(ctx); err != nil {
			return nil, err
		}
	}
	input.Nodes = nodes.Join(joining)
	result := top.Add(input, view)
	result.Notes = append(result.Notes, connected.allNotes()...)
	return result, nil
}

// podUsage returns what the slurmd pods use, by name, as far as the cluster measures it and the user may know.
func (c *cluster) podUsage(ctx context.Context) (map[string]top.PodUsage, error) {
	var answer list[struct {
		Metadata   metav1.ObjectMeta `json:"metadata"`
		Containers []struct {
			Usage map[string]resource.Quantity `json:"usage"`
		} `json:"containers"`
	}]
	selector := labels.SelectorFromSet(naming.WorkerSelector(c.controller.Name)).String()
	options := metav1.ListOptions{LabelSelector: selector}
	err := c.client.Read(ctx, kube.PodMetrics, c.controller.Namespace, options, &answer)
	if apierrors.IsNotFound(err) || apierrors.IsServiceUnavailable(err) {
		return nil, nil //nolint:nilnil // without a metrics server, nothing is known
	}
	usage := make(map[string]top.PodUsage, len(answer.Items))
	for i := range answer.Items {
		var sum top.PodUsage
		for _, container := range answer.Items[i].Containers {
			cpu, memory := container.Usage["cpu"], container.Usage["memory"]
			sum.CPUs += cpu.AsApproximateFloat64()
			sum.Memory += memory.Value() >> 20
		}
		usage[answer.Items[i].Metadata.Name] = sum
	}
	return usage, c.rights.Optional(err)
}
