package slurmconf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// include is the only directive that is not a pair: a file name follows it.
const include = "Include"

// spaces are the characters that separate pairs.
const spaces = " \t\n\v\f\r"

// An Error is a mistake in a text that its author has to correct.
type Error struct {
	// Line is the line number, starting at 1.
	Line int
	// Text is the line, or the part of it that may be shown.
	Text string
	// Reason says what is wrong, Remedy what to do.
	Reason, Remedy string
}

func (e *Error) Error() string {
	return fmt.Sprintf("line %d: %s: %s; %s", e.Line, e.Text, e.Reason, e.Remedy)
}

// Errors returns the errors about lines in an error of Parse, Build or BuildDatabase.
func Errors(err error) []*Error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []*Error
		for _, each := range joined.Unwrap() {
			all = append(all, Errors(each)...)
		}
		return all
	}
	if line, ok := errors.AsType[*Error](err); ok {
		return []*Error{line}
	}
	return nil
}

// A fault is an Error without a position.
type fault struct{ reason, remedy string }

func (f *fault) at(line int, text string) *Error {
	return &Error{Line: line, Text: shorten(text), Reason: f.reason, Remedy: f.remedy}
}

// Parse parses a configuration file like Slurm. Its error joins an *Error for each rejected line.
func Parse(text string) (Document, error) {
	var document Document
	var faults []error
	for number := 1; text != ""; {
		line, rest, count := cutLine(text)
		pairs, fault := parseLine(unescape(line))
		if fault != nil {
			faults = append(faults, fault.at(number, line))
		} else if len(pairs) > 0 {
			document.entries = append(document.entries, Entry{Pairs: pairs, Line: number})
		}
		text = rest
		number += count
	}
	return document, errors.Join(faults...)
}

// cutLine cuts off the first logical line, without comments and joined with its continuation lines.
func cutLine(text string) (line, rest string, count int) {
	var joined strings.Builder
	for more := true; more && text != ""; count++ {
		line, text, _ = strings.Cut(text, "\n")
		line, more = cutContinuation(cutComment(line))
		joined.WriteString(line)
	}
	return joined.String(), text, count
}

// cutComment cuts off a comment. A backslash escapes a #; quotes do not.
func cutComment(line string) string {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '#':
			return line[:i]
		}
	}
	return line
}

// cutContinuation cuts off the backslash that joins a line with the next one: the last of an odd number of backslashes.
func cutContinuation(line string) (rest string, found bool) {
	trimmed := strings.TrimRight(line, spaces)
	backslashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if backslashes%2 == 0 {
		return line, false
	}
	return trimmed[:len(trimmed)-1], true
}

// unescape removes backslashes and keeps whatever follows them.
func unescape(line string) string {
	if !strings.Contains(line, `\`) {
		return line
	}
	var plain strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			i++
		}
		if i < len(line) {
			plain.WriteByte(line[i])
		}
	}
	return plain.String()
}

// parseLine parses a logical line. An empty line has no pairs.
func parseLine(line string) ([]Pair, *fault) {
	if strings.Contains(line, "\x00") {
		return nil, &fault{"it has a NUL character", "remove it"}
	}
	line = strings.Trim(line, spaces)
	if path, ok := cutInclude(line); ok {
		if path == "" || strings.ContainsAny(path, spaces) || strings.HasPrefix(path, "=") {
			return nil, &fault{"Include takes the name of one file", "write: Include <file>"}
		}
		return []Pair{{line[:len(include)], path}}, nil
	}
	pairs, fault := parsePairs(line)
	if fault != nil {
		return nil, fault
	}
	if len(pairs) > 1 && !isRecord(pairs[0].Key) {
		return nil, notRecord(pairs)
	}
	return pairs, nil
}

// cutInclude returns what follows the directive.
func cutInclude(line string) (string, bool) {
	if len(line) < len(include) || !strings.EqualFold(line[:len(include)], include) {
		return "", false
	}
	rest := line[len(include):]
	path := strings.TrimLeft(rest, spaces)
	return path, path != rest || path == "" || path[0] == '='
}

func notRecord(pairs []Pair) *fault {
	return &fault{
		fmt.Sprintf("Slurm accepts one parameter per line, but %s follows %s", pairs[1].Key, pairs[0].Key),
		fmt.Sprintf("put %s on a line of its own, or the value of %s into quotes if it has blanks", pairs[1].Key,
			pairs[0].Key),
	}
}

// parsePairs parses a line of pairs.
func parsePairs(line string) ([]Pair, *fault) {
	var pairs []Pair
	for rest := strings.TrimLeft(line, spaces); rest != ""; rest = strings.TrimLeft(rest, spaces) {
		pair, after, fault := cutPair(rest)
		if fault != nil {
			return nil, fault
		}
		pairs = append(pairs, pair)
		rest = after
	}
	return pairs, nil
}

// cutPair cuts off the first pair. Blanks around the equals sign are allowed.
func cutPair(line string) (pair Pair, rest string, _ *fault) {
	end := strings.IndexFunc(line, func(r rune) bool { return !isKeyCharacter(r) })
	if end < 0 {
		end = len(line)
	}
	key, rest := line[:end], strings.TrimLeft(line[end:], spaces)
	if key == "" || rest == "" || !strings.ContainsRune("=+-*/", rune(rest[0])) {
		return Pair{}, "", &fault{
			"this is not of the form Key=Value",
			"write Key=Value, with quotes around a value that has blanks, and # before a comment",
		}
	}
	if rest[0] != '=' {
		if len(rest) < 2 || rest[1] != '=' {
			return Pair{}, "", &fault{"this is not of the form Key=Value", "write Key=Value"}
		}
		return Pair{}, "", &fault{
			fmt.Sprintf("Slurm reads %s= as a plain = that drops what was set before", rest[:1]), "write =",
		}
	}
	rest = strings.TrimLeft(rest[1:], spaces)
	if rest == "" {
		return Pair{}, "", &fault{key + " has no value", `give it one, or remove it; "" is the empty value`}
	}
	value, rest, fault := cutValue(rest)
	return Pair{key, value}, rest, fault
}

// cutValue cuts off a value that is quoted or has no blanks.
func cutValue(line string) (value, rest string, _ *fault) {
	if strings.HasPrefix(line, `"`) {
		value, rest, closed := strings.Cut(line[1:], `"`)
		switch {
		case !closed:
			return "", "", &fault{"a quote is not closed", `add the closing "`}
		case rest != "" && !strings.ContainsRune(spaces, rune(rest[0])):
			return "", "", &fault{
				"text follows the closing quote of a value",
				`put the closing " at the end of the value; Slurm has no way to write a " within quotes`,
			}
		}
		return value, rest, nil
	}
	if end := strings.IndexAny(line, spaces); end >= 0 {
		return line[:end], line[end:], nil
	}
	return line, "", nil
}

func isKeyCharacter(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '.'
}

// secret matches keys that may hold a password.
var secret = regexp.MustCompile("(?i)pass")

// shorten quotes a line for a message, without a possible password.
func shorten(line string) string {
	const maxShown = 60
	line = strings.Trim(line, spaces)
	if at := secret.FindStringIndex(line); at != nil {
		return fmt.Sprintf("%q", line[:min(at[1], maxShown)]+"…")
	}
	if len(line) <= maxShown {
		return fmt.Sprintf("%q", line)
	}
	cut := maxShown
	for cut > 0 && !utf8.RuneStart(line[cut]) {
		cut--
	}
	return fmt.Sprintf("%q", line[:cut]+"…")
}
