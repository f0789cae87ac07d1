// Package leak finds secrets in texts such as logs, objects and metrics. It finds the raw bytes and their usual
// encodings, and parts of them at any offset.
package leak

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// window is how many consecutive bytes of a secret count as a leak. Shorter secrets count as a whole.
const window = 12

// Find returns the names and encodings of the secrets that a text contains.
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

// encodings returns the texts that reveal a secret, by the name of the encoding.
func encodings(secret []byte) map[string][]string {
	needles := map[string][]string{}
	for at := 0; at == 0 || at+window <= len(secret); at += window {
		part := secret[at:min(at+window, len(secret))]
		needles["raw"] = append(needles["raw"], string(part))
		quoted := strconv.Quote(string(part))
		needles["quoted"] = append(needles["quoted"], quoted[1:len(quoted)-1])
		needles["hex"] = append(needles["hex"], hex.EncodeToString(part), strings.ToUpper(hex.EncodeToString(part)))
		needles["URL"] = append(needles["URL"], url.QueryEscape(string(part)), url.PathEscape(string(part)))
		decimal := strings.Trim(fmt.Sprintf("%d", part), "[]")
		needles["decimal"] = append(needles["decimal"], decimal, strings.ReplaceAll(decimal, " ", ","),
			strings.ReplaceAll(decimal, " ", ", "))
		for shift := range 3 {
			needles["base64"] = append(needles["base64"], base64Parts(part, shift)...)
		}
	}
	return needles
}

// base64Parts returns the encodings of bytes within a longer base64 text, at an offset of shift modulo three.
func base64Parts(part []byte, shift int) []string {
	padded := append(bytes.Repeat([]byte{0}, shift), part...)
	var parts []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		text := encoding.EncodeToString(padded)
		// The first characters depend on the bytes before, and the last on those after.
		first, last := (shift*8+5)/6, len(padded)*8/6
		parts = append(parts, text[first:last])
	}
	return parts
}
