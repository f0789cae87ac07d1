package nodeconf

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slurm-operator/slurm-operator/internal/invalid"
)

// If the processes of a container together exceed its limit, the kernel ends all of them, and with slurmd every job. So
// jobs together get less than the limit.

// jobMemory returns the memory for jobs in bytes: the container's limit less what is reserved, and less the files that
// fit into volumes in memory and may outlive their job. It is 0 without a limit.
func jobMemory(given corev1.ResourceList, reserved *resource.Quantity, volumes []corev1.Volume) (int64, error) {
	quantity := given[corev1.ResourceMemory]
	limit := quantity.Value()
	if limit <= 0 {
		return 0, nil
	}
	files := sizeOfMemoryVolumes(volumes)
	kept := min(defaultReserve+limit/100, limit/2)
	if reserved != nil {
		kept = max(reserved.Value(), 0)
	}
	left := limit - kept - files
	if left < 1<<20 {
		return 0, invalid.New("spec.slurmd.resources.limits.memory",
			"of the limit %s, %s are reserved (spec.reservedMemory) and %s can be taken by volumes in memory, which leaves "+
				"nothing for jobs; raise the limit, or lower one of the others",
			quantity.String(), binary(kept), binary(files))
	}
	return left, nil
}

// defaultReserve is for slurmd, sshd and their sessions; the kernel needs more in a larger container.
const defaultReserve = 128 << 20

// sizeOfMemoryVolumes returns the maximum size of the user's volumes in memory. One without a limit counts as empty:
// its files then count only as long as their job runs.
func sizeOfMemoryVolumes(volumes []corev1.Volume) int64 {
	sum := int64(0)
	for _, volume := range volumes {
		if source := volume.EmptyDir; source != nil && source.Medium == corev1.StorageMediumMemory &&
			source.SizeLimit != nil {
			sum += source.SizeLimit.Value()
		}
	}
	return sum
}

func binary(bytes int64) string { return resource.NewQuantity(bytes, resource.BinarySI).String() }

// CPUs returns the number of CPUs of a node; 0 if slurmd detects it.
func (n Node) CPUs() int { return n.number("cpus") }

// MemoryPerCPU returns the memory for jobs in MiB for each CPU; 0 if one of them is detected by slurmd.
func (n Node) MemoryPerCPU() int {
	cpus, memory := n.CPUs(), n.number("realmemory")
	if cpus < 1 {
		return 0
	}
	return memory / cpus
}

// Excess returns the RealMemory of a node in MiB and what it should be at most, if the user has set more than the
// container's limit.
func (n Node) Excess() (given, most int, exceeds bool) {
	given, most = n.number("realmemory"), int(n.memory>>20)
	return given, most, n.limit > 0 && int64(given)<<20 > n.limit
}

// number returns the value of a parameter; 0 if it has none.
func (n Node) number(key string) int {
	for _, pair := range n.pairs {
		if canonical(pair.Key) == key {
			value, _ := strconv.Atoi(pair.Value) // Slurm reports other values
			return value
		}
	}
	return 0
}
