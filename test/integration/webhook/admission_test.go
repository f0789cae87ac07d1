//go:build integration

package webhook_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/test/golden"
)

// admission are test cases: the objects of each are applied one after the other.
var admission = map[string]string{
	"Accounting: what it refers to has to come": `
kind: Accounting
spec: {storageConfig: {host: db, username: slurm, passwordKeyRef: {name: password, key: password}},
  slurmKeyRef: {name: keys, key: slurm.key}}
---
kind: Secret
metadata: {name: keys}
---
kind: ConfigMap
metadata: {name: password}
---
kind: Accounting
metadata: {name: later}
spec: {storageConfig: {host: db, username: slurm, passwordKeyRef: {name: password, key: password}},
  slurmKeyRef: {name: keys, key: slurm.key}}`,
	"Accounting: slurmdbd.conf is read": `
kind: Accounting
spec: {storageConfig: {host: db, username: slurm, passwordKeyRef: {name: password, key: password}},
  extraConf: "ArchiveJobs=yes\nStorageHost=db2"}`,
	"Controller: the smallest": `
kind: Controller`,
	"Controller: slurm.conf is read": `
kind: Controller
spec: {extraConf: "SlurmdTimeout=60\nClusterName=other\nSlurmctldTimeout\n"}`,
	"Controller: a NodeSet has the partition": `
kind: Controller
---
kind: NodeSet
metadata: {name: gpu}
spec: {controllerRef: {name: x}, partition: {enabled: true}}
---
kind: Controller
spec: {extraConf: PartitionName=gpu Nodes=ALL}
---
kind: NodeSet
metadata: {name: gpu}
spec: {controllerRef: {name: x}, partition: {enabled: true, config: Default=YES}}`,
	"Controller: the key of an Accounting goes with it": `
kind: Accounting
metadata: {name: db}
spec: {storageConfig: {host: db, username: slurm, passwordKeyRef: {name: password, key: password}}}
---
kind: Controller
spec: {accountingRef: {name: db}}
---
kind: Controller
spec: {}`,
	"Controller: files are read": `
kind: ConfigMap
metadata: {name: files}
data: {cgroup.conf: "ConstrainCores yes", slurm.conf: ""}
---
kind: Controller
spec: {configFileRefs: [{name: files}]}`,
	"Controller: backups need a shared volume": `
kind: Controller
spec: {ha: {enabled: true}, persistence: {accessModes: [ReadWriteOnce]}}
---
kind: PersistentVolumeClaim
metadata: {name: x-controller-state}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
kind: Controller
---
kind: Controller
spec: {ha: {enabled: true}}`,
	"Controller: a change of metadata is no change": `
kind: Controller
spec: {accountingRef: {name: missing}}
---
kind: Controller
metadata: {labels: {a: b}}
spec: {accountingRef: {name: missing}}`,
	"Controller: what costs running jobs waits": `
kind: ConfigMap
metadata: {name: x-config}
data: {slurm.conf: "PrologFlags=Contain\nSelectType=select/cons_tres\nGresTypes=gpu\n"}
---
kind: Controller
spec: {jobConfinement: Cgroups}
---
kind: NodeSet
metadata: {name: gpu}
spec: {controllerRef: {name: x}, extraConf: Gres=gpu:1}
---
kind: NodeSet
metadata: {name: gpu}
spec: {controllerRef: {name: x}}
---
kind: Controller
spec: {jobConfinement: Cgroups, extraConf: SelectType=select/linear}
---
kind: Controller
metadata: {annotations: {controller.slinky.slurm.net/change-despite-jobs: SelectType}}
spec: {jobConfinement: Cgroups, extraConf: SelectType=select/linear}`,
	"LoginSet: what it refers to has to come": `
kind: LoginSet
spec: {controllerRef: {name: missing}, sssdConfRef: {name: sssd, key: sssd.conf}, rootSshAuthorizedKeys: nonsense}`,
	"NodeSet: node parameters are read": `
kind: NodeSet
spec: {controllerRef: {name: missing}, extraConf: NodeName=a}`,
	"NodeSet: the partition is read": `
kind: NodeSet
spec: {controllerRef: {name: missing}, partition: {enabled: true, config: Default}}`,
	"NodeSet: a time that is none": `
kind: NodeSet
spec: {controllerRef: {name: missing}, updateStrategy: {type: ScheduledUpdate, scheduledUpdate: {startTime: "2030-13-31T22:00:00Z"}}}`,
	"RestApi: a Controller is elsewhere": `
kind: RestApi
spec: {controllerRef: {name: elsewhere}, replicas: 0}`,
	"Token: its key has to come": `
kind: Token
spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}}
---
kind: Secret
metadata: {name: z-jwt-alice}
---
kind: Token
metadata: {name: z}
spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}}`,
	"Token: it does not lie with its key": `
kind: Token
spec: {username: alice, jwtKeyRef: {name: keys, key: jwt}, secretRef: {name: keys}}`,
}

func TestAdmission(t *testing.T) {
	elsewhere := newWorld(t, options{})
	elsewhere.create(t, &slinkyv1beta1.Controller{
		ObjectMeta: metav1.ObjectMeta{Name: "elsewhere", Namespace: elsewhere.namespace},
	})
	world := newWorld(t, options{required: true})
	world.serve(t)
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(admission)) {
		t.Run(name, func(t *testing.T) {
			fmt.Fprintf(&text, "%s\n%s", name, world.apply(t, admission[name]))
		})
	}
	golden.Compare(t, "admission.txt", text.String())
}

// The webhook does not warn about Secrets that it may not read.
func TestSecretsNeedNotBeReadable(t *testing.T) {
	world := newWorld(t, options{required: true, withoutSecrets: true})
	world.serve(t)
	got := world.apply(t,
		"kind: Controller\nspec: {accountingRef: {name: db}, slurmKeyRef: {name: keys, key: slurm.key}}")
	if !strings.Contains(got, "Controller x: accepted") || !strings.Contains(got, "spec.accountingRef") ||
		strings.Contains(got, "spec.slurmKeyRef") {
		t.Errorf("the response is\n%s", got)
	}
}

// With --namespaces, permissions in these namespaces are enough, and objects in others are not reviewed.
func TestNamespaces(t *testing.T) {
	const controller = "kind: Controller\nspec: {accountingRef: {name: db}, extraConf: SlurmdTimeout=60}"
	inside := newWorld(t, options{required: true, namespaced: true})
	inside.serve(t, "--namespaces="+inside.namespace)
	if got := inside.apply(t, controller); !strings.Contains(got, "warning: spec.accountingRef.name") {
		t.Errorf("inside the namespace the response is\n%s", got)
	}
	outside := newWorld(t, options{required: true})
	outside.serve(t, "--namespaces="+inside.namespace)
	if got := outside.apply(t, controller); got != "    Controller x: accepted\n" {
		t.Errorf("outside the namespace the response is\n%s", got)
	}
}

func TestSamples(t *testing.T) {
	world := newWorld(t, options{required: true})
	world.serve(t)
	samples, err := filepath.Glob(filepath.Join(root, "config/samples/*.yaml"))
	if err != nil || len(samples) == 0 {
		t.Fatalf("finding samples: %v (%d found)", err, len(samples))
	}
	var text strings.Builder
	for _, sample := range samples {
		fmt.Fprintf(&text, "%s alone\n%s", filepath.Base(sample), world.apply(t, read(t, sample)))
	}
	var all []string
	for _, sample := range []string{"smallest-cluster", "daemonset-nodeset", "gpu-nodeset", "ssh-login-sssd", "token"} {
		all = append(all, read(t, filepath.Join(root, "config/samples", sample+".yaml")))
	}
	together := world.apply(t, strings.Join(all, "\n---\n"))
	if strings.Contains(together, "warning") {
		t.Errorf("samples of one cluster cause warnings:\n%s", together)
	}
	fmt.Fprintf(&text, "what belongs to one cluster\n%s", together)
	golden.Compare(t, "samples.txt", text.String())
}

// apply creates or updates objects like kubectl, deletes them at the end, and returns the responses of the API server.
// Group and name may be omitted.
func (w *world) apply(t *testing.T, manifests string) string {
	t.Helper()
	var text strings.Builder
	for _, object := range documents(t, strings.TrimPrefix(manifests, "\n")) {
		w.complete(object)
		live := object.DeepCopy()
		err := w.Get(t.Context(), client.ObjectKeyFromObject(object), live)
		if apierrors.IsNotFound(err) {
			if err = w.Create(t.Context(), object); err == nil {
				defer func() {
					if err := w.Delete(t.Context(), object); err != nil {
						t.Error(err)
					}
				}()
			}
		} else {
			object.SetResourceVersion(live.GetResourceVersion())
			err = w.Update(t.Context(), object)
		}
		fmt.Fprintf(&text, "    %s %s: %s\n", object.GetKind(), object.GetName(), verdict(err))
		for _, warning := range w.warnings.take() {
			fmt.Fprintf(&text, "        warning: %s\n", warning)
		}
	}
	return text.String()
}

// complete sets the omitted group and name, and the namespace.
func (w *world) complete(object *unstructured.Unstructured) {
	if object.GetAPIVersion() == "" {
		object.SetAPIVersion("v1")
		if kind := object.GetKind(); kind != "Secret" && kind != "ConfigMap" && kind != "PersistentVolumeClaim" {
			object.SetAPIVersion("slinky.slurm.net/v1beta1")
		}
	}
	if object.GetName() == "" {
		object.SetName("x")
	}
	object.SetNamespace(w.namespace)
}

// verdict formats a response, with each cause on its own line.
func verdict(err error) string {
	if err == nil {
		return "accepted"
	}
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil || len(status.Status().Details.Causes) == 0 {
		return "refused: " + err.Error()
	}
	lines := []string{"refused"}
	for _, cause := range status.Status().Details.Causes {
		lines = append(lines, fmt.Sprintf("        %s: %s", cause.Field, cause.Message))
	}
	return strings.Join(lines, "\n")
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
