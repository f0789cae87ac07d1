package slurmconf

import (
	"errors"
	"strings"
)

// A merger lays what the administrator wrote over what the operator decided.
type merger struct {
	document Document
	owned    keyTable
	// tokens are those of the operator in lists, by key; nobody changes them.
	tokens map[string][]string
	faults []error
}

// refuse notes what is wrong with an entry. The text shows no more than its key, because the value may be a secret.
func (m *merger) refuse(entry Entry, reason, remedy string) {
	m.faults = append(m.faults, &Error{Line: entry.Line, Text: entry.Key(), Reason: reason, Remedy: remedy})
}

// merge lays a text over the document.
func (m *merger) merge(text string) error {
	extra, err := Parse(text)
	if err != nil {
		m.faults = append(m.faults, err)
	}
	for entry := range extra.All() {
		switch owner, owned := m.owned.find(entry.Key()); {
		case owned:
			if !m.says(entry) {
				m.refuse(entry, "the key belongs to the operator: "+owner.reason, owner.remedy)
			}
		case isRecord(entry.Key()), contains(repeatable, entry.Key()):
			m.document.add(entry)
		case contains(lists, entry.Key()):
			m.mergeList(entry)
		default:
			m.document.put(entry)
		}
	}
	return errors.Join(m.faults...)
}

// says tells whether the document has the very same parameter, so that repeating it does no harm.
func (m *merger) says(entry Entry) bool {
	for own := range m.document.All() {
		if own.Is(entry.Key()) && own.Value() == entry.Value() {
			return true
		}
	}
	return false
}

// mergeList adds the tokens of an entry to those that are there.
func (m *merger) mergeList(entry Entry) {
	current, _ := m.document.Get(entry.Key())
	tokens := splitTokens(current)
	for _, token := range splitTokens(entry.Value()) {
		name := tokenName(token)
		if own, found := findToken(m.tokens[strings.ToLower(entry.Key())], name); found && own != token {
			m.refuse(entry, "its token "+name+" belongs to the operator, which sets "+own, "remove the token")
			continue
		}
		if strings.EqualFold(name, marker) {
			m.refuse(entry, "its token "+marker+" belongs to the operator", "remove the token")
			continue
		}
		tokens = putToken(tokens, token)
	}
	entry.Pairs = []Pair{{entry.Key(), strings.Join(tokens, ",")}}
	m.document.put(entry)
}

// splitTokens takes a list apart and drops what is empty.
func splitTokens(list string) []string {
	var tokens []string
	for token := range strings.SplitSeq(list, ",") {
		if token = strings.Trim(token, spaces); token != "" {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// tokenName is the part of a token before the equals sign.
func tokenName(token string) string {
	name, _, _ := strings.Cut(token, "=")
	return name
}

// findToken returns the token of a name.
func findToken(tokens []string, name string) (string, bool) {
	for _, token := range tokens {
		if strings.EqualFold(tokenName(token), name) {
			return token, true
		}
	}
	return "", false
}

// putToken replaces the token of the same name, and adds it when there is none.
func putToken(tokens []string, token string) []string {
	for i := range tokens {
		if strings.EqualFold(tokenName(tokens[i]), tokenName(token)) {
			tokens[i] = token
			return tokens
		}
	}
	return append(tokens, token)
}
