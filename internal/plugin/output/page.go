package output

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/duration"
)

// A Page is a text in the making.
type Page struct {
	Style
	// Wide asks for all columns and groups.
	Wide bool
	text strings.Builder
}

// String returns the text.
func (p *Page) String() string { return p.text.String() }

// Line adds a line.
func (p *Page) Line(format string, arguments ...any) {
	fmt.Fprintf(&p.text, format, arguments...)
	p.text.WriteByte('\n')
}

// Notes adds what the command could not show, one line each.
func (p *Page) Notes(notes []string) {
	for _, note := range notes {
		p.Line("%s %s", p.Warn("note:"), note)
	}
}

// Table adds rows in aligned columns, with a heading if it is not nil. Columns that are empty in all rows are left out.
// A row of one cell is a line of its own, of any length.
func (p *Page) Table(heading []string, rows [][]string) {
	widths := map[int]int{}
	for _, row := range rows {
		if len(row) == 1 {
			continue
		}
		for column, cell := range row {
			if size := width(cell); size > widths[column] {
				widths[column] = size
			}
		}
	}
	if heading != nil {
		for column, cell := range heading {
			if used := widths[column]; used > 0 {
				widths[column] = max(used, width(cell))
			}
		}
		p.row(heading, widths, p.Dim)
	}
	for _, row := range rows {
		if len(row) == 1 {
			p.Line("%s", row[0])
			continue
		}
		p.row(row, widths, func(text string) string { return text })
	}
}

// columnGap separates columns, as kubectl does.
const columnGap = 3

func (p *Page) row(cells []string, widths map[int]int, mark func(string) string) {
	var line strings.Builder
	for column, cell := range cells {
		if widths[column] == 0 {
			continue
		}
		line.WriteString(mark(cell))
		line.WriteString(strings.Repeat(" ", widths[column]-width(cell)+columnGap))
	}
	p.text.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}

// width returns the number of columns that a text takes on a terminal: its characters, without the escape sequences of
// styles.
func width(text string) int {
	size := utf8.RuneCountInString(text)
	for rest := text; ; {
		start := strings.IndexByte(rest, '\x1b')
		if start < 0 {
			return size
		}
		end := strings.IndexByte(rest[start:], 'm')
		if end < 0 {
			return size
		}
		size -= end + 1
		rest = rest[start+end+1:]
	}
}

// barWidth is the width of a progress bar.
const barWidth = 20

// Bar returns a progress bar, such as ████████░░░░ 8/12.
func Bar(done, total int) string {
	if total <= 0 {
		return ""
	}
	done = min(max(done, 0), total)
	filled := done * barWidth / total
	return fmt.Sprintf("%s%s %d/%d", strings.Repeat("█", filled), strings.Repeat("░", barWidth-filled), done, total)
}

// Age returns how long ago a time was, as kubectl shows ages; empty for the zero time.
func Age(now, then time.Time) string {
	if then.IsZero() {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(then), 0))
}

// Plural returns a number with its noun.
func Plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Tree returns the prefixes of a node and of its children in a tree, for the i-th of n nodes below a prefix.
func Tree(prefix string, i, n int) (own, below string) {
	if i == n-1 {
		return prefix + "└─ ", prefix + "   "
	}
	return prefix + "├─ ", prefix + "│  "
}
