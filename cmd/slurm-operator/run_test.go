package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// asProgram in the environment makes the test binary the program itself.
const asProgram = "SLURM_OPERATOR_TEST_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A daemon that was asked to end may take its time to save what it knows, however often it is asked.
func TestASecondSignalEndsNobody(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0], "run", "sh", "-c", `
trap 'echo asked; n=$((n+1)); if [ $n = 3 ]; then echo saved; exit 0; fi' TERM
echo up
while :; do sleep 0.05; done`)
	program.Env = append(os.Environ(), asProgram+"=yes")
	output, err := program.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	for lines := bufio.NewScanner(output); lines.Scan(); {
		said = append(said, lines.Text())
		if lines.Text() == "up" || lines.Text() == "asked" {
			_ = program.Process.Signal(syscall.SIGTERM) // it may have ended by the last
		}
	}
	if err := program.Wait(); err != nil || said[len(said)-1] != "saved" {
		t.Errorf("it ended with %v, and said %s", err, strings.Join(said, ", "))
	}
}
