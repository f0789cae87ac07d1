package links_test

import (
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/hack/links"
	"github.com/slurm-operator/slurm-operator/hack/repo"
)

func TestRepositoryHasNoBrokenLinks(t *testing.T) {
	root, err := repo.Root()
	if err != nil {
		t.Fatal(err)
	}
	broken, err := links.Check(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range broken {
		t.Error(link)
	}
}

func TestCheck(t *testing.T) {
	for name, test := range map[string]struct {
		document string // docs/a.md
		want     []string
	}{
		"links to files, directories and headings are followed": {
			"# A page\n[b](b.md), [code](../main.go), [all](.), [heading](b.md#two-words) and [here](#a-page)", nil,
		},
		"a link to a file that does not exist is broken": {
			"[c](c.md)", []string{"docs/a.md: docs/c.md: there is no such file"},
		},
		"a link out of the tree is broken": {
			"[c](../../c.md)", []string{"docs/a.md: ../c.md: there is no such file"},
		},
		"a link to a heading that does not exist is broken": {
			"[b](b.md#three)", []string{"docs/a.md: docs/b.md#three: the document has no such heading"},
		},
		"a link to a heading of its own that does not exist is broken": {
			"[b](#three)", []string{"docs/a.md: docs/a.md#three: the document has no such heading"},
		},
		"an anchor in a file that is no document is broken": {
			"[b](../main.go#L1)", []string{"docs/a.md: main.go#L1: only Markdown documents have headings"},
		},
		"anchors have no punctuation, and keep letters, digits, hyphens and underscores": {
			"## Evictions and `kubectl drain`\n## auth/slurm, the 2nd_key\n" +
				"[1](#evictions-and-kubectl-drain) [2](#authslurm-the-2nd_key)", nil,
		},
		"a repeated heading has a number":               {"## Fix\n## Fix\n[first](#fix) [second](#fix-1)", nil},
		"the text of a link in a heading is its anchor": {"## See [b](b.md)\n[here](#see-b)", nil},
		"a link whose text is on two lines is followed": {
			"[two\nlines](c.md)", []string{"docs/a.md: docs/c.md: there is no such file"},
		},
		"code has no links and no headings": {
			"```sh\n# heading\n[c](c.md)\n```\n`[c](c.md)` [1](#heading)",
			[]string{"docs/a.md: docs/a.md#heading: the document has no such heading"},
		},
		"links to other sites are not followed": {"[x](https://example.com/x.md) [y](mailto:y@example.com)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := links.Check(fstest.MapFS{
				"docs/a.md": {Data: []byte(test.document)},
				"docs/b.md": {Data: []byte("# Two words\n")},
				"main.go":   {Data: []byte("package main // see docs/b.md#two-words\n")},
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("broken links (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPagesThatMessagesNameMustExist(t *testing.T) {
	got, err := links.Check(fstest.MapFS{
		"docs/keys.md":         {Data: []byte("# Keys\n")},
		"main.go":              {Data: []byte(`const help = "see docs/keys.md and docs/tokens.md"`)},
		"charts/values.yaml":   {Data: []byte("# see docs/keys.md#rotate\n")},
		"node_modules/a/a.md":  {Data: []byte("[x](missing.md)")},
		"api/testdata/page.md": {Data: []byte("[x](missing.md)")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"charts/values.yaml: docs/keys.md#rotate: the document has no such heading",
		"main.go: docs/tokens.md: there is no such file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("broken links (-want +got):\n%s", diff)
	}
}
