// Package plot draws curves over time, one below the other, on a self-contained HTML page.
package plot

import (
	"fmt"
	"html/template"
	"io"
	"strings"
	"time"
)

// A Point is a value at a time.
type Point struct {
	At    time.Time
	Value float64
}

// A Curve is a figure over time.
type Curve struct {
	Name   string
	Points []Point
}

// Most returns the largest value.
func (c Curve) Most() float64 {
	most := 0.0
	for _, point := range c.Points {
		most = max(most, point.Value)
	}
	return most
}

// Last returns the last value.
func (c Curve) Last() float64 {
	if len(c.Points) == 0 {
		return 0
	}
	return c.Points[len(c.Points)-1].Value
}

// Size of a curve, in pixels.
const width, height = 900, 120

// Line returns the curve as points of an SVG polyline.
func (c Curve) Line() string {
	if len(c.Points) == 0 {
		return ""
	}
	begin := c.Points[0].At
	length := max(c.Points[len(c.Points)-1].At.Sub(begin), time.Second)
	most := max(c.Most(), 1e-9)
	var line strings.Builder
	for _, point := range c.Points {
		fmt.Fprintf(&line, "%.1f,%.1f ", width*float64(point.At.Sub(begin))/float64(length),
			height*(1-point.Value/most))
	}
	return strings.TrimSpace(line.String())
}

var page = template.Must(template.New("page").Parse(`<!DOCTYPE html>
<meta charset="utf-8">
<title>{{.Title}}</title>
<style>body {font: 14px sans-serif; margin: 2em} svg {background: #f6f6f6; display: block; margin-bottom: 1.5em}
polyline {fill: none; stroke: #1f6fb2; stroke-width: 1.5}</style>
<h1>{{.Title}}</h1>
<p>{{.Text}}</p>
{{range .Curves}}<h3>{{.Name}}: at most {{printf "%.4g" .Most}}, at the end {{printf "%.4g" .Last}}</h3>
<svg width="900" height="120"><polyline points="{{.Line}}"/></svg>
{{end}}`))

// Write writes a page with curves below a text.
func Write(to io.Writer, title, text string, curves ...Curve) error {
	return page.Execute(to, struct {
		Title, Text string
		Curves      []Curve
	}{title, text, curves})
}
