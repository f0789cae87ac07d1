package command

import (
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/config"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/upgrade"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func upgradeCommand(session *session) *cobra.Command {
	command := &cobra.Command{
		Use:   "upgrade",
		Short: "Help to upgrade Slurm",
		Args:  cobra.NoArgs,
	}
	command.AddCommand(upgradePlanCommand(session))
	return command
}

func upgradePlanCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var to string
	command := &cobra.Command{
		Use:   "plan --to RELEASE",
		Short: "Show how to upgrade Slurm: the order, what restarts, and what waits for jobs",
		Long: `Shows the steps of an upgrade of Slurm, in the order that Slurm requires, with the command for each: what restarts,
for how long, and what waits for jobs. It names settings that only the new release knows, and changes nothing.`,
		Example: `  kubectl slurm upgrade plan --to=26.05`,
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.show(command, func() (any, func(*output.Page), error) {
				plan, err := session.upgradePlan(command, to)
				if err != nil {
					return nil, nil, err
				}
				return plan, plan.Draw, nil
			})
		},
	}
	flags.addFormat(command)
	command.Flags().StringVar(&to, "to", "", "the release of Slurm to upgrade to, such as 26.05")
	_ = command.MarkFlagRequired("to")
	return command
}

func (s *session) upgradePlan(command *cobra.Command, to string) (*upgrade.Plan, error) {
	ctx := command.Context()
	connected, err := s.connectSlurm(ctx)
	if err != nil {
		return nil, err
	}
	controller := connected.controller
	objects, err := connected.client.Clusters(ctx, controller.Namespace, false)
	if err != nil {
		return nil, err
	}
	connected.rights.Missing = append(connected.rights.Missing, objects.Rights.Missing...)
	input := &upgrade.Input{To: to, Controller: controller, Images: map[string]string{}}
	for i := range objects.Accountings {
		if reference := controller.Spec.AccountingRef; reference != nil && objects.Accountings[i].Name == reference.Name {
			input.Accounting = &objects.Accountings[i]
		}
	}
	for i := range objects.RestAPIs {
		if objects.RestAPIs[i].Spec.ControllerRef.Name == controller.Name {
			input.RestAPIs = append(input.RestAPIs, objects.RestAPIs[i])
		}
	}
	for i := range objects.LoginSets {
		if objects.LoginSets[i].Spec.ControllerRef.Name == controller.Name {
			input.LoginSets = append(input.LoginSets, objects.LoginSets[i])
		}
	}
	for i := range objects.NodeSets {
		if objects.NodeSets[i].Spec.ControllerRef.Name == controller.Name {
			input.NodeSets = append(input.NodeSets, objects.NodeSets[i])
		}
	}
	pods, err := clusterPods(ctx, connected.client, controller)
	if err := connected.rights.Optional(err); err != nil {
		return nil, err
	}
	addImages(input.Images, pods)
	input.AddSpecs()
	live, err := configMap(ctx, connected.client, controller.Namespace, config.LiveName(controller.Name))
	if err := connected.rights.Optional(err); err != nil {
		return nil, err
	}
	if err == nil && live != nil {
		input.InForce, _ = slurmconf.Parse(live.Data[slurmconf.FileName]) // the operator wrote it
	}
	if connected.run != nil {
		input.SlurmNodes, err = connected.run.Nodes(ctx)
		if err := connected.optional(err); err != nil {
			return nil, err
		}
	}
	plan, err := upgrade.Of(input)
	plan.Notes = append(plan.Notes, connected.allNotes()...)
	return &plan, err
}

// addImages adds the images of the daemons that run.
func addImages(images map[string]string, pods []corev1.Pod) {
	for i := range pods {
		for _, daemon := range logged {
			instance, is := naming.Instance(daemon, pods[i].Labels)
			for _, container := range pods[i].Spec.Containers {
				if is && container.Name == string(daemon) {
					images[string(daemon)+"/"+instance] = container.Image
				}
			}
		}
	}
}
