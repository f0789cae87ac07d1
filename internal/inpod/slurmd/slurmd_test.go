package slurmd

import "testing"

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		process      int
		reconfigures bool
		again        bool
	}{
		"the first start":              {14, false, false},
		"a reconfigure":                {14, true, true},
		"a script after a reconfigure": {99, true, false},
		"a script before the first":    {99, false, false},
	} {
		path, again, err := parse("14 /usr/sbin/slurmd\n", test.process, test.reconfigures)
		if err != nil || path != "/usr/sbin/slurmd" || again != test.again {
			t.Errorf("%s: %q, %t, %v", name, path, again, err)
		}
	}
	for _, record := range []string{"", "slurmd", "14"} {
		if _, _, err := parse(record, 14, true); err == nil {
			t.Errorf("%q is accepted", record)
		}
	}
}
