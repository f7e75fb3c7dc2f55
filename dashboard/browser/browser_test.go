package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// The tests need a browser and axe-core: "make dashboard" tells them where these are, by
// GODWIT_BROWSER and GODWIT_AXE, and where to put pictures, by GODWIT_PICTURES. The tests
// of the module's folder alone are skipped.
func tools(t *testing.T) (browser, axe, pictures string) {
	t.Helper()
	browser = os.Getenv("GODWIT_BROWSER")
	if browser == "" {
		t.Skip("GODWIT_BROWSER names no browser")
	}
	pictures = os.Getenv("GODWIT_PICTURES")
	if pictures == "" {
		pictures = t.TempDir()
	}
	return browser, os.Getenv("GODWIT_AXE"), pictures
}

// nasty is what one key of the replay is called.
const nasty = "<img src=x onerror=document.title='taken'>\x1b[31m\u202eeltit"

// graph writes facts of a graph and returns their file.
func graph(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&b, "entity %d\trelation %d\tentity %d\n", i*7919%120, i%5, i*104729%113)
	}
	file := filepath.Join(t.TempDir(), "facts.tsv")
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// A program runs beside the test.
type program struct {
	cmd     *exec.Cmd
	address string // of its dashboard
}

var printed = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?token=\w+`)

// start starts Godwit and waits until it has printed the address of a dashboard. It ends with the test.
func start(t *testing.T, godwit string, args ...string) *program {
	t.Helper()
	p := &program{cmd: exec.Command(godwit, args...)}
	out, in := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = in, in
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if url := printed.FindString(lines.Text()); url != "" && len(found) == 0 {
				found <- url
			}
		}
	}()
	t.Cleanup(func() {
		p.interrupt()
		in.Close()
	})
	select {
	case p.address = <-found:
	case <-time.After(patience):
		t.Fatalf("%v printed no address of a dashboard", args)
	}
	return p
}

// interrupt ends the program as Ctrl-C does, and waits for it.
func (p *program) interrupt() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Signal(os.Interrupt)
		_ = p.cmd.Wait()
	}
}

// build builds the command and returns its file.
func build(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "godwit")
	cmd := exec.Command("go", "build", "-o", file, "./cmd/godwit")
	cmd.Dir = filepath.Join("..", "..")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return file
}

// While three nodes train, and when they have ended, all views show something, narrow and wide, light and
// dark, and neither the browser nor axe-core complains.
func TestViewsOfARunAndOfItsReplay(t *testing.T) {
	browser, axe, pictures := tools(t)
	godwit, trace := build(t), filepath.Join(t.TempDir(), "trace")
	run := start(t, godwit, "train", "kge", "--nodes", "3", "--epochs", "100000", "--data", graph(t), "--trace", trace, "--dashboard=127.0.0.1:0")
	p := opened(t, browser, looks[0])
	whenTraced(t, p, run.address)
	if err := visit(p, run.address, filepath.Join(pictures, "live"), axe, looks[0]); err != nil {
		t.Error(err)
	}
	if live, err := eval[bool](p, `document.querySelector(".badge.live") !== null`); err != nil || !live {
		t.Errorf("the page says of a run that trains that it is over (%v)", err)
	}
	run.interrupt()
	if err := p.until(`document.querySelector(".badge.live") === null`); err != nil {
		t.Error("the page says of a run that was interrupted that it lives")
	}
	p.close()

	rename(t, trace)
	replay := start(t, godwit, "dashboard", trace)
	for _, l := range looks {
		p := opened(t, browser, l)
		if err := visit(p, replay.address, filepath.Join(pictures, "replay"), axe, l); err != nil {
			t.Error(err)
		}
		if l.width < 700 {
			checkTabs(t, p)
		}
		if l == looks[0] {
			checkNames(t, p)
			checkKeys(t, p)
			checkPressed(t, p)
			checkReading(t, p)
			checkLinks(t, p, replay.address)
			checkFocus(t, p)
			checkHidden(t, p)
			checkFigures(t, p)
			checkLosses(t, p)
			checkMany(t, p)
			checkLearning(t, p)
			checkSilent(t, p)
			checkUnknown(t, p, replay.address)
		}
		p.close()
	}
	checkForeignLink(t, browser, replay.address)
	checkEnded(t, browser, replay)
}

// rename gives a key of the run in a folder a nasty name.
func rename(t *testing.T, trace string) {
	t.Helper()
	runs, err := filepath.Glob(filepath.Join(trace, "*"))
	if err != nil || len(runs) != 1 {
		t.Fatalf("%s has the runs %v (%v)", trace, runs, err)
	}
	if err := os.WriteFile(filepath.Join(runs[0], "names-0.txt"), []byte(nasty+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func opened(t *testing.T, browser string, l look) *page {
	t.Helper()
	p, err := open(context.Background(), browser, l)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	return p
}

// whenTraced waits until keys of the run are known.
func whenTraced(t *testing.T, p *page, address string) {
	t.Helper()
	if err := p.load(address); err != nil {
		t.Fatal(err)
	}
	if err := p.until(`/[1-9][0-9.]*\s*k?\s+traced keys/.test(document.querySelector("#run").textContent) && document.querySelectorAll(".steps .stack > span").length > 0`); err != nil {
		t.Fatal(err)
	}
}

// checkNames looks for the key with a nasty name: it is shown as text.
func checkNames(t *testing.T, p *page) {
	t.Helper()
	if err := show(p, view{"find", "#/key", `document.querySelectorAll(".found a").length > 0`}, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := eval[chromedp.Void](p, `{ const i = document.querySelector("input[type=search]"); i.value = "onerror"; i.dispatchEvent(new Event("input")); }`); err != nil {
		t.Fatal(err)
	}
	if err := p.until(`[...document.querySelectorAll(".found a")].some(a => a.textContent.includes("<img src=x onerror="))`); err != nil {
		t.Error(err)
	}
	if taken, err := eval[bool](p, `document.title.includes("taken") || document.querySelector("main img") !== null`); err != nil || taken {
		t.Errorf("a name became part of the page (%v)", err)
	}
	if err := show(p, view{"key", "#/key/" + url.PathEscape(nasty), `document.querySelector("h2.key .soft") !== null && document.querySelector("main img") === null`}, ""); err != nil {
		t.Errorf("open a key by its name: %v", err)
	}
}

// checkKeys goes through a picture by keys alone.
func checkKeys(t *testing.T, p *page) {
	t.Helper()
	if err := show(p, view{"allocation", "#/allocation", painted + `(0)`}, ""); err != nil {
		t.Fatal(err)
	}
	_, err := eval[chromedp.Void](p, `{ const pic = document.querySelector(".picture"); pic.focus();
		for (const key of ["ArrowRight", "ArrowDown", "Enter"]) pic.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true})); }`)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.until(`document.querySelector(".read").textContent.length > 10 && location.hash.includes("t=")`); err != nil {
		t.Error(err)
	}
}

// checkPressed opens an address that names what buttons choose: they are seen and said to be pressed.
func checkPressed(t *testing.T, p *page) {
	t.Helper()
	if err := show(p, view{"allocation", "#/allocation?heat=1&only=1", painted + `(0)`}, ""); err != nil {
		t.Fatal(err)
	}
	const want = "Shade by accesses: true, node 0: false, node 1: true, node 2: false"
	got, err := eval[string](p, `[...document.querySelectorAll("[aria-pressed]")].map(b => b.lastChild.textContent.trim() + ": " + b.getAttribute("aria-pressed")).join(", ")`)
	if err != nil || got != want {
		t.Errorf("buttons are pressed: %s (%v), want %s", got, err, want)
	}
}

// checkReading compares with a run that is still read: the page asks again until it has all of it.
func checkReading(t *testing.T, p *page) {
	t.Helper()
	got, err := eval[string](p, `(async () => {
		const ask = window.fetch;
		let asked = 0;
		window.fetch = async (path) => new Response(JSON.stringify(String(path).includes("api/runs") ? {runs: [{name: "a", policy: "x"}, {name: "b", policy: "y"}]} :
			{runs: ["a", "b"].map((name) => ({name, policy: "x", nodes: 1, seconds: 3, done: name === "a" || asked++ > 1, accesses: asked, t: [1, 2], series: {accesses: [1, 2]}}))}));
		const main = document.createElement("div");
		document.body.append(main);
		const { open } = await import("./views/compare.js");
		const shown = open(main, {run: {name: "a", policy: "x"}, fine() {}, failed(err) { throw err; }});
		for (let i = 0; i < 200 && asked < 3; i++) {
			await new Promise((done) => setTimeout(done, 50));
		}
		window.fetch = ask;
		shown.close();
		main.remove();
		return asked + " " + main.querySelectorAll(".halves > .card").length;
	})()`)
	if err != nil || got != "3 5" {
		t.Errorf("a comparison with a run that is read at the third time is asked for, and has curves: %s (%v)", got, err)
	}
	got, err = eval[string](p, `(async () => {
		const ask = window.fetch, asked = {heat: 0, key: 0};
		window.fetch = async (path) => {
			for (const what in asked) {
				asked[what] += String(path).includes("api/" + what + "?") || String(path).includes("api/" + what + "/") ? 1 : 0;
			}
			return new Response("{}", {status: 503});
		};
		const app = {run: {name: "a", to: 9, keys: 1, nodes: [], tables: []}, fine() {}, failed() {}}, main = document.createElement("div");
		document.body.append(main);
		const views = [];
		for (const [name, subject] of [["allocation", ""], ["key", "1"]]) {
			views.push((await import("./views/" + name + ".js")).open(main, app, {view: name, subject, with: new URLSearchParams("from=1&to=2")}));
		}
		const seen = [];
		await new Promise((end) => setTimeout(end, 2000));
		for (const done of [false, true, true]) {
			const before = {...asked};
			views.forEach((v) => v.ticked({done}));
			await new Promise((end) => setTimeout(end, 2000));
			seen.push((asked.heat - before.heat) + " " + (asked.key - before.key));
		}
		window.fetch = ask;
		views.forEach((v) => v.close());
		main.remove();
		return seen.join(", ");
	})()`)
	if err != nil || got != "1 1, 1 1, 0 0" {
		t.Errorf("a part of a run that is still read is asked for again until it is read: %s (%v)", got, err)
	}
}

// checkLinks opens an address again, in which the picture stands: it shows the same.
func checkLinks(t *testing.T, p *page, address string) {
	t.Helper()
	const shown = `document.querySelector("output").value + " " + document.querySelector("select:last-of-type").value`
	hash, err := eval[string](p, "location.hash")
	if err != nil {
		t.Fatal(err)
	}
	before, err := eval[string](p, shown)
	if err != nil {
		t.Fatal(err)
	}
	base, _, _ := strings.Cut(address, "?")
	if err := p.load(base + hash); err != nil {
		t.Fatal(err)
	}
	if err := p.until(painted + `(0)`); err != nil {
		t.Fatal(err)
	}
	if after, err := eval[string](p, shown); err != nil || after != before {
		t.Errorf("the link %s shows %q, and was made where the page showed %q (%v)", hash, after, before, err)
	}
}

// checkFocus goes to a view by its tab and to a key by its link: what has the focus keeps it while the page is drawn anew.
func checkFocus(t *testing.T, p *page) {
	t.Helper()
	if _, err := eval[chromedp.Void](p, `{ const a = document.querySelector('#tabs a[href^="#/affinity"]'); a.focus(); a.click(); }`); err != nil {
		t.Fatal(err)
	}
	if err := p.until(`document.querySelector("#tabs [aria-current]").textContent === "Affinity" && document.activeElement.textContent === "Affinity" && document.querySelector("main td a, main th a") !== null`); err != nil {
		t.Error(err)
	}
	if _, err := eval[chromedp.Void](p, `{ document.querySelector("main details").open = true; window.was = document.querySelector("main td a, main th a"); was.focus(); location.hash += "?drawn=anew"; }`); err != nil {
		t.Fatal(err)
	}
	if err := p.until(`!was.isConnected && document.activeElement.textContent === was.textContent`); err != nil {
		t.Error(err)
	}
}

// checkHidden has a page believe that nobody sees it: it keeps no connection, and nothing that waits for a frame.
func checkHidden(t *testing.T, p *page) {
	t.Helper()
	got, err := eval[string](p, `(async () => {
		const streams = [], Stream = window.EventSource;
		window.EventSource = class extends Stream { constructor(...of) { super(...of); streams.push(this); } };
		let hidden = true;
		Object.defineProperty(document, "hidden", {configurable: true, get: () => hidden});
		const turn = (to) => { hidden = to; document.dispatchEvent(new Event("visibilitychange")); };
		turn(true);
		turn(false);
		const seen = streams.map((s) => s.readyState !== Stream.CLOSED);
		turn(true);
		const left = streams.map((s) => s.readyState !== Stream.CLOSED);
		delete document.hidden;
		window.EventSource = Stream;
		const { requestAnimationFrame: ask, cancelAnimationFrame: cancel } = window, waiting = new Set();
		window.requestAnimationFrame = () => { const id = 1e9 + Math.random(); waiting.add(id); return id; };
		window.cancelAnimationFrame = (id) => waiting.delete(id);
		const { Chart } = await import("./chart.js"), chart = new Chart({title: "", value: String});
		document.body.append(chart.el);
		for (let i = 0; i < 9; i++) chart.show([0, 1], [{label: "a", stroke: "#000"}], [[0, i]]);
		Object.assign(window, { requestAnimationFrame: ask, cancelAnimationFrame: cancel });
		chart.el.remove();
		return JSON.stringify([seen, left, waiting.size]);
	})()`)
	if want := "[[true],[false],1]"; err != nil || got != want {
		t.Errorf("streams while it is seen and not, and frames that are waited for: %s (%v), want %s", got, err, want)
	}
}

// checkFigures asks for the share of the workers' time that they wait: processor time of others is no part of that. And ticks of an axis are told
// apart.
func checkFigures(t *testing.T, p *page) {
	t.Helper()
	if x, err := eval[float64](p, `import("./views/overview.js").then((o) => o.ofWorkers([{parts: {compute: 3, answers: 1, server: 9, gc: 9}}, {parts: null}], ["answers"]))`); err != nil || x != 0.25 {
		t.Errorf("workers that compute for 3 s and wait for 1 s wait for %v of their time (%v)", x, err)
	}
	const want = "0.69311 0.69312 0.69313"
	if got, err := eval[string](p, `Promise.all([import("./chart.js"), import("./format.js")]).then(([c, f]) => c.labels([0.69311, 0.69312, 0.69313], f.figure).join(" "))`); err != nil || got != want {
		t.Errorf("ticks are called %s (%v), want %s", got, err, want)
	}
	if got, err := eval[string](p, `import("./chart.js").then((c) => [[0.612095768187, 0.6120957681871, false], [0.6120, 0.6122, false], [3, 3, true], [0, 0, true]].map((x) => c.rangeOf(...x).map((y) => y.toFixed(6)).join(" ")).join("; "))`); err != nil || got != "0.563128 0.661063; 0.611984 0.612216; 0.000000 3.240000; 0.000000 0.080000" {
		t.Errorf("a loss that does not change any more, one that does, and others have axes of %s (%v)", got, err)
	}
	const times = "0 s 1 s 2 s 3 s 4 s 5 s; 0.04 s 0.06 s; 7.5 s 8.0 s 8.5 s; 60 s 120 s 180 s 240 s; 10:00 20:00 30:00 40:00 50:00 1:00:00; 0 s 20 s 40 s; 0.00 s"
	if got, err := eval[string](p, `import("./format.js").then((f) => [[0, 5.33, 7], [0.031, 0.071, 3], [7.2, 8.9, 4], [31, 241, 5], [1, 4000, 7], [0, 59, 3], [0, 0, 7]].map((x) => f.ticks(...x).map(([, text]) => text.replace("\u202f", " ")).join(" ")).join("; "))`); err != nil || got != times {
		t.Errorf("round times are %s (%v), want %s", got, err, times)
	}
	if got, err := eval[string](p, `import("./lanes.js").then((l) => l.nodesOf({nodes: [{id: 0, owned: 0, accesses: 0, asked: []}, {id: 1, owned: 0.5}, {id: 2, owned: 0, asked: [3]}]}).map((n) => n.id).join(" "))`); err != nil || got != "1 2" {
		t.Errorf("the nodes %s had to do with a key (%v), want 1 2", got, err)
	}
}

// checkTabs looks at a narrow page: all its views are in sight.
func checkTabs(t *testing.T, p *page) {
	t.Helper()
	if out, err := eval[string](p, `[...document.querySelectorAll("#tabs a")].filter((a) => a.getBoundingClientRect().right > innerWidth || a.getBoundingClientRect().bottom > innerHeight).map((a) => a.textContent).join(", ")`); err != nil || out != "" {
		t.Errorf("on a narrow page the views %s are out of sight (%v)", out, err)
	}
}

// checkLosses opens a run that is over, of which the trace lacks something: the page says so, though nothing more is told of the run.
func checkLosses(t *testing.T, p *page) {
	t.Helper()
	got, err := eval[string](p, `(async () => {
		const ask = window.fetch, Stream = window.EventSource;
		window.EventSource = class extends EventTarget { close() {} };
		window.fetch = async (path, ...rest) => {
			const answer = await ask(path, ...rest);
			return /api\/run(\?|$)/.test(String(path)) ? new Response(JSON.stringify({...await answer.json(), lost: 3, thinned: 16})) : answer;
		};
		const status = document.querySelector("#status");
		location.hash = "#/overview?run=" + (await (await ask("api/run")).json()).name;
		for (let i = 0; i < 200 && !status.textContent.includes("lost"); i++) {
			await new Promise((end) => setTimeout(end, 50));
		}
		Object.assign(window, {fetch: ask, EventSource: Stream});
		return status.textContent;
	})()`)
	if err != nil || !strings.Contains(got, "3 events lost · details of 1 key in 16") {
		t.Errorf("of a run whose trace lacks something, the page says %q (%v)", got, err)
	}
}

// checkMany looks at a run of 64 nodes and of names as long as they come: the page is as wide as the window, and no two nodes look the same. Of
// techniques it says of how many keys they are.
func checkMany(t *testing.T, p *page) {
	t.Helper()
	got, err := eval[string](p, `(async () => {
		const ask = window.fetch, said = [], long = "n".repeat(300), nodes = [...Array(64).keys()].map((id) => ({id}));
		const { pixels } = await import("./palette.js"), { colours, stripes } = pixels(-1, false);
		said.push(new Set(nodes.map(({id}) => id < 8 ? colours[id] : colours[id] + " " + stripes[id])).size);
		const technique = {key: 1, name: null, accesses: 1, moves: 0, copies: 0, replicated: 0, technique: "stays"};
		let keys = 1;
		window.fetch = async (path) => new Response(JSON.stringify(String(path).includes("api/runs") ? {runs: [{name: long, policy: "x"}, {name: "b", policy: "y"}]} : String(path).includes("api/affinity") ? {keys, nodes: [], techniques: [technique]} :
			{steps: [], keys: [], runs: [long, "b"].map((name) => ({name, policy: "x", nodes: 1, seconds: 3, done: true, accesses: 1, t: [1, 2], series: {accesses: [1, 2]}}))}));
		const app = {run: {name: long, to: 9, keys: 1, nodes, tables: [{name: long, first: 0, rows: 1}, {name: "b", first: 1, rows: 9}]}, fine() {}, failed() {}};
		for (const name of ["tour", "affinity", "allocation", "compare"]) {
			const main = document.createElement("main");
			document.body.append(main);
			const shown = (await import("./views/" + name + ".js")).open(main, app, {view: name, subject: "", with: new URLSearchParams()});
			for (let i = 0; i < 100 && !/ key|Side|node 63/.test(main.innerText); i++) await new Promise((end) => setTimeout(end, 50));
			said.push(name + (document.documentElement.scrollWidth > innerWidth ? " is too wide" : ""));
			if (name === "affinity") {
				said.push(/hottest key/.test(main.innerText.replace("The hottest keys as a table", "")));
				keys = 5000;
				shown.ticked();
				for (let i = 0; i < 100 && !main.innerText.includes("Of the 1 hottest"); i++) await new Promise((end) => setTimeout(end, 50));
				said.push(main.innerText.includes("a dot a key, of the 1 hottest"));
			}
			shown.close();
			main.remove();
		}
		window.fetch = ask;
		return said.join(", ");
	})()`)
	if want := "64, tour, affinity, false, true, allocation, compare"; err != nil || got != want {
		t.Errorf("a run of 64 nodes and long names: %s (%v), want %s", got, err, want)
	}
}

// checkLearning looks at the curves of a run of many epochs: points do not hide the line, and the metric that is shown first is one with a curve.
func checkLearning(t *testing.T, p *page) {
	t.Helper()
	got, err := eval[string](p, `(async () => {
		const ask = window.fetch, metric = (name, t) => ({t, epoch: t, split: "test", name, value: t});
		window.fetch = async () => new Response(JSON.stringify({t: [1, 2], nodes: [], loss: [], metrics: [metric("first", 0), metric("often", 1), metric("often", 2), metric("last", 3)]}));
		const main = document.createElement("main");
		document.body.append(main);
		const shown = (await import("./views/cluster.js")).open(main, {run: {name: "a", to: 3, live: false, nodes: [], tables: []}, fine() {}, failed() {}}, {with: new URLSearchParams()});
		for (let i = 0; i < 100 && main.querySelectorAll("select").length < 2; i++) await new Promise((end) => setTimeout(end, 50));
		const chosen = main.querySelectorAll("select")[1]?.value;
		shown.close();
		main.remove();
		window.fetch = ask;
		const { few } = await import("./chart.js");
		return chosen + " " + few(new Array(10)) + " " + few(new Array(900));
	})()`)
	if want := "test often true false"; err != nil || got != want {
		t.Errorf("learning curves: %s (%v), want %s", got, err, want)
	}
}

// checkSilent looks at a run whose nodes told nothing: what the page says of it depends on whether it goes on.
func checkSilent(t *testing.T, p *page) {
	t.Helper()
	got, err := eval[string](p, `(async () => {
		const ask = window.fetch, said = [];
		window.fetch = async () => new Response(JSON.stringify({nodes: [{id: 0, parts: null, throughput: null}], slowest: null, verdict: null, findings: [], waste: null, loss: [], metrics: []}));
		for (const live of [true, false]) {
			for (const name of ["overview", "cluster"]) {
				const main = document.createElement("main");
				document.body.append(main);
				const shown = (await import("./views/" + name + ".js")).open(main, {run: {name: "a", live, nodes: [{id: 0}], tables: []}, fine() {}, failed() {}}, {with: new URLSearchParams()});
				said.push(main.innerText.includes("yet"));
				for (let i = 0; i < 100 && main.querySelector(".empty:not([hidden])") === null; i++) await new Promise((end) => setTimeout(end, 50));
				said.push(main.innerText.includes("yet"), main.innerText.includes("compute as fast"));
				shown.close();
				main.remove();
			}
		}
		window.fetch = ask;
		return said.join(" ");
	})()`)
	if want := "false true false false true false false false false false false false"; err != nil || got != want {
		t.Errorf("of a run whose nodes told nothing, the page says %s (%v), want %s", got, err, want)
	}
}

// checkUnknown opens the address of a run that is not there: the page says so, and not that it waits.
func checkUnknown(t *testing.T, p *page, address string) {
	t.Helper()
	base, _, _ := strings.Cut(address, "?")
	if err := p.load(base + "#/overview?run=nonesuch"); err != nil {
		t.Fatal(err)
	}
	if err := p.until(`document.querySelector("#trouble").textContent.includes("no such run") && document.querySelector("main").textContent.includes("nothing to show") && document.querySelector("#run select option[selected]").textContent === "choose one"`); err != nil {
		t.Error(err)
	}
	if _, err := eval[chromedp.Void](p, `{ const s = document.querySelector("#run select"); s.selectedIndex = 1; s.dispatchEvent(new Event("change")); }`); err != nil {
		t.Fatal(err)
	}
	if err := p.until(`document.querySelectorAll(".steps .stack").length > 0 && document.querySelector("#trouble").hidden`); err != nil {
		t.Error(err)
	}
	p.troubles() // the browser complains of what the server refused
}

// checkEnded ends the server of a page: the views that are opened then say so, and nothing of the run.
func checkEnded(t *testing.T, browser string, replay *program) {
	t.Helper()
	p := opened(t, browser, looks[0])
	whenTraced(t, p, replay.address)
	replay.interrupt()
	if err := p.until(`document.querySelector(".badge.lost") !== null`); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"cluster", "overview"} {
		if _, err := eval[chromedp.Void](p, fmt.Sprintf("location.hash = %q", "#/"+name)); err != nil {
			t.Fatal(err)
		}
		if err := p.until(`document.querySelector("#trouble").textContent.includes("The server has ended") && !document.querySelector("#trouble").hidden && !document.querySelector("main").innerText.includes("yet")`); err != nil {
			t.Error(err)
		}
	}
}

// checkForeignLink opens a dashboard by a link on another site's page.
func checkForeignLink(t *testing.T, browser, address string) {
	t.Helper()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, `<a href="%s">run</a>`, address) }))
	defer site.Close()
	p := opened(t, browser, looks[0])
	if err := p.load(strings.Replace(site.URL, "127.0.0.1", "localhost", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := eval[chromedp.Void](p, `setTimeout(() => document.querySelector("a").click())`); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		tabs, err := eval[int](p, `document.querySelectorAll("#tabs a").length`) // fails while another page takes the place of this one
		if err == nil && tabs > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("a link on another site's page leads to a page with %d tabs (%v)", tabs, err)
		}
	}
}
