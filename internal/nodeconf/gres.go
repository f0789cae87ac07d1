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

// A Gres is a generic resource of a node.
type Gres struct {
	// Name is its type in GresTypes, such as gpu; Type, which may be empty, tells kinds of one Name apart.
	Name, Type string
	Count      int64

	vendor vendor
}

// gpu is the name of the one GRES of which Slurm wants to see device files.
const gpu = "gpu"

// A vendor is who makes a GPU.
type vendor struct {
	domain string // of the extended resources
	flag   string // of gres.conf, for the vendor's environment variable: CUDA_VISIBLE_DEVICES and the like
	files  string // pattern of the device files, one for each GPU
}

var vendors = []vendor{
	{"nvidia.com/", "nvidia_gpu_env", "/dev/nvidia[0-9]*"},
	{"amd.com/", "amd_gpu_env", "/dev/dri/renderD*"},
	{"gpu.intel.com/", "intel_gpu_env", "/dev/dri/renderD*"},
}

// vendorOf finds the maker of what an extended resource stands for.
func vendorOf(resource string) vendor {
	for _, known := range vendors {
		if strings.HasPrefix(resource, known.domain) {
			return known
		}
	}
	return vendor{}
}

// gpus are the extended resources that stand for whole or shared GPUs.
var gpus = []string{"nvidia.com/gpu", "nvidia.com/gpu.shared", "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe"}

// mig begins the names of slices of NVIDIA's GPUs; the profile follows, which becomes the type.
const mig = "nvidia.com/mig-"

// standsFor is the GRES that a resource stands for: by the user's rules, else by the operator's own table.
func standsFor(resource string, rules []slinkyv1beta1.GresRule) (name, kind string, found bool) {
	for _, rule := range rules {
		if rule.Resource == resource {
			name, kind, _ = strings.Cut(rule.Gres, ":")
			return name, kind, true
		}
	}
	if profile, sliced := strings.CutPrefix(resource, mig); sliced {
		return gpu, profile, true
	}
	return gpu, "", slices.Contains(gpus, resource)
}

// requested is the GRES that a container's devices stand for.
func requested(given corev1.ResourceList, rules []slinkyv1beta1.GresRule) []Gres {
	var requested []Gres
	for _, resource := range slices.Sorted(maps.Keys(given)) {
		name, kind, found := standsFor(string(resource), rules)
		quantity := given[resource]
		if !found || quantity.Sign() <= 0 {
			continue
		}
		same := func(other Gres) bool { return other.Name == name && other.Type == kind }
		if at := slices.IndexFunc(requested, same); at >= 0 {
			requested[at].Count += quantity.Value()
			requested[at].vendor = vendor{} // there are two
			continue
		}
		requested = append(requested, Gres{Name: name, Type: kind, Count: quantity.Value(), vendor: vendorOf(string(resource))})
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

// parseGres reads what a user wrote: name[:type][:count], separated by commas. The devices of a GRES are those of the
// container's resources of the same name, if these have one maker.
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

// GresTypes are the names of the node's generic resources, for slurm.conf.
func (n Node) GresTypes() []string {
	var names []string
	for _, gres := range n.Gres {
		if !slices.Contains(names, gres.Name) {
			names = append(names, gres.Name)
		}
	}
	return names
}

// HasDevices tells whether the node needs a gres.conf that draws in GresConf.
func (n Node) HasDevices() bool { return len(n.devices()) > 0 }

// maxDevices is far beyond the GPUs of any machine; a larger number is a mistake that is Slurm's to find.
const maxDevices = 1024

// devices are the GRES that need device files.
func (n Node) devices() []Gres {
	return slices.DeleteFunc(slices.Clone(n.Gres), func(gres Gres) bool { return gres.Name != gpu || gres.Count < 1 || gres.Count > maxDevices })
}

// GresConf is the part of gres.conf about the node's devices, which DeviceScript finds in a directory. Slurm counts devices
// by their place in it and gives the places, not the numbers in the names, to jobs: in a container that sees only its own
// GPUs these are the numbers that CUDA and the like understand.
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

// DeviceScript is what a shell has to do before slurmd starts: give the node's devices names, in a directory, that do not
// depend on which of the machine's devices the pod got. Where there are not as many files as GPUs, as with shares and
// slices of them, the names stand for none: they serve to count.
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
        ln -s "${1:-/dev/null}" %[1]s/gpu$number
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
