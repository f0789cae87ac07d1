package naming_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slinkyv1beta1 "github.com/slurm-operator/slurm-operator/api/v1beta1"
	"github.com/slurm-operator/slurm-operator/internal/naming"
)

func TestControllerEndpoints(t *testing.T) {
	tests := map[string]struct {
		spec slinkyv1beta1.ControllerSpec
		want []string
	}{
		"one pod without backups": {
			spec: slinkyv1beta1.ControllerSpec{HA: slinkyv1beta1.ControllerHA{Backups: 1}},
			want: []string{"slurm-controller-0:6817"},
		},
		"primary first": {
			spec: slinkyv1beta1.ControllerSpec{HA: slinkyv1beta1.ControllerHA{Enabled: true, Backups: 2}},
			want: []string{"slurm-controller-0:6817", "slurm-controller-1:6817", "slurm-controller-2:6817"},
		},
		"external slurmctld": {
			spec: slinkyv1beta1.ControllerSpec{
				External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "ctl.example.com", Port: 7000},
			},
			want: []string{"ctl.example.com:7000"},
		},
		"Slurm's default port": {
			spec: slinkyv1beta1.ControllerSpec{
				External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "ctl.example.com"},
			},
			want: []string{"ctl.example.com:6817"},
		},
		"IPv6 address in brackets": {
			spec: slinkyv1beta1.ControllerSpec{
				External: true, ExternalConfig: &slinkyv1beta1.ExternalConfig{Host: "2001:db8::1", Port: 6817},
			},
			want: []string{"[2001:db8::1]:6817"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			controller := &slinkyv1beta1.Controller{
				ObjectMeta: metav1.ObjectMeta{Name: "slurm", Namespace: "hpc"}, Spec: test.spec,
			}
			if diff := cmp.Diff(test.want, naming.ControllerEndpoints(controller)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
