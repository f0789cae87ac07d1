package kube_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream/wsstream"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/plugintest"
)

// slurmctld is the container of the tests.
var slurmctld = kube.Container{Namespace: "slurm", Pod: "slurm-controller-0", Container: "slurmctld"}

func connect(t *testing.T, url string) *kube.Client {
	t.Helper()
	client, err := kube.New(&rest.Config{Host: url})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestExecWithoutTheRightNamesIt(t *testing.T) {
	server := plugintest.NewServer(t)
	server.Forbid("pods")
	err := connect(t, server.URL).Exec(t.Context(), slurmctld, kube.Streams{Out: io.Discard, Err: io.Discard}, "true")
	want := "you may not create pods/exec in the namespace slurm; ask for a role with the verb create for pods/exec"
	if forbidden, ok := errors.AsType[*kube.Forbidden](err); !ok || forbidden.Error() != want {
		t.Errorf("%v", err)
	}
}

func TestExecInAPodThatDoesNotExist(t *testing.T) {
	err := connect(t, plugintest.NewServer(t).URL).Exec(t.Context(), slurmctld, kube.Streams{Out: io.Discard}, "true")
	if err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("%v", err)
	}
}

// kubelet answers exec as a kubelet does: it copies the input to the output, and returns a status.
func kubelet(t *testing.T, status string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(response http.ResponseWriter, request *http.Request) {
		connection := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{
			"v5.channel.k8s.io": {Binary: true, Channels: []wsstream.ChannelType{
				wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel,
			}},
		})
		_, streams, err := connection.Open(response, request)
		if err != nil {
			t.Error(err)
			return
		}
		defer connection.Close()
		command := strings.Join(request.URL.Query()["command"], " ")
		_, _ = io.WriteString(streams[1], request.URL.Query().Get("container")+": "+command+"\n")
		if request.URL.Query().Get("stdin") == "true" {
			_, _ = io.Copy(streams[1], streams[0])
		}
		_, _ = io.WriteString(streams[2], "a warning\n")
		_, _ = io.WriteString(streams[3], status)
	}))
	t.Cleanup(server.Close)
	return server
}

func TestExecPassesStreamsAndExitCode(t *testing.T) {
	const success = `{"metadata":{},"status":"Success"}`
	const failure = `{"metadata":{},"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"7"}]}}`
	for name, test := range map[string]struct {
		input, status, out string
		code               int
	}{
		"output":    {"", success, "slurmctld: scontrol ping\n", 0},
		"input":     {"hello", success, "slurmctld: scontrol ping\nhello", 0},
		"exit code": {"", failure, "slurmctld: scontrol ping\n", 7},
	} {
		t.Run(name, func(t *testing.T) {
			var out, problems bytes.Buffer
			streams := kube.Streams{Out: &out, Err: &problems}
			if test.input != "" {
				streams.In = strings.NewReader(test.input)
			}
			err := connect(t, kubelet(t, test.status).URL).Exec(t.Context(), slurmctld, streams, "scontrol", "ping")
			failed, _ := errors.AsType[exec.CodeExitError](err)
			if failed.Code != test.code || (err != nil) != (test.code != 0) {
				t.Errorf("exit code %d: %v", failed.Code, err)
			}
			if out.String() != test.out || problems.String() != "a warning\n" {
				t.Errorf("%q, %q", out.String(), problems.String())
			}
		})
	}
}
