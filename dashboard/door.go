package dashboard

import (
	"crypto/rand"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"io"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
)

// A door lets in who has the token, or the cookie that it was changed for.
type door struct {
	token   string
	session string
	cookie  string   // name of the cookie: cookies are those of a host, whatever the port
	names   []string // by which browsers may call this host, beside addresses
	secured bool
}

func newDoor(addr net.Addr, t *tls.Config) *door {
	_, port, _ := net.SplitHostPort(addr.String())
	d := &door{token: secret(), session: secret(), cookie: "godwit-" + port, names: []string{"localhost"}, secured: t != nil}
	if t == nil {
		return d
	}
	// A browser compares the name with the certificate by itself.
	if name, err := os.Hostname(); err == nil {
		d.names = append(d.names, strings.ToLower(name))
	}
	for _, c := range t.Certificates {
		if c.Leaf != nil {
			for _, name := range c.Leaf.DNSNames {
				d.names = append(d.names, strings.ToLower(name))
			}
		}
	}
	return d
}

func secret() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// guard lets requests through that may be answered.
func (d *door) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch {
		case !d.called(r.Host):
			fail(w, http.StatusMisdirectedRequest, "this server is not called "+r.Host+": open the address that was printed")
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			h.Set("Allow", "GET, HEAD")
			fail(w, http.StatusMethodNotAllowed, "the dashboard only shows, it changes nothing")
		case d.known(r):
			if r.URL.Query().Has("token") { // it should stand in no history
				http.Redirect(w, r, "/", http.StatusSeeOther)
				return
			}
			next.ServeHTTP(w, r)
		case r.URL.Path == "/" && equal(r.URL.Query().Get("token"), d.token):
			http.SetCookie(w, &http.Cookie{Name: d.cookie, Value: d.session, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: d.secured})
			http.Redirect(w, r, "/", http.StatusSeeOther)
		case r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Site") == "cross-site":
			again(w)
		default:
			fail(w, http.StatusUnauthorized, "open the address that the run printed: it ends in ?token= and the token")
		}
	})
}

// again has a browser ask for the page once more, by itself. Where a page of another site led here, as a notebook that shows the address does, the
// browser has the cookie but does not send it.
func again(w http.ResponseWriter) {
	w.Header().Set("Content-Type", types[".html"])
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, `<!doctype html><title>Godwit</title><meta http-equiv="refresh" content="0; url=/">`) // a browser that went away
}

// known reports whether a browser has the cookie.
func (d *door) known(r *http.Request) bool {
	c, err := r.Cookie(d.cookie)
	return err == nil && equal(c.Value, d.session)
}

// called reports whether a browser may call this host so: by an address, or one of the names. A page of somebody else whose name
// leads to this address is refused.
func (d *door) called(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	return net.ParseIP(host) != nil || slices.Contains(d.names, strings.ToLower(host))
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// types are those of the page's files: what an operating system says of endings is no part of the answer.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".png": "image/png", ".json": "application/json", ".woff2": "font/woff2",
}

// files serves the page.
func files(page fs.FS) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		if name == "" {
			name = "index.html"
		}
		b, err := fs.ReadFile(page, name)
		if err != nil {
			fail(w, http.StatusNotFound, "there is no such page")
			return
		}
		kind, ok := types[path.Ext(name)]
		if !ok {
			kind = mime.TypeByExtension(path.Ext(name))
		}
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write(b) // a browser that went away
	})
}
