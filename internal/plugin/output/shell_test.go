package output

import "testing"

// Shells take brackets for a pattern, and zsh runs no command with one that fits no file.
func TestQuoted(t *testing.T) {
	for word, want := range map[string]string{
		"nodename=gpu-2,gpu-4": "nodename=gpu-2,gpu-4",
		"nodename=gpu-[0-3]":   "'nodename=gpu-[0-3]'",
		"nodename=gpu-0":       "nodename=gpu-0",
		"my context":           "'my context'",
		"it's":                 `'it'\''s'`,
	} {
		if got := Quoted(word); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
