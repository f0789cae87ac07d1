// Package leak finds secrets in texts: logs, objects, metrics. It finds the bytes themselves and their usual encodings, and parts of them,
// wherever they begin.
package leak

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// window is how many bytes of a secret in a row count as a leak. Shorter secrets count as a whole.
const window = 12

// Find returns what is found of secrets, given by name, in a text: the names and the encodings.
func Find(text string, secrets map[string][]byte) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		for encoding, needles := range encodings(secrets[name]) {
			if slices.ContainsFunc(needles, func(needle string) bool { return strings.Contains(text, needle) }) {
				found = append(found, name+" ("+encoding+")")
			}
		}
	}
	slices.Sort(found)
	return found
}

// encodings are the texts by which a secret shows, by what they are called.
func encodings(secret []byte) map[string][]string {
	needles := map[string][]string{}
	for at := 0; at == 0 || at+window <= len(secret); at += window {
		part := secret[at:min(at+window, len(secret))]
		needles["raw"] = append(needles["raw"], string(part))
		quoted := strconv.Quote(string(part))
		needles["quoted"] = append(needles["quoted"], quoted[1:len(quoted)-1])
		needles["hex"] = append(needles["hex"], hex.EncodeToString(part), strings.ToUpper(hex.EncodeToString(part)))
		decimal := strings.Trim(fmt.Sprintf("%d", part), "[]")
		needles["decimal"] = append(needles["decimal"], decimal, strings.ReplaceAll(decimal, " ", ","), strings.ReplaceAll(decimal, " ", ", "))
		for shift := range 3 {
			needles["base64"] = append(needles["base64"], base64Parts(part, shift)...)
		}
	}
	return needles
}

// base64Parts are how bytes show in a longer base64 text in which they begin at a multiple of three and a shift.
func base64Parts(part []byte, shift int) []string {
	padded := append(bytes.Repeat([]byte{0}, shift), part...)
	var parts []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		text := encoding.EncodeToString(padded)
		// The first characters mix with what is before, and the last with what follows.
		first, last := (shift*8+5)/6, len(padded)*8/6
		parts = append(parts, text[first:last])
	}
	return parts
}
