package advice

import (
	"slices"
	"strings"
)

// A tool is what a program of Slurm knows. Slurm ignores case, except in short options.
type tool struct {
	flags string
	// words are the commands of the program, each with the entities or the parameters that follow; nil if it has none.
	words map[string]string
	// takesCommand is true if a command follows the flags.
	takesCommand bool
}

// checkSlurm returns what is wrong with a command of Slurm.
func checkSlurm(program string, arguments []string, exact bool) []string {
	known := tools[program]
	if known.takesCommand { // its flags are not those of the program
		for i, word := range arguments {
			if !strings.HasPrefix(word, "-") {
				arguments = arguments[:i]
				break
			}
		}
	}
	_, words, _, problems := flagsOf(known.flags, "help version V").parse(arguments)
	if known.words == nil || len(words) == 0 {
		return problems
	}
	parameters, found := known.words[strings.ToLower(words[0])]
	switch {
	case words[0] == placeholder, !exact && slices.Contains(prose, words[0]):
		return problems
	case !found:
		return append(problems, program+" has no command "+words[0])
	case parameters == "":
		return problems
	}
	return append(problems, checkParameters(program+" "+words[0], strings.Fields(parameters), words[1:], exact)...)
}

// checkParameters checks the entity that follows a command of Slurm, and what it sets.
func checkParameters(command string, allowed, words []string, exact bool) []string {
	var problems []string
	for i, word := range words {
		name, value, isParameter := strings.Cut(strings.ToLower(word), "=")
		switch {
		case !isParameter && (i > 0 || !exact && slices.Contains(prose, name)):
			return problems // a name, or a sentence
		case !slices.Contains(allowed, strings.TrimRight(name, "+-")) && name != strings.ToLower(placeholder):
			problems = append(problems, command+" knows no "+name)
		case name == "state" && !slices.Contains(states, value) && value != strings.ToLower(placeholder):
			problems = append(problems, "nothing can be given the state "+value)
		}
	}
	return problems
}
