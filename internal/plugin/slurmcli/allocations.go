package slurmcli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// An Allocation is what a job holds or, while it is pending, asks for.
type Allocation struct {
	User, Account string
	Pending       bool
	// Jobs is how many jobs it stands for: squeue prints the tasks of an array that have not started as one entry. The
	// other numbers are those of each.
	Jobs   int
	CPUs   int64
	Memory int64 // MiB
	GPUs   int64
	// GPUsRequested says that GPUs is what the job has asked for: Slurm counts GPUs of jobs only if AccountingStorageTRES
	// has gres/gpu.
	GPUsRequested bool
}

// allocationFields are the fields of squeue's long format.
var allocationFields = []string{
	"JobArrayID", "UserName", "Account", "State", "tres-alloc", "NumNodes", "NumTasks", "tres-per-job", "tres-per-node",
	"tres-per-task",
}

// Allocations reads what all jobs hold or ask for.
func (run Runner) Allocations(ctx context.Context) ([]Allocation, error) {
	printed, err := run(ctx, SqueueAllocations()...)
	if err != nil {
		return nil, err
	}
	return parseAllocations(string(printed))
}

// SqueueAllocations returns the command that prints jobs for parseAllocations. SLURM_BITSTR_LEN=0 prints long lists of
// array tasks in full, and a field of the size 0 is as long as its value.
func SqueueAllocations() []string {
	format := strings.Join(allocationFields, ":0"+fieldEnd+",") + ":0" + jobEnd
	return []string{
		"env", "SLURM_BITSTR_LEN=0", "squeue", "--noheader", OnNodes + ",pending", "--Format=" + format,
	}
}

func parseAllocations(printed string) ([]Allocation, error) {
	var jobs []Allocation
	for record := range strings.SplitSeq(printed, jobEnd) {
		record = strings.TrimSpace(record)
		if record == "" {
			continue
		}
		values := strings.Split(record, fieldEnd)
		if len(values) != len(allocationFields) {
			return nil, fmt.Errorf("reading jobs: squeue printed %d fields instead of %d: %.80q", len(values),
				len(allocationFields), record)
		}
		for i, value := range values {
			values[i] = strings.TrimSpace(value)
			if values[i] == "N/A" || values[i] == "(null)" {
				values[i] = ""
			}
		}
		job, err := newAllocation(values)
		if err != nil {
			return nil, fmt.Errorf("reading jobs: job %s: %w", values[0], err)
		}
		jobs = append(jobs, job)
	}
	return jobs, nil
}

// newAllocation makes an Allocation of the values of allocationFields.
func newAllocation(values []string) (Allocation, error) {
	job := Allocation{
		User: values[1], Account: values[2], Pending: values[3] == "PENDING", Jobs: countTasks(values[0]),
	}
	counted := false
	for each := range strings.SplitSeq(values[4], ",") {
		name, value, _ := strings.Cut(each, "=")
		var err error
		switch name {
		case "cpu":
			job.CPUs, err = strconv.ParseInt(value, 10, 64)
		case "mem":
			job.Memory, err = parseMemory(value)
		case gpuTRES: // of all types
			counted = true
			job.GPUs, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return job, fmt.Errorf("%s is %.40q: %w", name, value, err)
		}
	}
	if !counted {
		nodes, tasks := countOf(values[5]), countOf(values[6])
		job.GPUs = max(requestedGPUs(values[7]), requestedGPUs(values[8])*nodes, requestedGPUs(values[9])*tasks)
		job.GPUsRequested = job.GPUs > 0
	}
	return job, nil
}

// gpuTRES is Slurm's name for GPUs as a resource that it counts.
const gpuTRES = "gres/gpu"

// countOf reads a number of nodes or tasks, which may be a range, such as 1-4, or missing.
func countOf(value string) int64 {
	value, _, _ = strings.Cut(value, "-")
	number, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		return 1
	}
	return number
}

// requestedGPUs reads a request such as gres/gpu:h100:2,license/x:1.
func requestedGPUs(request string) int64 {
	var sum int64
	for each := range strings.SplitSeq(request, ",") {
		rest, found := strings.CutPrefix(strings.Replace(each, "gres:", "gres/", 1), gpuTRES)
		if !found || rest != "" && rest[0] != ':' && rest[0] != '=' {
			continue
		}
		number := int64(1)
		if count, err := strconv.ParseInt(rest[strings.LastIndexAny(rest, ":=")+1:], 10, 64); err == nil {
			number = count
		}
		sum += number
	}
	return sum
}

// parseMemory reads a size such as 62.50G; without a unit it is in MiB. It returns MiB.
func parseMemory(value string) (int64, error) {
	const units = "KMGTP"
	factor := 1.0
	if last := len(value) - 1; last >= 0 {
		if unit := strings.IndexByte(units, value[last]); unit >= 0 {
			value = value[:last]
			for range unit {
				factor *= 1024
			}
			factor /= 1024 // M is one
		}
	}
	number, err := strconv.ParseFloat(value, 64)
	return int64(number * factor), err
}

// countTasks returns how many jobs an entry of squeue stands for: 7 for 4711_[3-9], and with a limit 4711_[3-9%2].
func countTasks(id string) int {
	_, list, isArray := strings.Cut(id, "_[")
	if !isArray {
		return 1
	}
	list, _, _ = strings.Cut(list, "]")
	list, _, _ = strings.Cut(list, "%")
	count := 0
	for part := range strings.SplitSeq(list, ",") {
		bounds, stride, _ := strings.Cut(part, ":")
		low, high, isRange := strings.Cut(bounds, "-")
		first, err := strconv.Atoi(low)
		last, errLast := strconv.Atoi(high)
		if err != nil || !isRange || errLast != nil || last < first {
			count++
			continue
		}
		step, err := strconv.Atoi(stride)
		if err != nil || step < 1 {
			step = 1
		}
		count += (last-first)/step + 1
	}
	return count
}
