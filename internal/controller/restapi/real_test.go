//go:build slurm

package restapi

import (
	"context"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/slurm-operator/slurm-operator/hack/images"
	"github.com/slurm-operator/slurm-operator/internal/certificate"
	"github.com/slurm-operator/slurm-operator/internal/inpod/terminator"
	"github.com/slurm-operator/slurm-operator/internal/slurm/rest"
	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// A real slurmrestd answers behind the terminator as its pod runs it, also after it was killed, and exits on SIGTERM
// although clients keep connections open.
func TestRealSlurmrestdBehindTLS(t *testing.T) {
	for _, version := range images.Versions {
		t.Run(version, func(t *testing.T) {
			cluster := slurmnet.Start(t, slurmnet.Options{Version: version})
			slurmrestd := cluster.Slurmrestd
			directory := slurmrestd.Path(socketDirectory)
			if err := os.MkdirAll(directory, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Chmod(directory, 0o777); err != nil { // as an emptyDir
				t.Fatal(err)
			}
			start := func() {
				t.Helper()
				slurmrestd.StartWith(t, slices.Concat([]string{"/bin/sh", "-c", launch},
					arguments(slurmconf.Document{}))...)
			}
			slurmrestd.Stop(t)
			start()
			address, server := terminateTLS(t, slurmrestd.Path(socket))
			settings, err := server.Client()
			if err != nil {
				t.Fatal(err)
			}
			client, err := rest.New(rest.Options{
				URL: "https://" + server.Name + ":6820", Address: address, TLS: settings,
				Token: func(context.Context) (string, error) { return cluster.Token("root"), nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(client.Close)
			answers := func(when string) {
				t.Helper()
				cluster.WaitFor(t, "slurmrestd "+when, func(ctx context.Context) error {
					_, err := client.Diag(ctx)
					return err
				})
			}
			answers("to start")
			info, err := os.Stat(slurmrestd.Path(socket))
			if err != nil || info.Mode().Perm()&0o002 == 0 {
				t.Errorf("only slurmrestd's own user can connect: %v, error %v", info.Mode(), err)
			}
			slurmrestd.Kill(t)
			start()
			answers("to restart")
			if !slurmrestd.Terminate(t, 20*time.Second) {
				t.Error("slurmrestd does not exit while a client keeps a connection open")
			}
			start() // the cluster stops it again
			answers("to start after it was terminated")
		})
	}
}

// terminateTLS runs the terminator in front of a socket, and returns its address and how to verify it.
func terminateTLS(t *testing.T, socket string) (address string, server certificate.Server) {
	t.Helper()
	const name = "slurm-restapi.hpc.svc"
	pair, err := certificate.NewPair([]string{name}, time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	directory := t.TempDir()
	for file, content := range map[string][]byte{"tls.crt": pair.Certificate, "tls.key": pair.Key} {
		if err := os.WriteFile(directory+"/"+file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server, err = certificate.Set{Current: pair}.Server(name, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	free, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := terminator.Run(t.Context(), terminator.Options{
			Listen: address, Socket: socket, Certificates: directory, Log: t.Output(),
		}); err != nil {
			t.Error(err)
		}
	}()
	return address, server
}
