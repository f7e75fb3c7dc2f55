package curve

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Curve is what became of a run, epoch by epoch.
type Curve struct {
	Name   string  // of the run
	Metric string  // what Points.Value is; empty: nothing was evaluated
	Points []Point // by epoch
}

// A Point is the end of an epoch. What was not measured, or is no number, is NaN.
type Point struct {
	Epoch int     // its number, from 1 on; 0: before the first one
	Loss  float64 // the epoch's mean
	Value float64 // of the metric, after the epoch
}

// The picture, in pixels.
const (
	width, height    = 760, 340 // of all, with a legend of one line
	left, right, gap = 64, 16, 84
	top, bottom      = 56, 64
	panels           = 2
	panel            = (width - left - right - gap) / panels
	tall             = height - top - bottom
	line             = 18 // of the legend
)

// colours are told apart by people who are colour-blind (Okabe and Ito).
var colours = []string{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a7f00"}

// dashes tell more curves apart than there are colours.
var dashes = []string{"", "6 3", "2 3", "8 3 2 3"}

// SVG writes a picture of the curves: the loss and the metric, by epoch. It needs nothing but itself to be
// shown. The metric is that of the first curve that has one.
func SVG(w io.Writer, title string, curves []Curve) error {
	p := &picture{}
	names, lines := legend(curves)
	high := height + line*max(0, lines-1)
	metric := ""
	for _, c := range curves {
		if metric == "" {
			metric = c.Metric
		}
	}
	p.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d" font-family="system-ui, sans-serif" font-size="12">`+"\n", width, high, width, high)
	p.printf(`<title id="t">%s</title><desc id="d">%s</desc>`+"\n", text(title), text(describe(metric, curves)))
	p.printf(`<rect width="100%%" height="100%%" fill="#fff"/><text x="%d" y="22" font-size="15" fill="#111">%s</text>`+"\n", left, text(title))
	p.panel(0, "loss", curves, func(x Point) float64 { return x.Loss })
	if metric != "" {
		p.panel(1, metric, curves, func(x Point) float64 { return x.Value })
	}
	for i, at := range names {
		p.printf(`<path d="M%d %dh18" stroke="%s" stroke-width="2"%s/><text x="%d" y="%d" fill="#333">%s</text>`+"\n", at.x, at.y-4, colour(i), dash(i), at.x+sample, at.y, text(curves[i].Name))
	}
	p.printf("</svg>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// describe says in words what the picture shows, for those who do not see it.
func describe(metric string, curves []Curve) string {
	var parts []string
	for _, c := range curves {
		if n := len(c.Points); n > 0 {
			x := c.Points[n-1]
			s := fmt.Sprintf("%s after epoch %d: loss %s", c.Name, x.Epoch, number(x.Loss))
			if metric != "" && !math.IsNaN(x.Value) {
				s += fmt.Sprintf(", %s %s", metric, number(x.Value))
			}
			parts = append(parts, s)
		}
	}
	return strings.Join(parts, "; ")
}

type picture struct{ strings.Builder }

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// panel draws one figure of all curves, at the given place of the panels.
func (p *picture) panel(at int, name string, curves []Curve, of func(Point) float64) {
	x0 := left + at*(panel+gap)
	xs, ys := span{math.Inf(1), math.Inf(-1)}, span{math.Inf(1), math.Inf(-1)}
	for _, c := range curves {
		for _, q := range c.Points {
			if y := of(q); finite(y) {
				xs.take(float64(q.Epoch))
				ys.take(y)
			}
		}
	}
	p.printf(`<text x="%d" y="%d" fill="#333">%s</text>`+"\n", x0, top-10, text(name))
	if xs.to < xs.from {
		p.printf(`<text x="%d" y="%d" fill="#666">nothing was measured</text>`+"\n", x0+8, top+tall/2)
		return
	}
	xs.widen()
	ys.widen()
	sx := func(v float64) float64 { return float64(x0) + (v-xs.from)/(xs.to-xs.from)*float64(panel) }
	sy := func(v float64) float64 { return float64(top+tall) - (v-ys.from)/(ys.to-ys.from)*float64(tall) }
	up := ys.ticks(5, false)
	for i, name := range labels(up) {
		p.printf(`<path d="M%d %.1fh%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end" fill="#555">%s</text>`+"\n", x0, sy(up[i]), panel, x0-6, sy(up[i])+4, name)
	}
	along := xs.ticks(6, true)
	for i, name := range labels(along) {
		p.printf(`<path d="M%.1f %dv4" stroke="#888"/><text x="%.1f" y="%d" text-anchor="middle" fill="#555">%s</text>`+"\n", sx(along[i]), top+tall, sx(along[i]), top+tall+17, name)
	}
	p.printf(`<path d="M%d %dv%dh%d" fill="none" stroke="#888"/><text x="%d" y="%d" text-anchor="middle" fill="#555">epoch</text>`+"\n", x0, top, tall, panel, x0+panel/2, top+tall+33)
	for i, c := range curves {
		p.line(i, c.Points, func(q Point) (x, y float64, ok bool) { return sx(float64(q.Epoch)), sy(of(q)), finite(of(q)) })
	}
}

// line draws one curve. Where a point is missing, the line goes on to the next one.
func (p *picture) line(i int, points []Point, place func(Point) (x, y float64, ok bool)) {
	var path strings.Builder
	n, x, y := 0, 0.0, 0.0
	for _, q := range points {
		px, py, ok := place(q)
		if !ok {
			continue
		}
		x, y = px, py
		step := "L"
		if n == 0 {
			step = "M"
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", step, x, y)
		n++
	}
	if n > 1 {
		p.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="2" stroke-linejoin="round"%s/>`+"\n", path.String(), colour(i), dash(i))
	}
	if n > 0 {
		p.printf(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x, y, colour(i))
	}
}

// A spot is where the name of a curve is written, with a piece of its line before it.
type spot struct{ x, y int }

const sample = 23 // pixels of a piece of line before a name

// legend places the names of several curves below the panels, and returns how many lines they take.
func legend(curves []Curve) (names []spot, lines int) {
	if len(curves) < 2 {
		return nil, 0
	}
	at := spot{left, height - 10}
	for _, c := range curves {
		long := sample + 7*len([]rune(c.Name))
		if at.x > left && at.x+long > width-right {
			at = spot{left, at.y + line}
		}
		names = append(names, at)
		at.x += long + 22
	}
	return names, 1 + (at.y-height+10)/line
}

func colour(i int) string { return colours[i%len(colours)] }

func dash(i int) string {
	if d := dashes[i/len(colours)%len(dashes)]; d != "" {
		return fmt.Sprintf(` stroke-dasharray="%s"`, d)
	}
	return ""
}

// A span is what an axis shows.
type span struct{ from, to float64 }

func (s *span) take(v float64) { s.from, s.to = min(s.from, v), max(s.to, v) }

// widen leaves some room about a span, and makes one of a single value.
func (s *span) widen() {
	if s.from == s.to {
		d := max(math.Abs(s.from)*0.1, 0.5)
		s.from, s.to = s.from-d, s.to+d
	}
}

// ticks returns about n round numbers of the span.
func (s *span) ticks(n int, whole bool) (at []float64) {
	step := math.Pow(10, math.Floor(math.Log10((s.to-s.from)/float64(n))))
	for _, f := range []float64{1, 2, 5, 10} {
		if (s.to-s.from)/(step*f) <= float64(n) {
			step *= f
			break
		}
	}
	if whole {
		step = max(1, math.Round(step))
	}
	for i := math.Ceil(s.from/step - 1e-9); i*step <= s.to+step*1e-9 && len(at) < 4*n; i++ {
		at = append(at, i*step)
	}
	return at
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// number writes a figure short.
func number(v float64) string { return digits(v, 4) }

func digits(v float64, n int) string {
	if !finite(v) {
		return "none"
	}
	return fmt.Sprintf("%.*g", n, v+0) // + 0: no -0
}

// labels writes ticks, which lie in order, as short as they are told apart: to a hundredth of what lies between two.
func labels(ticks []float64) (names []string) {
	for n := 4; ; n++ {
		exact := true
		names = names[:0]
		for _, v := range ticks {
			name := digits(v, n)
			read, err := strconv.ParseFloat(name, 64)
			exact = exact && (err != nil || math.Abs(read-v) <= (ticks[len(ticks)-1]-ticks[0])/100/float64(len(ticks)))
			names = append(names, name)
		}
		if exact || n == 17 {
			return names
		}
	}
}

// text returns a text as XML may have it.
func text(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder takes everything
	return b.String()
}
