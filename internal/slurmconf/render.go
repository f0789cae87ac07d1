package slurmconf

import (
	"errors"
	"strings"
)

// Render writes the document, one line per entry, in order. Parsing the result yields an equal document, provided that
// all values can be written, as those of a parsed or built document can.
func (d Document) Render() string {
	var text strings.Builder
	for _, entry := range d.entries {
		if entry.Is(include) {
			text.WriteString(entry.Key() + " " + escape(entry.Value()) + "\n")
			continue
		}
		for i, pair := range entry.Pairs {
			if i > 0 {
				text.WriteByte(' ')
			}
			text.WriteString(pair.Key + "=" + quote(pair.Value))
		}
		text.WriteByte('\n')
	}
	return text.String()
}

// quote quotes and escapes a value as needed.
func quote(value string) string {
	if value == "" || strings.ContainsAny(value, spaces) {
		return `"` + escape(value) + `"`
	}
	return escape(value)
}

var escapes = strings.NewReplacer(`\`, `\\`, `#`, `\#`)

// escape escapes characters that are special even within quotes.
func escape(value string) string { return escapes.Replace(value) }

// checkValue returns why a value cannot be written into a configuration file: the syntax has no way to escape a quote.
func checkValue(value string) error {
	switch {
	case strings.ContainsAny(value, "\n\x00"):
		return errors.New("it has a line break or a NUL character, which a configuration file of Slurm cannot hold")
	case strings.HasPrefix(value, `"`):
		return errors.New("it begins with a quote, which a configuration file of Slurm cannot hold")
	case strings.ContainsAny(value, spaces) && strings.Contains(value, `"`):
		return errors.New("it has both blanks and quotes, which a configuration file of Slurm cannot hold together")
	}
	return nil
}
