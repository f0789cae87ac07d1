//go:build integration

package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/test/ports"
)

// Names of the objects that the chart would install.
const (
	serviceName = "slurm-operator-webhook"
	secretName  = "slurm-operator-webhook-certificate"
)

// A world is a namespace with webhook configurations for this namespace only, and replicas of the webhook.
type world struct {
	client.Client
	namespace string
	// user is the webhook's user, with only the permissions of config/rbac.
	user    string
	service *service
	// warnings are the API server's warnings since the last take.
	warnings *warnings
}

// options configure a world.
type options struct {
	// required makes requests fail if the webhook does not answer, so that no test passes because the webhook was not
	// called.
	required bool
	// withoutSecrets omits the permission to read Secrets.
	withoutSecrets bool
	// namespaced limits the read permissions to this namespace.
	namespaced bool
}

func newWorld(t *testing.T, options options) *world {
	t.Helper()
	world := &world{service: newService(t), warnings: &warnings{}}
	config := rest.CopyConfig(server.Config)
	config.WarningHandler = world.warnings
	config.QPS = -1
	scheme := clientgoscheme.Scheme
	if err := slinkyv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var err error
	if world.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	world.create(t, namespace)
	world.namespace, world.user = namespace.Name, "webhook-of-"+namespace.Name
	world.create(t,
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: serviceName, Namespace: world.namespace},
			Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secretName, Namespace: world.namespace}},
	)
	world.grant(t, options)
	world.configure(t, options)
	return world
}

// grant grants the webhook the permissions of config/rbac, with the object names of this world.
func (w *world) grant(t *testing.T, options options) {
	t.Helper()
	for _, role := range manifests(t, "config/rbac/webhook_role.yaml") {
		if options.withoutSecrets && strings.HasSuffix(role.GetName(), "-secrets") {
			continue
		}
		rules, _, err := unstructured.NestedSlice(role.Object, "rules")
		if err != nil {
			t.Fatal(err)
		}
		for _, rule := range rules {
			if names, ok := rule.(map[string]any)["resourceNames"].([]any); ok && names[0] == "slurm-operator" {
				names[0] = w.namespace // the configurations have the name of the namespace here
			}
		}
		if err := unstructured.SetNestedSlice(role.Object, rules, "rules"); err != nil {
			t.Fatal(err)
		}
		reference := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.GetKind(), Name: role.GetName()}
		subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: w.user}}
		if role.GetKind() == "Role" {
			role.SetNamespace(w.namespace)
			w.create(t, role, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.GetName(), Namespace: w.namespace}, RoleRef: reference,
				Subjects: subjects,
			})
			continue
		}
		cluster := strings.HasSuffix(role.GetName(), "-cluster")
		role.SetName(role.GetName() + "-" + w.namespace)
		reference.Name = role.GetName()
		w.create(t, role)
		if options.namespaced && !cluster {
			w.create(t, &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.GetName(), Namespace: w.namespace}, RoleRef: reference,
				Subjects: subjects,
			})
			continue
		}
		w.create(t, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.GetName()}, RoleRef: reference, Subjects: subjects,
		})
	}
}

// configure creates the webhook configurations of config/webhook, for this namespace only.
func (w *world) configure(t *testing.T, options options) {
	t.Helper()
	for _, configuration := range manifests(t, "config/webhook/manifests.yaml") {
		configuration.SetName(w.namespace)
		webhooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range webhooks {
			webhook := each.(map[string]any)
			service := webhook["clientConfig"].(map[string]any)["service"].(map[string]any)
			service["namespace"], service["port"] = w.namespace, int64(w.service.port())
			webhook["namespaceSelector"] = map[string]any{
				"matchLabels": map[string]any{corev1.LabelMetadataName: w.namespace},
			}
			if options.required {
				webhook["failurePolicy"], webhook["timeoutSeconds"] = "Fail", int64(30)
			}
		}
		if err := unstructured.SetNestedSlice(configuration.Object, webhooks, "webhooks"); err != nil {
			t.Fatal(err)
		}
		w.create(t, configuration)
		t.Cleanup(func() {
			if err := w.Delete(context.WithoutCancel(t.Context()), configuration); err != nil {
				t.Error(err)
			}
		})
	}
}

// A replica is a running webhook.
type replica struct {
	address, health string
	// kill kills it with SIGKILL; further calls do nothing.
	kill func()
	// exited is closed when it has exited.
	exited chan struct{}
}

// errExited ends a wait: no webhook runs that could still answer.
var errExited = errors.New("the webhook has exited")

// start starts a replica without waiting for it.
func (w *world) start(t *testing.T, flags ...string) *replica {
	t.Helper()
	port, healthPort := ports.Free(t), ports.Free(t)
	replica := &replica{address: "127.0.0.1:" + port, health: "127.0.0.1:" + healthPort, exited: make(chan struct{})}
	arguments := append([]string{
		"webhook", "--port=" + port, "--health-probe-bind-address=" + replica.health, "--metrics-bind-address=0",
		"--service=" + serviceName, "--certificate-secret=" + secretName, "--configuration=" + w.namespace,
	}, flags...)
	command := exec.Command(program, arguments...) //nolint:noctx // it is killed by the test, or at the end of the test
	var log bytes.Buffer
	command.Stderr = &log
	command.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig(t), "POD_NAMESPACE="+w.namespace)
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(replica.exited)
		_ = command.Wait()
	}()
	replica.kill = sync.OnceFunc(func() {
		_ = command.Process.Kill()
		<-replica.exited
	})
	t.Cleanup(func() {
		replica.kill()
		if t.Failed() {
			t.Logf("log of the webhook at %s:\n%s", replica.address, log.String())
		}
	})
	return replica
}

// serve starts a replica and waits until it is ready and the API server calls it.
func (w *world) serve(t *testing.T, flags ...string) *replica {
	t.Helper()
	replica := w.start(t, flags...)
	replica.ready(t)
	w.service.route(replica.address)
	w.waitForReviews(t)
	return replica
}

// ready waits until /readyz returns OK.
func (r *replica) ready(t *testing.T) {
	t.Helper()
	eventually(t, "the webhook is ready", func(ctx context.Context) error {
		select {
		case <-r.exited:
			return errExited
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.health+"/readyz", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", response.Status)
		}
		return nil
	})
}

// waitForReviews waits until the API server calls the webhook.
func (w *world) waitForReviews(t *testing.T) {
	t.Helper()
	eventually(t, "an invalid object is refused", func(ctx context.Context) error {
		err := w.Create(ctx, &slinkyv1beta1.Controller{
			ObjectMeta: metav1.ObjectMeta{Name: "bad", Namespace: w.namespace}, Spec: slinkyv1beta1.ControllerSpec{
				ExtraConf: "ClusterName=x",
			},
		}, client.DryRunAll)
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("the response is %w", err)
		}
		return nil
	})
	w.warnings.take()
}

// kubeconfig returns the path of a kubeconfig with the webhook's permissions.
func (w *world) kubeconfig(t *testing.T) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(server.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range config.AuthInfos {
		user.Impersonate = w.user
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// create creates objects.
func (w *world) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := w.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

// pollTimeout is how long a test waits for a condition. It only has to be longer than a busy computer needs.
const pollTimeout = 5 * time.Minute

// eventually polls until check returns no error, or errExited.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, pollTimeout, true,
		func(ctx context.Context) (bool, error) {
			last = check(ctx)
			if errors.Is(last, errExited) {
				return false, last
			}
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, last)
	}
}

// manifests reads the documents of a file in the repository.
func manifests(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return documents(t, string(content))
}

func documents(t *testing.T, content string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for text := range strings.SplitSeq("\n"+content, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
	return objects
}

// warnings collects warnings of the API server.
type warnings struct {
	mu   sync.Mutex
	list []string
}

// HandleWarningHeader stores a warning.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

// take returns the warnings and clears them.
func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := slices.Clone(w.list)
	w.list = nil
	return taken
}
