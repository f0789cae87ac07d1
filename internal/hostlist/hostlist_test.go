package hostlist

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	for name, test := range map[string]struct {
		expression string
		want       []string
	}{
		"nothing":                  {"", nil},
		"one name":                 {"node-0", []string{"node-0"}},
		"a list":                   {"b,a", []string{"b", "a"}},
		"a range":                  {"n[8-11]", []string{"n8", "n9", "n10", "n11"}},
		"a padded range":           {"n[08-10]", []string{"n08", "n09", "n10"}},
		"ranges, numbers and text": {"gpu-[0-1,8]x,login", []string{"gpu-0x", "gpu-1x", "gpu-8x", "login"}},
		"two pairs of brackets":    {"r[1-2]n[0-1]", []string{"r1n0", "r1n1", "r2n0", "r2n1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Expand(test.expression, 100)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestExpandRejectsInvalidExpressions(t *testing.T) {
	for name, expression := range map[string]string{
		"an open bracket":           "n[0-1",
		"a stray closing bracket":   "n0]",
		"nested brackets":           "n[[0]]",
		"a backward range":          "n[3-1]",
		"letters in brackets":       "n[a-b]",
		"empty brackets":            "n[]",
		"an empty name":             "a,,b",
		"a comma at the end":        "a,",
		"a comma at the start":      ",a",
		"a space":                   "a b",
		"too many digits":           "n[0-9999999999999999999]",
		"more names than the limit": "n[0-100]",
		"exponential expansion":     "n[0-999999999]m[0-999999999]",
	} {
		t.Run(name, func(t *testing.T) {
			if names, err := Expand(expression, 100); err == nil {
				t.Errorf("%q was read as %d names", expression, len(names))
			}
		})
	}
}

func TestCompress(t *testing.T) {
	for name, test := range map[string]struct {
		names []string
		want  string
	}{
		"nothing":                   {nil, ""},
		"one name":                  {[]string{"gpu-7"}, "gpu-7"},
		"adjacent numbers":          {[]string{"n2", "n1", "n0"}, "n[0-2]"},
		"gaps":                      {[]string{"n0", "n1", "n5"}, "n[0-1,5]"},
		"duplicates":                {[]string{"n1", "n1"}, "n1"},
		"widths are kept apart":     {[]string{"n9", "n10", "n09"}, "n9,n[09-10]"},
		"names without a number":    {[]string{"login", "admin"}, "admin,login"},
		"text after the number":     {[]string{"n1-ib", "n2-ib", "n2"}, "n2,n[1-2]-ib"},
		"only the last number":      {[]string{"r1n1", "r1n2", "r2n1"}, "r1n[1-2],r2n1"},
		"more digits than a number": {[]string{"n" + strings.Repeat("1", 40)}, "n" + strings.Repeat("1", 40)},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Compress(test.names)
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestCompressRejectsNamesWithSpecialCharacters(t *testing.T) {
	for _, name := range []string{"", "a,b", "a[0]", "a b", "a]", "ALL\n"} {
		if got, err := Compress([]string{name}); err == nil {
			t.Errorf("%q became %q", name, got)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "node-[0-1]", "a,b[01-10,12]c,d", "r[1-2]n[0-1]", "n[0-1", "cloud-[0-4999]",
		"(null)", "n[0-,]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		const limit = 1000
		names, err := Expand(expression, limit)
		if err != nil {
			return
		}
		again, err := Compress(names)
		if err != nil {
			if utf8.ValidString(expression) && !slices.Contains(names, "") {
				t.Fatalf("%q was expanded to names that cannot be compressed: %v", expression, err)
			}
			return
		}
		back, err := Expand(again, limit)
		if err != nil {
			t.Fatalf("%q was compressed to %q: %v", expression, again, err)
		}
		slices.Sort(names)
		slices.Sort(back)
		if diff := cmp.Diff(slices.Compact(names), slices.Compact(back)); diff != "" {
			t.Errorf("%q was compressed to %q:\n%s", expression, again, diff)
		}
	})
}

func BenchmarkExpand(b *testing.B) {
	for b.Loop() {
		if _, err := Expand("gpu-[0-15999]", 16000); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	names := make([]string, 16000)
	for i := range names {
		names[i] = fmt.Sprintf("gpu-%d", (i*7919)%len(names))
	}
	for b.Loop() {
		if _, err := Compress(names); err != nil {
			b.Fatal(err)
		}
	}
}
