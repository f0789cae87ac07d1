package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/migrate"
)

func migrateCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "migrate",
		Short: "Help to move in from another operator",
		Args:  cobra.NoArgs,
	}
	command.AddCommand(migrateValuesCommand())
	return command
}

func migrateValuesCommand() *cobra.Command {
	var chart, file string
	command := &cobra.Command{
		Use:   "values",
		Short: "Translate values of the charts of SlinkyProject/slurm-operator to values of this operator's charts",
		Long: `Translates values of the charts of SlinkyProject/slurm-operator, versions 1.0 to 1.2, to values of this
operator's charts. The translated values are written to standard output; what was changed or dropped, and why, to
standard error.`,
		Example: `  helm get values slurm --namespace slurm --all --output yaml |
    kubectl slurm migrate values --chart slurm >values.yaml`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			content, err := readFile(command, file)
			if err != nil {
				return fmt.Errorf("reading the values: %w", err)
			}
			translated, notes, err := migrate.YAML(migrate.Chart(chart), content)
			if err != nil {
				return err
			}
			for _, note := range notes {
				if _, err := fmt.Fprintln(command.ErrOrStderr(), note); err != nil {
					return err
				}
			}
			_, err = command.OutOrStdout().Write(translated)
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&chart, "chart", string(migrate.Slurm),
		fmt.Sprintf("the chart that the values are for: %s or %s", migrate.Slurm, migrate.Operator))
	flags.StringVar(&file, "file", "-", "the file with the values; standard input by default")
	return command
}
