// Command pictures draws what kubectl slurm prints on a terminal, for the documentation. The text is that of golden
// files with colours, which tests compare with the real output.
//
// Usage: pictures <directory of the plugin's packages> <directory for pictures>
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// pictures are the golden files to draw, and the commands that print them.
var pictures = []struct{ golden, command, file string }{
	{"command/testdata/status.ansi", "kubectl slurm status", "status.svg"},
	{"command/testdata/why.ansi", "kubectl slurm why gpu-3", "why.svg"},
	{"forecast/testdata/scale-in-of-busy-nodes.ansi", "kubectl slurm plan --filename=changed.yaml", "plan.svg"},
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pictures <directory of the plugin's packages> <directory for pictures>")
		os.Exit(2)
	}
	if err := drawAll(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pictures:", err)
		os.Exit(1)
	}
}

func drawAll(from, to string) error {
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, picture := range pictures {
		text, err := os.ReadFile(filepath.Join(from, filepath.FromSlash(picture.golden)))
		if err != nil {
			return err
		}
		drawing, err := draw(picture.command, string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", picture.golden, err)
		}
		if err := os.WriteFile(filepath.Join(to, picture.file), []byte(drawing), 0o644); err != nil {
			return err
		}
	}
	return nil
}
