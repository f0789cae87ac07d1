// Command pluginref writes the reference of kubectl slurm, from the help texts of its commands.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slurm-operator/slurm-operator/internal/plugin/command"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	write(out, command.New(""))
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "pluginref:", err)
		os.Exit(1)
	}
}

// write writes the page: the flags that all commands have once, and then each command.
func write(out io.Writer, root *cobra.Command) {
	fmt.Fprintln(out, "# kubectl slurm: reference")
	fmt.Fprintln(out)
	fmt.Fprintln(out, "Generated from the help texts. [How to use it](../kubectl-slurm.md).")
	fmt.Fprintln(out)
	fmt.Fprintln(out, root.Long)
	fmt.Fprintln(out)
	fmt.Fprintln(out, "## Flags of all commands")
	fmt.Fprintln(out)
	writeFlags(out, root.PersistentFlags())
	for _, child := range root.Commands() {
		writeCommand(out, child)
	}
}

func writeCommand(out io.Writer, child *cobra.Command) {
	if !child.IsAvailableCommand() || child.Name() == "help" || child.Name() == "completion" {
		return
	}
	child.InitDefaultHelpFlag()
	path := strings.TrimPrefix(child.CommandPath(), "kubectl slurm ")
	fmt.Fprintf(out, "\n## %s\n\n%s.\n", path, child.Short)
	if child.Runnable() {
		fmt.Fprintf(out, "\n    %s\n", child.UseLine())
	}
	if child.Long != "" {
		fmt.Fprintf(out, "\n%s\n", child.Long)
	}
	if child.Example != "" {
		fmt.Fprintf(out, "\nExamples:\n\n```sh\n%s\n```\n", unindent(child.Example))
	}
	if child.LocalNonPersistentFlags().HasAvailableFlags() {
		fmt.Fprintln(out)
		writeFlags(out, child.LocalNonPersistentFlags())
	}
	for _, grandchild := range child.Commands() {
		writeCommand(out, grandchild)
	}
}

func unindent(example string) string {
	lines := strings.Split(example, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// writeFlags writes flags as a table.
func writeFlags(out io.Writer, flags *pflag.FlagSet) {
	fmt.Fprintln(out, "| flag | meaning |")
	fmt.Fprintln(out, "|---|---|")
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		name := "`--" + flag.Name + "`"
		if flag.Shorthand != "" {
			name = "`-" + flag.Shorthand + "`, " + name
		}
		fmt.Fprintf(out, "| %s | %s |\n", name, strings.ReplaceAll(flag.Usage, "|", `\|`))
	})
}
