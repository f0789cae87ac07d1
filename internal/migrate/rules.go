package migrate

import "strings"

// A rule translates the values at a path.
type rule struct {
	// path may contain a * for the name of an entry. Without a path, the rule always applies.
	path string
	// do translates the value at one path.
	do func(t *translation, path string)
}

func (r rule) apply(t *translation) {
	if r.path == "" {
		r.do(t, "")
		return
	}
	for _, path := range t.matches(r.path) {
		r.do(t, path)
	}
}

// moved is for a value that has another path, and the same meaning.
func moved(from, to string) rule {
	return rule{from, func(t *translation, path string) {
		t.set(to, t.take(path))
		t.note(path, "moved to %s", to)
	}}
}

// dropped is for a value without a counterpart.
func dropped(path, reason string) rule {
	return rule{path, func(t *translation, path string) {
		t.take(path)
		t.note(path, "dropped: %s", reason)
	}}
}

// droppedUnless is for a value that has a meaning only if another is true.
func droppedUnless(path, condition string) rule {
	return rule{path, func(t *translation, path string) {
		if !truth(t.get(condition)) {
			t.take(path)
			t.note(path, "dropped: it is used only with %s", condition)
		}
	}}
}

// list splits a comma-separated list.
func list(joined string) []any {
	var items []any
	for item := range strings.SplitSeq(joined, ",") {
		if item = strings.TrimSpace(item); item != "" {
			items = append(items, item)
		}
	}
	return items
}
