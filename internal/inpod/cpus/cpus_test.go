package cpus

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func TestArrange(t *testing.T) {
	own := func(cpus ...int) func(int) bool { return func(cpu int) bool { return slices.Contains(cpus, cpu) } }
	flat, threads := []int{0, 1, 2, 3}, []int{0, 4, 1, 5, 2, 6, 3, 7}
	for name, test := range map[string]struct {
		all     []int
		isOwn   func(int) bool
		limit   int
		want    []int
		refused bool
	}{
		"all CPUs, no limit":    {all: flat, isOwn: own(0, 1, 2, 3)},
		"all CPUs, as a limit":  {all: flat, isOwn: own(0, 1, 2, 3), limit: 4},
		"more than there is":    {all: []int{0}, isOwn: own(0), limit: 2},
		"a limit":               {all: threads, isOwn: own(threads...), limit: 5, want: threads},
		"cores of its own":      {all: threads, isOwn: own(2, 6), limit: 2, want: []int{2, 6, 0, 4, 1, 5, 3, 7}},
		"threads of its own":    {all: threads, isOwn: own(1, 6), limit: 2, want: []int{1, 6, 0, 4, 5, 2, 3, 7}},
		"shared CPUs, a limit":  {all: flat, isOwn: own(1, 2, 3), limit: 2, refused: true},
		"shared CPUs, no limit": {all: flat, isOwn: own(0, 1, 2), refused: true},
		"fewer than the limit":  {all: flat, isOwn: own(0, 1), limit: 3, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := arrange(test.all, test.isOwn, test.limit)
			if !slices.Equal(got, test.want) || (err != nil) != test.refused {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
			if err != nil && !strings.Contains(err.Error(), "static CPU manager policy") {
				t.Error(err)
			}
		})
	}
}

func TestDescribe(t *testing.T) {
	var topology struct {
		Machine object `xml:"object"`
	}
	if err := xml.Unmarshal(describe([]int{3, 0, 1, 2}), &topology); err != nil {
		t.Fatal(err)
	}
	socket := topology.Machine.Objects[1]
	if socket.Type != "Package" || socket.CPUSet != "0x0000000f" || len(socket.Objects) != 4 {
		t.Fatalf("%+v", socket)
	}
	seen := map[int]bool{}
	for position, core := range socket.Objects {
		cpu := core.Objects[0]
		if want := fmt.Sprintf("0x%08x", 1<<position); core.CPUSet != want || cpu.CPUSet != want || cpu.Type != "PU" ||
			cpu.OSIndex != []int{3, 0, 1, 2}[position] || seen[cpu.Index] || seen[core.Index] {
			t.Errorf("core %d is %+v", position, core)
		}
		seen[cpu.Index], seen[core.Index] = true, true
	}
	if got := setOf(31, 33); got != "0x00000003,0x80000000" {
		t.Error(got)
	}
}

func TestSlurmOrder(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  []int
	}{
		"cores without threads": {
			files: cpus("0-3", "0-3", "", "", "0", "1", "2", "3"), want: []int{0, 1, 2, 3},
		},
		"threads of a core are next to each other": {
			files: cpus("0-3", "0-3", "", "", "0-1", "0-1", "2-3", "2-3"), want: []int{0, 1, 2, 3},
		},
		"threads of a core are far from each other": {
			files: cpus("0-3", "0-3", "", "", "0,2", "1,3", "0,2", "1,3"), want: []int{0, 2, 1, 3},
		},
		"sockets alternate": {
			files: cpus("0-3", "0,2|1,3|0,2|1,3", "", "", "0", "1", "2", "3"), want: []int{0, 2, 1, 3},
		},
		"caches alternate": {
			files: cpus("0-3", "0-3", "0,2|1,3|0,2|1,3", "", "0", "1", "2", "3"), want: []int{0, 2, 1, 3},
		},
		"NUMA nodes alternate in a socket": {
			files: cpus("0-3", "0-3", "", "0,2|1,3", "0", "1", "2", "3"), want: []int{0, 2, 1, 3},
		},
		"one NUMA node has two sockets": {
			files: cpus("0-3", "0,2|1,3|0,2|1,3", "", "0-3", "0", "1", "2", "3"), want: []int{0, 2, 1, 3},
		},
		"a CPU is offline": {
			files: cpus("0,2-3", "0-3", "", "", "0", "", "2", "3"), want: []int{0, 2, 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			devices := fstest.MapFS{}
			for file, content := range test.files {
				devices[file] = &fstest.MapFile{Data: []byte(content + "\n")}
			}
			if got, err := slurmOrder(devices); err != nil || !slices.Equal(got, test.want) {
				t.Errorf("%v, %v; want %v", got, err, test.want)
			}
		})
	}
	for _, broken := range []fstest.MapFS{{}, {"cpu/online": {Data: []byte("0-x")}}, {"cpu/online": {Data: []byte("0")}}} {
		if order, err := slurmOrder(broken); err == nil {
			t.Errorf("%v gives %v", broken, order)
		}
	}
}

// cpus returns files of /sys/devices/system. packages, caches and nodes list CPUs, for each CPU or each node if they
// differ; cores has the list of each CPU.
func cpus(online, packages, caches, nodes string, cores ...string) map[string]string {
	each := func(lists string, i int) string {
		all := strings.Split(lists, "|")
		return all[i%len(all)]
	}
	files := map[string]string{"cpu/online": online, "node/node7/cpulist": ""}
	for i, core := range cores {
		if core == "" {
			continue
		}
		files[fmt.Sprintf("cpu/cpu%d/topology/package_cpus_list", i)] = each(packages, i)
		files[fmt.Sprintf("cpu/cpu%d/topology/core_cpus_list", i)] = core
		if caches != "" {
			files[fmt.Sprintf("cpu/cpu%d/cache/index3/shared_cpu_list", i)] = each(caches, i)
		}
	}
	for i, list := range strings.Split(nodes, "|") {
		if list != "" {
			files[fmt.Sprintf("node/node%d/cpulist", i)] = list
		}
	}
	return files
}
