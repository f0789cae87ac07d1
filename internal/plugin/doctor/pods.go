package doctor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

// daemons are the daemons with the resource type that runs them.
var daemons = []struct {
	daemon naming.Daemon
	kind   string
}{
	{naming.Slurmctld, "Controller"}, {naming.Validation, "Controller"}, {naming.Slurmd, "NodeSet"},
	{naming.Slurmdbd, "Accounting"}, {naming.Slurmrestd, "RestApi"}, {naming.Login, "LoginSet"},
}

// ownerOf returns the custom resource of a pod, and false for pods of others.
func ownerOf(pod *corev1.Pod) (daemon naming.Daemon, kind, name string, ours bool) {
	for _, each := range daemons {
		if instance, found := naming.Instance(each.daemon, pod.Labels); found {
			return each.daemon, each.kind, instance, true
		}
	}
	return "", "", "", false
}

// effects are what a pod of a daemon that does not run means.
var effects = map[naming.Daemon]string{
	naming.Slurmctld:  "without another slurmctld, no job starts or can be submitted; running jobs go on",
	naming.Validation: runsOn,
	naming.Slurmd:     "its Slurm node runs no jobs; others are not affected",
	naming.Slurmdbd:   "jobs run, and slurmctld keeps their records until slurmdbd is back",
	naming.Slurmrestd: "without another slurmrestd, no pod that may have jobs is deleted or replaced; jobs run and start",
	naming.Login:      "users cannot log in to this pod",
}

// pullErrors are the kubelet's reasons for an image that cannot be pulled.
var pullErrors = []string{
	"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError",
}

// unscheduledFor is how long a pod may take to be scheduled: volumes are provisioned, and an autoscaler adds nodes.
const unscheduledFor = time.Minute

// pods finds pods that are not scheduled, do not pull their image, or crash. Pods of one owner that fail in the same
// way are one finding.
func pods(s *Snapshot) []Finding {
	var findings []Finding
	type group struct{ namespace, kind, name, check string }
	first, others := map[group]int{}, map[group]int{}
	for i := range s.Pods.Items {
		pod := &s.Pods.Items[i]
		_, kind, name, ours := ownerOf(pod)
		if !ours || pod.DeletionTimestamp != nil {
			continue
		}
		finding, found := s.failing(pod)
		if !found {
			continue
		}
		key := group{pod.Namespace, kind, name, finding.Check}
		if _, known := first[key]; known {
			others[key]++
			continue
		}
		first[key] = len(findings)
		findings = append(findings, finding)
	}
	for key, count := range others {
		findings[first[key]].Problem += fmt.Sprintf(" (and %d more pods)", count)
	}
	return findings
}

// failing returns what is wrong with a pod.
func (s *Snapshot) failing(pod *corev1.Pod) (Finding, bool) {
	daemon, kind, name, _ := ownerOf(pod)
	finding := Finding{
		Severity: Error, Object: "Pod/" + pod.Name, Namespace: pod.Namespace, Effect: effects[daemon],
		Docs: runbook(slinkyv1beta1.ReasonPodsFailing),
	}
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse &&
			s.Now.Sub(pod.CreationTimestamp.Time) >= unscheduledFor {
			finding.Check = "Unscheduled"
			finding.Problem = fmt.Sprintf("the pod of %s %s is not scheduled for %s: %s", kind, name,
				s.age(pod.CreationTimestamp.Time), condition.Message)
			finding.Advice = "add Kubernetes nodes that match, or ask for less in the spec"
			finding.Fix = kubectl(pod.Namespace, "describe", "pod", pod.Name)
			return finding, true
		}
	}
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range statuses {
		container := &statuses[i]
		waiting := container.State.Waiting
		switch {
		case waiting == nil:
		case slices.Contains(pullErrors, waiting.Reason):
			finding.Check = "ImagePull"
			finding.Problem = fmt.Sprintf("the image %s of %s %s cannot be pulled: %s", container.Image, kind, name,
				waiting.Message)
			finding.Advice, finding.Fix = s.imageFix(pod, container, kind, name)
			return finding, true
		case waiting.Reason == "CrashLoopBackOff", strings.HasPrefix(waiting.Reason, "Create"),
			strings.HasPrefix(waiting.Reason, "Run"):
			finding.Check = "ContainerFails"
			finding.Problem = fmt.Sprintf("container %s has %s: %s", container.Name, waiting.Reason, lastWords(container))
			finding.Advice, finding.Fix = "repair the cause in the events", kubectl(pod.Namespace, "describe", "pod", pod.Name)
			if container.LastTerminationState.Terminated != nil { // otherwise there is no log
				finding.Advice = "repair what its log says"
				finding.Fix = kubectl(pod.Namespace, "logs", pod.Name, "--container="+container.Name, "--previous", "--tail=50")
			}
			return finding, true
		}
	}
	return Finding{}, false
}

// lastWords returns what a container said when it ended, or what the kubelet says about it.
func lastWords(container *corev1.ContainerStatus) string {
	if ended := container.LastTerminationState.Terminated; ended != nil {
		text := strings.TrimSpace(ended.Message)
		lines := strings.Split(text, "\n")
		return strings.TrimSpace(fmt.Sprintf("exit code %d %s", ended.ExitCode, lines[len(lines)-1]))
	}
	return firstLine(container.State.Waiting.Message)
}

// fragments are the fields of specs with the container of a daemon.
var fragments = map[string]string{
	"Controller": "slurmctld", "NodeSet": "slurmd", "Accounting": "slurmdbd", "RestApi": "slurmrestd", "LoginSet": "login",
}

// imageFix returns how to repair an image. If it is that of the spec, and daemons of the object run with another one,
// that one is proposed: the operator's own, which an empty field stands for, may be of another release of Slurm.
func (s *Snapshot) imageFix(
	pod *corev1.Pod, container *corev1.ContainerStatus, kind, name string,
) (advice, fix string) {
	field, edit := fragments[kind], kubectl(pod.Namespace, "edit", strings.ToLower(kind), name)
	if s.imageOf(kind, pod.Namespace, name) != container.Image {
		return "push the image, give the pods access to its registry, or set another one", edit
	}
	advice = "correct the image in spec." + field + ".image"
	running := s.runningImage(pod.Namespace, kind, name)
	if running == "" || running == container.Image {
		return advice, edit
	}
	return advice + ", or return to the one that runs", kubectl(pod.Namespace, "patch", strings.ToLower(kind), name,
		"--type=merge", fmt.Sprintf(`--patch='{"spec":{"%s":{"image":"%s"}}}'`, field, running))
}

// runningImage returns the image with which daemons of an object run; empty if there is none.
func (s *Snapshot) runningImage(namespace, kind, name string) string {
	for i := range s.Pods.Items {
		pod := &s.Pods.Items[i]
		if _, itsKind, itsName, _ := ownerOf(pod); pod.Namespace != namespace || itsKind != kind || itsName != name {
			continue
		}
		running := slices.ContainsFunc(pod.Status.ContainerStatuses, func(status corev1.ContainerStatus) bool {
			return status.Name == fragments[kind] && status.State.Running != nil
		})
		for _, container := range pod.Spec.Containers {
			if running && container.Name == fragments[kind] {
				return container.Image
			}
		}
	}
	return ""
}

// imageOf returns the image in a spec; empty if there is none.
func (s *Snapshot) imageOf(kind, namespace, name string) string {
	var fragment slinkyv1beta1.ContainerFragment
	match := func(object *metav1.ObjectMeta) bool { return object.Namespace == namespace && object.Name == name }
	switch kind {
	case "Controller":
		for i := range s.Objects.Controllers {
			if object := &s.Objects.Controllers[i]; match(&object.ObjectMeta) {
				fragment = object.Spec.Slurmctld
			}
		}
	case "NodeSet":
		if set := s.nodeSet(namespace, name); set != nil {
			fragment = set.Spec.Slurmd
		}
	case "Accounting":
		for i := range s.Objects.Accountings {
			if object := &s.Objects.Accountings[i]; match(&object.ObjectMeta) {
				fragment = object.Spec.Slurmdbd
			}
		}
	case "RestApi":
		for i := range s.Objects.RestAPIs {
			if object := &s.Objects.RestAPIs[i]; match(&object.ObjectMeta) {
				fragment = object.Spec.Slurmrestd
			}
		}
	case "LoginSet":
		for i := range s.Objects.LoginSets {
			if object := &s.Objects.LoginSets[i]; match(&object.ObjectMeta) {
				fragment = object.Spec.Login
			}
		}
	}
	var container struct {
		Image string `json:"image"`
	}
	if json.Unmarshal(fragment.Raw, &container) != nil {
		return ""
	}
	return container.Image
}

// A symptom is a line in the log of a daemon that does not become ready.
type symptom struct {
	line                         *regexp.Regexp
	check, problem, advice, docs string
	fix                          string
}

// symptoms are the known ones.
var symptoms = []symptom{
	{
		line:  regexp.MustCompile(`(?i)sssd: (command )?not found|exec(utable)?.*sssd.*(not found|no such file)`),
		check: "NoSSSD", problem: "sssd.conf is configured, and the image has no SSSD",
		advice: "use an image with SSSD, such as the operator's own",
		docs:   "docs/users.md#with-a-directory-service",
		fix:    "kubectl --namespace {namespace} edit {kind} {name}",
	},
	{
		line: regexp.MustCompile(`(?i)unable to resolve|name or service not known|` +
			`temporary failure in name resolution|no address associated with hostname`),
		check: "NameResolution", problem: "the daemon cannot resolve a host name",
		advice: "check the DNS of the Kubernetes cluster, and dnsPolicy and dnsConfig of the pod",
		docs:   "docs/nodesets.md#dns-names",
		fix:    "kubectl --namespace kube-system get pods --selector=k8s-app=kube-dns",
	},
	{
		line:  regexp.MustCompile(`(?i)protocol authentication error|auth_g_verify|invalid authentication credential`),
		check: "Authentication", problem: "the daemons do not accept each other's credentials",
		advice: "use one auth/slurm key for the cluster, and synchronize the clocks",
		docs:   "docs/keys.md#rotate-the-authslurm-key",
		fix:    "kubectl --namespace {namespace} describe controllers",
	},
}

// logs finds known causes in the logs of daemons that do not become ready, and in what ended containers said.
func logs(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.Pods.Items {
		pod := &s.Pods.Items[i]
		daemon, kind, name, ours := ownerOf(pod)
		if !ours || pod.DeletionTimestamp != nil {
			continue
		}
		lines := []string{s.Logs[pod.Namespace+"/"+pod.Name]}
		for j := range pod.Status.ContainerStatuses {
			if ended := pod.Status.ContainerStatuses[j].LastTerminationState.Terminated; ended != nil && ended.ExitCode != 0 {
				lines = append(lines, ended.Message)
			}
		}
		text := strings.Join(lines, "\n")
		for _, symptom := range symptoms {
			at := symptom.line.FindStringIndex(text)
			if at == nil {
				continue
			}
			findings = append(findings, Finding{
				Severity: Error, Check: symptom.check, Object: "Pod/" + pod.Name, Namespace: pod.Namespace,
				Problem: symptom.problem + ": " + lineAt(text, at[0]), Effect: effects[daemon], Advice: symptom.advice,
				Fix: fixer{kind, pod.Namespace, name, ""}.fill(symptom.fix), Docs: symptom.docs,
			})
			break
		}
	}
	return findings
}

// lineAt returns the line of a text around a position.
func lineAt(text string, position int) string {
	start := strings.LastIndexByte(text[:position], '\n') + 1
	return firstLine(text[start:])
}

// takenNames finds pods of others that have the name of a NodeSet's pod.
func takenNames(s *Snapshot) []Finding {
	var findings []Finding
	for i := range s.Objects.NodeSets {
		set := &s.Objects.NodeSets[i]
		if set.Spec.ScalingMode == slinkyv1beta1.ScalingModeDaemonSet || set.Spec.Replicas == nil {
			continue
		}
		expected := map[string]bool{}
		for ordinal := range int(*set.Spec.Replicas) {
			expected[naming.WorkerPod(set, ordinal)] = true
		}
		for j := range s.Pods.Items {
			pod := &s.Pods.Items[j]
			if pod.Namespace != set.Namespace || !expected[pod.Name] || metav1.IsControlledBy(pod, set) {
				continue
			}
			findings = append(findings, Finding{
				Severity: Error, Check: "NameTaken", Object: "Pod/" + pod.Name, Namespace: pod.Namespace,
				Problem: "the pod has the name of a slurmd pod of NodeSet " + set.Name + ", which does not control it",
				Effect:  "the NodeSet cannot create its pod, and has one Slurm node less",
				Advice:  "find out whose it is, and whether it has jobs; when it has none, rename or remove it there",
				Fix:     kubectl(pod.Namespace, "describe", "pod", pod.Name), Docs: "docs/nodesets.md#delete",
			})
		}
	}
	return findings
}

// stuckFor is how much longer than its grace period a pod may take to terminate.
const stuckFor = 5 * time.Minute

// ourFinalizers are those of the operator and of Kubernetes, which are removed without a user.
var ourFinalizers = []string{
	slinkyv1beta1.FinalizerDrain, slinkyv1beta1.FinalizerReservation, metav1.FinalizerOrphanDependents,
	metav1.FinalizerDeleteDependents, "kubernetes.io/pvc-protection",
}

// stuck finds objects that are being deleted and wait for others: a kubelet that does not answer, or a finalizer.
func stuck(s *Snapshot) []Finding {
	var findings []Finding
	foreign := func(kind string, object *metav1.ObjectMeta) {
		if object.DeletionTimestamp == nil || s.Now.Sub(object.DeletionTimestamp.Time) < stuckFor {
			return
		}
		for _, finalizer := range object.Finalizers {
			if slices.Contains(ourFinalizers, finalizer) {
				continue
			}
			findings = append(findings, Finding{
				Severity: Warning, Check: "Finalizer", Object: kind + "/" + object.Name, Namespace: object.Namespace,
				Problem: fmt.Sprintf("it is being deleted for %s, and waits for the owner of the finalizer %s",
					s.age(object.DeletionTimestamp.Time), finalizer),
				Effect: "an object of this name cannot be created again",
				Advice: "repair the program that set the finalizer; remove it only if that program no longer exists",
				Fix:    kubectl(object.Namespace, "edit", strings.ToLower(kind), object.Name),
				Docs:   "docs/nodesets.md#delete",
			})
		}
	}
	for i := range s.Pods.Items {
		pod := &s.Pods.Items[i]
		if _, _, _, ours := ownerOf(pod); ours {
			foreign("Pod", &pod.ObjectMeta)
			findings = append(findings, s.unreachable(pod)...)
		}
	}
	for _, object := range s.reported() {
		foreign(object.kind, object.meta)
	}
	return findings
}

// unreachable finds a pod that does not terminate because its kubelet does not answer.
func (s *Snapshot) unreachable(pod *corev1.Pod) []Finding {
	index := slices.IndexFunc(s.Nodes.Items, func(node corev1.Node) bool { return node.Name == pod.Spec.NodeName })
	if index < 0 || pod.DeletionTimestamp == nil || s.Now.Sub(pod.DeletionTimestamp.Time) < stuckFor {
		return nil
	}
	ready := slices.ContainsFunc(s.Nodes.Items[index].Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
	if ready {
		return nil
	}
	return []Finding{{
		Severity: Warning, Check: "NodeLost", Object: "Pod/" + pod.Name, Namespace: pod.Namespace,
		Problem: fmt.Sprintf("it is being deleted for %s, and its Kubernetes node %s is not ready",
			s.age(pod.DeletionTimestamp.Time), pod.Spec.NodeName),
		Effect: "its jobs may still run there, so no other pod of this name is started",
		Advice: "repair the Kubernetes node; only if it is powered off, give it the taint " +
			"node.kubernetes.io/out-of-service=nodeshutdown:NoExecute",
		Fix:  "kubectl describe node " + pod.Spec.NodeName,
		Docs: "docs/nodesets.md#failed-kubernetes-nodes",
	}}
}
