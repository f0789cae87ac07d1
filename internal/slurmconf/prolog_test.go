package slurmconf_test

import (
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestKeepPrologFlags(t *testing.T) {
	for name, test := range map[string]struct {
		document, earlier, want string
		differs                 bool
	}{
		"nothing changes": {
			document: "PrologFlags=Contain\n", earlier: "PrologFlags=Alloc\n", want: "PrologFlags=Contain\n",
		},
		"neither has flags":         {document: "ClusterName=a\n", earlier: "ClusterName=b\n", want: "ClusterName=a\n"},
		"another flag may be added": {document: "PrologFlags=Serial\n", want: "PrologFlags=Serial\n"},
		"a prolog is not added": {
			document: "ClusterName=a\nPrologFlags=Contain\n", want: "ClusterName=a\n", differs: true,
		},
		"a prolog is not removed": {
			document: "ClusterName=a\n", earlier: "PrologFlags=x11\n", want: "ClusterName=a\nPrologFlags=x11\n", differs: true,
		},
		"other flags wait as well": {
			document: "PrologFlags=Serial,alloc\n", earlier: "PrologFlags=Serial\n", want: "PrologFlags=Serial\n", differs: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			document, err := slurmconf.Parse(test.document)
			if err != nil {
				t.Fatal(err)
			}
			earlier, err := slurmconf.Parse(test.earlier)
			if err != nil {
				t.Fatal(err)
			}
			kept, differs := slurmconf.KeepPrologFlags(document, earlier)
			if got := kept.Render(); got != test.want || differs != test.differs {
				t.Errorf("%q, differs: %t; want %q", got, differs, test.want)
			}
		})
	}
}
