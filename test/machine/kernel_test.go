package machine

import (
	"slices"
	"testing"
)

// Every module comes once, and after all that it depends on.
func TestModulesAreLoadedInOrder(t *testing.T) {
	depends := map[string][]string{
		"pci": {"ring", "virtio"}, "virtio": {"ring"}, "net": {"failover", "virtio"}, "ring": nil, "failover": {"builtin"},
	}
	files := map[string]string{}
	for name := range depends {
		files[name] = name
	}
	got, err := inOrder([]string{"pci", "net", "builtin"}, files,
		func(file string) ([]string, error) { return depends[file], nil })
	if want := []string{"ring", "virtio", "pci", "failover", "net"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}
