package slurmconf

import (
	"errors"
	"strings"
)

// Render writes the document, an entry a line, in the order of its entries. Parsed again it gives an equal document,
// provided that all its values can be written: those of a parsed or built document can.
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

// quote writes a value so that it stays one.
func quote(value string) string {
	if value == "" || strings.ContainsAny(value, spaces) {
		return `"` + escape(value) + `"`
	}
	return escape(value)
}

var escapes = strings.NewReplacer(`\`, `\\`, `#`, `\#`)

// escape protects what has a meaning even within quotes.
func escape(value string) string { return escapes.Replace(value) }

// checkValue tells why a value cannot be written into a configuration file, whose syntax has no way to escape a quote.
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
