//go:build slurm

package confinement

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/test/slurmnet"
)

// A slurmd that could not confine jobs does not start, and the container says why.
func TestSlurmdDoesNotStartWithoutCgroups(t *testing.T) {
	version, _, _ := strings.Cut(*versions, ",")
	slurm, machine := start(t, version, slurmnet.MachineOptions{})
	without := func(capability corev1.Capability) func(*pod) {
		return func(p *pod) {
			list := &p.container.SecurityContext.Capabilities.Add
			*list = slices.DeleteFunc(*list, func(each corev1.Capability) bool { return each == capability })
		}
	}
	for name, test := range map[string]struct {
		access slinkyv1beta1.CgroupAccess
		change func(*pod)
		want   []string
	}{
		"the runtime mounts cgroups read-only": {
			access: slinkyv1beta1.CgroupAccessRuntimeClass, change: func(p *pod) { p.writable = false },
			want: []string{"the container's cgroups are not writable", "spec.cgroupAccess"},
		},
		"the container lacks SYS_ADMIN": {
			access: slinkyv1beta1.CgroupAccessRemount, change: without("SYS_ADMIN"),
			want: []string{"remounting /sys/fs/cgroup writable: operation not permitted", "spec.cgroupAccess"},
		},
		"the container lacks BPF": {
			access: slinkyv1beta1.CgroupAccessRuntimeClass, change: without("BPF"),
			want: []string{"loading a device filter: operation not permitted", "spec.cgroupAccess"},
		},
		"other pods have CPUs of their own": {
			access: slinkyv1beta1.CgroupAccessRemount, change: func(p *pod) { p.cores = "1" },
			want: []string{"the container may use 1 of the 2 CPUs", "make this a guaranteed pod"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			set := newNodeSet(test.access)
			configure(t, slurm, set, true)
			p := newPod(t, machine, set)
			test.change(p)
			p.start(t, slurm)
			slurm.WaitFor(t, "the container to exit", func(ctx context.Context) error {
				output, err := machine.Run(ctx, "cat /run/slurmd.exit")
				if err == nil && strings.TrimSpace(output) == "0" {
					err = errors.New("it has exited without an error")
				}
				return err
			})
			log := machine.MustRun(t, "cat /run/slurmd.log")
			for _, want := range test.want {
				if !strings.Contains(log, want) {
					t.Errorf("it printed %q, want %q", log, want)
				}
			}
			if nodes := slurm.Login.MustRun(t, "sinfo", "--noheader", "--Node"); nodes != "" {
				t.Errorf("it has registered: %s", nodes)
			}
			p.stop(t)
		})
	}
}
