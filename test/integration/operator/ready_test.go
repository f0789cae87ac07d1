//go:build integration

package operator_test

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/slurm/slurmtest"
	"github.com/slurm-operator/slurm-operator/test/leak"
)

// R9, R35: kubectl and the status show whether the operator's connection to Slurm is up, as seen on the connection.
func TestKubectlShowsConnectionStatus(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	controller := world.readyController(t)
	shows := func(want string) {
		t.Helper()
		for _, kind := range []string{"clusters", "clusters.slinky.slurm.net", "controllers.slinky.slurm.net"} {
			world.eventually(t, "slurm", controller, func() error {
				out, err := exec.CommandContext(t.Context(), server.Kubectl, "--kubeconfig", server.Kubeconfig,
					"--cache-dir", filepath.Join(t.TempDir(), "cache"), "get", kind, "slurm", "-n", world.namespace).
					CombinedOutput()
				if err != nil {
					return fmt.Errorf("%w: %s", err, out)
				}
				header, row, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
				for i, column := range strings.Fields(header) {
					if values := strings.Fields(row); column == "READY" && len(values) > i && values[i] == want &&
						strconv.FormatBool(controller.Status.IsReady) == want {
						return nil
					}
				}
				return errors.New(string(out))
			})
		}
	}
	shows("true")
	world.slurm.Inject(slurmtest.Fault{Respond: slurmtest.Hang})
	shows("false")
	world.slurm.ClearFaults()
	shows("true")
}

// I7: no secret bytes in objects that non-administrators may read, nor in the operator's metrics.
func TestNoSecretInObjectsOrMetrics(t *testing.T) {
	t.Parallel()
	world := newWorld(t)
	world.readyController(t)
	secrets := map[string][]byte{}
	for _, name := range []string{"slurm-auth-slurm", "slurm-auth-jwths256"} {
		secret := &corev1.Secret{}
		world.get(t, name, secret)
		maps.Copy(secrets, secret.Data)
	}
	if len(secrets["slurm.key"]) != 1024 || len(secrets["jwt_hs256.key"]) != 32 {
		t.Fatalf("%d secrets", len(secrets))
	}
	text := func() string {
		var all strings.Builder
		for _, list := range []client.ObjectList{
			&slinkyv1beta1.ControllerList{}, &slinkyv1beta1.RestApiList{}, &corev1.ConfigMapList{}, &corev1.PodList{},
			&eventsv1.EventList{},
		} {
			if err := world.List(t.Context(), list); err != nil {
				t.Fatal(err)
			}
			content, err := yaml.Marshal(list)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(content)
		}
		families, err := world.metrics.Gather()
		if err != nil || len(families) == 0 {
			t.Fatalf("%d metrics: %v", len(families), err)
		}
		for _, family := range families {
			if _, err := expfmt.MetricFamilyToText(&all, family); err != nil {
				t.Fatal(err)
			}
		}
		return all.String()
	}
	all := text()
	if !strings.Contains(all, "slurm_operator_slurm_nodes") || !strings.Contains(all, "slurm.conf") {
		t.Error("there is nothing to search")
	}
	if found := leak.Find(all, secrets); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	// Check that a leak would be found.
	world.create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "leak"}, BinaryData: map[string][]byte{"key": secrets["slurm.key"]},
	})
	if found := leak.Find(text(), secrets); len(found) != 1 {
		t.Errorf("a key in a ConfigMap is found as %v", found)
	}
}
