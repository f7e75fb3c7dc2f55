package main

import (
	"fmt"
	"slices"
	"time"
)

// A pace says how fast a page drew while it played: the time from picture to picture, and the
// time that painting itself took, each of all pictures in order of size.
type pace struct {
	Frames, Paints []float64 // ms
}

// of returns the duration that a share of values do not exceed.
func of(ms []float64, share float64) time.Duration {
	if len(ms) == 0 {
		return 0
	}
	return time.Duration(ms[min(len(ms)-1, int(share*float64(len(ms))))] * float64(time.Millisecond))
}

func (p pace) String() string {
	return fmt.Sprintf("%d frames, 95 %% within %v; painting both pictures: half within %v, 95 %% within %v", len(p.Frames), of(p.Frames, 0.95).Round(100*time.Microsecond), of(p.Paints, 0.5).Round(100*time.Microsecond), of(p.Paints, 0.95).Round(100*time.Microsecond))
}

// played plays the allocation from its beginning for a few seconds and measures the page's pace.
func played(p *page) (pace, error) {
	if err := show(p, view{"allocation", "#/allocation?t=0.0001", painted + `(0)`}, ""); err != nil {
		return pace{}, err
	}
	got, err := eval[pace](p, `(async () => {
		[...document.querySelectorAll("button")].find(b => b.textContent.includes("Play")).click();
		const Frames = [], frame = () => new Promise(requestAnimationFrame);
		let last = await frame();
		const end = last + 5000;
		while (last < end) { const now = await frame(); Frames.push(now - last); last = now; }
		[...document.querySelectorAll("button")].find(b => b.textContent.includes("Pause"))?.click();
		const paint = await import("./paint.js"), tiles = await import("./tiles.js");
		const heat = tiles.readHeat(await (await fetch("api/heat?cols=1200&rows=400")).arrayBuffer());
		const at = tiles.readInstant(await (await fetch("api/instant")).arrayBuffer());
		const [a, b] = [...document.querySelectorAll(".picture canvas:not(.over)")].map(c => c.getContext("2d"));
		const grid = paint.gridOf(at.n, b.canvas.width, 400, 1), look = {only: -1, dark: false, heat: true}, Paints = [];
		for (let i = 0; i < 40; i++) { const t = performance.now(); paint.paintHeat(a, heat, look); paint.paintInstant(b, at, grid, look); Paints.push(performance.now() - t); await frame(); }
		return {Frames, Paints};
	})()`)
	slices.Sort(got.Frames)
	slices.Sort(got.Paints)
	return got, err
}
