package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/logs"
)

// logFlags are the flags of logs.
type logFlags struct {
	node, job string
	daemons   []string
	follow    bool
	tail      int64
	since     time.Duration
}

func logsCommand(session *session) *cobra.Command {
	flags := &logFlags{}
	command := &cobra.Command{
		Use:   "logs",
		Short: "Show the logs of all daemons of a cluster, merged by time",
		Long: `Shows the logs of slurmctld, slurmdbd, slurmrestd, slurmd and login pods, merged by time. --node and --job select the
lines that mention a Slurm node or a job; all lines of the node's own slurmd belong to it.`,
		Example: `  kubectl slurm logs --since=10m
  kubectl slurm logs --node=gpu-3 --follow
  kubectl slurm logs --job=4711 --tail=-1`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return session.logs(command, flags) },
	}
	command.Flags().StringVar(&flags.node, "node", "", "show only what concerns this Slurm node")
	command.Flags().StringVar(&flags.job, "job", "", "show only lines that mention this job")
	command.Flags().StringSliceVar(&flags.daemons, "daemon", nil, "show only these daemons: "+daemonNames())
	command.Flags().BoolVarP(&flags.follow, "follow", "f", false, "go on with new lines, until interrupted")
	command.Flags().Int64Var(&flags.tail, "tail", 100, "number of lines of each container; -1 for all")
	command.Flags().DurationVar(&flags.since, "since", 0, "show only lines that are newer than this, such as 10m")
	_ = command.RegisterFlagCompletionFunc("node", session.complete(session.nodeNames))
	_ = command.RegisterFlagCompletionFunc("job", session.complete(session.jobIDs))
	return command
}

// logged are the daemons with logs.
var logged = []naming.Daemon{naming.Slurmctld, naming.Slurmdbd, naming.Slurmrestd, naming.Slurmd, naming.Login}

func daemonNames() string {
	names := make([]string, len(logged))
	for i, daemon := range logged {
		names[i] = string(daemon)
	}
	return strings.Join(names, " ")
}

// maxSources bounds the slurmds whose logs are read at the same time.
const maxSources = 50

func (s *session) logs(command *cobra.Command, flags *logFlags) error {
	ctx := command.Context()
	client, namespace, err := s.connect(false)
	if err != nil {
		return err
	}
	controller, err := s.findController(ctx, client, namespace)
	if err != nil {
		return err
	}
	pods, err := clusterPods(ctx, client, controller)
	if err != nil {
		return err
	}
	sources, leftOut := sourcesOf(pods, flags)
	if leftOut > 0 {
		fmt.Fprintf(command.ErrOrStderr(), "note: the logs of %d slurmds are left out; choose one with --node\n", leftOut)
	}
	if len(sources) == 0 {
		return errors.New("no pod of these daemons has started; see kubectl slurm status")
	}
	read := &logReader{
		client: client, namespace: namespace, flags: flags, filter: logs.NewFilter(flags.node, flags.job),
		out: command.OutOrStdout(), problems: command.ErrOrStderr(),
	}
	if flags.follow {
		return read.follow(ctx, sources)
	}
	return read.once(ctx, sources)
}

// clusterPods lists the pods of a cluster's daemons.
func clusterPods(
	ctx context.Context, client *kube.Client, controller *slinkyv1beta1.Controller,
) ([]corev1.Pod, error) {
	objects, err := client.Clusters(ctx, controller.Namespace, false)
	if err != nil {
		return nil, err
	}
	instances := map[naming.Daemon][]string{naming.Slurmctld: {controller.Name}}
	if reference := controller.Spec.AccountingRef; reference != nil {
		instances[naming.Slurmdbd] = []string{reference.Name}
	}
	for i := range objects.RestAPIs {
		if object := &objects.RestAPIs[i]; object.Spec.ControllerRef.Name == controller.Name {
			instances[naming.Slurmrestd] = append(instances[naming.Slurmrestd], object.Name)
		}
	}
	for i := range objects.LoginSets {
		if object := &objects.LoginSets[i]; object.Spec.ControllerRef.Name == controller.Name {
			instances[naming.Login] = append(instances[naming.Login], object.Name)
		}
	}
	for i := range objects.NodeSets {
		if object := &objects.NodeSets[i]; object.Spec.ControllerRef.Name == controller.Name {
			instances[naming.Slurmd] = append(instances[naming.Slurmd], object.Name)
		}
	}
	var list corev1.PodList
	selector := naming.LabelManagedBy + "=" + naming.ManagedBy
	err = client.List(ctx, kube.Pods, controller.Namespace, metav1.ListOptions{LabelSelector: selector}, &list)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		for daemon, names := range instances {
			if instance, is := naming.Instance(daemon, pod.Labels); is && slices.Contains(names, instance) {
				return false
			}
		}
		return true
	}), nil
}

// sourcesOf returns the containers whose logs are wanted, and how many slurmds are left out because they are too many.
func sourcesOf(pods []corev1.Pod, flags *logFlags) (sources []logs.Source, leftOut int) {
	workers := 0
	for i := range pods {
		pod := &pods[i]
		for _, daemon := range logged {
			if _, is := naming.Instance(daemon, pod.Labels); !is ||
				len(flags.daemons) > 0 && !slices.Contains(flags.daemons, string(daemon)) {
				continue
			}
			source := logs.Source{Pod: pod.Name}
			if daemon == naming.Slurmd {
				source.SlurmNode = kube.SlurmNode(pod)
				if flags.node != "" && source.SlurmNode != flags.node {
					continue
				}
				if workers++; workers > maxSources {
					leftOut++
					continue
				}
			}
			for _, container := range pod.Status.ContainerStatuses {
				if container.State.Waiting == nil || container.RestartCount > 0 {
					source.Container = container.Name
					sources = append(sources, source)
				}
			}
		}
	}
	return sources, leftOut
}

// A logReader reads logs and writes selected lines.
type logReader struct {
	client        *kube.Client
	namespace     string
	flags         *logFlags
	filter        logs.Filter
	out, problems io.Writer
}

// parallel is how many logs are read at the same time.
const parallel = 8

// once reads all logs, and writes them merged.
func (r *logReader) once(ctx context.Context, sources []logs.Source) error {
	all := make([][]logs.Line, len(sources))
	failures := make([]error, len(sources))
	var group errgroup.Group
	group.SetLimit(parallel)
	for i, source := range sources {
		group.Go(func() error {
			failures[i] = r.read(ctx, source, func(line logs.Line) { all[i] = append(all[i], line) })
			return nil
		})
	}
	_ = group.Wait() // the errors are in failures
	for i, failure := range failures {
		if failure != nil {
			fmt.Fprintf(r.problems, "note: the log of %s was not read: %v\n", sources[i], failure)
		}
	}
	for _, line := range logs.Merge(all...) {
		if _, err := fmt.Fprintln(r.out, line.String()); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// follow writes the lines of all logs as they come.
func (r *logReader) follow(ctx context.Context, sources []logs.Source) error {
	var writing sync.Mutex
	var group errgroup.Group
	for _, source := range sources {
		group.Go(func() error {
			err := r.read(ctx, source, func(line logs.Line) {
				writing.Lock()
				defer writing.Unlock()
				fmt.Fprintln(r.out, line.String())
			})
			if err != nil && ctx.Err() == nil {
				writing.Lock()
				defer writing.Unlock()
				fmt.Fprintf(r.problems, "note: the log of %s ended: %v\n", source, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// read reads a log, and passes on the selected lines.
func (r *logReader) read(ctx context.Context, source logs.Source, use func(logs.Line)) error {
	options := &corev1.PodLogOptions{Container: source.Container, Timestamps: true, Follow: r.flags.follow}
	if r.flags.tail >= 0 && r.flags.job == "" { // the lines about a job may be far up
		options.TailLines = &r.flags.tail
	}
	if r.flags.since > 0 {
		options.SinceSeconds = new(int64(r.flags.since.Seconds()))
	}
	log, err := r.client.Logs(ctx, r.namespace, source.Pod, options)
	if err != nil {
		return err
	}
	defer log.Close()
	return logs.Scan(source, log, func(line logs.Line) bool {
		if r.filter.Keep(&line) {
			use(line)
		}
		return true
	})
}
