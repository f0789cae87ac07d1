package cpus

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/slurm-operator/slurm-operator/internal/hostlist"
)

// sharing are the files of a CPU that list the CPUs with which it shares something, from the largest to the smallest.
var sharing = []string{
	"topology/package_cpus_list", "topology/die_cpus_list", "cache/index3/shared_cpu_list", "topology/core_cpus_list",
}

// slurmOrder returns the CPUs of a machine in the order in which Slurm numbers them: by socket, core and thread. Each
// of these is ordered by its lowest CPU, as is everything in between, such as NUMA nodes and shared caches. devices is
// /sys/devices/system.
func slurmOrder(devices fs.FS) ([]int, error) {
	online, err := readList(devices, "cpu/online")
	if err != nil {
		return nil, err
	}
	nodes, err := numaNodes(devices)
	if err != nil {
		return nil, err
	}
	keys := make(map[int][]int, len(online))
	for _, cpu := range online {
		var key []int
		for i, file := range sharing {
			shared, err := readList(devices, fmt.Sprintf("cpu/cpu%d/%s", cpu, file))
			switch {
			case errors.Is(err, fs.ErrNotExist) && i > 0: // not every processor has everything
				continue
			case err != nil:
				return nil, err
			}
			if key = append(key, slices.Min(append(shared, cpu))); i == 0 {
				key = append(key, max(nodes[cpu], key[0])) // a NUMA node may have several sockets
			}
		}
		keys[cpu] = append(key, cpu)
	}
	slices.SortFunc(online, func(a, b int) int { return slices.Compare(keys[a], keys[b]) })
	return online, nil
}

// numaNodes returns the lowest CPU of the NUMA node of each CPU.
func numaNodes(devices fs.FS) (map[int]int, error) {
	files, err := fs.Glob(devices, "node/node*/cpulist")
	if err != nil {
		return nil, err
	}
	lowest := map[int]int{}
	for _, file := range files {
		cpus, err := readList(devices, file)
		if err != nil {
			return nil, err
		}
		for _, cpu := range cpus {
			lowest[cpu] = slices.Min(cpus)
		}
	}
	return lowest, nil
}

// readList reads a list of CPUs such as 0-3,8-11.
func readList(devices fs.FS, file string) ([]int, error) {
	content, err := fs.ReadFile(devices, file)
	if err != nil {
		return nil, err
	}
	list := strings.TrimSpace(string(content))
	if list == "" {
		return nil, nil // a NUMA node without CPUs
	}
	var cpus []int
	for name, err := range hostlist.Names("[" + list + "]") {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		cpu, err := strconv.Atoi(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		cpus = append(cpus, cpu)
	}
	return cpus, nil
}
