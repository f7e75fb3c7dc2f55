// Package page is what a browser gets of the dashboard: a page of plain HTML, CSS and JavaScript
// modules, which need no step of building and nothing from elsewhere. Package dashboard serves it,
// and answers what it asks for.
//
// The folder vendor has uPlot, which draws the curves, with its licence.
package page

import (
	"embed"
	"io/fs"
)

//go:embed index.html icon.svg *.css *.js views/*.js vendor/*.js vendor/*.css vendor/LICENSE.uPlot
var files embed.FS

// Files returns the page's files, with index.html at the root. Names in them are relative, so that
// the page may be served below any path.
func Files() fs.FS { return files }
