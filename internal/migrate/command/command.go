// Package command is the command "migrate", which the operator's program and the plugin for kubectl have.
package command

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/migrate"
)

// New returns the command of a program, whose name is for the example.
func New(program string) *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Help to move in from another operator",
		Args:  cobra.NoArgs,
	}
	command.AddCommand(valuesCommand(program))
	return command
}

func valuesCommand(program string) *cobra.Command {
	var chart, file string
	command := &cobra.Command{
		Use:   "values",
		Short: "Translate values of the charts of SlinkyProject/slurm-operator to values of this operator's charts",
		Long: `Translates values of the charts of SlinkyProject/slurm-operator, versions 1.0 to 1.2, to values of this
operator's charts. The translated values are written to standard output; what was changed or dropped, and why, to
standard error.`,
		Example: `  helm get values slurm --namespace slurm --all --output yaml |
    ` + program + ` migrate values --chart slurm >values.yaml`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			input := command.InOrStdin()
			if file != "-" {
				opened, err := os.Open(file)
				if err != nil {
					return err
				}
				defer opened.Close()
				input = opened
			}
			return translate(migrate.Chart(chart), input, command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.StringVar(&chart, "chart", string(migrate.Slurm),
		fmt.Sprintf("the chart that the values are for: %s or %s", migrate.Slurm, migrate.Operator))
	flags.StringVar(&file, "file", "-", "the file with the values; standard input by default")
	return command
}

// translate writes translated values to output, and a line for each change to notes.
func translate(chart migrate.Chart, input io.Reader, output, notes io.Writer) error {
	content, err := io.ReadAll(input)
	if err != nil {
		return fmt.Errorf("reading the values: %w", err)
	}
	translated, changes, err := migrate.YAML(chart, content)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if _, err := fmt.Fprintln(notes, change); err != nil {
			return err
		}
	}
	_, err = output.Write(translated)
	return err
}
