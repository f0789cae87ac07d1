package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install PATH",
		Short: "Copies this program to where containers with another image find it",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			source, err := os.Executable()
			if err != nil {
				return err
			}
			return install(source, args[0])
		},
	}
}

// install copies a program. The rename at the end makes it atomic.
func install(source, target string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(target), ".install-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name()) // fails after the rename
	defer out.Close()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("copying %s: %w", source, err)
	}
	if err := out.Chmod(0o555); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), target)
}
