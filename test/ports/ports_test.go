package ports_test

import (
	"net"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/ports"
)

func TestFree(t *testing.T) {
	given := map[string]bool{}
	for range 200 {
		port := ports.Free(t)
		if given[port] {
			t.Fatalf("port %s was returned twice", port)
		}
		given[port] = true
		listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
	}
}
