package report

import (
	"regexp"
	"strings"
	"unicode"
)

// mark replaces a secret.
const mark = "[redacted]"

var (
	privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(-----END [A-Z0-9 ]*PRIVATE KEY-----|$)`)
	jsonToken  = regexp.MustCompile(`eyJ[A-Za-z0-9_-]{4,}(\.[A-Za-z0-9_-]+){1,4}`)
	userInfo   = regexp.MustCompile(`://[^/\s:@"']*:[^/\s@"']+@`)
	// assignment matches a key that names a secret, and its value: password=x, "token": "x", X-SLURM-USER-TOKEN: x.
	assignment = regexp.MustCompile(`(?i)([\w.-]*(?:passw(?:or)?d|passphrase|pass|secret|token|credential|api-?_?key)` +
		`[\w.-]*)(["']?[ \t]*[=:][ \t]*)("[^"\n]*"|'[^'\n]*'|[^\s"',;]+)`)
	// bearer matches an authorization header.
	bearer = regexp.MustCompile(`(?i)((?:bearer|basic)[ \t]+)[A-Za-z0-9+/=._~-]{8,}`)
	// encoded matches what may be encoded random bytes.
	encoded = regexp.MustCompile(`[A-Za-z0-9+_-]{32,}={0,2}`)
)

// Redact replaces what looks like a secret in a text.
func Redact(text string) string {
	text = privateKey.ReplaceAllString(text, mark)
	text = jsonToken.ReplaceAllString(text, mark)
	text = userInfo.ReplaceAllString(text, "://"+mark+"@")
	text = bearer.ReplaceAllString(text, "${1}"+mark)
	text = assignment.ReplaceAllStringFunc(text, func(found string) string {
		parts := assignment.FindStringSubmatch(found)
		if strings.HasSuffix(parts[1], "Name") || strings.HasSuffix(parts[1], "Ref") { // a reference to a Secret
			return found
		}
		return parts[1] + parts[2] + mark
	})
	return encoded.ReplaceAllStringFunc(text, func(found string) string {
		if looksRandom(found) {
			return mark
		}
		return found
	})
}

// looksRandom reports whether a long word has upper and lower case letters and digits, as encoded random bytes have.
// Names of pods, hashes and dates have not.
func looksRandom(word string) bool {
	return strings.IndexFunc(word, unicode.IsUpper) >= 0 && strings.IndexFunc(word, unicode.IsLower) >= 0 &&
		strings.IndexFunc(word, unicode.IsDigit) >= 0
}
