package command

import (
	"bytes"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/internal/plugin/plugintest"
)

// now is when the tests run.
var now = time.Date(2026, 3, 5, 12, 0, 0, 0, time.UTC)

// run runs the plugin against a server and returns what it prints.
func run(t *testing.T, server *plugintest.Server, arguments ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	session := newSession()
	session.now = func() time.Time { return now }
	root := newRoot(session, "test")
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append([]string{"--server=" + server.URL, "--namespace=slurm"}, arguments...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// loaded returns a server with the objects of a file.
func loaded(t *testing.T, path string) *plugintest.Server {
	t.Helper()
	server := plugintest.NewServer(t)
	server.Load(t, path)
	return server
}
