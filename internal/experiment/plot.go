package experiment

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
)

// A Plot is series over the same places of a horizontal axis, equally far
// apart: lines, or bars of one series.
type Plot struct {
	File, Title, X, Y string
	Ticks             []string
	Series            []Series
	Bars              bool
}

// A Series has a value for each tick; an infinite one is of what never came, and is left out.
type Series struct {
	Name string
	Y    []float64

	rows []*Row // the row of each value, and what it is of it, where reports of several seeds are merged
	of   func(*Row) float64
}

// add adds the value of a row.
func (s *Series) add(r *Row) {
	s.rows, s.Y = append(s.rows, r), append(s.Y, s.of(r))
}

// The picture, in pixels: the frame of the axes within it.
const (
	picW, picH                     = 760, 440
	left, top, frameW, frameH      = 70, 40, 500, 320
	lineHeight                     = 18
	tickLength, dotRadius, barPart = 5, 3, 0.6
)

// colours that people with any eyesight tell apart (Okabe and Ito).
var colours = []string{"#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000"}

// SVG writes the plot as a picture.
func (p *Plot) SVG(w io.Writer) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", picW, picH)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", picW, picH)
	text(&b, left+frameW/2, top-15, "middle", p.Title)
	text(&b, left+frameW/2, top+frameH+45, "middle", p.X)
	text(&b, left-10, top-10, "middle", p.Y)
	step := p.axis(&b)
	top := step * 5
	if p.Bars {
		p.bars(&b, top)
	} else {
		p.lines(&b, top)
	}
	b.WriteString("</svg>\n")
	_, err := w.Write(b.Bytes())
	return err
}

// axis draws the axes and returns how far its five lines are apart.
func (p *Plot) axis(b *bytes.Buffer) float64 {
	most := 0.0
	for _, s := range p.Series {
		for _, y := range s.Y {
			if !math.IsInf(y, 0) {
				most = max(most, y)
			}
		}
	}
	step := nice(most / 5)
	for i := range 6 {
		y := top + frameH - frameH*i/5
		fmt.Fprintf(b, `<path d="M%d %d h%d" stroke="#ccc"/>`+"\n", left, y, frameW)
		text(b, left-8, float64(y+4), "end", fmt.Sprintf("%.4g", step*float64(i)))
	}
	for i, t := range p.Ticks {
		x := p.x(i)
		fmt.Fprintf(b, `<path d="M%.1f %d v%d" stroke="black"/>`+"\n", x, top+frameH, tickLength)
		if p.Bars { // long names
			fmt.Fprintf(b, `<g transform="translate(%.1f,%d) rotate(20)">`, x-10, top+frameH+18)
			text(b, 0, 0, "start", t)
			b.WriteString("</g>\n")
			continue
		}
		text(b, x, top+frameH+20, "middle", t)
	}
	return step
}

// nice rounds up to 1, 2 or 5 times a power of ten.
func nice(x float64) float64 {
	if !(x > 0) || math.IsInf(x, 0) {
		return 1
	}
	unit := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if x <= f*unit*(1+1e-9) {
			return f * unit
		}
	}
	return 10 * unit
}

func (p *Plot) x(i int) float64 { return left + frameW*(float64(i)+0.5)/float64(len(p.Ticks)) }

func (p *Plot) lines(b *bytes.Buffer, most float64) {
	for i, s := range p.Series {
		c := colours[i%len(colours)]
		d, to := "", 'M' // the next point begins a line, or goes on with it
		for j, y := range s.Y {
			if math.IsInf(y, 0) {
				to = 'M'
				continue
			}
			x, y := p.x(j), top+frameH*(1-y/most)
			d += fmt.Sprintf("%c%.1f %.1f ", to, x, y)
			to = 'L'
			fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%d" fill="%s"/>`+"\n", x, y, dotRadius, c)
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", d, c)
		y := float64(top + lineHeight*(i+1))
		fmt.Fprintf(b, `<path d="M%d %.1f h20" stroke="%s" stroke-width="2"/>`+"\n", left+frameW+10, y-4, c)
		text(b, left+frameW+36, y, "start", s.Name)
	}
}

func (p *Plot) bars(b *bytes.Buffer, most float64) {
	width := barPart * frameW / float64(len(p.Ticks))
	for i, v := range p.Series[0].Y {
		h := frameH * v / most
		fmt.Fprintf(b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" fill="%s"/>`+"\n", p.x(i)-width/2, top+frameH-h, width, h, colours[0])
		text(b, p.x(i), top+frameH-h-4, "middle", fmt.Sprintf("%.3g", v))
	}
}

func text(b *bytes.Buffer, x, y float64, anchor, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(b, []byte(s)) // a Buffer takes everything
	b.WriteString("</text>\n")
}
