package slurmconf

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []Entry
	}{
		"nothing":                  {"", nil},
		"blank lines and comments": {"\n # a comment\n\t\n#another\\\n", nil},
		"a parameter": {
			"SlurmdTimeout=300", []Entry{{[]Pair{{"SlurmdTimeout", "300"}}, 1}},
		},
		"CRLF line endings": {
			"A=1\r\nB=2\r\n", []Entry{{[]Pair{{"A", "1"}}, 1}, {[]Pair{{"B", "2"}}, 2}},
		},
		"case is kept": {
			"slurmdTIMEOUT=300", []Entry{{[]Pair{{"slurmdTIMEOUT", "300"}}, 1}},
		},
		"blanks around the equals sign":         {"  A =\t1 ", []Entry{{[]Pair{{"A", "1"}}, 1}}},
		"a comment after a value":               {"A=1 # one", []Entry{{[]Pair{{"A", "1"}}, 1}}},
		"a comment directly after a value":      {"A=1#one", []Entry{{[]Pair{{"A", "1"}}, 1}}},
		"an escaped number sign":                {`A=1\#one`, []Entry{{[]Pair{{"A", "1#one"}}, 1}}},
		"an escaped backslash":                  {`A=1\\`, []Entry{{[]Pair{{"A", `1\`}}, 1}}},
		"an escaped backslash before a comment": {`A=1\\#one`, []Entry{{[]Pair{{"A", `1\`}}, 1}}},
		"a quoted value":                        {`A="one two"`, []Entry{{[]Pair{{"A", "one two"}}, 1}}},
		"an empty value":                        {`A=""`, []Entry{{[]Pair{{"A", ""}}, 1}}},
		"a quote within a value":                {`A=5"disk`, []Entry{{[]Pair{{"A", `5"disk`}}, 1}}},
		"a value with equals signs":             {"A=b=c,d=e", []Entry{{[]Pair{{"A", "b=c,d=e"}}, 1}}},
		"a continued line": {
			"A=1,\\\n2\nB=3", []Entry{{[]Pair{{"A", "1,2"}}, 1}, {[]Pair{{"B", "3"}}, 3}},
		},
		"a continued line with blanks at its end": {"A=1,\\ \t\r\n2", []Entry{{[]Pair{{"A", "1,2"}}, 1}}},
		"a continued line with a comment":         {"A=1,\\ # one\n2", []Entry{{[]Pair{{"A", "1,2"}}, 1}}},
		"a comment that does not continue":        {"#A=1,\\\nB=2", []Entry{{[]Pair{{"B", "2"}}, 2}}},
		"a continued line at the end of the text": {"A=1\\", []Entry{{[]Pair{{"A", "1"}}, 1}}},
		"a record": {
			`PartitionName=p Nodes=a,b Default=YES`,
			[]Entry{{[]Pair{{"PartitionName", "p"}, {"Nodes", "a,b"}, {"Default", "YES"}}, 1}},
		},
		"a record on several lines": {
			"NodeName=n[0-3] \\\n  CPUs=4", []Entry{{[]Pair{{"NodeName", "n[0-3]"}, {"CPUs", "4"}}, 1}},
		},
		"a record with blanks in a value": {
			`DownNodes=n1 Reason="bad disk"`, []Entry{{[]Pair{{"DownNodes", "n1"}, {"Reason", "bad disk"}}, 1}},
		},
		"the inclusion of a file": {
			"include /etc/slurm/more.conf", []Entry{{[]Pair{{"include", "/etc/slurm/more.conf"}}, 1}},
		},
		"a key with the prefix Include":     {"IncludeX=1", []Entry{{[]Pair{{"IncludeX", "1"}}, 1}}},
		"an equals sign followed by a pair": {"A= B=1", []Entry{{[]Pair{{"A", "B=1"}}, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(test.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got.entries); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseErrorsNameTheRemedy(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"two parameters on a line": {"A=1\nB=2 C=3",
			`line 2: "B=2 C=3": Slurm accepts one parameter per line, but C follows B; put C on a line of its own, or the value of B into quotes if it has blanks`},
		"a value without quotes": {"A=one two",
			`line 1: "A=one two": this is not of the form Key=Value; write Key=Value, with quotes around a value that has blanks, and # before a comment`},
		"no value": {"A=",
			`line 1: "A=": A has no value; give it one, or remove it; "" is the empty value`},
		"no equals sign": {"PartitionName",
			`line 1: "PartitionName": this is not of the form Key=Value; write Key=Value, with quotes around a value that has blanks, and # before a comment`},
		"no key": {"=1",
			`line 1: "=1": this is not of the form Key=Value; write Key=Value, with quotes around a value that has blanks, and # before a comment`},
		"a key with a dash": {"A-B=1",
			`line 1: "A-B=1": this is not of the form Key=Value; write Key=Value`},
		"an addition": {"A+=1",
			`line 1: "A+=1": Slurm reads += as a plain = that drops what was set before; write =`},
		"an open quote": {`A="one two`,
			`line 1: "A=\"one two": a quote is not closed; add the closing "`},
		"text after a quote": {`A="one"two`,
			`line 1: "A=\"one\"two": text follows the closing quote of a value; put the closing " at the end of the value; Slurm has no way to write a " within quotes`},
		"an inclusion of nothing": {"Include",
			`line 1: "Include": Include takes the name of one file; write: Include <file>`},
		"an inclusion with equals sign": {"Include=a",
			`line 1: "Include=a": Include takes the name of one file; write: Include <file>`},
		"an inclusion of two files": {"Include a b",
			`line 1: "Include a b": Include takes the name of one file; write: Include <file>`},
		"a NUL character": {"A=\x00", `line 1: "A=\x00": it has a NUL character; remove it`},
		"a long line": {"A=1 " + strings.Repeat("é", 100),
			`line 1: "A=1 éééééééééééééééééééééééééééé…": this is not of the form Key=Value; write Key=Value, with quotes around a value that has blanks, and # before a comment`},
		"a password": {"StoragePass=open sesame",
			`line 1: "StoragePass…": this is not of the form Key=Value; write Key=Value, with quotes around a value that has blanks, and # before a comment`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse(test.text)
			if err == nil {
				t.Fatal("it was accepted")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
			if _, ok := errors.AsType[*Error](err); !ok {
				t.Errorf("the error is a %T, not an *Error", err)
			}
		})
	}
}

func TestParseReportsEveryLine(t *testing.T) {
	document, err := Parse("A\nB=2\nC")
	if got := len(strings.Split(err.Error(), "\n")); got != 2 {
		t.Errorf("%d errors, want 2: %v", got, err)
	}
	if value, found := document.Get("b"); !found || value != "2" {
		t.Errorf("the valid line was lost: %q, %t", value, found)
	}
}

func TestSetDoesNotModifyCopies(t *testing.T) {
	original, err := Parse("A=1\nB=2\n")
	if err != nil {
		t.Fatal(err)
	}
	first, second := original, original
	first.Set("a", "3")
	first.Set("C", "4")
	second.Append(Pair{"D", "5"})
	for text, document := range map[string]Document{
		"A=1\nB=2\n": original, "A=3\nB=2\nC=4\n": first, "A=1\nB=2\nD=5\n": second,
	} {
		if diff := cmp.Diff(text, document.Render()); diff != "" {
			t.Error(diff)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "A=1", "A=\"\"", "A=\"b c\" # d", `A=b\#c\\`, "A=1,\\\n2", "PartitionName=p Nodes=ALL\tDefault=YES\r\n",
		"Include /x\\#y", "include\t\\\"", "A=5\"disk", "NodeName=a \\\n B=\"c", "A= B=1", "A+=1", "\x00", "A=\\",
		"é=ü", "A=é\x80", "|\xff\xff\xff\xffPaSS",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		document, err := Parse(text)
		if err != nil && !strings.HasPrefix(err.Error(), "line ") {
			t.Errorf("the error names no line: %v", err)
		}
		rendered := document.Render()
		again, err := Parse(rendered)
		if err != nil {
			t.Fatalf("%q was rendered as %q, which is refused: %v", text, rendered, err)
		}
		if !again.Equal(document) {
			t.Errorf("%q became %q:\n%s", text, rendered, cmp.Diff(document.entries, again.entries))
		}
		if second := again.Render(); second != rendered {
			t.Errorf("rendered as %q and then as %q", rendered, second)
		}
	})
}
