package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slurm-operator/slurm-operator/test/golden"
)

func TestLineIsSplitAtStylesAndGaps(t *testing.T) {
	for name, test := range map[string]struct {
		line string
		want []part
	}{
		"plain": {"a b", []part{{"a b", ""}}},
		"styles": {
			"\x1b[32mReady\x1b[0m, \x1b[1mold\x1b[0m", []part{{"Ready", "good"}, {", ", ""}, {"old", "bold"}},
		},
		"columns":         {"a   b", []part{{"a", ""}, {"   ", ""}, {"b", ""}}},
		"an indented one": {"  \x1b[2mx\x1b[0m", []part{{"  ", ""}, {"x", "dim"}}},
		"empty":           {"", nil},
	} {
		got, err := parse(test.line)
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(part{})); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	for _, line := range []string{"\x1b[35mx\x1b[0m", "\x1b[2Jx"} {
		if parts, err := parse(line); err == nil {
			t.Errorf("%q: %+v", line, parts)
		}
	}
}

func TestPictureOfATerminal(t *testing.T) {
	drawing, err := draw("kubectl slurm status", "NAME   STATE\n└─ <a>   \x1b[31mDegraded\x1b[0m & more\n")
	if err != nil {
		t.Fatal(err)
	}
	wellFormed(t, drawing)
	golden.Compare(t, "terminal.svg", drawing)
}

// wellFormed fails the test unless a text is XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	for decoder := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := decoder.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAllPicturesAreDrawn(t *testing.T) {
	directory := t.TempDir()
	if err := drawAll("../../internal/plugin", directory); err != nil {
		t.Fatal(err)
	}
	for _, picture := range pictures {
		drawing, err := os.ReadFile(filepath.Join(directory, picture.file))
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, string(drawing))
		if !strings.Contains(string(drawing), "<title>"+picture.command+"</title>") {
			t.Errorf("%s has no title", picture.file)
		}
	}
}
