package cluster

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/slurmuser"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/internal/status"
)

const foreignConf = "ClusterName=ns_slurm\nAuthType=auth/slurm\nStateSaveLocation=/var/spool/slurmctld/\n" +
	"ProctrackType=proctrack/linuxproc\nNodeSet=slinky Feature=slinky\nPartitionName=slinky Nodes=slinky\n"

// foreignSet returns the StatefulSet of another operator.
func foreignSet() *appsv1.StatefulSet {
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Name: "slurm-controller", CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)),
	}}
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "statesave"}}}
	set.Spec.Template.Spec = corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: new(int64(401)), RunAsGroup: new(int64(402))},
		Containers: []corev1.Container{{
			Name:         containerSlurmctld,
			VolumeMounts: []corev1.VolumeMount{{Name: "statesave", MountPath: "/var/spool/slurmctld"}},
		}},
	}
	return set
}

// madeByOther makes a cluster one of another operator.
func madeByOther(scope *scope) {
	scope.statefulSet = foreignSet()
	scope.promoted = &promoted{foreign: true, files: map[string]string{slurmconf.FileName: foreignConf}}
	scope.claim, scope.state = "statesave-slurm-controller-0", &corev1.PersistentVolumeClaim{}
}

func askForTakeOver(scope *scope) {
	scope.controller.Annotations = map[string]string{slinkyv1beta1.AnnotationTakeOver: "true"}
}

// A cluster of another operator is recognized by anything that is left of it, until this operator's own is complete.
func TestClusterOfAnotherOperatorIsRecognized(t *testing.T) {
	tests := map[string]struct {
		change func(*scope)
		want   bool
	}{
		"by its StatefulSet":        {func(s *scope) { s.promoted, s.claim = nil, "" }, true},
		"by its configuration":      {func(s *scope) { s.statefulSet, s.claim = nil, "" }, true},
		"by its state":              {func(s *scope) { s.statefulSet, s.promoted = nil, nil }, true},
		"not by nothing":            {func(s *scope) { s.statefulSet, s.promoted, s.claim = nil, nil, "" }, false},
		"not with our StatefulSet":  {func(s *scope) { s.statefulSet = ranWith("statesave-slurm-controller-0") }, false},
		"not with our config alone": {func(s *scope) { s.statefulSet, s.promoted.foreign = nil, false }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := newScope(madeByOther, test.change).isForeign(); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// Every reason not to take a cluster over leaves it alone and says what to do.
func TestTakeOverIsRefused(t *testing.T) {
	tests := map[string]struct {
		change         func(*scope)
		reason, remedy string
	}{
		"without the user's consent": {
			func(s *scope) { s.controller.Annotations = nil }, slinkyv1beta1.ReasonNotTakenOver,
			"controller.slinky.slurm.net/take-over=true",
		},
		"with a consent that is not true": {
			func(s *scope) { s.controller.Annotations[slinkyv1beta1.AnnotationTakeOver] = "yes" },
			slinkyv1beta1.ReasonNotTakenOver, "with its state on PVC statesave-slurm-controller-0",
		},
		"without its key": {
			func(s *scope) { s.slurmKey = nil }, slinkyv1beta1.ReasonReferenceNotFound, "spec.slurmKeyRef",
		},
		"without its JWT key": {
			func(s *scope) { s.jwtKey = nil }, slinkyv1beta1.ReasonReferenceNotFound, "spec.jwtKeyRef",
		},
		"if slurmds may not survive a reconfiguration": {
			func(s *scope) { s.foreignSlurmds = 2 }, slinkyv1beta1.ReasonNotTakenOver, "set the annotation " +
				"controller.slinky.slurm.net/take-over to confined",
		},
		"if its state is on no PVC": {
			func(s *scope) { s.statefulSet.Spec.VolumeClaimTemplates = nil }, slinkyv1beta1.ReasonStateInUse,
			"wait until no job runs",
		},
		"if its state is on a part of a volume": {
			func(s *scope) { s.statefulSet.Spec.Template.Spec.Containers[0].VolumeMounts[0].SubPath = "a" },
			slinkyv1beta1.ReasonStateInUse, "wait until no job runs",
		},
		"if its state is elsewhere": {
			func(s *scope) { s.promoted.files[slurmconf.FileName] = "StateSaveLocation=/state\n" },
			slinkyv1beta1.ReasonStateInUse, "StateSaveLocation=/state",
		},
		"if its state is on another PVC": {
			func(s *scope) { s.claim = "slurm-controller-state" },
			slinkyv1beta1.ReasonStateInUse, "set spec.persistence.existingClaim to statesave-slurm-controller-0",
		},
		"if its PVC is being deleted": {
			func(s *scope) { s.state.DeletionTimestamp = new(metav1.NewTime(start)) },
			slinkyv1beta1.ReasonStateBeingDeleted, "back up the state",
		},
		"if slurmds would lose their jobs": {
			func(s *scope) { s.promoted.files[slurmconf.FileName] += "SlurmdSpoolDir=/spool\n" },
			slinkyv1beta1.ReasonInvalidSpec, "SlurmdSpoolDir=/spool",
		},
		"if the cluster has another name": {
			func(s *scope) { s.controller.Spec.ClusterName = "other" }, slinkyv1beta1.ReasonInvalidSpec, "ClusterName=ns_slurm",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := decide(newScope(madeByOther, askForTakeOver, test.change))
			if plan.problem == nil || plan.problem.Reason != test.reason ||
				!strings.Contains(plan.problem.Message, test.remedy) {
				t.Errorf("got %+v, want %s with %q", plan.problem, test.reason, test.remedy)
			}
			if plan.image != "" {
				t.Errorf("slurmctld would get the image %q", plan.image)
			}
		})
	}
}

// A takeover validates first, even if the user has disabled validation runs, as the user of the old slurmctld.
func TestTakeOverBeginsWithAValidationRun(t *testing.T) {
	scope := newScope(madeByOther, askForTakeOver, func(s *scope) {
		s.controller.Spec.ConfigurationTrial.Enabled = new(false)
	})
	plan := decide(scope)
	if plan.problem != nil || plan.stage != begin {
		t.Fatalf("got stage %v, problem %+v", plan.stage, plan.problem)
	}
	if user := scope.slurmUser(); user.UID != 401 || user.GID != 402 {
		t.Errorf("the validation run has the user %+v", user)
	}
	if scope.reportedUser() != nil {
		t.Error("the user is reported before the takeover, so other controllers would begin theirs")
	}
	if partitions := plan.candidate.document.Render(); !strings.Contains(partitions, "PartitionName=slinky") {
		t.Errorf("the partition in force is missing:\n%s", partitions)
	}
}

// The user may say that the slurmds survive a reconfiguration.
func TestConfinedClusterIsTakenOverIfTheUserSaysSo(t *testing.T) {
	scope := newScope(madeByOther, func(s *scope) {
		s.foreignSlurmds = 2
		s.controller.Annotations = map[string]string{slinkyv1beta1.AnnotationTakeOver: slinkyv1beta1.TakeOverConfined}
	})
	if plan := decide(scope); plan.problem != nil || plan.stage != begin {
		t.Errorf("got stage %v, problem %+v", plan.stage, plan.problem)
	}
}

// The old StatefulSet, the old pod and nothing at all follow one another during a takeover, and the user stays.
func TestTakeOverContinuesFromAnyStep(t *testing.T) {
	accepted := newScope(madeByOther, askForTakeOver)
	hash := hashOf(t, accepted)
	report := &validation.Report{Outcome: validation.Accepted, SlurmUser: &slurmuser.User{UID: 401, GID: 402}}
	run := func(s *scope) {
		validateWith(hash, report)(s)
		s.validation.Spec.SecurityContext = podSecurity(slinkyv1beta1.SlurmUser{UID: 401, GID: 402})
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}, Spec: foreignSet().Spec.Template.Spec}
	for name, change := range map[string]func(*scope){
		"is deleted without its pod": func(*scope) {},
		"is about to be replaced": func(s *scope) {
			s.statefulSet, s.pods = nil, []corev1.Pod{pod}
		},
		"saves its state": func(s *scope) {
			s.statefulSet, s.pods = nil, []corev1.Pod{pod}
			s.pods[0].DeletionTimestamp = new(metav1.NewTime(start))
		},
		"is about to start": func(s *scope) { s.statefulSet = nil },
		"stop that operator": func(s *scope) {
			s.statefulSet.CreationTimestamp = metav1.NewTime(start.Add(-time.Second))
		},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(madeByOther, askForTakeOver, run, change)
			plan := decide(scope)
			if plan.problem != nil || plan.stage != promote {
				t.Fatalf("got stage %v, problem %+v", plan.stage, plan.problem)
			}
			condition := configurationCondition(scope, plan)
			if condition.Reason != slinkyv1beta1.ReasonTakingOver || !strings.Contains(condition.Message, name) {
				t.Errorf("got %+v", condition)
			}
			if plan.requeueAfter(scope) != applyInterval {
				t.Error("the next step is not polled for")
			}
		})
	}
}

// When the old slurmctld is gone, slurmctld starts with what was accepted before, whatever the spec says meanwhile.
func TestTakeOverEndsWithWhatWasAccepted(t *testing.T) {
	stopped := func(s *scope) {
		s.statefulSet = nil
		record := promotedOf(map[string]string{slurmconf.FileName: "ClusterName=ns_slurm\n"},
			map[string]string{annotationHash: "accepted", annotationImage: "old", annotationUser: "401:402"})
		s.accepted = &accepted{record, "statesave-slurm-controller-0"}
	}
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "slurm-controller-0"}}
	for name, test := range map[string]struct {
		change  func(*scope)
		commits bool
	}{
		"a mistake":              {func(s *scope) { s.controller.Spec.ExtraConf = "SlurmUser=nobody\n" }, true},
		"another configuration":  {func(s *scope) { s.controller.Spec.ExtraConf = "MessageTimeout=20\n" }, true},
		"a reference is missing": {func(s *scope) { s.missing = []string{"Accounting a does not exist"} }, true},
		"a key is missing":       {func(s *scope) { s.slurmKey = nil }, true},
		"no consent any more":    {func(s *scope) { s.controller.Annotations = nil }, true},
		"another image":          {func(s *scope) { s.image = "newer" }, true},
		"the old slurmctld exits": {func(s *scope) {
			s.pods = []corev1.Pod{pod}
			s.pods[0].DeletionTimestamp = new(metav1.NewTime(start))
		}, true},
		"the old slurmctld runs":         {func(s *scope) { s.pods = []corev1.Pod{pod} }, false},
		"its StatefulSet is there again": {func(s *scope) { s.statefulSet = foreignSet() }, false},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(madeByOther, askForTakeOver, stopped, test.change)
			next := decide(scope)
			if !test.commits {
				if next.commits {
					t.Error("the old slurmctld serves, and is not asked for its configuration")
				}
				return
			}
			if next.problem != nil || next.stage != promote || next.candidate.hash != "accepted" || next.image != "old" {
				t.Fatalf("stage %v, configuration %q, image %q, problem %+v", next.stage, next.candidate.hash, next.image,
					next.problem)
			}
			live, err := promotedConfigMap(scope, &next)
			if err != nil {
				t.Fatal(err)
			}
			if is := live.Annotations; is[annotationUser] != "401:402" || is[annotationImage] != "old" {
				t.Errorf("the annotations are %v", is)
			}
		})
	}
}

// A slurmctld without the state of the old one would end all jobs.
func TestTakeOverDoesNotEndWithoutTheState(t *testing.T) {
	for name, change := range map[string]func(*scope){
		"the PVC is gone":          func(s *scope) { s.state = nil },
		"the PVC is being deleted": func(s *scope) { s.state.DeletionTimestamp = new(metav1.NewTime(start)) },
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(madeByOther, askForTakeOver, func(s *scope) {
				s.statefulSet, s.accepted = nil, &accepted{&promoted{hash: "accepted", image: "old"}, s.claim}
			}, change)
			if next := decide(scope); next.problem == nil || next.stage == promote {
				t.Errorf("stage %v, problem %+v", next.stage, next.problem)
			}
		})
	}
}

// The image has another user than the default, and only an ended run says so: the next run must be left to end.
func TestRunWithTheFoundUserIsLeftToEnd(t *testing.T) {
	anyUser := func(s *scope) { s.statefulSet.Spec.Template.Spec.SecurityContext = nil }
	scope := newScope(madeByOther, askForTakeOver, anyUser)
	validateWith(hashOf(t, scope), nil)(scope)
	scope.validation.Spec.SecurityContext = podSecurity(slinkyv1beta1.SlurmUser{UID: 401, GID: 402})
	scope.validation.Annotations[annotationUser] = "401:402"
	scope.validation.Annotations[annotationRun], _ = validationDigest(scope)
	if next := decide(scope); next.stage != validating {
		t.Errorf("stage %v", next.stage)
	}
}

// The first run has the default user, which is not published before the run has found that user in the image.
func TestUserOfFirstRunIsNotPublished(t *testing.T) {
	scope := newScope(validateWith("any", nil))
	scope.validation.Annotations[annotationUser] = clusterconf.FormatUser(clusterconf.DefaultUser)
	if user := scope.reportedUser(); user != nil {
		t.Errorf("the user is %+v", user)
	}
}

// The default of Slurm is to track processes by cgroups.
func TestClusterWithoutProctrackTypeIsConfined(t *testing.T) {
	for name, test := range map[string]struct {
		cgroups  string
		confined bool
	}{
		"with a cgroup.conf":     {"CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n", true},
		"without a cgroup.conf":  {"", true},
		"with a disabled plugin": {"cgroupplugin=Disabled\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(madeByOther, askForTakeOver, func(s *scope) {
				s.promoted.files[slurmconf.FileName] = strings.Replace(foreignConf, "ProctrackType=proctrack/linuxproc\n", "", 1)
				if s.promoted.files[clusterconf.CgroupFile] = test.cgroups; test.cgroups == "" {
					delete(s.promoted.files, clusterconf.CgroupFile)
				}
				s.unprepared, s.fileless = 1, 1
			})
			if got := scope.hasForeignCgroups(); got != test.confined {
				t.Errorf("confined: %t", got)
			}
			next, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			tracking, _ := next.document.Get("ProctrackType")
			gathering, found := next.document.Get("JobAcctGatherType")
			if test.confined != (tracking == "proctrack/cgroup") || test.confined == found {
				t.Errorf("ProctrackType=%s JobAcctGatherType=%s", tracking, gathering)
			}
			if test.confined != (next.files[clusterconf.CgroupFile] == test.cgroups) {
				t.Errorf("cgroup.conf: %s", next.files[clusterconf.CgroupFile])
			}
		})
	}
}

// A slurmd that cannot work with a new cgroup.conf exits with its jobs. So that of the other operator is kept as long
// as one of its slurmds runs.
func TestTakeOverKeepsCgroupConf(t *testing.T) {
	const theirs = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
	confined := func(s *scope) {
		s.promoted.files[slurmconf.FileName] = "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\n"
		s.promoted.files[clusterconf.CgroupFile] = theirs
	}
	own := func(s *scope) { s.promoted.foreign, s.statefulSet = false, ranWith(s.claim) }
	busy := func(s *scope) { s.foreignSlurmds = 1 }
	given := func(s *scope) {
		s.files = map[clusterconf.Use][]clusterconf.File{
			clusterconf.ConfigFile: {{Name: clusterconf.CgroupFile, Content: "CgroupPlugin=autodetect\n"}},
		}
	}
	ours := func(s *scope) {
		s.promoted.files[clusterconf.CgroupFile] = slurmconf.CgroupsEnabled
	}
	type changes = []func(*scope)
	for name, test := range map[string]struct {
		changes
		keeps bool
	}{
		"before the takeover":               {changes{confined}, true},
		"while slurmds of it run":           {changes{confined, own, busy}, true},
		"not when all pods are ours":        {changes{confined, own}, false},
		"not if the user has written one":   {changes{confined, given}, false},
		"not if jobs were not confined":     {changes{func(*scope) {}}, false},
		"not if it is this operator's file": {changes{confined, own, busy, ours}, false},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(append(changes{madeByOther}, test.changes...)...)
			candidate, problem := build(scope)
			if problem != nil {
				t.Fatal(problem.Message)
			}
			plugin, _ := candidate.document.Get("TaskPlugin")
			content := candidate.files[clusterconf.CgroupFile]
			if (content == theirs) != test.keeps || test.keeps && plugin != "task/cgroup" {
				t.Errorf("cgroup.conf is %q, TaskPlugin is %s", content, plugin)
			}
		})
	}
}

// A PVC that is left of a cluster of another operator never replaces the lost PVC of this operator's cluster.
func TestStateOfAnotherOperatorIsUsedOnlyAfterATakeOver(t *testing.T) {
	leftover := &corev1.PersistentVolumeClaim{}
	for name, test := range map[string]struct {
		set   *appsv1.StatefulSet
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"without a StatefulSet":                 {nil, leftover, true},
		"with the other operator's":             {foreignSet(), leftover, true},
		"after the takeover":                    {ranWith("statesave-slurm-controller-0"), leftover, true},
		"after the takeover, when it is lost":   {ranWith("statesave-slurm-controller-0"), nil, true},
		"not if slurmctld has run with its own": {ranWith("slurm-controller-state"), leftover, false},
		"not if there is none":                  {nil, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(func(s *scope) { s.statefulSet = test.set })
			if got := scope.usesForeignState(test.claim); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// slurmctld never starts without the state of the slurmctld before it.
func TestTakenOverStateIsRequired(t *testing.T) {
	scope := newScope(promoteWith("hash", "new"), func(s *scope) {
		s.claim, s.state = "statesave-slurm-controller-0", &corev1.PersistentVolumeClaim{}
	})
	if !keepsState(scope) || stateClaim(scope) != nil {
		t.Error("slurmctld would start with an empty state")
	}
	scope.state, scope.statefulSet = nil, ranWith("statesave-slurm-controller-0")
	if problem := stateProblem(scope); problem == nil || problem.Reason != slinkyv1beta1.ReasonStateLost {
		t.Errorf("got %+v for a deleted PVC", problem)
	}
}

// Without the user's consent, the other operator may stop its slurmctld and start it again: nothing takes its place.
func TestRecordOfTakeOverIsRemovedWithoutConsent(t *testing.T) {
	runs := func(*scope) {}
	exits := func(s *scope) {
		s.statefulSet, s.pods = nil, []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{
			Name: "slurm-controller-0", DeletionTimestamp: new(metav1.NewTime(start)),
		}}}
	}
	for name, test := range map[string]struct {
		change, consent func(*scope)
		kept            bool
	}{
		"no consent":                              {runs, func(*scope) {}, false},
		"a mistake, with the user's consent":      {runs, askForTakeOver, true},
		"no consent when the old slurmctld exits": {exits, func(*scope) {}, true},
	} {
		t.Run(name, func(t *testing.T) {
			scope := newScope(madeByOther, test.change, test.consent)
			record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: "slurm-config-takeover", OwnerReferences: ownedBy(scope),
			}}
			scope.accepted = &accepted{&promoted{hash: "accepted", image: "old"}, scope.claim}
			reconciler := reconcilerWith(t, interceptor.Funcs{}, record)
			if err := reconciler.takeOver(t.Context(), scope, &plan{problem: &status.Verdict{}}); err != nil {
				t.Fatal(err)
			}
			err := reconciler.Client.Get(t.Context(), client.ObjectKeyFromObject(record), record)
			if client.IgnoreNotFound(err) != nil || (err == nil) != test.kept {
				t.Errorf("the record: %v", err)
			}
		})
	}
}
