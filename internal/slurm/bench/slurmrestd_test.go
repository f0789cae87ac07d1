//go:build slurm

package bench

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// BenchmarkSlurmrestd measures the memory of slurmrestd after lists of all nodes, with and without the environment that
// RestApis give it.
func BenchmarkSlurmrestd(b *testing.B) {
	for name, environment := range map[string][]string{
		"default": nil, "arenas": {"MALLOC_ARENA_MAX=2"},
		"trimmed": {"MALLOC_ARENA_MAX=2", "MALLOC_TRIM_THRESHOLD_=131072", "MALLOC_MMAP_THRESHOLD_=131072"},
	} {
		b.Run(name, func(b *testing.B) {
			size, err := strconv.Atoi(*sizes)
			if err != nil {
				b.Fatal(err)
			}
			cluster := slurmnet.Start(b, slurmnet.Options{
				Version: *version, Nodes: 1, CloudNodes: size, SlurmrestdEnv: environment,
			})
			b.ResetTimer()
			for range 10 {
				listInParallel(b, cluster, 4)
				b.Logf("%s: %s", name, memory(b, cluster))
			}
			b.ReportMetric(slurmrestdPeak(b, cluster)/1e3, "peak-MB")
		})
	}
}

// listInParallel lists all nodes with some clients at the same time.
func listInParallel(b *testing.B, cluster *slurmnet.Cluster, clients int) {
	b.Helper()
	var running sync.WaitGroup
	for range clients {
		client := dial(b, cluster, nil)
		running.Go(func() {
			if _, err := client.Nodes(b.Context(), 0); err != nil {
				b.Error(err)
			}
		})
	}
	running.Wait()
}

// memory returns the memory of slurmrestd and its peak.
func memory(b *testing.B, cluster *slurmnet.Cluster) string {
	b.Helper()
	status := cluster.Slurmrestd.MustRun(b, "sh", "-c", "cat $(grep -l slurmrestd /proc/[0-9]*/comm | sed s/comm/status/)")
	var fields []string
	for line := range strings.Lines(status) {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "VmHWM:") {
			fields = append(fields, strings.Join(strings.Fields(line), " "))
		}
	}
	return strings.Join(fields, ", ")
}
