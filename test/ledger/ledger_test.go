package ledger_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/ledger"
)

func TestJudge(t *testing.T) {
	got, err := ledger.Judge("1\n2\n3\n4\n5\n6\n7\n", strings.Join([]string{
		"1|COMPLETED|0|0:0|gpu-0",
		"2|COMPLETED|1|0:0|gpu-0",
		"3|NODE_FAIL|0|1:0|gpu-1", "3|COMPLETED|0|0:0|gpu-2",
		"4|CANCELLED by 0|0|0:15|gpu-1",
		"5|RUNNING|0|0:0|gpu-1",
		"6|COMPLETED|0|1:0|gpu-1",
		"8|COMPLETED|0|0:0|gpu-3",
		"9|FAILED|0|1:0|None assigned",
	}, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := ledger.Verdict{
		Completed: []string{"1", "8"},
		Open:      []string{"5"},
		Requeued:  []string{"2 COMPLETED|1|0:0|gpu-0", "3 NODE_FAIL|0|1:0|gpu-1, COMPLETED|0|0:0|gpu-2"},
		Lost:      []string{"4 CANCELLED by 0|0|0:15|gpu-1", "6 COMPLETED|0|1:0|gpu-1", "7 unknown"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("verdict differs (-want +got):\n%s", diff)
	}
	if _, err := ledger.Judge("", "slurm_load: error"); err == nil {
		t.Error("an error message is accepted as accounting records")
	}
}

// TestStream runs the stream with a fake sbatch that refuses every third job.
func TestStream(t *testing.T) {
	bin := t.TempDir()
	sbatch := "#!/bin/sh\necho x >>" + bin + "/asked\nn=$(wc -l <" + bin +
		"/asked)\n[ $((n % 3)) = 0 ] && { echo refused >&2; exit 1; }\necho $n\n"
	if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte(sbatch), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	stream := ledger.Stream{Name: filepath.Base(bin), Partition: "gpu", Lengths: []int{1, 2}}
	t.Cleanup(func() { _ = os.RemoveAll("/tmp/ledger-" + stream.Name) })
	run := func(command []string) string {
		out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).Output()
		if err != nil {
			t.Fatalf("%v: %v", command, err)
		}
		return string(out)
	}
	run(stream.Start())
	for end := time.Now().Add(5 * time.Minute); len(strings.Fields(run(stream.Accepted()))) < 3; {
		if time.Now().After(end) {
			t.Fatal("the stream submits nothing")
		}
	}
	run(stream.Pause())
	run(stream.Resume())
	run(stream.End())
	if got := run(stream.Accepted()); !strings.HasPrefix(got, "1\n2\n4\n") {
		t.Errorf("the stream recorded %q", got)
	}
}
