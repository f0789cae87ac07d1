//go:build integration

package charts_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// privileges are specs that need a privileged namespace, with a part of the message that refuses them elsewhere.
var privileges = map[string]struct{ kind, spec, message string }{
	"host network":   {"NodeSet", "template: {spec: {hostNetwork: true}}", "hostNetwork"},
	"host processes": {"LoginSet", "template: {spec: {hostPID: true}}", "hostPID"},
	"host IPC":       {"Controller", "jobConfinement: None, template: {spec: {hostIPC: true}}", "hostIPC"},
	"hostPath": {
		"NodeSet", "template: {spec: {volumes: [{name: a, emptyDir: {}}, {name: host, hostPath: {path: /}}]}}", "hostPath",
	},
	"host port":              {"RestApi", "slurmrestd: {ports: [{containerPort: 1, hostPort: 1}]}", "hostPort"},
	"privileged daemon":      {"NodeSet", "slurmd: {securityContext: {privileged: true}}", "remove privileged"},
	"privileged login":       {"LoginSet", "login: {securityContext: {privileged: true}}", "remove privileged"},
	"privileged init":        {"LoginSet", "initconf: {securityContext: {privileged: true}}", "remove privileged"},
	"privileged log sidecar": {"NodeSet", "logfile: {securityContext: {privileged: true}}", "remove privileged"},
	"privileged slurmctld": {
		"Controller", "jobConfinement: None, slurmctld: {securityContext: {privileged: true}}", "remove privileged",
	},
	"privileged agent": {
		"Controller", "jobConfinement: None, reconfigure: {securityContext: {privileged: true}}", "remove privileged",
	},
	"privileged slurmdbd": {"Accounting", "slurmdbd: {securityContext: {privileged: true}}", "remove privileged"},
	"privileged sidecar": {
		"NodeSet", "template: {spec: {containers: [{name: a, securityContext: {privileged: true}}]}}", "remove privileged",
	},
	"privileged init container": {
		"RestApi", "template: {spec: {initContainers: [{name: a, securityContext: {privileged: true}}]}}",
		"remove privileged",
	},
	"capability": {"NodeSet", "slurmd: {securityContext: {capabilities: {add: [SYS_PTRACE]}}}", "capability"},
	"no seccomp profile": {
		"NodeSet", "template: {spec: {securityContext: {seccompProfile: {type: Unconfined}}}}", "seccomp",
	},
	"no AppArmor profile": {"LoginSet", "login: {securityContext: {appArmorProfile: {type: Unconfined}}}", "AppArmor"},
	"procMount":           {"NodeSet", "slurmd: {securityContext: {procMount: Unmasked}}", "procMount"},
	"SELinux type":        {"NodeSet", "slurmd: {securityContext: {seLinuxOptions: {type: spc_t}}}", "SELinux"},
	"cgroup access":       {"NodeSet", "cgroupAccess: Privileged", "cgroupAccess"},
	"confinement":         {"Controller", "jobConfinement: Cgroups", "jobConfinement"},
	"default confinement": {"Controller", "", "jobConfinement"},
}

// object returns a custom resource with a spec.
func object(kind, name, namespace, spec string) string {
	switch kind {
	case "NodeSet", "LoginSet", "RestApi":
		spec = strings.TrimSuffix("controllerRef: {name: slurm}, "+spec, ", ")
	case "Accounting":
		spec += ", storageConfig: {host: db, username: slurm, passwordKeyRef: {name: db, key: password}}"
	}
	return fmt.Sprintf("{apiVersion: slinky.slurm.net/v1beta1, kind: %s, metadata: {name: %s, namespace: %s}, "+
		"spec: {%s}}", kind, name, namespace, strings.TrimPrefix(spec, ", "))
}

// The policy lists the fields of specs that are containers.
func TestEveryContainerIsCheckedForPrivileges(t *testing.T) {
	policy, err := render(t.Context(), "slurm-operator", values{"refusePrivilegedPods": true},
		"--show-only=templates/privileges.yaml")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, resource := range types(t) {
		crd := read(t, "slurm-operator-crds", "templates/slinky.slurm.net_"+resource+".yaml")
		version := crd["spec"].(values)["versions"].([]any)[0].(values)
		fields := version["schema"].(values)["openAPIV3Schema"].(values)["properties"].(values)["spec"].(values)["properties"]
		for name, field := range fields.(values) {
			properties, _ := field.(values)["properties"].(values)
			if _, container := properties["securityContext"]; !container {
				continue
			}
			count++
			if !strings.Contains(policy, `"`+name+`"`) || !strings.Contains(policy, resource) {
				t.Errorf("the policy does not check spec.%s of %s", name, resource)
			}
		}
	}
	if count < 8 {
		t.Errorf("the CRDs have only %d containers", count)
	}
}

func TestPrivilegedPodsAreRefused(t *testing.T) {
	kubectl := func(ctx context.Context, input string, arguments ...string) error {
		_, err := run(ctx, []byte(input), server.Kubectl, append(arguments, "--kubeconfig="+server.Kubeconfig)...)
		return err
	}
	dryRun := func(ctx context.Context, manifest string) error {
		return kubectl(ctx, manifest, "create", "--dry-run=server", "--filename=-")
	}
	create(t, `{apiVersion: v1, kind: Namespace, metadata: {name: unlabelled}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: baseline, labels: {pod-security.kubernetes.io/enforce: baseline}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: privileged, labels: {pod-security.kubernetes.io/enforce: privileged}}
`)
	create(t, object("NodeSet", "older", "unlabelled", "template: {spec: {hostNetwork: true}}"))
	policy, err := render(t.Context(), "slurm-operator", values{"refusePrivilegedPods": true},
		"--show-only=templates/privileges.yaml")
	if err != nil {
		t.Fatal(err)
	}
	create(t, policy)
	t.Cleanup(func() {
		if err := kubectl(context.WithoutCancel(t.Context()), policy, "delete", "--filename=-"); err != nil {
			t.Error(err)
		}
	})
	// The API server needs a moment to load a policy.
	if err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Minute, true,
		func(ctx context.Context) (bool, error) {
			err := dryRun(ctx, object("Controller", "x", "unlabelled", ""))
			return err != nil && strings.Contains(err.Error(), "jobConfinement"), nil
		}); err != nil {
		t.Fatalf("nothing is refused: %v", err)
	}
	for name, test := range privileges {
		t.Run(name, func(t *testing.T) {
			for _, namespace := range []string{"unlabelled", "baseline"} {
				err := dryRun(t.Context(), object(test.kind, "x", namespace, test.spec))
				if err == nil || !strings.Contains(err.Error(), test.message) ||
					!strings.Contains(err.Error(), "not allowed in this namespace") {
					t.Errorf("in the namespace %s: %v", namespace, err)
				}
			}
			if err := dryRun(t.Context(), object(test.kind, "x", "privileged", test.spec)); err != nil {
				t.Errorf("with the level privileged: %v", err)
			}
		})
	}
	for kind, spec := range map[string]string{
		"Controller": "jobConfinement: None", "Accounting": "", "RestApi": "replicas: 2", "LoginSet": "",
		"NodeSet": "slurmd: {securityContext: {capabilities: {add: [CHOWN]}}}, " +
			"template: {spec: {volumes: [{name: a, emptyDir: {}}], hostNetwork: false}}",
	} {
		t.Run("without privileges, "+kind, func(t *testing.T) {
			if err := dryRun(t.Context(), object(kind, "x", "unlabelled", spec)); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("an older object can be managed and deleted, but not changed", func(t *testing.T) {
		older := func(arguments ...string) error {
			return kubectl(t.Context(), "", append(arguments, "--namespace=unlabelled")...)
		}
		if err := older("annotate", "nodeset/older", "a=b"); err != nil {
			t.Error(err)
		}
		if err := older("scale", "nodeset/older", "--replicas=3"); err != nil {
			t.Error(err)
		}
		if err := older("patch", "nodeset/older", "--type=merge", `--patch={"spec":{"extraConf":"Weight=2"}}`); err == nil {
			t.Error("a changed spec is accepted")
		}
		if err := older("delete", "nodeset/older"); err != nil {
			t.Error(err)
		}
	})
}
