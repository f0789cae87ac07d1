// Package advice finds mistakes in the command lines that messages, alerts, runbooks and other documents give, because
// users run them: commands, sub-commands and flags that do not exist, resources, fields, conditions and annotations
// that the API does not have, labels and containers that no pod has, values that a chart does not have, and words that
// a shell takes for a pattern.
//
// A command in code, such as a block of a document, is read as a shell reads it. A sentence that names a command may
// leave out arguments. A command in a sentence without marks has words after it that are not part of it: so its
// arguments are not checked, only its sub-command and its flags.
//
// What kubectl slurm has comes from its own commands, and what the API has from the CRDs and constants. For kubectl,
// helm and the programs of Slurm there are lists of what is known, in known.go: a word that is missing there is looked
// up in their documentation, and added or corrected.
package advice

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// A Line is a text with commands.
type Line struct {
	// Where is the file, and the line in it.
	Where string
	Text  string
	// Exact is true for code, and false for a sentence. Whole is true for code that is to be run as it is.
	Exact, Whole bool
}

// A Command is one command of a line: a program and its arguments.
type Command struct {
	Where        string
	Words        []string
	Exact, Whole bool
	// Patterns are the words that a shell takes for patterns.
	Patterns []string
}

// String returns the command on one line, after its place.
func (c Command) String() string { return c.Where + ": " + strings.Join(c.Words, " ") }

// Commands returns the commands that the files of a repository give, sorted by place.
func Commands(files fs.FS) ([]Command, error) {
	lines, err := collect(files)
	if err != nil {
		return nil, err
	}
	var commands []Command
	for _, line := range lines {
		commands = append(commands, line.commands()...)
	}
	return commands, nil
}

// Check returns a line for each mistake in the commands that the files of a repository give.
func Check(files fs.FS) ([]string, error) {
	api, err := readAPI(files)
	if err != nil {
		return nil, err
	}
	commands, err := Commands(files)
	if err != nil {
		return nil, err
	}
	var mistakes []string
	for _, command := range commands {
		for _, problem := range api.check(command) {
			mistakes = append(mistakes, fmt.Sprintf("%s: %s", command, problem))
		}
	}
	slices.Sort(mistakes)
	return slices.Compact(mistakes), nil
}

// check returns what is wrong with a command.
func (a *api) check(command Command) []string {
	if len(command.Patterns) > 0 { // zsh runs no command with one that fits no file
		return []string{fmt.Sprintf("a shell takes %s for a pattern; put it into quotes", command.Patterns[0])}
	}
	arguments := command.Words[1:]
	switch program := command.Words[0]; {
	case program == "kubectl" && len(arguments) > 0 && arguments[0] == "slurm":
		return a.checkPlugin(arguments[1:], command)
	case program == "kubectl":
		return a.checkKubectl(arguments, command.Exact)
	case program == "helm":
		return a.checkHelm(arguments, command.Exact)
	default:
		return checkSlurm(program, arguments, command.Exact)
	}
}
