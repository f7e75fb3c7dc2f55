package curve

import (
	"bytes"
	"encoding/hex"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares bytes with those of a file, which TensorBoard read when it was made.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s has %d bytes, not the %d that were expected:\n%s", name, len(got), len(want), hex.Dump(got))
	}
}

// The golden file was read by TensorBoard's EventAccumulator.
func TestBoardsAreWrittenAsTensorBoardReadsThem(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1_700_000_000, 5e8)
	b, err := NewBoard(dir, at)
	if err != nil {
		t.Fatal(err)
	}
	for step := range int64(3) {
		if err := b.Scalar("loss", step, at.Add(time.Duration(step)*time.Second), 1/float64(step+1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Scalar("valid/MRR", 300, at, 0.875); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "events.out.tfevents.1700000000.*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	got, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "events.golden", got)
}

// The sum of "123456789" is the known one of CRC-32C, masked.
func TestSumsAreMaskedCRC32C(t *testing.T) {
	const crc = 0xe3069283
	if got, want := masked([]byte("123456789")), uint32((crc>>15|crc<<17&0xffffffff)+0xa282ead8&0xffffffff); got != want {
		t.Errorf("%x, want %x", got, want)
	}
}

func pictured(t *testing.T, title string, curves []Curve) string {
	t.Helper()
	var b strings.Builder
	if err := SVG(&b, title, curves); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v\n%s", err, b.String())
		}
	}
	if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
		t.Errorf("the picture has coordinates that are no numbers:\n%s", b.String())
	}
	return b.String()
}

func TestAPictureHasALineForEachCurve(t *testing.T) {
	s := pictured(t, "kge", []Curve{
		{"adaptive", "valid MRR", []Point{{0, math.NaN(), 0.01}, {1, 6.2, math.NaN()}, {2, 3.9, 0.5}, {3, 3.6, 0.75}}},
		{"static", "valid MRR", []Point{{1, 6.4, 0.2}, {2, 4, 0.4}}},
	})
	if strings.Count(s, `stroke-width="2" stroke-linejoin`) != 4 || !strings.Contains(s, "adaptive after epoch 3: loss 3.6, valid MRR 0.75") || !strings.Contains(s, ">valid MRR</text>") {
		t.Error(s)
	}
}

func TestAPictureOfLittleIsWhole(t *testing.T) {
	for name, curves := range map[string][]Curve{
		"nothing": nil, "no point": {{"a", "m", nil}}, "one point": {{"a", "", []Point{{1, 2, math.NaN()}}}},
		"no numbers": {{"a", "m", []Point{{1, math.Inf(1), math.NaN()}}}}, "equal": {{"a", "m", []Point{{1, 0, 1}, {2, 0, 1}}}},
		"large": {{"a", "m", []Point{{1, 1e300, -1e300}, {2, -1e300, 1e300}}}}, "small": {{"a", "m", []Point{{1, 1e-300, 1}, {2, 2e-300, 1 + 1e-15}}}},
	} {
		t.Run(name, func(t *testing.T) { pictured(t, name, curves) })
	}
	if s := pictured(t, "<script>alert('1')</script>\x00\x1b[31m", []Curve{{"<b>", "&", []Point{{1, 2, 3}}}, {"\xff", "&", nil}}); strings.Contains(s, "<script>") || strings.Contains(s, "<b>") {
		t.Error(s)
	}
}

func TestTicksAreRoundAndFew(t *testing.T) {
	for _, s := range []span{{0, 1}, {3.3, 6.2}, {1, 15}, {-5, 1000}, {0.1, 0.1000001}} {
		if at := s.ticks(5, false); len(at) < 2 || len(at) > 7 {
			t.Errorf("%v has ticks %v", s, at)
		}
	}
}

// The names of many curves take several lines, for which the picture grows.
// Axes of figures that lie close together, as losses late in a run do, have ticks that are told apart.
func TestTicksOfCloseFiguresAreToldApart(t *testing.T) {
	for _, c := range []struct{ ticks, want string }{
		{"0.99991 0.99992 0.99993", "0.99991 0.99992 0.99993"}, {"12345 12350 12355", "12345 12350 12355"}, {"0 0.5 1", "0 0.5 1"}, {"-1234570 -1234560", "-1.23457e+06 -1.23456e+06"}, {"3", "3"},
	} {
		var ticks []float64
		for _, text := range strings.Fields(c.ticks) {
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			ticks = append(ticks, v)
		}
		if got := strings.Join(labels(ticks), " "); got != c.want {
			t.Errorf("ticks at %s are called %s, want %s", c.ticks, got, c.want)
		}
	}
}

func TestTheLegendOfManyCurvesIsWithinThePicture(t *testing.T) {
	var curves []Curve
	for _, name := range []string{"adapm", "adaptive", "adaptive-move-only", "adaptive-replicate-only", "nonuniform", "relocate", "replicate", "stale", "static"} {
		curves = append(curves, Curve{Name: name, Points: []Point{{1, 1, math.NaN()}}})
	}
	var b bytes.Buffer
	if err := SVG(&b, "t", curves); err != nil {
		t.Fatal(err)
	}
	var picture struct {
		Height int `xml:"height,attr"`
		Texts  []struct {
			X    float64 `xml:"x,attr"`
			Y    float64 `xml:"y,attr"`
			Text string  `xml:",chardata"`
		} `xml:"text"`
	}
	if err := xml.Unmarshal(b.Bytes(), &picture); err != nil {
		t.Fatal(err)
	}
	const wide = 7 // pixels of a character, about
	for _, c := range curves {
		there := false
		for _, x := range picture.Texts {
			there = there || x.Text == c.Name && x.X+float64(wide*len(c.Name)) <= width && x.Y < float64(picture.Height)
		}
		if !there {
			t.Errorf("%s is not within the picture", c.Name)
		}
	}
}

// Curves go from edge to edge of their panel, the least figure at the bottom and the greatest at the top, and nothing is outside of the picture.
func TestCurvesFillTheirPanels(t *testing.T) {
	s := pictured(t, "t", []Curve{
		{"a", "MRR", []Point{{1, 6, math.NaN()}, {2, 3, math.NaN()}, {3, 4, math.NaN()}}},
		{"b", "MRR", []Point{{10, 1, 0.25}, {20, 1, 0.75}}},
	})
	for _, path := range []string{
		fmt.Sprintf("M%d.0 %d.0L", left, top),                                                                                                             // the loss 6 at the first epoch
		fmt.Sprintf("L%d.0 %d.0\"", left+panel, top+tall),                                                                                                 // the loss 1 at the last one
		fmt.Sprintf("M%d.0 %d.0L%d.0 %d.0\"", left+panel+gap, top+tall, left+2*panel+gap, top),                                                            // the metric
		fmt.Sprintf(`<circle cx="%d.0" cy="%d.0" r="3" fill="%s"/>`, left+2*panel+gap, top, colours[1]),                                                   // its end
		fmt.Sprintf(`<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, left+2*panel/19., top+2*tall/5., colours[0]),                                         // that of the loss of a
		fmt.Sprintf(`x="%d" y="%d" text-anchor="middle" fill="#555">epoch<`, left+panel/2, top+tall+33),                                                   // below the panel
		fmt.Sprintf(`<path d="M%d %d.0h%d" stroke="#ddd"/><text x="%d" y="%d.0" text-anchor="end" fill="#555">6</text>`, left, top, panel, left-6, top+4), // a tick
	} {
		if !strings.Contains(s, path) {
			t.Errorf("the picture lacks %s:\n%s", path, s)
		}
	}
	if strings.Contains(s, `="-`) || strings.Contains(s, "M-") || strings.Contains(s, "NaN") {
		t.Error(s)
	}
}
