// Command browser opens the dashboard's page in a headless Chromium, looks at each of its views, and
// writes a picture of each. It tells what the page complains of, and with -axe also what
// axe-core finds that keeps people out.
//
//	go run . -url 'http://127.0.0.1:7070/?token=…' -out pictures
//
// Its tests, which "make dashboard" runs, do so with a live run and with the replay of one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
)

func main() {
	url := flag.String("url", "", "address of a dashboard, as the run printed it")
	out := flag.String("out", "pictures", "folder for pictures")
	axe := flag.String("axe", "", "axe.min.js of axe-core")
	browser := flag.String("browser", found(), "Chromium, or one like it")
	pacing := flag.Bool("pace", false, "only measure how fast the allocation is played")
	flag.Parse()
	if err := lookAt(*url, *out, *axe, *browser, *pacing); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// found returns the browser of this machine, or nothing.
func found() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

func lookAt(url, out, axe, browser string, pacing bool) error {
	var all []error
	for _, l := range looks {
		p, err := open(context.Background(), browser, l)
		if err != nil {
			return err
		}
		if pacing {
			defer p.close()
			return measure(p, url)
		}
		err = visit(p, url, out, axe, l)
		p.close()
		all = append(all, err)
	}
	return errors.Join(all...)
}

// measure plays the allocation and tells how fast that is.
func measure(p *page, url string) error {
	if err := p.load(url); err != nil {
		return err
	}
	if err := p.until(`document.querySelectorAll("#tabs a").length > 0`); err != nil {
		return err
	}
	g, err := played(p)
	if err == nil {
		fmt.Println(g)
	}
	return err
}
