package panels

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Sizes, in pixels.
const (
	column     = 50 // a 24th of a dashboard
	line       = 34 // Grafana's unit of height
	header     = 50
	margin     = 8
	titleSize  = 14
	textSize   = 11
	axis       = 56 // width of the axis with values
	characters = 6  // width of a character
)

// colors of curves.
var colors = []string{
	"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf",
}

// A page is a picture of a dashboard.
type page struct {
	bytes.Buffer
	from, to time.Time
}

func newPage(board dashboard, from, to time.Time) *page {
	bottom := 0
	for i := range board.Panels {
		bottom = max(bottom, board.Panels[i].GridPos.Y+board.Panels[i].GridPos.H)
	}
	next := &page{from: from, to: to}
	fmt.Fprintf(next, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" `+
		`font-size="%d"><rect width="100%%" height="100%%" fill="#eef0f2"/>`, 24*column, header+bottom*line+margin, textSize)
	next.text(margin, 30, 20, "#222", board.Title)
	next.text(24*column-320, 30, textSize, "#555",
		from.UTC().Format("2006-01-02 15:04:05")+" to "+to.UTC().Format("15:04:05 MST"))
	return next
}

func (p *page) close() []byte {
	p.WriteString("</svg>\n")
	return p.Bytes()
}

func (p *page) text(x, y float64, size int, color, text string) {
	fmt.Fprintf(p, `<text x="%.1f" y="%.1f" font-size="%d" fill="%s">%s</text>`+"\n", x, y, size, color,
		html.EscapeString(text))
}

// A box is the place of a panel's content.
type box struct{ x, y, width, height float64 }

// add draws a panel.
func (p *page) add(panel *panel, curves []curve) {
	at := panel.GridPos
	outer := box{float64(at.X * column), float64(header + at.Y*line), float64(at.W * column), float64(at.H * line)}
	if panel.Type == "row" {
		p.text(outer.x+margin, outer.y+line-10, titleSize+2, "#222", panel.Title)
		return
	}
	fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="3" fill="white" stroke="#ccc"/>`, outer.x+2,
		outer.y+2, outer.width-4, outer.height-4)
	p.text(outer.x+margin, outer.y+20, titleSize, "#222", short(panel.Title, outer.width-2*margin, titleSize))
	inner := box{outer.x + margin, outer.y + 28, outer.width - 2*margin, outer.height - 36}
	switch {
	case len(curves) == 0:
		p.text(inner.x, inner.y+inner.height/2, titleSize, "#b00", "no data")
	case panel.Type == "stat":
		p.stat(panel, curves[0], inner)
	case panel.Type == "table":
		p.table(newTable(panel, curves), inner)
	default:
		p.graph(panel, curves, inner)
	}
}

func (p *page) stat(panel *panel, shown curve, at box) {
	text := format(panel.FieldConfig.Defaults.Unit, shown.last())
	if panel.Options.TextMode == "name" {
		text = shown.name
	}
	p.text(at.x, at.y+at.height/2+10, 26, "#1f77b4", text)
}

func (p *page) table(content table, at box) {
	width := at.width / float64(max(len(content.columns), 1))
	row := func(cells []string, y float64, color string) {
		for i, cell := range cells {
			p.text(at.x+float64(i)*width, y, textSize, color, short(cell, width, textSize))
		}
	}
	row(content.columns, at.y+textSize, "#777")
	for i, cells := range content.rows {
		y := at.y + textSize + float64(i+1)*16
		if y > at.y+at.height {
			break
		}
		row(cells, y, "#222")
	}
}

// graph draws curves, or areas on top of each other, above their legend.
func (p *page) graph(panel *panel, curves []curve, at box) {
	stacked := panel.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	legend := math.Ceil(float64(len(curves))/legendColumns(at)) * 14
	plot := box{at.x + axis, at.y, at.width - axis, max(at.height-legend-20, 30)}
	lowest, highest := 0.0, 0.0
	sums := map[int64]float64{}
	for _, curve := range curves {
		for _, point := range curve.Points {
			if math.IsNaN(point.Value) || math.IsInf(point.Value, 0) {
				continue
			}
			value := point.Value
			if stacked {
				sums[point.At.Unix()] += value
				value = sums[point.At.Unix()]
			}
			lowest, highest = min(lowest, value), max(highest, value)
		}
	}
	if highest == lowest {
		highest++
	}
	place := func(when time.Time, value float64) (x, y float64) {
		return plot.x + plot.width*float64(when.Sub(p.from))/float64(p.to.Sub(p.from)),
			plot.y + plot.height*(highest-value)/(highest-lowest)
	}
	p.axes(panel.FieldConfig.Defaults.Unit, plot, lowest, highest)
	below := map[int64]float64{}
	for i, curve := range curves {
		color := colors[i%len(colors)]
		if stacked {
			p.area(curve, below, color, place)
		} else {
			p.curve(curve, color, place)
		}
		columns := int(legendColumns(at))
		x := at.x + float64(i%columns)*legendWidth
		y := plot.y + plot.height + 30 + float64(i/columns)*14
		if y < at.y+at.height+14 {
			fmt.Fprintf(p, `<rect x="%.1f" y="%.1f" width="8" height="8" fill="%s"/>`, x, y-8, color)
			p.text(x+12, y, textSize, "#333", short(curve.name, legendWidth-16, textSize))
		}
	}
}

// legendWidth is the width of an entry of a legend.
const legendWidth = 190

func legendColumns(at box) float64 { return max(math.Floor(at.width/legendWidth), 1) }

func (p *page) axes(unit string, plot box, lowest, highest float64) {
	for i := range 3 {
		share := float64(i) / 2
		y := plot.y + plot.height*(1-share)
		fmt.Fprintf(p, `<path d="M%.1f %.1fh%.1f" stroke="#ddd"/>`, plot.x, y, plot.width)
		p.text(plot.x-axis, y+4, textSize-1, "#777", format(unit, lowest+(highest-lowest)*share))
	}
	p.text(plot.x, plot.y+plot.height+14, textSize-1, "#777", p.from.UTC().Format("15:04"))
	p.text(plot.x+plot.width-30, plot.y+plot.height+14, textSize-1, "#777", p.to.UTC().Format("15:04"))
}

// curve draws a line, with gaps where there is no value.
func (p *page) curve(shown curve, color string, place func(time.Time, float64) (x, y float64)) {
	var path strings.Builder
	before := time.Time{}
	gap := 3 * p.to.Sub(p.from) / points
	for _, point := range shown.Points {
		if math.IsNaN(point.Value) || math.IsInf(point.Value, 0) {
			continue
		}
		move := "L"
		if before.IsZero() || point.At.Sub(before) > max(gap, 10*time.Second) {
			move = "M"
		}
		before = point.At
		x, y := place(point.At, point.Value)
		fmt.Fprintf(&path, "%s%.1f %.1f", move, x, y)
	}
	fmt.Fprintf(p, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", path.String(), color)
}

// area draws bars on top of what is below, which grows.
func (p *page) area(shown curve, below map[int64]float64, color string,
	place func(time.Time, float64) (x, y float64)) {
	width := max(p.to.Sub(p.from)/points, time.Second)
	var path strings.Builder
	for _, point := range shown.Points {
		if math.IsNaN(point.Value) || point.Value <= 0 {
			continue
		}
		base := below[point.At.Unix()]
		below[point.At.Unix()] = base + point.Value
		left, top := place(point.At, base+point.Value)
		right, bottom := place(point.At.Add(width), base)
		fmt.Fprintf(&path, "M%.1f %.1fH%.1fV%.1fH%.1fz", left, bottom, right, top, left)
	}
	fmt.Fprintf(p, `<path d="%s" fill="%s"/>`+"\n", path.String(), color)
}

// short cuts a text to a width.
func short(text string, width float64, size int) string {
	room := int(width / (characters * float64(size) / textSize))
	if utf8.RuneCountInString(text) <= room {
		return text
	}
	return string([]rune(text)[:max(room-1, 0)]) + "…"
}

// format returns a value with Grafana's unit.
func format(unit string, value float64) string {
	switch unit {
	case "percentunit":
		return fmt.Sprintf("%.3g %%", 100*value)
	case "bytes":
		return scaled(value, 1024, "B")
	case "Bps":
		return scaled(value, 1024, "B/s")
	case "s":
		return fmt.Sprintf("%.3g s", value)
	case "µs":
		return fmt.Sprintf("%.4g µs", value)
	case "ops":
		return fmt.Sprintf("%.3g/s", value)
	case "dateTimeFromNow":
		return time.UnixMilli(int64(value)).UTC().Format("2006-01-02 15:04")
	default:
		return number(value)
	}
}

// number returns a number in a few characters.
func number(value float64) string {
	if math.Abs(value) < 100_000 && value == math.Trunc(value) {
		return fmt.Sprintf("%.0f", value)
	}
	return fmt.Sprintf("%.3g", value)
}

// scaled returns a value with a prefix for powers of a base.
func scaled(value, base float64, unit string) string {
	for _, prefix := range []string{"", "k", "M", "G", "T"} {
		if math.Abs(value) < base {
			return fmt.Sprintf("%.3g %s%s", value, prefix, unit)
		}
		value /= base
	}
	return fmt.Sprintf("%.3g P%s", value, unit)
}
