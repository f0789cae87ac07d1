package main

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// asProgram in the environment makes the test binary act as the program.
const asProgram = "SLURM_OPERATOR_TEST_IS_THE_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// A daemon that was asked to terminate may take its time to save its state, however often it is asked.
func TestFurtherSignalsAreIgnored(t *testing.T) {
	program := exec.CommandContext(t.Context(), os.Args[0], "run", "sh", "-c", `
n=0
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
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		lines = append(lines, scanner.Text())
		if scanner.Text() == "up" || scanner.Text() == "asked" {
			_ = program.Process.Signal(syscall.SIGTERM) // it may have exited after the last one
		}
	}
	if err := program.Wait(); err != nil || lines[len(lines)-1] != "saved" {
		t.Errorf("it exited with %v and printed %s", err, strings.Join(lines, ", "))
	}
}
