// Package sshd generates host keys and configurations for the operator's sshds. The user's settings take precedence.
//
// sshd uses the first value of a setting, so the user's lines come before the operator's. But lines after a Match apply
// only to some logins, so the user's lines from the first Match on come after the operator's.
package sshd

import (
	"fmt"
	"slices"
	"strings"
)

// A Config builds an sshd_config.
type Config struct {
	text    strings.Builder
	field   string
	matches string
}

// NewConfig returns a Config that starts with the user's lines from a field of the spec.
func NewConfig(field, extra string) *Config {
	global, matches := splitAtMatch(extra)
	config := &Config{field: field, matches: matches}
	config.Section("From "+field+", before the operator's lines, so that it wins.", global)
	return config
}

// Section adds lines under a comment, or nothing if there are no lines.
func (c *Config) Section(comment string, lines ...string) {
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == "" })
	if len(lines) > 0 {
		fmt.Fprintf(&c.text, "# %s\n%s\n", comment, strings.Join(lines, "\n"))
	}
}

// Common adds the lines that all sshds have in common. Only Match sections may follow.
func (c *Config) Common() {
	c.Section("As Debian has it.", "UsePAM yes", "KbdInteractiveAuthentication no", "PrintMotd no",
		"AcceptEnv LANG LC_*", "Subsystem sftp internal-sftp")
	c.Section("From "+c.field+", from its first Match on.", c.matches)
}

// String returns the file.
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
