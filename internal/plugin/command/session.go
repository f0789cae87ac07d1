package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/output"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

// A session is what all commands share: the flags of kubectl, and what follows from them.
type session struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
	now       func() time.Time
	// runIn returns how commands run in a container.
	runIn func(*kube.Client, kube.Container) slurmcli.Runner
	// controller is the flag --controller.
	controller string
}

func newSession() *session {
	return &session{
		rules: clientcmd.NewDefaultClientConfigLoadingRules(), overrides: &clientcmd.ConfigOverrides{}, now: time.Now,
		runIn: slurmcli.In,
	}
}

// addFlags adds the flags that kubectl has, under the same names.
func (s *session) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&s.rules.ExplicitPath, "kubeconfig", "", "path of the kubeconfig to use")
	clientcmd.BindOverrideFlags(s.overrides, flags, clientcmd.RecommendedConfigOverrideFlags(""))
	for _, basic := range []string{"username", "password"} {
		_ = flags.MarkHidden(basic) // as kubectl does; API servers no longer have it
	}
	flags.StringVarP(&s.controller, "controller", "c", "",
		"name of the Controller of the Slurm cluster, if there are several in the namespace")
}

// asCalled returns a text with the flags of this call in the commands that the text names, so that these are about the
// same cluster when somebody types them.
func (s *session) asCalled(text string) string {
	context := s.overrides.Context
	kubectl := s.server() + flag("cluster", context.Cluster) + flag("user", context.AuthInfo) +
		flag("namespace", context.Namespace)
	return withFlags(text, kubectl, kubectl+flag("controller", s.controller))
}

// onServer is asCalled for commands that have a namespace and the name of a Controller already.
func (s *session) onServer(text string) string { return withFlags(text, s.server(), s.server()) }

// server returns the flags of this call that choose the API server.
func (s *session) server() string {
	return flag("kubeconfig", s.rules.ExplicitPath) + flag("context", s.overrides.CurrentContext)
}

// withFlags adds flags to the commands of kubectl and of the plugin in a text.
func withFlags(text, kubectl, plugin string) string {
	const program, itself = "kubectl ", "kubectl slurm "
	return strings.NewReplacer(itself, itself+plugin, program, program+kubectl).Replace(text)
}

// flag returns a flag for a shell; empty without a value.
func flag(name, value string) string {
	if value == "" {
		return ""
	}
	return "--" + name + " " + output.Quoted(value) + " "
}

func (s *session) config() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(s.rules, s.overrides)
}

// client returns a client of the API server. It sends nothing.
func (s *session) client() (*kube.Client, error) {
	config, err := s.config().ClientConfig()
	if err != nil {
		return nil, noCluster(err)
	}
	config.UserAgent = "kubectl-slurm"
	return kube.New(config)
}

// namespace returns the namespace of the flags or of the kubeconfig.
func (s *session) namespace() (string, error) {
	namespace, _, err := s.config().Namespace()
	if err != nil {
		return "", noCluster(err)
	}
	return namespace, nil
}

// connect returns a client, and the namespace to read: empty for all.
func (s *session) connect(all bool) (client *kube.Client, namespace string, err error) {
	if client, err = s.client(); err != nil {
		return nil, "", err
	}
	if all {
		return client, "", nil
	}
	namespace, err = s.namespace()
	return client, namespace, err
}

// findController returns the Controller that the flag --controller names, or the only one of the namespace.
func (s *session) findController(
	ctx context.Context, client *kube.Client, namespace string,
) (*slinkyv1beta1.Controller, error) {
	if s.controller != "" {
		controller := &slinkyv1beta1.Controller{}
		err := client.Get(ctx, kube.Controllers, namespace, s.controller, controller)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("there is no Controller %s in the namespace %s; see kubectl slurm status "+
				"--all-namespaces", s.controller, namespace)
		}
		return controller, err
	}
	var list slinkyv1beta1.ControllerList
	if err := client.List(ctx, kube.Controllers, namespace, metav1.ListOptions{}, &list); err != nil {
		return nil, missingCRDs(err)
	}
	switch len(list.Items) {
	case 0:
		return nil, noController(namespace)
	case 1:
		return &list.Items[0], nil
	}
	names := make([]string, len(list.Items))
	for i := range list.Items {
		names[i] = list.Items[i].Name
	}
	slices.Sort(names)
	return nil, fmt.Errorf("the namespace %s has several Slurm clusters: %s; choose one with --controller", namespace,
		strings.Join(names, ", "))
}

// noController is the error about a namespace without a Slurm cluster.
func noController(namespace string) error {
	if namespace == "" {
		return errors.New("there is no Slurm cluster (no Controller) in any namespace")
	}
	return fmt.Errorf("there is no Slurm cluster (no Controller) in the namespace %s; choose one with --namespace, or "+
		"see kubectl slurm status --all-namespaces", namespace)
}

// missingCRDs explains the answer of an API server that does not know the resource types.
func missingCRDs(err error) error {
	if apierrors.IsNotFound(err) {
		return errors.New("the API server does not know the resource types of slurm-operator; " +
			"is this the right cluster (--context), and is the chart slurm-operator-crds installed?")
	}
	return err
}

// slurm returns a Runner for Slurm's commands in the pod of slurmctld.
func (s *session) slurm(
	ctx context.Context, client *kube.Client, controller *slinkyv1beta1.Controller,
) (slurmcli.Runner, error) {
	container, err := slurmcli.Find(ctx, client, controller)
	if err != nil {
		return nil, err
	}
	return s.runIn(client, container), nil
}

// outputFlags are the flags of a command that prints a result.
type outputFlags struct {
	format        output.Format
	allNamespaces bool
	watch         bool
	interval      time.Duration
}

// defaultInterval is the time between two drawings of --watch.
const defaultInterval = 2 * time.Second

func (f *outputFlags) addFormat(command *cobra.Command) {
	command.Flags().VarP(&f.format, "output", "o", "output format: "+strings.Join(output.Formats, ", "))
	_ = command.RegisterFlagCompletionFunc("output",
		cobra.FixedCompletions(output.Formats, cobra.ShellCompDirectiveNoFileComp))
}

func (f *outputFlags) addAllNamespaces(command *cobra.Command) {
	command.Flags().BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "show the clusters of all namespaces")
}

func (f *outputFlags) addWatch(command *cobra.Command) {
	command.Flags().BoolVarP(&f.watch, "watch", "w", false, "show it again and again, until interrupted")
	command.Flags().DurationVar(&f.interval, "watch-interval", defaultInterval, "time between two updates of --watch")
}

// show prints a result, which read makes: once, or again and again with --watch.
func (f *outputFlags) show(command *cobra.Command, read func() (result any, draw func(*output.Page), err error)) error {
	out := command.OutOrStdout()
	style := output.StyleFor(out)
	drawing := func() (string, error) {
		result, draw, err := read()
		if err != nil {
			return "", err
		}
		var text strings.Builder
		err = output.Print(&text, f.format, style, result, draw)
		return text.String(), err
	}
	if f.watch {
		return output.Watch(command.Context(), out, f.interval, drawing)
	}
	text, err := drawing()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(out, text)
	return err
}
