package slurmconf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// marker is the token of SlurmctldParameters with the hash. Slurm ignores unknown tokens, and shows them with the rest
// of its running configuration.
const marker = "config_hash"

// keyMarker is the token of SlurmctldParameters with the digest of the key that signs tokens. slurmctld only reads that
// key with its configuration, so another key is another configuration.
const keyMarker = "jwt_key_digest"

// KeyDigest distinguishes keys. It is too short to reveal anything about a key.
func KeyDigest(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:4])
}

// KeyDigestOf returns the digest of the key in the value of SlurmctldParameters, empty if there is none.
func KeyDigestOf(parameters string) string {
	token, _ := findToken(splitTokens(parameters), keyMarker)
	_, digest, _ := strings.Cut(token, "=")
	return digest
}

// FileName is the name of the file with the hash of all files.
const FileName = "slurm.conf"

// Hash identifies the content of all configuration files, given by name. The marker of an earlier hash is ignored.
func Hash(files map[string]string) string {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		content := files[name]
		if name == FileName {
			content = withoutHash(content)
		}
		fmt.Fprintf(hash, "%d %s %d %s\n", len(name), name, len(content), content)
	}
	return hex.EncodeToString(hash.Sum(nil))[:16]
}

// withoutHash removes the marker. A text that cannot be parsed is returned unchanged.
func withoutHash(text string) string {
	document, err := Parse(text)
	if err != nil {
		return text
	}
	return WithHash(document, "").Render()
}

// WithHash sets the hash of the document, or removes it if empty.
func WithHash(d Document, hash string) Document {
	const key = "SlurmctldParameters"
	value, found := d.Get(key)
	if !found && hash == "" {
		return d
	}
	tokens := slices.DeleteFunc(splitTokens(value),
		func(token string) bool { return strings.EqualFold(tokenName(token), marker) })
	if hash != "" {
		tokens = append(tokens, marker+"="+hash)
	}
	d.Set(key, strings.Join(tokens, ","))
	return d
}

// HashOf returns the hash in the value of SlurmctldParameters, as the running slurmctld shows it, empty if there is
// none.
func HashOf(parameters string) string {
	token, _ := findToken(splitTokens(parameters), marker)
	_, hash, _ := strings.Cut(token, "=")
	return hash
}
