package cluster

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/clusterconf"
	"github.com/slurm-operator/slurm-operator/internal/inpod/agent"
	"github.com/slurm-operator/slurm-operator/internal/inpod/validation"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/internal/slurm"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

var start = time.Unix(1_800_000_000, 0)

// newScope returns the scope of a new Controller.
func newScope(changes ...func(*scope)) *scope {
	controller := &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "slurm"}}
	controller.Spec.Service.Port = naming.PortSlurmctld
	scope := &scope{
		controller: controller, keys: naming.ControllerKeys(controller, nil), image: "new", now: start,
		slurmKey: []byte("s"), jwtKey: []byte("j"),
		images: naming.Images{Repository: "images", Tag: "26.05", Operator: "operator"},
		agents: map[string]agent.Report{},
	}
	for _, change := range changes {
		change(scope)
	}
	scope.claim = cmp.Or(scope.claim, naming.StateClaim(controller))
	return scope
}

// hashOf returns the hash of the configuration that a scope describes.
func hashOf(t *testing.T, scope *scope) string {
	t.Helper()
	candidate, problem := build(scope)
	if problem != nil {
		t.Fatal(problem.Message)
	}
	return candidate.hash
}

// promoteWith sets the promoted configuration and its image.
func promoteWith(hash, image string) func(*scope) {
	return func(scope *scope) {
		const lines = "PrologFlags=Contain\nProctrackType=proctrack/cgroup\n"
		scope.promoted = &promoted{hash: hash, image: image, files: map[string]string{slurmconf.FileName: lines}}
	}
}

// validateWith sets a validation run with the new image.
func validateWith(hash string, report *validation.Report) func(*scope) {
	return func(scope *scope) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Name: "trial", CreationTimestamp: metav1.NewTime(start.Add(-30 * time.Second)),
			Annotations: map[string]string{annotationHash: hash, annotationImage: "new"},
		}}
		pod.Spec.SecurityContext = podSecurity(clusterconf.DefaultUser)
		pod.Annotations[annotationRun], _ = validationDigest(scope)
		if report != nil {
			message, _ := json.Marshal(report)
			pod.Status.Phase = corev1.PodSucceeded
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
					Message: string(message), FinishedAt: metav1.NewTime(start.Add(-10 * time.Second)),
				}}}}
		}
		scope.validation = pod
	}
}

func TestConfigurationRolloutStages(t *testing.T) {
	hash := hashOf(t, newScope())
	tests := map[string]struct {
		scope         *scope
		stage         stage
		image         string
		endValidation bool
	}{
		"is validated before anything starts": {scope: newScope(), stage: begin},
		"waits for the validation run":        {scope: newScope(validateWith(hash, nil)), stage: validating},
		"is promoted when accepted": {
			scope: newScope(validateWith(hash, &validation.Report{Outcome: validation.Accepted})), stage: promote,
			image: "new", endValidation: true,
		},
		"stays when already promoted": {scope: newScope(promotedAsBuilt(t)), stage: settled, image: "new"},
		"ends an obsolete validation run": {
			scope: newScope(promotedAsBuilt(t), validateWith("other", nil)), stage: settled, image: "new",
			endValidation: true,
		},
		"is validated again when it has changed": {
			scope: newScope(validateWith("other", &validation.Report{Outcome: validation.Accepted})), stage: begin,
			endValidation: true,
		},
		"is held back when refused": {
			scope: newScope(promoteWith("good", "old"),
				validateWith(hash, &validation.Report{Outcome: validation.Refused})), stage: refused, image: "old",
		},
		"is held back when the validation run failed": {
			scope: newScope(promoteWith("good", "old"),
				validateWith(hash, &validation.Report{Outcome: validation.Failed})), stage: validationFailed,
			image: "old",
		},
		"is held back when the report is invalid": {
			scope: newScope(promoteWith("good", "old"), validateWith(hash, &validation.Report{})),
			stage: validationFailed, image: "old",
		},
		"is validated again after the retry interval": {
			scope: newScope(validateWith(hash, &validation.Report{Outcome: validation.Failed}),
				func(s *scope) { s.now = start.Add(time.Minute) }),
			stage: validationFailed, endValidation: true,
		},
		"is validated with a new image before slurmctld is replaced": {
			scope: newScope(promoteWith(hash, "old")), stage: begin, image: "old",
		},
		"is promoted at once when validation is off": {
			scope: newScope(promoteWith("good", "old"),
				func(s *scope) { s.controller.Spec.ConfigurationTrial.Enabled = new(false) }), stage: promote,
			image: "new",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := decide(test.scope)
			if plan.problem != nil {
				t.Fatal(plan.problem.Message)
			}
			if plan.stage != test.stage || plan.image != test.image || plan.endValidation != test.endValidation {
				t.Errorf("stage %d, image %q, ends the validation run: %v", plan.stage, plan.image, plan.endValidation)
			}
		})
	}
}

func TestInvalidSpecLeavesRunningClusterUnchanged(t *testing.T) {
	tests := map[string]struct {
		change func(*scope)
		reason string
		says   string
	}{
		"a missing reference": {
			func(s *scope) { s.missing = []string{"ConfigMap lost does not exist"} },
			slinkyv1beta1.ReasonReferenceNotFound, "ConfigMap lost",
		},
		"a key that the operator manages": {
			func(s *scope) { s.controller.Spec.ExtraConf = "\nSlurmctldPort=1" }, slinkyv1beta1.ReasonInvalidSpec,
			"line 2",
		},
		"a name that is too long": {
			func(s *scope) { s.controller.Namespace = strings.Repeat("n", 40) }, slinkyv1beta1.ReasonClusterNameTooLong,
			"spec.clusterName",
		},
		"a key that differs from the daemons'": {
			func(s *scope) { s.promoted.slurmKey = "other" }, slinkyv1beta1.ReasonKeyMismatch, "put the old key back",
		},
		"a deleted key of the daemons": {
			func(s *scope) { s.promoted.slurmKey, s.slurmKey = "theirs", nil }, slinkyv1beta1.ReasonReferenceNotFound,
			"Secret slurm-auth-slurm",
		},
		"a key that differs from the Accounting's": {
			func(s *scope) { s.mismatch, s.accounting = true, &slinkyv1beta1.Accounting{} },
			slinkyv1beta1.ReasonKeyMismatch, "spec.slurmKeyRef",
		},
		"a deleted state PVC": {
			func(s *scope) { s.statefulSet, s.state = ranWith("slurm-controller-state"), nil },
			slinkyv1beta1.ReasonStateLost, "PVC slurm-controller-state",
		},
		"a state PVC that is being deleted": {
			func(s *scope) { s.state.DeletionTimestamp = new(metav1.NewTime(start)) },
			slinkyv1beta1.ReasonStateBeingDeleted, "docs/backup.md",
		},
		"persistence disabled while jobs run": {
			func(s *scope) {
				s.statefulSet, s.controller.Spec.Persistence.Enabled = ranWith("slurm-controller-state"), new(false)
			}, slinkyv1beta1.ReasonStateInUse, "put the old value back",
		},
		"persistence enabled while Slurm does not answer": {
			func(s *scope) { s.statefulSet, s.nodes = ranWithout(), &slurm.Snapshot{} },
			slinkyv1beta1.ReasonStateInUse, "put the old value back",
		},
		"a PVC of the user that does not exist": {
			func(s *scope) { s.controller.Spec.Persistence.ExistingClaim, s.state = "mine", nil },
			slinkyv1beta1.ReasonReferenceNotFound, "PVC mine",
		},
		"a file that the operator writes": {
			func(s *scope) {
				s.files = map[clusterconf.Use][]clusterconf.File{
					clusterconf.ConfigFile: {{Name: "slurm.conf", Content: "x", ConfigMap: "mine"}},
				}
			}, slinkyv1beta1.ReasonInvalidSpec, "ConfigMap mine",
		},
		"two files with the same name": {
			func(s *scope) {
				s.files = map[clusterconf.Use][]clusterconf.File{
					clusterconf.ConfigFile: {
						{Name: "gres.conf", Content: "x", ConfigMap: "a"},
						{Name: "gres.conf", Content: "y", ConfigMap: "b"},
					},
				}
			}, slinkyv1beta1.ReasonInvalidSpec, "gres.conf",
		},
		"more than fits into a ConfigMap": {
			func(s *scope) {
				s.files = map[clusterconf.Use][]clusterconf.File{
					clusterconf.Prolog: {{Name: "big", Content: strings.Repeat("x", 2<<20), ConfigMap: "a"}},
				}
			}, slinkyv1beta1.ReasonInvalidSpec, "bytes",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			plan := decide(newScope(promoteWith("good", "old"),
				func(s *scope) { s.state = &corev1.PersistentVolumeClaim{} }, test.change))
			if plan.problem == nil || plan.problem.Reason != test.reason ||
				!strings.Contains(plan.problem.Message, test.says) {
				t.Errorf("got problem %+v", plan.problem)
			}
			if plan.image != "old" || plan.stage != notBuilt {
				t.Errorf("image %q, stage %d", plan.image, plan.stage)
			}
		})
	}
}

// I13: slurmctld's pod does not depend on the configuration, on nodes or on partitions.
func TestPodTemplateIsIndependentOfConfiguration(t *testing.T) {
	render := func(scope *scope) string {
		set, err := statefulSet(scope, &plan{image: "new"})
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(set)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	before := render(newScope(promoteWith("one", "new")))
	after := render(newScope(promoteWith("two", "new"), func(s *scope) {
		s.controller.Spec.ExtraConf = "PartitionName=p Nodes=ALL"
		s.nodeSets = []slinkyv1beta1.NodeSet{{ObjectMeta: metav1.ObjectMeta{Name: "n"}}}
		s.files = map[clusterconf.Use][]clusterconf.File{
			clusterconf.ConfigFile: {{Name: "gres.conf", Content: "x", ConfigMap: "a"}},
		}
		s.controller.Status.Nodes = &slinkyv1beta1.NodeCounts{Total: 5000}
		s.controller.Spec.MaxNodeCount = new(int32(9000))
	}))
	if before != after {
		t.Errorf("the pod changed from\n%s\nto\n%s", before, after)
	}
}

func TestConfigurationIsAppliedOnlyWhenSlurmctldReportsIt(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	tests := map[string]struct {
		agents map[string]agent.Report
		want   bool
	}{
		"no agent answers":       {},
		"the files are old":      {agents: map[string]agent.Report{"p": {FilesHash: "old", RunningHash: "old"}}},
		"only the files are new": {agents: map[string]agent.Report{"p": {FilesHash: "h", RunningHash: "old"}}},
		"slurmctld does not answer": {
			agents: map[string]agent.Report{"p": {FilesHash: "h"}},
		},
		"slurmctld runs with it": {
			agents: map[string]agent.Report{"p": {FilesHash: "h", RunningHash: "h"}}, want: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			done, why := applied(&scope{pods: []corev1.Pod{pod}, agents: test.agents}, "h")
			if done != test.want || (why == "") != test.want {
				t.Errorf("applied: %v, %q", done, why)
			}
		})
	}
}

// FuzzPodTemplate checks that no spec that the API server may accept makes a builder panic, and that the result has the
// labels that Services select by.
func FuzzPodTemplate(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"template":{"spec":{"containers":null}}}`, `{"slurmctld":{"image":"x","env":[{"name":"A"}]}}`,
		`{"ha":{"enabled":true,"backups":2}}`,
		`{"persistence":{"enabled":false}}`, `{"persistence":{"existingClaim":"c"}}`,
		`{"template":{"metadata":{"labels":{"app.kubernetes.io/name":"x"}}}}`,
		`{"service":{"spec":{"type":"NodePort"},"nodePort":30000}}`,
		`{"logfile":{"image":"l"},"reconfigure":{"resources":{"limits":{"cpu":"1"}}}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, spec string) {
		scope := newScope()
		if json.Unmarshal([]byte(spec), &scope.controller.Spec) != nil || scope.controller.Spec.HA.Backups < 0 ||
			scope.controller.Spec.HA.Backups > 9 {
			return
		}
		scope.claim = naming.StateClaim(scope.controller)
		stateClaim(scope)
		if _, err := clientService(scope.controller); err != nil {
			return
		}
		template, err := podTemplate(scope, "new", "")
		if err != nil {
			return
		}
		for key, value := range naming.Selector(naming.Slurmctld, "slurm") {
			if template.Labels[key] != value {
				t.Errorf("label %s is %q", key, template.Labels[key])
			}
		}
		candidate, problem := build(scope)
		if problem != nil {
			return
		}
		if _, err := validationPod(scope, candidate); err != nil {
			t.Error(err)
		}
	})
}
