// Package links finds broken links in a tree of files: links of Markdown documents to files or headings that do not
// exist, and pages below docs/ that messages, charts, scripts and comments name. Links to other sites are not followed.
//
// A document is reduced to its text (no code, no comments), from which links are taken, and to its headings, whose
// anchors are computed as GitHub does it. The site (hack/site) computes them in the same way.
package links

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	fence   = regexp.MustCompile("(?ms)^[ \t]*(```|~~~).*?^[ \t]*(```|~~~)[ \t]*$")
	comment = regexp.MustCompile(`(?s)<!--.*?-->`)
	code    = regexp.MustCompile("`[^`]*`")
	target  = regexp.MustCompile(`\]\(<?([^)\s>]+)>?(?:\s+"[^"]*")?\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.+?) *#*$`)
	inline  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	page    = regexp.MustCompile(`\bdocs/[\w/-]+\.md(?:#[\w-]+)?`)
)

// A tree has the documents that were read so far: the anchors of their headings, by path.
type tree struct {
	files   fs.FS
	anchors map[string]map[string]bool
}

// Check returns a line for each broken link in files, sorted.
func Check(files fs.FS) ([]string, error) {
	t := tree{files, map[string]map[string]bool{}}
	var broken []string
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isSkipped(name):
			return fs.SkipDir
		case entry.IsDir() || !hasLinks(name):
			return nil
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		for _, link := range linksOf(name, string(content)) {
			if reason, err := t.resolve(link); err != nil {
				return err
			} else if reason != "" {
				broken = append(broken, fmt.Sprintf("%s: %s: %s", name, link, reason))
			}
		}
		return nil
	})
	slices.Sort(broken)
	return broken, err
}

// isSkipped reports whether a directory has nothing of the repository's own.
func isSkipped(name string) bool {
	base := path.Base(name)
	return name == "bin" || base == "node_modules" || base == "testdata" ||
		strings.HasPrefix(base, ".") && name != "." && base != ".github" && base != ".ci"
}

// hasLinks reports whether a file may have links. Tests are left out: their pages need not exist.
func hasLinks(name string) bool {
	if strings.HasSuffix(name, "_test.go") {
		return false
	}
	switch path.Ext(name) {
	case ".md", ".go", ".yaml", ".yml", ".tpl", ".gotmpl", ".txt", ".sh":
		return true
	}
	return path.Base(name) == "Makefile"
}

// linksOf returns the links of a file, as paths from the root of the tree, each with the anchor that it has.
func linksOf(name, content string) []string {
	if path.Ext(name) != ".md" {
		return page.FindAllString(content, -1)
	}
	var links []string
	for _, match := range target.FindAllStringSubmatch(code.ReplaceAllString(prose(content), ""), -1) {
		link, err := url.PathUnescape(match[1])
		if err != nil || strings.Contains(link, ":") { // another site, or a mail address
			continue
		}
		file, anchor, found := strings.Cut(link, "#")
		if file == "" {
			file = name
		} else {
			file = path.Join(path.Dir(name), file)
		}
		if found {
			file += "#" + anchor
		}
		links = append(links, file)
	}
	return links
}

// prose returns a document without code blocks and comments.
func prose(document string) string {
	return comment.ReplaceAllString(fence.ReplaceAllString(document, ""), "")
}

// resolve returns why a link does not lead anywhere, or nothing.
func (t tree) resolve(link string) (string, error) {
	file, anchor, _ := strings.Cut(link, "#")
	switch _, err := fs.Stat(t.files, file); {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrInvalid):
		return "there is no such file", nil
	case err != nil:
		return "", err
	case anchor == "":
		return "", nil
	case path.Ext(file) != ".md":
		return "only Markdown documents have headings", nil
	}
	if t.anchors[file] == nil {
		content, err := fs.ReadFile(t.files, file)
		if err != nil {
			return "", err
		}
		t.anchors[file] = anchors(string(content))
	}
	if !t.anchors[file][anchor] {
		return "the document has no such heading", nil
	}
	return "", nil
}

// anchors returns the anchors of the headings of a document. A repeated heading gets a number.
func anchors(document string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(prose(document), -1) {
		anchor := slug(inline.ReplaceAllString(match[1], "$1"))
		unique := anchor
		for i := 1; found[unique]; i++ {
			unique = fmt.Sprintf("%s-%d", anchor, i)
		}
		found[unique] = true
	}
	return found
}

// slug returns the anchor of a heading: in lower case, with hyphens for blanks, and without punctuation.
func slug(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}
