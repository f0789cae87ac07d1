package slurmconf

import "strings"

// Locate finds the line of a text that produced a line of a rendered document, such as one that slurmctld refuses. It
// returns false for a line with another source, or with more than one.
func Locate(text, rendered string) (line int, found bool) {
	document, err := Parse(text)
	if err != nil {
		return 0, false
	}
	for entry := range document.All() {
		if strings.TrimSpace(Document{entries: []Entry{entry}}.Render()) == strings.TrimSpace(rendered) {
			line, found = entry.Line, true // Slurm complains about the last of several
		}
	}
	return line, found
}
