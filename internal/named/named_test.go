package named

import (
	"strings"
	"testing"
)

// thing has a whole number and a number.
func thing(text string) (name string, n int, x float64, err error) {
	name, p, err := Parse(text)
	if err != nil {
		return "", 0, 0, err
	}
	n, x = p.Int("n"), p.Float("x")
	return name, n, x, p.End()
}

func TestParseReadsWhatWriteWrites(t *testing.T) {
	for _, c := range []struct {
		n    int
		x    float64
		want string
	}{
		{0, 0, "thing"},
		{3, 0, "thing(n=3)"},
		{0, 0.25, "thing(x=0.25)"},
		{1 << 30, 1e-7, "thing(n=1073741824,x=0.0000001)"},
	} {
		text := Write("thing", Param{"n", float64(c.n)}, Param{"x", c.x})
		if text != c.want {
			t.Errorf("%d and %v are written as %q, want %q", c.n, c.x, text, c.want)
		}
		name, n, x, err := thing(text)
		if name != "thing" || n != c.n || x != c.x || err != nil {
			t.Errorf("%q is read as %q, %d, %v, %v", text, name, n, x, err)
		}
	}
	if name, n, x, err := thing("  a-b ( x = 2 ,n= 3 ) "); name != "a-b" || n != 3 || x != 2 || err != nil {
		t.Errorf("with spaces: %q, %d, %v, %v", name, n, x, err)
	}
}

func TestErrorsSayWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"t(n=1":            "closing bracket",
		"t(n=1)x":          "closing bracket",
		"t()":              "name=number",
		"t(n)":             "name=number",
		"t(=1)":            "name=number",
		"t(n=1,)":          "name=number",
		"t(n=1,n=2)":       "n is given twice",
		"t(n=0)":           "n=0 is not a whole number",
		"t(n=-1)":          "whole number",
		"t(n=1.5)":         "whole number",
		"t(n=99999999999)": "2147483647",
		"t(x=0)":           "above 0",
		"t(x=NaN)":         "above 0",
		"t(x=+Inf)":        "finite",
		"t(x=)":            "x= is not",
		"t(y=1,z=2)":       "no parameter y, only n, x",
		"t(n=0,y=1)":       "n=0",
	} {
		if _, _, _, err := thing(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q gave error %v, want one with %q", text, err, want)
		}
	}
	_, p, err := Parse("t(y=1)")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.End(); err == nil || !strings.Contains(err.Error(), "no parameters") {
		t.Errorf("a thing without parameters gave %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("reuse(pool=1,uses=2)")
	f.Add("x((=,")
	f.Fuzz(func(t *testing.T, text string) {
		name, n, x, err := thing(text)
		if err != nil {
			return
		}
		again := Write(name, Param{"n", float64(n)}, Param{"x", x})
		if name2, n2, x2, err := thing(again); name2 != name || n2 != n || x2 != x || err != nil {
			t.Errorf("%q is read as %q, %d, %v and then as %q, %d, %v, %v", text, name, n, x, name2, n2, x2, err)
		}
	})
}

func TestAListIsCutOutsideOfBrackets(t *testing.T) {
	for text, want := range map[string]string{"": "", " ": "", "a": "a", "a(x=1,y=2), b ,c(": "a(x=1,y=2)|b|c(", "a,": "a|"} {
		if got := strings.Join(List(text), "|"); got != want {
			t.Errorf("%q has %s, want %s", text, got, want)
		}
	}
}
