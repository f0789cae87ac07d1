package main

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sizes in pixels. Every part of a line has its own place and length, so that columns align whatever the font of the
// reader is.
const (
	fontSize   = 14
	cellWidth  = 8.4
	lineHeight = 19
	margin     = 16
)

// styles are the classes of the escape sequences that package output writes.
var styles = map[string]string{"1": "bold", "2": "dim", "31": "bad", "32": "good", "33": "warn"}

// A part is a text in one style.
type part struct{ text, class string }

// head has the colours for light and dark pages, with a contrast of at least 4.5 to 1.
const head = `<svg xmlns="http://www.w3.org/2000/svg" role="img" width="%[1]d" height="%[2]d" viewBox="0 0 %[1]d %[2]d">
<title>%[3]s</title>
<style>
rect { fill: #ffffff; stroke: #d0d7de; }
text { font: %[4]dpx ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; white-space: pre; }
text { fill: #1f2328; }
.dim { fill: #59636e; }
.bold { font-weight: bold; }
.good { fill: #116329; }
.warn { fill: #7d4e00; }
.bad { fill: #a40e26; }
@media (prefers-color-scheme: dark) {
rect { fill: #0d1117; stroke: #3d444d; }
text { fill: #e6edf3; }
.dim { fill: #9198a1; }
.good { fill: #56d364; }
.warn { fill: #e3b341; }
.bad { fill: #ff7b72; }
}
</style>
<rect x="0.5" y="0.5" width="%[5]d" height="%[6]d" rx="6"/>
`

// draw returns a picture of a terminal with a command and what it printed.
func draw(command, printed string) (string, error) {
	lines := [][]part{{{"$ ", "dim"}, {command, "bold"}}, {}}
	columns := utf8.RuneCountInString("$ " + command)
	for line := range strings.SplitSeq(strings.TrimRight(printed, "\n"), "\n") {
		parts, err := parse(line)
		if err != nil {
			return "", err
		}
		width := 0
		for _, part := range parts {
			width += utf8.RuneCountInString(part.text)
		}
		columns = max(columns, width)
		lines = append(lines, parts)
	}
	width, height := int(float64(columns)*cellWidth)+2*margin, len(lines)*lineHeight+2*margin
	var picture strings.Builder
	fmt.Fprintf(&picture, head, width, height, escape(command), fontSize, width-1, height-1)
	for i, parts := range lines {
		column := 0
		for _, part := range parts {
			text := strings.TrimLeft(part.text, " ")
			indent := len(part.text) - len(text)
			if text = strings.TrimRight(text, " "); text != "" { // spaces at the ends could be dropped, and the rest stretched
				writePart(&picture, text, part.class, column+indent, margin+(i+1)*lineHeight-lineHeight/4)
			}
			column += utf8.RuneCountInString(part.text)
		}
	}
	picture.WriteString("</svg>\n")
	return picture.String(), nil
}

func writePart(picture *strings.Builder, text, class string, column, y int) {
	if class != "" {
		class = ` class="` + class + `"`
	}
	fmt.Fprintf(picture, `<text x="%.1f" y="%d" textLength="%.1f" lengthAdjust="spacingAndGlyphs"%s>%s</text>`+"\n",
		margin+float64(column)*cellWidth, y, float64(utf8.RuneCountInString(text))*cellWidth, class, escape(text))
}

// parse splits a line at its escape sequences, and at runs of spaces, which readers could shrink.
func parse(line string) ([]part, error) {
	var parts []part
	class := ""
	for line != "" {
		start := strings.Index(line, "\x1b[")
		if start < 0 {
			return append(parts, words(line, class)...), nil
		}
		parts = append(parts, words(line[:start], class)...)
		code, rest, ends := strings.Cut(line[start+2:], "m")
		var known bool
		if class, known = styles[code]; !ends || !known && code != "0" {
			return nil, fmt.Errorf("unknown escape sequence in %q", line)
		}
		line = rest
	}
	return parts, nil
}

// words splits a text at two or more spaces.
func words(text, class string) []part {
	var parts []part
	for text != "" {
		end := strings.Index(text, "  ")
		if end < 0 {
			return append(parts, part{text, class})
		}
		if end > 0 {
			parts = append(parts, part{text[:end], class})
		}
		gap := text[end:]
		text = strings.TrimLeft(gap, " ")
		parts = append(parts, part{gap[:len(gap)-len(text)], ""})
	}
	return parts
}

var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace
