// Package output prints the results of commands: as text for people, or as JSON and YAML for programs.
//
// A result is a struct with JSON names. Its text is made by a function, with the styles of a Page: colours are used
// only on a terminal, and not if NO_COLOR is set, so that a golden file shows what a pipe gets. CLICOLOR_FORCE asks for
// colours in a pipe.
package output

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// A Format is the value of the flag --output.
type Format string

// The formats.
const (
	Text Format = ""
	Wide Format = "wide"
	JSON Format = "json"
	YAML Format = "yaml"
)

// Formats are the formats by name, for completion.
var Formats = []string{string(Wide), string(JSON), string(YAML)}

// String returns the flag's value.
func (f *Format) String() string { return string(*f) }

// Type returns the type that the help shows.
func (*Format) Type() string { return "format" }

// Set parses the flag's value.
func (f *Format) Set(value string) error {
	switch Format(value) {
	case Text, Wide, JSON, YAML:
		*f = Format(value)
		return nil
	default:
		return fmt.Errorf("unknown format; use %s", strings.Join(Formats, ", "))
	}
}

// Print writes a result in a format: encoded, or as the text that draw writes.
func Print(out io.Writer, format Format, style Style, result any, draw func(*Page)) error {
	var encoded []byte
	var err error
	switch format {
	case JSON:
		encoded, err = json.MarshalIndent(result, "", "  ")
		encoded = append(encoded, '\n')
	case YAML:
		encoded, err = yaml.Marshal(result)
	case Text, Wide:
		page := &Page{Style: style, Wide: format == Wide}
		draw(page)
		encoded = []byte(page.String())
	}
	if err != nil {
		return fmt.Errorf("encoding the result: %w", err)
	}
	_, err = out.Write(encoded)
	return err
}

// A Style says how to mark up text.
type Style struct{ Colours bool }

// StyleFor returns the style for an output: colours only on a terminal, or with CLICOLOR_FORCE, and not with NO_COLOR.
func StyleFor(out io.Writer) Style {
	forced := os.Getenv("CLICOLOR_FORCE")
	terminal := IsTerminal(out) && os.Getenv("TERM") != "dumb"
	return Style{Colours: os.Getenv("NO_COLOR") == "" && (terminal || forced != "" && forced != "0")}
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a file descriptor is a small number
}

// Good marks a state that is as it should be.
func (s Style) Good(text string) string { return s.code("32", text) }

// Warn marks a state that needs attention, or that will pass by itself.
func (s Style) Warn(text string) string { return s.code("33", text) }

// Bad marks a state that somebody must repair.
func (s Style) Bad(text string) string { return s.code("31", text) }

// Dim marks what matters less.
func (s Style) Dim(text string) string { return s.code("2", text) }

// Bold marks a heading.
func (s Style) Bold(text string) string { return s.code("1", text) }

func (s Style) code(code, text string) string {
	if !s.Colours || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
