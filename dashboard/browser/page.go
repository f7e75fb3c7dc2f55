package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience bounds each thing that a page is asked to do: machines may be busy.
const patience = 90 * time.Second

// A page is a tab of a browser of its own, without any memory of others. It may be used by one
// goroutine.
type page struct {
	ctx  context.Context
	done func()

	mu      sync.Mutex
	trouble []string // what the console and the page's scripts complained of
}

// A look says how a page is shown.
type look struct {
	width, height int64
	dark, still   bool
}

func (l look) String() string {
	if l.dark {
		return fmt.Sprintf("%d-dark", l.width)
	}
	return fmt.Sprintf("%d-light", l.width)
}

// put makes a tab have the look, and tell of its troubles.
func (l look) put(ctx context.Context, t *chromedp.Target) error {
	scheme, motion := "light", "no-preference"
	if l.dark {
		scheme = "dark"
	}
	if l.still {
		motion = "reduce"
	}
	if _, err := chromedp.EmulateViewport(l.width, l.height)(ctx, t); err != nil {
		return err
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: motion}}}
	if _, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, media); err != nil {
		return err
	}
	_, err := cdp.Call(ctx, t, log.Enable, cdp.Empty{})
	return err
}

// open starts the browser at a path and opens an empty page, which close ends with the browser.
func open(ctx context.Context, browser string, l look) (*page, error) {
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser), chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("hide-scrollbars", true))
	alloc, endAlloc := chromedp.NewExecAllocator(ctx, opts...)
	tab, endTab := chromedp.NewContext(alloc)
	p := &page{ctx: tab, done: func() { endTab(); endAlloc() }}
	err := chromedp.Listen(tab, p.heard)
	if err == nil {
		err = p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error { return l.put(ctx, t) }))
	}
	if err != nil {
		p.done()
		return nil, fmt.Errorf("start %s: %w", browser, err)
	}
	return p, nil
}

func (p *page) close() { p.done() }

// heard notes what the page complains of.
func (p *page) heard(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch ev := ev.(type) {
	case *runtime.EventExceptionThrown:
		p.trouble = append(p.trouble, exception(ev.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if ev.Type == "error" || ev.Type == "warning" {
			p.trouble = append(p.trouble, fmt.Sprintf("console.%s: %s", ev.Type, args(ev.Args)))
		}
	case *log.EventEntryAdded:
		if ev.Entry.Level == "error" || ev.Entry.Level == "warning" {
			p.trouble = append(p.trouble, fmt.Sprintf("%s: %s (%s)", ev.Entry.Source, ev.Entry.Text, ev.Entry.URL))
		}
	}
}

func args(objects []*runtime.RemoteObject) string {
	var words []string
	for _, o := range objects {
		words = append(words, string(o.Value)+o.Description)
	}
	return strings.Join(words, " ")
}

// troubles returns what the page complained of since it was asked last.
func (p *page) troubles() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.trouble
	p.trouble = nil
	return t
}

func (p *page) do(steps ...chromedp.Action[chromedp.Void]) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Do(ctx, steps...)
}

// load opens an address, whatever was open.
func (p *page) load(url string) error {
	if err := p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url)); err != nil {
		return fmt.Errorf("open %s: %w", url, err)
	}
	return nil
}

// eval runs a script and returns its result, of a promise what it comes to.
func eval[T any](p *page, script string) (T, error) {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// until waits until a script gives true.
func (p *page) until(script string) error {
	var err error
	for range 3 { // a page that has just been opened may take the place of the one that was asked
		err = p.do(chromedp.Poll[chromedp.Void](script, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(patience/2)))
		if err == nil || !strings.Contains(err.Error(), "Cannot find context") {
			break
		}
	}
	if err != nil {
		body, _ := eval[string](p, "document.body.innerText.slice(0, 600)")
		return fmt.Errorf("wait for %s: %w; the page says: %q", script, err, body)
	}
	return nil
}

// shot writes a picture of the whole page.
func (p *page) shot(file string) error {
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	if err != nil {
		return fmt.Errorf("take a picture: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, png, 0o644)
}

func exception(d *runtime.ExceptionDetails) string {
	if d.Exception != nil {
		return d.Text + " " + d.Exception.Description
	}
	return d.Text
}
