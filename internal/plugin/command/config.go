package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/config"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func configCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var file string
	command := &cobra.Command{
		Use:   "config",
		Short: "Show slurm.conf, and who set each line",
		Long: `Shows the configuration in force with who set each line: the operator, a line of the Controller's extraConf, a
NodeSet, or a ConfigMap. It needs the right to get ConfigMaps.`,
		Example: `  kubectl slurm config
  kubectl slurm config --file=cgroup.conf
  kubectl slurm config diff
  kubectl slurm config check --filename=changed.yaml`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.show(command, func() (any, func(*output.Page), error) {
				input, _, err := session.configuration(command.Context())
				if err != nil {
					return nil, nil, err
				}
				result, err := config.Explain(input, file)
				return result, result.Draw, err
			})
		},
	}
	flags.addFormat(command)
	command.Flags().StringVar(&file, "file", slurmconf.FileName, "the configuration file to show")
	command.AddCommand(configDiffCommand(session), configCheckCommand(session))
	return command
}

func configDiffCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	command := &cobra.Command{
		Use:   "diff",
		Short: "Compare the configuration in force with the one that slurmctld runs, and with the next one",
		Long: `Compares the configuration in force with what slurmctld reports that it runs with, and shows the lines of a
configuration that is being validated or was refused, and which changes wait because they would cost running jobs.`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return flags.show(command, func() (any, func(*output.Page), error) {
				result, err := session.configDiff(command.Context())
				if err != nil {
					return nil, nil, err
				}
				return result, result.Draw, nil
			})
		},
	}
	flags.addFormat(command)
	return command
}

func configCheckCommand(session *session) *cobra.Command {
	flags := &outputFlags{}
	var file string
	var validate bool
	command := &cobra.Command{
		Use:   "check --filename FILE",
		Short: "Check a change of the configuration before it is applied",
		Long: `Checks changed objects without applying them: by the API server and the operator's webhook (as kubectl apply
--dry-run=server does), and by the operator's own builder of slurm.conf. It shows which lines of slurm.conf would
change, and which changes wait because they would cost running jobs: for how many jobs, until when, and how to make them
at once. The exit code is 1 if the change would not be applied.

With --slurmctld it also starts a throwaway slurmctld with the changed configuration, as the operator does before it
applies a change: in a pod with the image of slurmctld, with random keys and temporary state. The pod and its ConfigMap
are deleted afterwards. That needs the rights to create and delete pods and ConfigMaps.`,
		Example: `  kubectl slurm config check --filename=changed.yaml
  kubectl slurm config check --filename=changed.yaml --slurmctld
  helm template slurm charts/slurm --values=values.yaml | kubectl slurm config check --filename=-`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			var result *config.Check
			err := flags.show(command, func() (any, func(*output.Page), error) {
				var err error
				result, err = session.configCheck(command, file, validate)
				if err != nil {
					return nil, nil, err
				}
				return result, result.Draw, nil
			})
			if err == nil && !result.Accepted() {
				return ExitCode(1)
			}
			return err
		},
	}
	flags.addFormat(command)
	command.Flags().StringVarP(&file, "filename", "f", "", "file with the changed objects; - for standard input")
	command.Flags().BoolVar(&validate, "slurmctld", false, "also validate the change on a throwaway slurmctld, in a pod")
	_ = command.MarkFlagRequired("filename")
	return command
}

// configuration reads what the configuration of the cluster is made from.
func (s *session) configuration(ctx context.Context) (*config.Input, *kube.Client, error) {
	client, namespace, err := s.connect(false)
	if err != nil {
		return nil, nil, err
	}
	controller, err := s.findController(ctx, client, namespace)
	if err != nil {
		return nil, nil, err
	}
	objects, err := client.Clusters(ctx, namespace, false)
	if err != nil {
		return nil, nil, err
	}
	input, err := configurationOf(ctx, client, controller, objects)
	if err == nil && input.InForce == nil {
		err = fmt.Errorf("the Controller %s has no configuration yet; see kubectl slurm status", controller.Name)
	}
	return input, client, err
}

// configurationOf reads the ConfigMaps of a configuration, and selects the other objects that it is made from.
func configurationOf(
	ctx context.Context, client *kube.Client, controller *slinkyv1beta1.Controller, objects *kube.Objects,
) (*config.Input, error) {
	input := &config.Input{Controller: controller, ConfigMaps: map[string]*corev1.ConfigMap{}}
	for i := range objects.NodeSets {
		if set := &objects.NodeSets[i]; set.Spec.ControllerRef.Name == controller.Name {
			input.NodeSets = append(input.NodeSets, *set)
		}
	}
	for i := range objects.Accountings {
		if reference := controller.Spec.AccountingRef; reference != nil && objects.Accountings[i].Name == reference.Name {
			input.Accounting = &objects.Accountings[i]
		}
	}
	var err error
	for _, name := range config.References(controller) {
		if input.ConfigMaps[name], err = configMap(ctx, client, controller.Namespace, name); err != nil {
			return nil, err
		}
	}
	live, err := configMap(ctx, client, controller.Namespace, config.LiveName(controller.Name))
	if live != nil {
		input.InForce = live.Data
	}
	return input, err
}

// configMap reads a ConfigMap; nil if it does not exist.
func configMap(ctx context.Context, client *kube.Client, namespace, name string) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{}
	err := client.Get(ctx, kube.ConfigMaps, namespace, name, object)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // documented
	}
	return object, err
}

func (s *session) configDiff(ctx context.Context) (*config.Difference, error) {
	input, client, err := s.configuration(ctx)
	if err != nil {
		return nil, err
	}
	controller := input.Controller
	candidate, err := configMap(ctx, client, controller.Namespace, config.CandidateName(controller.Name))
	if err != nil {
		return nil, err
	}
	var next map[string]string
	if candidate != nil {
		next = candidate.Data
	}
	var notes []string
	run, err := s.slurm(ctx, client, controller)
	var printed []byte
	if err == nil {
		printed, err = run(ctx, "scontrol", "show", "config")
	}
	if err != nil {
		notes = append(notes, "slurmctld was not asked: "+err.Error())
	}
	difference := config.Compare(input, next, string(printed))
	if err == nil {
		notes = append(notes, countJobs(ctx, run, difference.Waits)...)
	}
	difference.Notes = notes
	if applied := meta.FindStatusCondition(controller.Status.Conditions,
		slinkyv1beta1.ConditionConfigurationApplied); applied != nil {
		difference.Condition = applied.Reason + ": " + applied.Message
	}
	return &difference, nil
}

func (s *session) configCheck(command *cobra.Command, file string, validate bool) (*config.Check, error) {
	ctx := command.Context()
	changed, err := readObjects(command, file)
	if err != nil {
		return nil, err
	}
	input, client, err := s.configuration(ctx)
	if err != nil {
		return nil, err
	}
	check := &config.Check{Controller: input.Controller.Name, Checked: []string{}, NotChecked: []string{}}
	var objects []any
	asked := 0
	for _, object := range changed {
		resource, known := checked[object.GetKind()]
		if !known {
			check.Notes = append(check.Notes, fmt.Sprintf("%s %s was not checked", object.GetKind(), object.GetName()))
			continue
		}
		object.SetNamespace(input.Controller.Namespace)
		check.Objects = append(check.Objects, object.GetKind()+" "+object.GetName())
		if tryOn(ctx, client, resource, object, check) {
			asked++
		}
		typed, err := typed(object)
		if err != nil {
			return nil, err
		}
		objects = append(objects, typed)
	}
	if asked > 0 {
		check.Checked = append(check.Checked, "the API server and its webhooks, with a dry run")
	} else {
		check.NotChecked = append(check.NotChecked, "the rules of the API server and of the webhook")
	}
	after, err := input.With(objects)
	if err != nil {
		return nil, err
	}
	check.Effect(input, after)
	if check.Waits != nil {
		check.Notes = append(check.Notes, s.countJobs(ctx, client, input.Controller, check.Waits)...)
	}
	switch {
	case !check.Accepted(): // it says enough
	case validate:
		s.validate(ctx, client, check, input, after)
	default:
		check.NotValidated("--slurmctld asks a throwaway one now")
	}
	return check, ctx.Err()
}

// countJobs counts the jobs that changes wait for. It returns why it could not.
func (s *session) countJobs(
	ctx context.Context, client *kube.Client, controller *slinkyv1beta1.Controller, waits *config.Waits,
) []string {
	run, err := s.slurm(ctx, client, controller)
	if err != nil {
		return []string{notCounted(err)}
	}
	return countJobs(ctx, run, waits)
}

func countJobs(ctx context.Context, run slurmcli.Runner, waits *config.Waits) []string {
	if waits == nil {
		return nil
	}
	jobs, err := run.Jobs(ctx)
	if err != nil {
		return []string{notCounted(err)}
	}
	waits.Count(jobs)
	return nil
}

func notCounted(err error) string { return "jobs were not counted: " + err.Error() }

// checked are the resources of the kinds that change a configuration.
var checked = map[string]schema.GroupVersionResource{
	"Controller": kube.Controllers, "NodeSet": kube.NodeSets, "Accounting": kube.Accountings, "ConfigMap": kube.ConfigMaps,
}

// tryOn replaces an object by what the API server makes of it, and reports whether it was asked.
func tryOn(
	ctx context.Context, client *kube.Client, resource schema.GroupVersionResource, object *unstructured.Unstructured,
	check *config.Check,
) bool {
	name := object.GetKind() + " " + object.GetName()
	body, err := json.Marshal(object)
	var applied []byte
	var warnings []string
	if err == nil {
		applied, warnings, err = client.DryRun(ctx, resource, object.GetNamespace(), object.GetName(), body)
	}
	if forbidden, is := errors.AsType[*kube.Forbidden](err); is {
		check.Notes = append(check.Notes, forbidden.Error())
		return false
	}
	for _, warning := range warnings {
		check.Warnings = append(check.Warnings, config.Problem{Object: name, Message: warning})
	}
	if err != nil {
		check.Refusals = append(check.Refusals, config.Problem{Object: name, Message: err.Error()})
		return true
	}
	completed := &unstructured.Unstructured{}
	if json.Unmarshal(applied, &completed.Object) == nil {
		object.Object = completed.Object
	}
	return true
}

// typed returns an object of one of the kinds in checked.
func typed(object *unstructured.Unstructured) (any, error) {
	into := map[string]any{
		"Controller": &slinkyv1beta1.Controller{}, "NodeSet": &slinkyv1beta1.NodeSet{},
		"Accounting": &slinkyv1beta1.Accounting{}, "ConfigMap": &corev1.ConfigMap{},
	}[object.GetKind()]
	encoded, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(encoded, into)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	return into, nil
}

// readObjects reads the objects of a file, or of standard input.
func readObjects(command *cobra.Command, file string) ([]*unstructured.Unstructured, error) {
	content, err := readFile(command, file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), len(content)+1)
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("reading %s: %w", file, err)
		case len(object.Object) == 0:
			continue
		case object.IsList():
			err = object.EachListItem(func(item runtime.Object) error {
				objects = append(objects, item.(*unstructured.Unstructured)) //nolint:forcetypeassert // by EachListItem
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("reading %s: %w", file, err)
			}
		default:
			objects = append(objects, object)
		}
	}
}

func readFile(command *cobra.Command, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(command.InOrStdin())
	}
	return os.ReadFile(file)
}
