package slurmconf

import (
	"errors"
	"slices"
	"strings"
)

// A merger merges the administrator's text into the operator's document, in linear time.
type merger struct {
	own   Document // the operator's document
	owned keyTable // keys that only the operator may set
	// tokens are the operator's own tokens in lists, by key in lower case; they cannot be changed.
	tokens map[string][]string

	entries []Entry
	index   map[string]int        // index of the first entry with a key, by key in lower case
	lists   map[string]*tokenList // by key in lower case
	faults  []error
}

// merge merges a text into the operator's document.
func (m *merger) merge(text string) (Document, error) {
	m.index, m.lists = map[string]int{}, map[string]*tokenList{}
	for entry := range m.own.All() {
		m.add(entry)
	}
	if _, err := Parse(text); err != nil {
		m.faults = append(m.faults, err)
	}
	for entry := range Written(text).All() {
		switch owner, owned := m.owned.find(entry.Key()); {
		case owned:
			if !m.matches(entry) {
				m.refuse(entry, "the operator sets this key: "+owner.reason, owner.remedy)
			}
		case isRecord(entry.Key()), contains(repeatable, entry.Key()):
			m.add(entry)
		case contains(lists, entry.Key()):
			m.mergeList(entry)
		default:
			m.put(entry)
		}
	}
	for key, list := range m.lists {
		entry := &m.entries[m.index[key]]
		entry.Pairs = []Pair{{entry.Key(), strings.Join(list.tokens, ",")}}
	}
	return Document{m.entries}, errors.Join(m.faults...)
}

// Written returns the lines of an administrator's text as they are merged, without those that cannot be parsed. Build
// reports the errors.
func Written(text string) Document {
	written, _ := Parse(text)
	for i, entry := range written.entries {
		written.entries[i] = withStateLast(entry)
	}
	return written
}

// refuse records what is wrong with an entry. The text shows only its key, because the value may be a secret.
func (m *merger) refuse(entry Entry, reason, remedy string) {
	m.faults = append(m.faults, &Error{Line: entry.Line, Text: entry.Key(), Reason: reason, Remedy: remedy})
}

// matches reports whether the operator sets the same value, so that repeating it is harmless.
func (m *merger) matches(entry Entry) bool {
	return slices.ContainsFunc(m.own.entries, func(own Entry) bool {
		return own.Is(entry.Key()) && own.Value() == entry.Value()
	})
}

func (m *merger) add(entry Entry) {
	key := strings.ToLower(entry.Key())
	if _, found := m.index[key]; !found {
		m.index[key] = len(m.entries)
	}
	m.entries = append(m.entries, entry)
}

// put replaces the entry with the same key, or adds it.
func (m *merger) put(entry Entry) {
	if at, found := m.index[strings.ToLower(entry.Key())]; found {
		m.entries[at] = entry
		return
	}
	m.add(entry)
}

// mergeList adds the tokens of an entry to the existing ones.
func (m *merger) mergeList(entry Entry) {
	key := strings.ToLower(entry.Key())
	list := m.lists[key]
	if list == nil {
		list = &tokenList{index: map[string]int{}}
		if at, found := m.index[key]; found {
			list.put(splitTokens(m.entries[at].Value())...)
		}
		m.lists[key] = list
	}
	m.put(entry)
	for _, token := range splitTokens(entry.Value()) {
		name := tokenName(token)
		own, found := findToken(m.tokens[key], name)
		switch {
		case found && own != token:
			m.refuse(entry, "its token "+name+" belongs to the operator, which sets "+own, "remove the token")
		case strings.EqualFold(name, marker):
			m.refuse(entry, "its token "+marker+" belongs to the operator", "remove the token")
		default:
			list.put(token)
		}
	}
}

// A tokenList is a list of tokens with distinct names.
type tokenList struct {
	tokens []string
	index  map[string]int // index in tokens, by name in lower case
}

// put replaces the token with the same name, or adds it.
func (l *tokenList) put(tokens ...string) {
	for _, token := range tokens {
		name := strings.ToLower(tokenName(token))
		if at, found := l.index[name]; found {
			l.tokens[at] = token
			continue
		}
		l.index[name] = len(l.tokens)
		l.tokens = append(l.tokens, token)
	}
}

// splitTokens splits a list and drops empty tokens.
func splitTokens(list string) []string {
	var tokens []string
	for token := range strings.SplitSeq(list, ",") {
		if token = strings.Trim(token, spaces); token != "" {
			tokens = append(tokens, token)
		}
	}
	return tokens
}

// tokenName returns the part of a token before the equals sign.
func tokenName(token string) string {
	name, _, _ := strings.Cut(token, "=")
	return name
}

// findToken returns the token with a name.
func findToken(tokens []string, name string) (string, bool) {
	for _, token := range tokens {
		if strings.EqualFold(tokenName(token), name) {
			return token, true
		}
	}
	return "", false
}
