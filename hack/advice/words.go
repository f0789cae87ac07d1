package advice

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// placeholder stands for what a message or a shell fills in.
const placeholder = "X"

var (
	// start matches the begin of a command in a text.
	start = regexp.MustCompile("(?:^|[\\s(`'\"])(" + strings.Join(programs(), "|") + `) [-a-z]`)
	// blank matches what a reader fills in: <job>, {namespace}, … and the verbs of a format.
	blank = regexp.MustCompile(`<[a-z][a-z -]*>|\{[a-z]+\}|\{\{.*?\}\}|%\[?[0-9]*\]?[sdqv]|…|\$\w+|\$\{\w+\}`)
)

// commands returns the commands of a line.
func (l Line) commands() []Command {
	text := blank.ReplaceAllString(l.Text, placeholder)
	var found []Command
	if l.Exact {
		for _, simple := range split(text) {
			words := simple.words
			for len(words) > 0 && (isAssignment(words[0]) || slices.Contains([]string{"sudo", "watch", "time"}, words[0])) {
				words = words[1:]
			}
			if len(words) > 0 && slices.Contains(programs(), words[0]) {
				found = append(found, Command{l.Where, words, true, l.Whole, simple.patterns})
			}
		}
		return found
	}
	for _, match := range start.FindAllStringSubmatchIndex(text, -1) {
		if words := phrase(text[match[2]:]); len(words) > 1 {
			found = append(found, Command{l.Where, words, false, false, nil})
		}
	}
	return found
}

func isAssignment(word string) bool {
	name, _, found := strings.Cut(word, "=")
	return found && name != "" && strings.ToUpper(name) == name
}

// A simple command has words, of which some are patterns for names of files.
type simple struct{ words, patterns []string }

// A shell splits a script into commands.
type shell struct {
	text     string
	commands []simple
	current  simple
	word     strings.Builder
	// inWord is true while there is a word, also an empty one in quotes; skips while the next word is a file; isPattern if
	// the word has brackets that are not in quotes.
	inWord, skips, isPattern bool
}

// split returns the commands of a script, as a shell reads it.
func split(script string) []simple {
	s := &shell{text: script}
	for s.text != "" {
		s.next()
	}
	s.endCommand()
	return s.commands
}

// next reads one character, or what belongs together.
func (s *shell) next() {
	switch first, rest := s.text[0], s.text[1:]; {
	case first == '\\' && strings.HasPrefix(rest, "\n"):
		s.text = rest[1:]
	case first == '\\' && rest != "":
		s.add(rest[:1], rest[1:])
	case first == '\'':
		quoted, after, _ := strings.Cut(rest, "'")
		s.add(quoted, after)
	case first == '"':
		s.quoted(rest)
	case strings.HasPrefix(s.text, "$("):
		s.substitute(rest[1:])
		s.add(placeholder, s.text)
	case first == '#' && !s.inWord:
		_, after, _ := strings.Cut(rest, "\n")
		s.text = "\n" + after
	case strings.HasPrefix(s.text, "<<"):
		s.skipDocument(strings.TrimLeft(rest[1:], "-"))
	case strings.ContainsRune("<>", rune(first)):
		s.redirect(rest)
	case strings.ContainsRune("\n|;&()`", rune(first)):
		s.endCommand()
		s.text = rest
	case strings.ContainsRune(" \t", rune(first)):
		s.endWord()
		s.text = rest
	default:
		s.isPattern = s.isPattern || first == '['
		s.add(s.text[:1], rest)
	}
}

// redirect skips the next word, which is a file, and the number of a stream before it.
func (s *shell) redirect(rest string) {
	if isNumber(s.word.String()) {
		s.word.Reset()
		s.inWord = false
	}
	s.endWord()
	s.text, s.skips = rest, true
}

func isNumber(word string) bool {
	return word != "" && strings.IndexFunc(word, func(r rune) bool { return !unicode.IsDigit(r) }) < 0
}

func (s *shell) add(text, after string) {
	s.word.WriteString(text)
	s.inWord, s.text = true, after
}

// quoted reads up to a double quote.
func (s *shell) quoted(rest string) {
	s.add("", rest)
	for s.text != "" && s.text[0] != '"' {
		switch {
		case s.text[0] == '\\' && len(s.text) > 1:
			s.add(s.text[1:2], s.text[2:])
		case strings.HasPrefix(s.text, "$("):
			s.substitute(s.text[2:])
			s.add(placeholder, s.text)
		default:
			s.add(s.text[:1], s.text[1:])
		}
	}
	s.text = strings.TrimPrefix(s.text, `"`)
}

// substitute reads the commands in parentheses.
func (s *shell) substitute(rest string) {
	depth := 1
	for i, r := range rest {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			s.commands = append(s.commands, split(rest[:i])...)
			s.text = rest[i+1:]
			return
		}
	}
	s.text = ""
}

// skipDocument skips a text that is given to a command.
func (s *shell) skipDocument(rest string) {
	line, text, _ := strings.Cut(rest, "\n")
	end, options, _ := strings.Cut(line, " ")
	_, after, _ := strings.Cut("\n"+text+"\n", "\n"+strings.Trim(end, `'"`)+"\n")
	s.text = " " + options + "\n" + after
}

func (s *shell) endWord() {
	if s.inWord && !s.skips {
		s.current.words = append(s.current.words, s.word.String())
		if s.isPattern && !isOptional(s.word.String()) {
			s.current.patterns = append(s.current.patterns, s.word.String())
		}
	}
	s.skips = s.skips && !s.inWord
	s.word.Reset()
	s.inWord, s.isPattern = false, false
}

func (s *shell) endCommand() {
	s.endWord()
	if len(s.current.words) > 0 {
		s.commands = append(s.commands, s.current)
	}
	s.current, s.skips = simple{}, false
}

// phrase returns the words of a command at the begin of a text, up to a punctuation mark. The last ones may be of a
// sentence that goes on.
func phrase(text string) []string {
	var words []string
	for {
		text = strings.TrimLeft(text, " ")
		word, after := phraseWord(text)
		trimmed := strings.TrimRight(word, ",;:.)")
		if trimmed != "" {
			words = append(words, trimmed)
		}
		if word == "" || trimmed != word || !strings.HasPrefix(after, " ") {
			return words
		}
		text = after
	}
}

// phraseWord returns the first word. It has blanks only in quotes, which are at its begin or after an equals sign.
func phraseWord(text string) (word, after string) {
	for i, r := range text {
		switch {
		case strings.ContainsRune(" \n|`", r):
			return text[:i], text[i:]
		case (r == '\'' || r == '"') && (i == 0 || text[i-1] == '='):
			quoted, after, closed := strings.Cut(text[i+1:], string(r))
			if !closed {
				return text[:i], ""
			}
			tail, after := phraseWord(after)
			return text[:i] + quoted + tail, after
		case r == '\'' || r == '"':
			return text[:i], ""
		}
	}
	return text, ""
}
