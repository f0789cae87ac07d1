package accounting

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmdbd"
)

// The release of slurmdbd is compared with that of the database before anything is replaced.
func TestIncompatibleSlurmdbdIsRefused(t *testing.T) {
	runs := func(release string, phase slurmdbd.Phase, changes ...func(*corev1.Pod)) func(*scope) {
		return func(s *scope) {
			replacing(s, newSlurmdbd(append(changes, inImage("slurmdbd@sha256:a"))...),
				&slurmdbd.Report{Phase: phase, Release: release})
		}
	}
	recorded := func(release string) func(*scope) {
		return func(s *scope) { s.statefulSet.Annotations = map[string]string{annotationRelease: release} }
	}
	never := func(s *scope) { s.statefulSet, s.pods, s.database = nil, nil, nil }
	silent := func(s *scope) { s.database = nil }
	for name, test := range map[string]struct {
		image  string
		before []func(*scope)
		want   string // in the message
		record string
	}{
		"a first slurmdbd":    {"slurmdbd:26.05", []func(*scope){never}, "", ""},
		"a newer series":      {"slurmdbd:26.05", []func(*scope){runs("25.11.3", slurmdbd.Started)}, "", "25.11.3"},
		"three series on":     {"slurmdbd:26.05", []func(*scope){runs("24.11.3", slurmdbd.Started)}, "", "24.11.3"},
		"an older patch":      {"slurmdbd:26.05.1", []func(*scope){runs("26.05.3", slurmdbd.Started)}, "", "26.05.3"},
		"an unknown release":  {"slurmdbd:mine", []func(*scope){runs("26.05.3", slurmdbd.Started)}, "", "26.05.3"},
		"an unknown database": {"slurmdbd:24.11", []func(*scope){runs("", slurmdbd.Started)}, "", ""},
		"an older series": {"slurmdbd:25.11", []func(*scope){runs("26.05.3", slurmdbd.Started)},
			"slurmdbd 25.11 of image slurmdbd:25.11 is older than the database, which is of release 26.05", "26.05.3"},
		"four series on": {"slurmdbd:26.05", []func(*scope){runs("24.05.3", slurmdbd.Started)},
			"upgrade to 25.11 first", "24.05.3"},
		"an older series during a conversion": {"slurmdbd:25.11", []func(*scope){runs("26.05.3", slurmdbd.Converting),
			recorded("25.11.1")}, "set the image back", "26.05.3"},
		"an older series after a crash in a conversion": {"slurmdbd:25.11", []func(*scope){
			runs("", "", waitingFor("CrashLoopBackOff"), crashed), silent, recorded("26.05.3")}, "set the image back",
			"26.05.3"},
		"an older series when the newer one never started": {"slurmdbd:25.11", []func(*scope){
			runs("", "", waitingFor("ImagePullBackOff"), inImage("slurmdbd:26.05")), silent, recorded("25.11.1")}, "",
			"25.11.1"},
		"an older series when the newer one has no database": {"slurmdbd:25.11", []func(*scope){
			runs("26.05.3", slurmdbd.Waiting), recorded("25.11.1")}, "", "25.11.1"},
		"an older series when the newer one has lost its database": {"slurmdbd:25.11", []func(*scope){
			runs("26.05.3", slurmdbd.Waiting, crashed), recorded("25.11.1")}, "set the image back", "26.05.3"},
		"an older series after the pod was deleted": {"slurmdbd:25.11", []func(*scope){
			runs("", ""), recorded("26.05.3"), func(s *scope) { s.pods = nil }}, "set the image back", "26.05.3"},
		"the series of a backup that was restored": {"slurmdbd:25.11", []func(*scope){
			runs("25.11.3", slurmdbd.Started), recorded("26.05.3")}, "", "25.11.3"},
		"the image that runs, whatever its tag": {"slurmdbd:24.11", []func(*scope){
			runs("26.05.3", slurmdbd.Started, inImage("slurmdbd:24.11"))}, "", "26.05.3"},
		"an older series, as the tag shows": {"slurmdbd:25.11", []func(*scope){
			runs("", "", inImage("slurmdbd:26.05-ubuntu24.04")), silent}, "set the image back", "26.05.0"},
		"an older series than in a template that did not record it": {"slurmdbd:25.11", []func(*scope){
			runs("", ""), func(s *scope) {
				s.pods, s.statefulSet.Spec.Template.Spec = nil, newSlurmdbd().Spec
			}}, "set the image back", "26.05.0"},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			for _, change := range test.before {
				change(scope)
			}
			scope.accounting.Spec.Slurmdbd.Raw = []byte(`{"image": "` + test.image + `"}`)
			plan := decide(scope)
			if test.want == "" && plan.children == nil || test.want != "" && (plan.children != nil ||
				plan.verdict.Reason != slinkyv1beta1.ReasonIncompatibleRelease ||
				!strings.Contains(plan.verdict.Message, test.want)) {
				t.Errorf("the verdict is %+v", plan.verdict)
			}
			if got := scope.releaseToRecord(); got != test.record {
				t.Errorf("the release of the database is %q, want %q", got, test.record)
			}
			if plan.children != nil && plan.children.statefulSet.Annotations[annotationRelease] != test.record {
				t.Errorf("the StatefulSet has %v", plan.children.statefulSet.Annotations)
			}
		})
	}
}

// inImage sets the image of slurmdbd, unless another one was set before.
func inImage(image string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		if pod.Spec.Containers[0].Image == "slurm-operator/slurmdbd:26.05" {
			pod.Spec.Containers[0].Image = image
		}
	}
}

func crashed(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[0].RestartCount = 1
	pod.Status.ContainerStatuses[0].LastTerminationState.Terminated = &corev1.ContainerStateTerminated{ExitCode: 1}
}

// What another operator made is not deleted for a slurmdbd that must not start.
func TestSlurmdbdOfAnotherOperatorMakesWayForCompatibleOne(t *testing.T) {
	for name, test := range map[string]struct {
		image   string
		allowed bool
		want    bool
	}{
		"a newer release":             {"slurmdbd:26.05", true, true},
		"an older release":            {"slurmdbd:25.05", true, false},
		"before the user asks for it": {"slurmdbd:25.05", false, true}, // it only says so
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			replacing(scope, newSlurmdbd(inImage("slurmdbd:25.11")), nil)
			scope.statefulSet.Spec.Template = corev1.PodTemplateSpec{Spec: scope.pods[0].Spec}
			scope.mayTakeOver = test.allowed
			scope.accounting.Spec.Slurmdbd.Raw = []byte(`{"image": "` + test.image + `"}`)
			plan := decide(scope)
			if got := plan.makesWay(scope); got != test.want {
				t.Errorf("it makes way: %v, with the verdict %+v", got, plan.verdict)
			}
		})
	}
}

// obey changes the StatefulSet as a plan asks for.
func obey(t *testing.T, scope *scope) {
	t.Helper()
	plan := decide(scope)
	if plan.children != nil {
		scope.statefulSet.Spec.Template.Spec.Containers = []corev1.Container{{
			Name: "slurmdbd", Image: plan.children.image,
		}}
		scope.statefulSet.Annotations = plan.children.statefulSet.Annotations
	}
	if plan.correction != nil {
		plan.correction.apply(scope.statefulSet)
	}
}

// A slurmdbd of a later release can start after the user has set the image back: its pod is deleted too late. If the
// pod is lost after the conversion, the next one must not be of the older release, whatever else is wrong by then.
// A slurmdbd that has only waited for its database cannot say so any more when it exits. The rollback goes on.
func TestRollbackFromWaitingSlurmdbdIsNotUndone(t *testing.T) {
	for name, state := range map[string]corev1.ContainerState{
		"it exits":      {Running: &corev1.ContainerStateRunning{}},
		"it has exited": {Terminated: &corev1.ContainerStateTerminated{}},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			waits := &slurmdbd.Report{Phase: slurmdbd.Waiting, Release: "26.05.1"}
			replacing(scope, newSlurmdbd(inImage("slurmdbd:26.05")), waits)
			scope.statefulSet.Annotations = map[string]string{annotationRelease: "25.11.1"}
			scope.accounting.Spec.Slurmdbd.Raw = []byte(`{"image":"slurmdbd:25.11"}`)
			obey(t, scope)
			deleted(&scope.pods[0])
			scope.pods[0].Status.ContainerStatuses[0].State, scope.database = state, nil
			obey(t, scope)
			if image := containerOf(&scope.statefulSet.Spec.Template.Spec).Image; image != "slurmdbd:25.11" {
				t.Errorf("the next pod runs %s", image)
			}
			if record := scope.statefulSet.Annotations[annotationRelease]; record != "25.11.1" {
				t.Errorf("the record says %q", record)
			}
		})
	}
}

func TestNextSlurmdbdIsNotOlderThanDatabaseOfOneThatStartedLate(t *testing.T) {
	for name, change := range map[string]func(*scope){
		"the older image is refused":   func(*scope) {},
		"the spec is invalid by then":  func(s *scope) { s.accounting.Spec.ExtraConf = "StoragePass=open" },
		"the password does not exist":  func(s *scope) { s.password = "" },
		"a key has to be generated":    func(s *scope) { s.jwtKey = nil },
		"the later image has no tag":   func(s *scope) { s.pods[0].Spec.Containers[0].Image = "slurmdbd@sha256:a" },
		"the pod is being deleted too": func(s *scope) { deleted(&s.pods[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope()
			replacing(scope, newSlurmdbd(waitingFor("ContainerCreating"), inImage("slurmdbd:26.05")), nil)
			scope.statefulSet.Annotations = map[string]string{annotationRelease: "25.11.1"}
			scope.accounting.Spec.Slurmdbd.Raw = []byte(`{"image":"slurmdbd:25.11"}`)
			obey(t, scope)
			scope.pods = []corev1.Pod{newSlurmdbd(inImage("slurmdbd:26.05"))}
			scope.database = &slurmdbd.Report{Phase: slurmdbd.Converting, Release: "26.05.1"}
			change(scope)
			converting := containerOf(&scope.pods[0].Spec).Image
			obey(t, scope)
			if image := containerOf(&scope.statefulSet.Spec.Template.Spec).Image; image != converting {
				t.Errorf("the next pod runs %s on a database of 26.05", image)
			}
			if record := scope.statefulSet.Annotations[annotationRelease]; record != "26.05.1" {
				t.Errorf("the record says %q", record)
			}
		})
	}
}
