package command

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
	"github.com/slurm-operator/slurm-operator/internal/plugin/nodes"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
)

func nodesCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var nodeSet string
	var closed bool
	command := &cobra.Command{
		Use:   "nodes [HOSTLIST]",
		Short: "Show Slurm nodes with their pods and Kubernetes nodes",
		Long: `Shows the Slurm nodes of a cluster, or those of a hostlist expression, with their pods, Kubernetes nodes, jobs, and
why they are closed to jobs. Without the right to ask Slurm, the states are those of the operator's pod conditions.`,
		Example: `  kubectl slurm nodes
  kubectl slurm nodes 'gpu-[0-3]' --output=wide
  kubectl slurm nodes --nodeset=gpu --closed`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: session.complete(session.nodeNames),
		RunE: func(command *cobra.Command, arguments []string) error {
			wanted, err := expand(arguments)
			if err != nil {
				return err
			}
			return flags.show(command, func() (any, func(*output.Page), error) {
				connected, err := session.connectSlurm(command.Context())
				if err != nil {
					return nil, nil, err
				}
				input, err := connected.nodes(command.Context())
				if err != nil {
					return nil, nil, err
				}
				result := &nodes.Result{Nodes: nodes.Join(input), Notes: connected.allNotes()}
				result.Nodes = slices.DeleteFunc(result.Nodes, func(node nodes.Node) bool {
					return nodeSet != "" && node.NodeSet != nodeSet || closed && !node.Closed && node.State != "" ||
						wanted != nil && !slices.Contains(wanted, node.Name)
				})
				return result, func(page *output.Page) { result.Draw(page, session.now()) }, nil
			})
		},
	}
	flags.addFormat(command)
	flags.addWatch(command)
	command.Flags().StringVar(&nodeSet, "nodeset", "", "show only the nodes of this NodeSet")
	command.Flags().BoolVar(&closed, "closed", false, "show only nodes that take no jobs: drained, down, not registered")
	_ = command.RegisterFlagCompletionFunc("nodeset", session.complete(session.nodeSetNames))
	return command
}

// maxNodes is Slurm's own limit of nodes.
const maxNodes = 65536

// expand returns the names of the hostlist expression in the first argument; nil if there is none.
func expand(arguments []string) ([]string, error) {
	if len(arguments) == 0 {
		return nil, nil
	}
	names, err := hostlist.Expand(arguments[0], maxNodes)
	if err != nil {
		return nil, fmt.Errorf("%w; write nodes as Slurm does, such as 'gpu-[0-3],cpu-7'", err)
	}
	return names, nil
}
