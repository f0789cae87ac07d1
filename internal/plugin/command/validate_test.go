package command

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/slurm-operator/slurm-operator/internal/plugin/plugintest"
)

// ended returns a kubelet on which a pod ends with a message.
func ended(message string) func(*unstructured.Unstructured) {
	return func(pod *unstructured.Unstructured) {
		pod.Object["status"] = map[string]any{
			"phase": "Succeeded", "containerStatuses": []any{map[string]any{
				"name": "validation", "state": map[string]any{"terminated": map[string]any{"message": message}},
			}},
		}
	}
}

// waiting returns a kubelet that does not start a pod.
func waiting(reason string) func(*unstructured.Unstructured) {
	return func(pod *unstructured.Unstructured) {
		pod.Object["status"] = map[string]any{
			"phase": "Pending", "initContainerStatuses": []any{map[string]any{
				"name": "install-helper", "state": map[string]any{"waiting": map[string]any{"reason": reason, "message": "x"}},
			}},
		}
	}
}

func TestConfigCheckValidatesOnAThrowawaySlurmctld(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*plugintest.Server)
		want    string
		code    int
	}{
		"accepted": {
			func(server *plugintest.Server) {
				server.Kubelet = ended(`{"outcome":"accepted","slurmVersion":"26.05.5"}`)
			},
			"checked:     slurmctld 26.05.5 of the image slurm-operator/slurmctld:26.05 accepts it", 0,
		},
		"refused": {
			func(server *plugintest.Server) {
				server.Kubelet = ended(`{"outcome":"refused","slurmVersion":"26.05.5","detail":"line 5: MaxTime=120"}`)
			},
			"error: Controller slurm: slurmctld 26.05.5 of the image slurm-operator/slurmctld:26.05 refuses it: line 5", 1,
		},
		"a run that fails": {
			func(server *plugintest.Server) {
				server.Kubelet = ended(`{"outcome":"failed","detail":"no space left"}`)
			},
			"not checked: slurmctld itself: the validation run failed: no space left", 0,
		},
		"a run without a report": {
			func(server *plugintest.Server) { server.Kubelet = ended("") },
			"not checked: slurmctld itself: the pod ended without a report", 0,
		},
		"an image that cannot be pulled": {
			func(server *plugintest.Server) { server.Kubelet = waiting("ImagePullBackOff") },
			"not checked: slurmctld itself: ImagePullBackOff: x", 0,
		},
		"no right to create pods": {
			func(server *plugintest.Server) { server.ForbidVerb(http.MethodPost) },
			"not checked: slurmctld itself: you may not create pods in the namespace slurm", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := loaded(t, "config.yaml", "slurmctld.yaml")
			test.prepare(server)
			out, err := run(t, server, "config", "check", "--filename=testdata/changed.yaml", "--slurmctld")
			if code, _ := errors.AsType[ExitCode](err); int(code) != test.code || err != nil && test.code == 0 {
				t.Errorf("exit code %d: %v", code, err)
			}
			if !strings.Contains(out, test.want) {
				t.Errorf("%q is missing:\n%s", test.want, out)
			}
			created, deleted := 0, 0
			for _, request := range server.Requests() {
				switch {
				case strings.HasPrefix(request, "POST "):
					created++
				case strings.HasPrefix(request, "DELETE /api/v1/namespaces/slurm/pods/slurm-check-"),
					strings.HasPrefix(request, "DELETE /api/v1/namespaces/slurm/configmaps/slurm-check-"):
					deleted++
				}
			}
			if name != "no right to create pods" && (created != 2 || deleted != 2) {
				t.Errorf("%d objects were created and %d deleted", created, deleted)
			}
		})
	}
}

func TestConfigCheckWithAMistakeStartsNothing(t *testing.T) {
	server := loaded(t, "config.yaml", "slurmctld.yaml")
	_, err := run(t, server, "config", "check", "--filename=testdata/mistake.yaml", "--slurmctld")
	if code, is := errors.AsType[ExitCode](err); !is || code != 1 {
		t.Errorf("%v, want the exit code 1", err)
	}
	for _, request := range server.Requests() {
		if strings.HasPrefix(request, "POST ") {
			t.Error(request)
		}
	}
}
