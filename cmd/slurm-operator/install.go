package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

func installCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install PATH [NAME...]",
		Short: "Copies this program to where containers with another image find it, and links it to other names",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			source, err := os.Executable()
			if err != nil {
				return err
			}
			if err := install(source, args[0]); err != nil {
				return err
			}
			for _, name := range args[1:] {
				if err := link(args[0], name); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// link gives a program another name, also if the name is taken.
func link(program, name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Link(program, name)
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
