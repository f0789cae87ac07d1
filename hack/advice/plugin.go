package advice

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slurm-operator/slurm-operator/internal/plugin/command"
)

// checkPlugin returns what is wrong with a command of kubectl slurm.
func (a *api) checkPlugin(arguments []string, given Command) []string {
	var nested []string
	dashes := slices.Index(arguments, "--")
	if dashes >= 0 {
		arguments, nested = arguments[:dashes], arguments[dashes+1:]
	}
	arguments = slices.DeleteFunc(slices.Clone(arguments), isOptional)
	if err := checkUse(command.New("v0.0.0"), arguments, given, dashes >= 0); err != nil {
		return []string{err.Error()}
	}
	if len(nested) > 0 && slices.Contains(programs(), nested[0]) {
		return a.check(Command{Words: nested, Exact: given.Exact})
	}
	return nil
}

// checkUse returns what is wrong with a sub-command, its flags and, if it is to be run as it is, its arguments. More
// arguments may follow two dashes.
func checkUse(root *cobra.Command, arguments []string, given Command, dashes bool) error {
	target, rest, err := root.Find(arguments)
	if err != nil {
		return err
	}
	target.InitDefaultHelpFlag()
	target.InitDefaultVersionFlag()
	if err := target.ParseFlags(rest); err != nil && !strings.Contains(err.Error(), `"`+placeholder+`"`) {
		return err
	}
	positional := target.Flags().Args()
	switch {
	case target == root && len(positional) > 0 && (given.Exact || !slices.Contains(prose, positional[0])):
		return errors.New("there is no sub-command " + positional[0])
	case target == root, isHelp(target), !given.Whole && (!given.Exact || !target.HasSubCommands()):
		return nil
	}
	if err := target.ValidateRequiredFlags(); err != nil || dashes {
		return err
	}
	return target.ValidateArgs(positional)
}

// isOptional reports whether a word shows what may be given, as in [--filename FILE] [flags].
func isOptional(word string) bool {
	return strings.HasPrefix(word, "[") || strings.HasSuffix(word, "]") && !strings.Contains(word, "[") ||
		strings.HasSuffix(word, "...")
}

// isHelp reports whether a command only shows its help.
func isHelp(command *cobra.Command) bool {
	help, err := command.Flags().GetBool("help")
	return err == nil && help
}
