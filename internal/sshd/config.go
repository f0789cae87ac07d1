// Package sshd makes what every sshd of ours needs: host keys, and a configuration in which the user's lines win.
//
// Of two lines for one keyword sshd takes the first, so the user's lines stand before ours. But from the first Match on, lines
// hold for some logins only: that part of the user's lines stands behind ours.
package sshd

import (
	"fmt"
	"slices"
	"strings"
)

// A Config is an sshd_config in the making.
type Config struct {
	text    strings.Builder
	field   string
	matches string
}

// NewConfig begins with what the user has in a field of the spec.
func NewConfig(field, extra string) *Config {
	global, matches := splitAtMatch(extra)
	config := &Config{field: field, matches: matches}
	config.Section("From "+field+", before the operator's lines, so that it wins.", global)
	return config
}

// Section adds lines under a comment; none when there are no lines.
func (c *Config) Section(comment string, lines ...string) {
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	if len(lines) > 0 {
		fmt.Fprintf(&c.text, "# %s\n%s\n", comment, strings.Join(lines, "\n"))
	}
}

// Common adds what holds for every sshd. From here on only Match sections may follow.
func (c *Config) Common() {
	c.Section("As Debian has it.", "UsePAM yes", "KbdInteractiveAuthentication no", "PrintMotd no", "AcceptEnv LANG LC_*", "Subsystem sftp internal-sftp")
	c.Section("From "+c.field+", from its first Match on.", c.matches)
}

// String is the file.
func (c *Config) String() string { return c.text.String() }

// splitAtMatch splits a configuration before its first Match line.
func splitAtMatch(config string) (global, matches string) {
	lines := strings.Split(strings.TrimRight(config, "\n"), "\n")
	first := slices.IndexFunc(lines, func(line string) bool {
		fields := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' || r == '=' })
		return len(fields) > 0 && strings.EqualFold(fields[0], "Match")
	})
	if first < 0 {
		first = len(lines)
	}
	return strings.Join(lines[:first], "\n"), strings.Join(lines[first:], "\n")
}
