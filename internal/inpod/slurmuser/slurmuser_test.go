package slurmuser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct{ passwd, want string }{
		"the same":     {passwd: "root:x:0:0::/:/bin/sh\nslurm:x:401:402::/:/bin/false\n"},
		"no line end":  {passwd: "slurm:x:401:402"},
		"another":      {passwd: "slurm:x:64030:64030::/:\n", want: "has the ID 64030, and the cluster's slurmctld"},
		"none":         {passwd: "slurmer:x:401:401::/:\n", want: "no user slurm"},
		"not a number": {passwd: "slurm:x:a:401::/:\n", want: `has the ID "a"`},
		"root":         {passwd: "slurm:x:0:401::/:\n", want: "is root"},
		"no group":     {passwd: "slurm:x:401:b::/:\n", want: `has the group "b"`},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "passwd")
			if err := os.WriteFile(file, []byte(test.passwd), 0o600); err != nil {
				t.Fatal(err)
			}
			switch err := Check(file, 401); {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("%v, want %s", err, test.want)
			}
		})
	}
	if _, err := Find("/no/such/file"); err == nil {
		t.Error("no error without the file")
	}
}
