package nodeconf_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/slurm-operator/slurm-operator/internal/nodeconf"
)

func TestMemoryOfJobs(t *testing.T) {
	limits := func(memory string) string { return `{"resources":{"limits":{"cpu":"2","memory":"` + memory + `"}}}` }
	for name, test := range map[string]struct {
		limit, reserved, volumes string
		want, refused            string
		perCPU                   int
	}{
		"a large container":              {limit: "1Ti", want: "RealMemory=1037962", perCPU: 518981},
		"a container of a few gigabytes": {limit: "4Gi", want: "RealMemory=3927", perCPU: 1963},
		"a small container keeps half":   {limit: "128Mi", want: "RealMemory=64", perCPU: 32},
		"the user's reserve":             {limit: "1Gi", reserved: "24Mi", want: "RealMemory=1000", perCPU: 500},
		"volumes in memory": {
			limit: "1Gi", reserved: "0",
			volumes: `{"volumes":[{"name":"a","emptyDir":{"medium":"Memory","sizeLimit":"512Mi"}},` +
				`{"name":"b","emptyDir":{"medium":"Memory"}},{"name":"c","emptyDir":{"sizeLimit":"1Ti"}}]}`,
			want: "RealMemory=512", perCPU: 256,
		},
		"nothing is left": {
			limit: "1Gi", reserved: "1Gi",
			refused: "of the limit 1Gi, 1Gi are reserved (spec.reservedMemory) and 0 can be taken by volumes in memory",
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := nodeSet(limits(test.limit), "")
			set.Spec.Template.Spec.Raw = []byte(test.volumes)
			if test.reserved != "" {
				set.Spec.ReservedMemory = new(resource.MustParse(test.reserved))
			}
			node, err := nodeconf.Of(set)
			if test.refused != "" {
				if err == nil || !strings.Contains(err.Error(), test.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(node.Conf(), test.want) || node.MemoryPerCPU() != test.perCPU {
				t.Errorf("%s, %d per CPU", node.Conf(), node.MemoryPerCPU())
			}
		})
	}
	for _, container := range []string{"", `{"resources":{"limits":{"memory":"1Gi"}}}`, `{"resources":{"limits":{"cpu":"1"}}}`} {
		if node, err := nodeconf.Of(nodeSet(container, "")); err != nil || node.MemoryPerCPU() != 0 {
			t.Errorf("%s: %d per CPU, %v", container, node.MemoryPerCPU(), err)
		}
	}
}
