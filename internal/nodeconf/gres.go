package nodeconf

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
)

// A Gres is a generic resource of a Slurm node.
type Gres struct {
	// Name is its entry in GresTypes, such as gpu; Type is an optional subtype.
	Name, Type string
	Count      int64

	vendor vendor
}

// gpu is the only GRES for which Slurm needs device files.
const gpu = "gpu"

// A vendor is a GPU manufacturer.
type vendor struct {
	domain string // prefix of its extended resources
	flag   string // Flags value in gres.conf, for the vendor's environment variable such as CUDA_VISIBLE_DEVICES
	files  string // pattern of the device files, one per GPU
}

var vendors = []vendor{
	{"nvidia.com/", "nvidia_gpu_env", "/dev/nvidia[0-9]*"},
	{"amd.com/", "amd_gpu_env", "/dev/dri/renderD*"},
	{"gpu.intel.com/", "intel_gpu_env", "/dev/dri/renderD*"},
}

// vendorOf returns the vendor of an extended resource.
func vendorOf(resource string) vendor {
	for _, known := range vendors {
		if strings.HasPrefix(resource, known.domain) {
			return known
		}
	}
	return vendor{}
}

// gpus are the extended resources for whole or shared GPUs.
var gpus = []string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"}

// mig is the prefix of NVIDIA's GPU slices; the profile follows, which becomes the type.
const mig = "nvidia.com/mig-"

// gresFor returns the GRES for an extended resource: by the user's rules, otherwise by the operator's own table.
func gresFor(resource string, rules []slinkyv1beta1.GresRule) (name, gresType string, found bool) {
	for _, rule := range rules {
		if rule.Resource == resource {
			name, gresType, _ = strings.Cut(rule.Gres, ":")
			return name, gresType, true
		}
	}
	if profile, sliced := strings.CutPrefix(resource, mig); sliced {
		return gpu, profile, true
	}
	return gpu, "", slices.Contains(gpus, resource)
}

// requested returns the GRES for a container's devices.
func requested(given corev1.ResourceList, rules []slinkyv1beta1.GresRule) []Gres {
	var requested []Gres
	for _, resource := range slices.Sorted(maps.Keys(given)) {
		name, gresType, found := gresFor(string(resource), rules)
		quantity := given[resource]
		if !found || quantity.Sign() <= 0 {
			continue
		}
		same := func(other Gres) bool { return other.Name == name && other.Type == gresType }
		if at := slices.IndexFunc(requested, same); at >= 0 {
			requested[at].Count += quantity.Value()
			requested[at].vendor = vendor{} // there are several
			continue
		}
		requested = append(requested, Gres{
			Name: name, Type: gresType, Count: quantity.Value(), vendor: vendorOf(string(resource)),
		})
	}
	return requested
}

func renderGres(list []Gres) string {
	words := make([]string, len(list))
	for i, gres := range list {
		words[i] = strings.Join(slices.DeleteFunc([]string{gres.Name, gres.Type, strconv.FormatInt(gres.Count, 10)},
			func(word string) bool { return word == "" }), ":")
	}
	return strings.Join(words, ",")
}

// parseGres parses a user's list: name[:type][:count], separated by commas. The devices of a GRES are those of the
// container's resources with the same name, if they have a single vendor.
func parseGres(list string, devices []Gres) []Gres {
	var parsed []Gres
	for word := range strings.SplitSeq(list, ",") {
		word, _, _ = strings.Cut(strings.TrimSpace(word), "(") // sockets may follow in parentheses
		fields := strings.Split(word, ":")
		if fields[0] == "" {
			continue
		}
		gres := Gres{Name: fields[0], Count: 1}
		if count, err := strconv.ParseInt(fields[len(fields)-1], 10, 64); err == nil && len(fields) > 1 {
			gres.Count, fields = count, fields[:len(fields)-1]
		}
		gres.Type = strings.Join(fields[1:], ":")
		for _, device := range devices {
			if device.Name == gres.Name {
				gres.vendor = device.vendor
			}
		}
		parsed = append(parsed, gres)
	}
	return parsed
}

// GresTypes returns the names of the node's generic resources, for slurm.conf.
func (n Node) GresTypes() []string {
	var names []string
	for _, gres := range n.Gres {
		if !slices.Contains(names, gres.Name) {
			names = append(names, gres.Name)
		}
	}
	return names
}

// HasDevices reports whether the node needs a gres.conf that includes GresConf.
func (n Node) HasDevices() bool { return len(n.devices()) > 0 }

// maxDevices is far more than any host has; a larger number is a mistake that Slurm reports.
const maxDevices = 1024

// devices returns the GRES that need device files.
func (n Node) devices() []Gres {
	return slices.DeleteFunc(slices.Clone(n.Gres),
		func(gres Gres) bool { return gres.Name != gpu || gres.Count < 1 || gres.Count > maxDevices })
}

// GresConf returns the part of gres.conf about the node's devices, which DeviceScript links in a directory. Slurm
// numbers devices by their position in it and passes the positions, not the numbers in the file names, to jobs: in a
// container that sees only its own GPUs, these are the numbers that CUDA and the like expect.
func (n Node) GresConf(directory string) string {
	var conf strings.Builder
	first := int64(0)
	for _, gres := range n.devices() {
		conf.WriteString("Name=" + gres.Name)
		if gres.Type != "" {
			conf.WriteString(" Type=" + gres.Type)
		}
		fmt.Fprintf(&conf, " File=%s/gpu[%d-%d]", directory, first, first+gres.Count-1)
		if gres.vendor.flag != "" {
			conf.WriteString(" Flags=" + gres.vendor.flag)
		}
		conf.WriteByte('\n')
		first += gres.Count
	}
	return conf.String()
}

// DeviceScript returns a shell script to run before slurmd starts: it links the node's devices in a directory under
// names that do not depend on which of the host's devices the pod got. If the number of files differs from that of
// GPUs, as with shared or sliced GPUs, the names link to /dev/full and only serve for counting: Slurm may deny a job
// that has none of them access to it, which no job notices.
func (n Node) DeviceScript(directory string) string {
	if !n.HasDevices() {
		return ""
	}
	var script strings.Builder
	fmt.Fprintf(&script, `rm -rf %[1]s
mkdir %[1]s
number=0
gpus() {
    count=$1
    shift
    [ $# -eq "$count" ] || set --
    while [ "$count" -gt 0 ]; do
        ln -s "${1:-/dev/full}" %[1]s/gpu$number
        [ $# -eq 0 ] || shift
        count=$((count - 1))
        number=$((number + 1))
    done
}
`, directory)
	for _, gres := range n.devices() {
		fmt.Fprintf(&script, "gpus %d", gres.Count)
		if gres.vendor.files != "" {
			fmt.Fprintf(&script, " $(ls -v %s)", gres.vendor.files)
		}
		script.WriteByte('\n')
	}
	return script.String()
}
