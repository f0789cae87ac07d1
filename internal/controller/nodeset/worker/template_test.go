package worker_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/controller/nodeset/worker"
	"github.com/slurm-operator/slurm-operator/internal/naming"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// setOf returns the input for the pods of a NodeSet.
func setOf(nodeSet *slinkyv1beta1.NodeSet) worker.Set {
	return worker.Set{
		NodeSet:       nodeSet,
		Controller:    &slinkyv1beta1.Controller{ObjectMeta: metav1.ObjectMeta{Namespace: "hpc", Name: "slurm"}},
		Images:        naming.Images{Repository: "slurm-operator", Tag: "26.05", Operator: "operator"},
		SlurmKey:      slinkyv1beta1.SecretKeyReference{Name: "slurm-auth-slurm", Key: "slurm.key"},
		ClusterDomain: "cluster.local",
	}
}

// everything returns a NodeSet that sets every field that its pods depend on.
func everything() *slinkyv1beta1.NodeSet {
	set := nodeSet("all", `{"image":"site/slurmd:7","resources":{"limits":{"cpu":"8","memory":"16Gi"}},"env":[{"name":"A","value":"1"}],
		"volumeMounts":[{"name":"scratch","mountPath":"/scratch"}],"securityContext":{"privileged":true,"readOnlyRootFilesystem":false}}`)
	set.Spec.Template = slinkyv1beta1.PodTemplate{Metadata: slinkyv1beta1.Metadata{
		Labels: map[string]slinkyv1beta1.LabelValue{"team": "hpc", "app.kubernetes.io/name": "mine"},
		Annotations: map[string]string{
			"example.com/a": "b",
		},
	}}
	set.Spec.Template.Spec.Raw = []byte(
		`{"hostname":"c","priorityClassName":"jobs","tolerations":[{"operator":"Exists"}],"nodeSelector":{"pool":"slurm"}}`)
	set.Spec.ExtraConf = "Weight=10\nFeatures=fast"
	set.Spec.OrdinalPadding = 3
	set.Spec.OversubscribeNode = true
	set.Spec.VolumeClaimTemplates = []slinkyv1beta1.VolumeClaimTemplate{{
		Metadata: slinkyv1beta1.VolumeClaimMetadata{Name: "scratch"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		},
	}}
	return set
}

func TestPods(t *testing.T) {
	gpu := nodeSet("gpu", `{"resources":{"limits":{"nvidia.com/gpu":"4"}}}`)
	daemons := nodeSet("site", "")
	daemons.Spec.ScalingMode = slinkyv1beta1.ScalingModeDaemonSet
	daemons.Spec.Template.Spec.Raw = []byte(`{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":{"nodeSelectorTerms":[
		{"matchExpressions":[{"key":"a","operator":"Exists"}]},{"matchExpressions":[{"key":"b","operator":"Exists"}]}]}}}}`)
	plain, ssh := nodeSet("plain", ""), nodeSet("ssh", "")
	ssh.Spec.SSH = slinkyv1beta1.NodeSetSSH{
		Enabled: true, ExtraSshdConfig: "MaxAuthTries 3\nMatch User guest\n    X11Forwarding no\n",
		SSSDConfRef: &slinkyv1beta1.SecretKeyReference{Name: "directory", Key: "sssd.conf"},
	}
	elastic := nodeSet("gpu", `{"resources":{"limits":{"cpu":"8","memory":"16Gi","nvidia.com/gpu":"4"}}}`)
	elastic.Spec.Elastic = &slinkyv1beta1.NodeSetElastic{MaxReplicas: 16}
	confined := map[slinkyv1beta1.CgroupAccess]*slinkyv1beta1.NodeSet{}
	for _, access := range []slinkyv1beta1.CgroupAccess{
		"", slinkyv1beta1.CgroupAccessRuntimeClass, slinkyv1beta1.CgroupAccessPrivileged,
	} {
		confined[access] = nodeSet("confined", "")
		confined[access].Spec.CgroupAccess = access
	}
	tests := map[string]struct {
		set      *slinkyv1beta1.NodeSet
		identity worker.Identity
	}{
		"confined":              {confined[""], worker.Numbered(plain, 0, "")},
		"confined-runtimeclass": {confined[slinkyv1beta1.CgroupAccessRuntimeClass], worker.Numbered(plain, 0, "")},
		"confined-privileged":   {confined[slinkyv1beta1.CgroupAccessPrivileged], worker.Numbered(plain, 0, "")},
		"plain":                 {plain, worker.Numbered(plain, 0, "")},
		"everything":            {everything(), worker.Numbered(everything(), 7, "node-1")},
		"ssh":                   {ssh, worker.Numbered(ssh, 0, "")},
		"gpu":                   {gpu, worker.Numbered(gpu, 11, "")},
		"elastic":               {elastic, worker.Numbered(elastic, 11, "")},
		"daemonset": {
			daemons,
			worker.OnNode(daemons, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ip-10-0-0-1.ec2.internal"}}),
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			set := setOf(test.set)
			set.Confined = test.set.Name == "confined"
			template, err := worker.Template(set)
			if err != nil {
				t.Fatal(err)
			}
			objects := []any{worker.Pod(test.set, template, "cafe", test.identity)}
			for _, pvc := range worker.PVCs(test.set, test.identity.Pod) {
				objects = append(objects, pvc)
			}
			golden.YAML(t, name+".yaml", objects...)
		})
	}
}

func TestInvalidTemplateNamesTheField(t *testing.T) {
	tests := map[string]func(*slinkyv1beta1.NodeSetSpec){
		"spec.slurmd:":        func(s *slinkyv1beta1.NodeSetSpec) { s.Slurmd.Raw = []byte(`{"env":1}`) },
		"spec.template.spec:": func(s *slinkyv1beta1.NodeSetSpec) { s.Template.Spec.Raw = []byte(`{"volumes":{}}`) },
		"spec.template.spec.containers:": func(s *slinkyv1beta1.NodeSetSpec) {
			s.Template.Spec.Raw = []byte(`{"containers":[{"name":"slurmd","$patch":"delete"}]}`)
		},
		"spec.extraConf:": func(s *slinkyv1beta1.NodeSetSpec) { s.ExtraConf = `Weight="1` },
	}
	for field, invalidate := range tests {
		t.Run(field, func(t *testing.T) {
			set := nodeSet("gpu", "")
			invalidate(&set.Spec)
			if _, err := worker.Template(setOf(set)); err == nil || !strings.Contains(err.Error(), field) {
				t.Errorf("the error is %v, want the field in it", err)
			}
		})
	}
}

// TestUnrelatedChangesKeepTheTemplate checks that changes of which pods are independent replace no pods.
func TestUnrelatedChangesKeepTheTemplate(t *testing.T) {
	tests := map[string]func(*worker.Set){
		"at a scale-out": func(s *worker.Set) { s.NodeSet.Spec.Replicas = new(int32(5000)) },
		"when the partition changes": func(s *worker.Set) {
			s.NodeSet.Spec.Partition = slinkyv1beta1.NodeSetPartition{Enabled: true, Config: "Default=YES"}
		},
		"when slurm.conf changes": func(s *worker.Set) {
			s.Controller.Spec.ExtraConf = "SlurmdTimeout=3\nSlurmdLogFile=/var/log/slurm/slurmd.log"
		},
		"when the update strategy changes": func(s *worker.Set) {
			s.NodeSet.Spec.UpdateStrategy.Type = slinkyv1beta1.OnDelete
		},
		"when Slurm is upgraded": func(s *worker.Set) { s.Controller.Status.SlurmVersion = "24.11.5" },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			set := setOf(everything())
			before := template(t, set)
			change(&set)
			if diff := cmp.Diff(before, template(t, set)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// template returns the template of a NodeSet as JSON.
func template(t *testing.T, set worker.Set) string {
	t.Helper()
	built, err := worker.Template(set)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(built)
	if err != nil {
		t.Fatal(err)
	}
	return string(encoded)
}

func TestIsNamed(t *testing.T) {
	for name, test := range map[string]struct {
		slurmd, template string
		want             bool
	}{
		"with the default arguments":                {``, ``, true},
		"with hostNetwork":                          {``, `{"hostNetwork":true}`, true},
		"with the user's arguments":                 {`{"args":["-vvv"]}`, ``, true},
		"with the user's arguments and hostNetwork": {`{"args":["-vvv"]}`, `{"hostNetwork":true}`, true},
		"with another name":                         {`{"args":["-N","mine"]}`, ``, false},
		"with another name in one word":             {`{"args":["-Nmine"]}`, ``, false},
		"with an unfinished argument":               {`{"args":["-N"]}`, ``, false},
		"with the user's command":                   {`{"command":["slurmd"],"args":["-Z"]}`, ``, true},
		"with another name in the user's command":   {`{"command":["slurmd","-Z","-N","mine"]}`, ``, false},
		"with the operator's name in the user's command": {
			`{"command":["slurmd","-Z","-N","$(SLURM_OPERATOR_NODE)"]}`, `{"hostNetwork":true}`, true,
		},
		"with the user's command and hostNetwork": {`{"command":["/start"],"args":[]}`, `{"hostNetwork":true}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			set := nodeSet("gpu", test.slurmd)
			set.Spec.Template.Spec.Raw = []byte(test.template)
			template, err := worker.Template(setOf(set))
			if err != nil {
				t.Fatal(err)
			}
			pod := worker.Pod(set, template, "1", worker.Numbered(set, 0, ""))
			if got := worker.IsNamed(pod); got != test.want {
				t.Errorf("IsNamed is %v, want %v", got, test.want)
			}
		})
	}
}

// An unreachable kubelet must cost no job: Kubernetes keeps the pods, unless the user sets a limit.
func TestPodsTolerateUnreachableKubelet(t *testing.T) {
	for name, test := range map[string]struct {
		template string
		want     []corev1.Toleration
	}{
		"without the user's tolerations": {``, []corev1.Toleration{
			{
				Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute,
			},
			{
				Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute,
			},
		}},
		"in addition to others": {`{"tolerations":[{"key":"gpu","operator":"Exists"}]}`, []corev1.Toleration{
			{Key: "gpu", Operator: corev1.TolerationOpExists},
			{
				Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute,
			},
			{
				Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists,
				Effect: corev1.TaintEffectNoExecute,
			},
		}},
		"unless the user sets tolerationSeconds": {
			`{"tolerations":[{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute","tolerationSeconds":7200}]}`, []corev1.Toleration{
				{
					Key: "node.kubernetes.io/unreachable", Operator: corev1.TolerationOpExists,
					Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(7200)),
				},
				{
					Key: "node.kubernetes.io/not-ready", Operator: corev1.TolerationOpExists,
					Effect: corev1.TaintEffectNoExecute,
				},
			}},
	} {
		t.Run(name, func(t *testing.T) {
			set := nodeSet("gpu", "")
			set.Spec.Template.Spec.Raw = []byte(test.template)
			template, err := worker.Template(setOf(set))
			if err != nil {
				t.Fatal(err)
			}
			reserved := corev1.Toleration{Key: "nodeset.slinky.slurm.net/worker", Operator: corev1.TolerationOpExists}
			want := slices.Concat(test.want, []corev1.Toleration{reserved})
			if diff := cmp.Diff(want, template.Spec.Tolerations); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// sshd and confinement both add capabilities, which a privileged container has anyway.
func TestSSHWorksWithEveryCgroupAccess(t *testing.T) {
	for _, access := range []slinkyv1beta1.CgroupAccess{
		"", slinkyv1beta1.CgroupAccessRemount, slinkyv1beta1.CgroupAccessRuntimeClass, slinkyv1beta1.CgroupAccessPrivileged,
	} {
		t.Run(string(access), func(t *testing.T) {
			set := nodeSet("gpu", "")
			set.Spec.SSH.Enabled, set.Spec.CgroupAccess = true, access
			all := setOf(set)
			all.Confined = true
			template, err := worker.Template(all)
			if err != nil {
				t.Fatal(err)
			}
			security := template.Spec.Containers[0].SecurityContext
			privileged := security.Privileged != nil && *security.Privileged
			if privileged != (access == slinkyv1beta1.CgroupAccessPrivileged) || privileged != (security.Capabilities == nil) {
				t.Errorf("slurmd has %+v", security)
			}
			if security.Capabilities != nil && !slices.Contains(security.Capabilities.Add, "SYS_CHROOT") {
				t.Errorf("sshd lacks a capability in %v", security.Capabilities.Add)
			}
		})
	}
}
