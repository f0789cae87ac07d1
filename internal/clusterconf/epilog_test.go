package clusterconf

import (
	"strings"
	"testing"

	"github.com/slurm-operator/slurm-operator/internal/slurmconf"
)

func TestSharedMemoryIsCleanedOnlyIfAllJobsCanBeSeen(t *testing.T) {
	tests := map[string]struct {
		conf   string
		cleans bool
	}{
		"with an extern step":                        {"SlurmdSpoolDir=/var/spool/slurmd\nPrologFlags=Contain\n", true},
		"after epilogs of the user":                  {"Epilog=mine.sh\nSlurmdSpoolDir=/s\nPrologFlags=Contain\n", true},
		"not without an extern step":                 {"SlurmdSpoolDir=/var/spool/slurmd\nPrologFlags=Alloc\n", false},
		"not with a directory that depends on nodes": {"SlurmdSpoolDir=/spool/%n\nPrologFlags=Contain\n", false},
		"not with an unknown directory":              {"PrologFlags=Contain\n", false},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			document, err := slurmconf.Parse(test.conf)
			if err != nil {
				t.Fatal(err)
			}
			files := Files{}
			rendered := AddClean(document, files).Render()
			_, found := files[CleanFile]
			if found != test.cleans || strings.HasSuffix(rendered, "Epilog="+CleanFile+"\n") != test.cleans {
				t.Errorf("the files are %v, and slurm.conf is:\n%s", files, rendered)
			}
		})
	}
}
