package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/chromedp"
)

// looks are those in which views are shown.
var looks = []look{{width: 1280, height: 900}, {width: 1280, height: 900, dark: true}, {width: 390, height: 844}, {width: 390, height: 844, dark: true}}

// A view is one of the page's, with what tells that it shows something.
type view struct {
	name, hash string
	ready      string // a script that gives true
}

// painted tells that the pixels of the n-th picture have more than one colour.
const painted = `(n => { const c = document.querySelectorAll(".picture canvas:not(.over)")[n]; if (!c || !c.width) return false;
	const copy = new OffscreenCanvas(c.width, c.height).getContext("2d", {willReadFrequently: true}); copy.drawImage(c, 0, 0);
	const d = new Uint32Array(copy.getImageData(0, 0, c.width, c.height).data.buffer); return d.some(p => p !== d[0]); })`

var views = []view{
	{"overview", "#/overview", `document.querySelectorAll(".steps .stack").length > 0`},
	{"allocation", "#/allocation", painted + `(0) && ` + painted + `(1)`},
	{"affinity", "#/affinity", painted + `(0) && document.querySelectorAll("table tbody tr").length > 0`},
	{"key", "#/key/KEY", painted + `(0)`},
	{"find", "#/key", `document.querySelectorAll(".found a").length > 0`},
	{"cluster", "#/cluster", `document.querySelectorAll(".card:not([hidden]) .uplot canvas").length > 0`},
	{"tour", "#/tour", `(n => n === 0 ? document.querySelector(".empty") !== null : [...Array(n).keys()].filter(` + painted + `).length >= n - 1)(document.querySelectorAll(".picture canvas:not(.over)").length)`}, // a run of one node has one colour,
	{"compare", "#/compare", `document.querySelector(".card .uplot canvas, .card .empty") !== null`},
}

// visit opens every view of a dashboard, or of a narrow page the overview only, and writes its
// picture. An error names what the page complained of, or axe-core.
func visit(p *page, address, out, axe string, l look) error {
	if err := p.load(address); err != nil {
		return err
	}
	if err := p.until(`document.querySelectorAll("#tabs a").length > 0`); err != nil {
		return err
	}
	key, err := liveliest(p)
	if err != nil {
		return err
	}
	var all []error
	for _, v := range views {
		if l.width < 700 && v.name != "overview" {
			continue
		}
		v.hash = strings.ReplaceAll(v.hash, "KEY", url.PathEscape(key))
		if err := show(p, v, axe); err != nil {
			all = append(all, fmt.Errorf("%s, %v: %w", v.name, l, err))
		}
		if err := p.shot(filepath.Join(out, fmt.Sprintf("%s-%v.png", v.name, l))); err != nil {
			return err
		}
	}
	return errors.Join(all...)
}

// liveliest waits until keys are known, and returns the name of the one that moved most.
func liveliest(p *page) (string, error) {
	key, err := eval[string](p, `(async () => {
		for (let i = 0; i < 200; i++) {
			const found = await (await fetch("api/keys?sort=moves&limit=1")).json();
			if (found.keys?.length) return found.keys[0].table + ":" + found.keys[0].row;
			await new Promise(done => setTimeout(done, 100));
		}
		return "";
	})()`)
	if err == nil && key == "" {
		err = errors.New("no key is known")
	}
	return key, err
}

// show opens a view and waits until it shows something.
func show(p *page, v view, axe string) error {
	if _, err := eval[chromedp.Void](p, fmt.Sprintf("location.hash = %q", v.hash)); err != nil {
		return err
	}
	if err := p.until(v.ready); err != nil {
		return err
	}
	if _, err := eval[chromedp.Void](p, "new Promise(done => setTimeout(done, 250))"); err != nil {
		return err
	}
	if t := p.troubles(); len(t) > 0 {
		return fmt.Errorf("the page complains: %s", strings.Join(t, "; "))
	}
	wide, err := eval[bool](p, "document.documentElement.scrollWidth > innerWidth")
	if err != nil {
		return err
	}
	if wide {
		return fmt.Errorf("the page is wider than the window")
	}
	if axe == "" {
		return nil
	}
	return barriers(p, axe)
}

// barriers runs axe-core, and tells what it finds that is serious or worse.
func barriers(p *page, axe string) error {
	script, err := os.ReadFile(axe)
	if err != nil {
		return err
	}
	found, err := eval[[]string](p, string(script)+`; axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.filter(v => v.impact === "serious" || v.impact === "critical")
		.map(v => v.id + ": " + v.help + " at " + v.nodes.slice(0, 3).map(n => n.target.join(" ") + " (" + n.failureSummary + ")").join(", ")))`)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("axe-core finds: %s", strings.Join(found, "; "))
	}
	return nil
}
