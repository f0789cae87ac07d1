package command

import (
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/plugin/kube"
	"github.com/slurm-operator/slurm-operator/internal/plugin/slurmcli"
)

func TestExternalSlurmctldIsAskedFromAPodOfTheCluster(t *testing.T) {
	login := kube.Container{Namespace: "slurm", Pod: "login-7f9b", Container: "login"}
	slurmd := kube.Container{Namespace: "slurm", Pod: "gpu-0", Container: "slurmd"}
	for name, test := range map[string]struct {
		files     []string
		forbidden string
		want      kube.Container
	}{
		"a login pod":                   {[]string{"external-login.yaml", "external-slurmd.yaml"}, "", login},
		"a slurmd pod":                  {[]string{"external-slurmd.yaml"}, "", slurmd},
		"a slurmd pod, without a right": {[]string{"external-login.yaml", "external-slurmd.yaml"}, "loginsets", slurmd},
	} {
		t.Run(name, func(t *testing.T) {
			server := loaded(t, append(test.files, "external.yaml")...)
			server.Forbid(test.forbidden)
			var asked kube.Container
			out, err := runAnywhere(t, server, func(in kube.Container) slurmcli.Runner {
				asked = in
				return scripted(t)
			}, "jobs")
			if err != nil || asked != test.want || !strings.Contains(out, "4711") {
				t.Errorf("%+v, want %+v: %v\n%s", asked, test.want, err, out)
			}
		})
	}
}

func TestExternalSlurmctldIsNotAskedWithoutAPod(t *testing.T) {
	const want = "is external, and no login pod or slurmd pod of it runs in the namespace slurm"
	if _, err := run(t, loaded(t, "external.yaml"), "jobs"); err == nil || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
	out, err := run(t, loaded(t, "external.yaml"), "nodes")
	if err != nil || !strings.Contains(out, "note: Slurm was not asked: the slurmctld of the Controller outside "+want) {
		t.Errorf("%v: %s", err, out)
	}
}
