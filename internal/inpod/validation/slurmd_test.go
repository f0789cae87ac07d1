package validation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSettingsAtWhichSlurmdExitsAreRefused(t *testing.T) {
	directory := t.TempDir()
	for _, name := range []string{
		"task_affinity.so", "task_cgroup.so", "proctrack_linuxproc.so", "namespace_tmpfs.so", "task_old.a",
	} {
		if err := os.WriteFile(filepath.Join(directory, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct{ config, want string }{
		"plugins that exist":     {"ProctrackType = proctrack/linuxproc\nTaskPlugin = task/affinity,cgroup\n", ""},
		"no plugin":              {"TaskPlugin = task/none\nProctrackType = (null)\n", ""},
		"no tracking":            {"ProctrackType = proctrack/none\n", "use one of linuxproc"},
		"no such namespace":      {"NamespaceType = namespace/tmp\n", "use one of tmpfs"},
		"a plugin that does not": {"TaskPlugin = task/affinity,task/old\n", "use one of affinity, cgroup"},
		"unknown plugins":        {"CertgenType = certgen/nope\n", ""}, // the image has none of them
		"root":                   {"SlurmdUser = root(0)\n", ""},
		"another user":           {"SlurmdUser = slurm(64030)\n", "slurm.conf line 2: SlurmdUser=slurm"},
	} {
		files := map[string]string{"slurm.conf": "ClusterName=a\nSlurmdUser=slurm\nTaskPlugin=task/affinity,task/old\n"}
		got := checkSlurmd("PluginDir = /nonexistent:"+directory+"\n"+test.config, files)
		if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
