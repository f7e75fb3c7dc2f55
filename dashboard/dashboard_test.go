package dashboard

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godwit-ps/godwit"
	"github.com/godwit-ps/godwit/telemetry/record"
	"github.com/godwit-ps/godwit/telemetry/trace"
)

const hostile = "<script>alert(1)</script>\x1b[31m\"&'\u202e"

// write writes the trace of a run of two nodes into a folder: key 3 moves from node 0 to node 1, which has a replica of key 4.
func write(t *testing.T, dir, run string) {
	t.Helper()
	m, err := godwit.NewModel(godwit.Table{Name: hostile, Rows: 10, Dim: 1, Rule: godwit.Add{}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := trace.ParseKeys("", m)
	if err != nil {
		t.Fatal(err)
	}
	for n, events := range [][]trace.Event{
		{{Key: 3, Kind: trace.Created}, {Key: 4, Kind: trace.Created}, {Time: 1e9, Key: 3, Kind: trace.Left, Peer: 1}},
		{{Time: 5e8, Key: 3, Kind: trace.Wanted}, {Time: 1e9, Key: 3, Kind: trace.Arrived, Epoch: 1}, {Time: 15e8, Key: 4, Kind: trace.Copied}, {Time: 2e9, Key: 3, Kind: trace.Accessed, N: 5},
			{Time: 2e9, Key: 3, Kind: trace.Missed, N: 1}, {Time: 25e8, Key: 4, Kind: trace.Refreshed}, {Time: 28e8, Key: 4, Kind: trace.RefreshCount, N: 3}, {Time: 3e9, Key: 4, Kind: trace.Accessed, N: 9}},
	} {
		w, err := trace.Create(trace.Config{Dir: dir, Keys: keys, Plain: true, Header: trace.Header{Run: run, Policy: "adapm", Node: godwit.NodeID(n), Nodes: 2, Start: 1e18, Tables: trace.TablesOf(m)}})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			e.Node = godwit.NodeID(n)
			w.Add(e)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := trace.WriteNames(dir, 0, slices.Values([]string{"two of it", "two of it", "", hostile, "/m/0dl"})); err != nil {
		t.Fatal(err)
	}
}

// A browser asks a server.
type browser struct {
	t      *testing.T
	s      *Server
	cookie *http.Cookie
}

func serve(t *testing.T, c Config) *browser {
	t.Helper()
	if c.Addr == "" {
		c.Addr = ":0"
	}
	s, err := Serve(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	b := &browser{t: t, s: s}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	w := b.request("GET", u.RequestURI(), nil)
	if w.Code != http.StatusSeeOther || len(w.Result().Cookies()) != 1 {
		t.Fatalf("the address that is printed gives %d %v", w.Code, w.Header())
	}
	b.cookie = w.Result().Cookies()[0]
	return b
}

// request asks the handler, without a network.
func (b *browser) request(method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = b.s.listen.Addr().String()
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	b.s.http.Handler.ServeHTTP(w, r)
	return w
}

// get returns what is answered, when the server has read the run.
func (b *browser) get(path string) []byte {
	b.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		w := b.request("GET", path, nil)
		if w.Code == http.StatusServiceUnavailable && time.Now().Before(end) {
			continue
		}
		if w.Code != http.StatusOK {
			b.t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		return w.Body.Bytes()
	}
}

// read waits until the server has read the runs of these names.
func (b *browser) read(names ...string) {
	b.t.Helper()
	for _, name := range names {
		for {
			var x struct{ Index struct{ Done bool } }
			b.json("/api/run?run="+url.QueryEscape(name), &x)
			if x.Index.Done {
				break
			}
			time.Sleep(time.Millisecond)
		}
	}
}

func (b *browser) json(path string, x any) {
	b.t.Helper()
	if err := json.Unmarshal(b.get(path), x); err != nil {
		b.t.Fatalf("%s: %v", path, err)
	}
}

func TestOnlyWhoHasTheTokenIsLetIn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "r")
	b := serve(t, Config{Dir: dir})
	if c := b.cookie; !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure {
		t.Errorf("the cookie is %+v", c)
	}
	stranger := &browser{t: t, s: b.s}
	for _, path := range []string{"/", "/api/runs", "/events", "/?token=", "/?token=" + b.s.door.token[1:], "/api/runs?token=" + b.s.door.token, "/nothing"} {
		if w := stranger.request("GET", path, nil); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), b.s.door.token) {
			t.Errorf("without a cookie %s gives %d %s", path, w.Code, w.Body)
		}
	}
	if w := stranger.request("GET", "/api/runs", func(r *http.Request) { r.AddCookie(&http.Cookie{Name: b.cookie.Name, Value: b.s.door.token}) }); w.Code != http.StatusUnauthorized {
		t.Errorf("the token as a cookie gives %d", w.Code)
	}
	for host, want := range map[string]int{"127.0.0.1:80": 200, "localhost": 200, "[::1]:9": 200, "evil.example": 421, "evil.example:80": 421, "127.0.0.1.evil.example": 421, "": 421} {
		if w := b.request("GET", "/api/runs", func(r *http.Request) { r.Host = host }); w.Code != want {
			t.Errorf("host %q gives %d, want %d", host, w.Code, want)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "CONNECT"} {
		if w := b.request(method, "/api/runs", nil); w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s gives %d", method, w.Code)
		}
	}
	w := b.request("GET", "/", nil)
	if csp := w.Header().Get("Content-Security-Policy"); w.Code != 200 || !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") ||
		w.Header().Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
		t.Errorf("the page gives %d %v", w.Code, w.Header())
	}
	if w := b.request("GET", "/?token="+b.s.door.token, nil); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/" {
		t.Errorf("the token stays in the address: %d %v", w.Code, w.Header())
	}
	for _, path := range []string{"/../door.go", "/%2e%2e/door.go", "/page.go", "/views", "/index.html/.."} {
		if w := b.request("GET", path, nil); w.Code == 200 && !strings.Contains(w.Body.String(), "<html") {
			t.Errorf("%s gives %d %.40s", path, w.Code, w.Body)
		}
	}
}

// A browser that comes from a page of another site sends no cookie, though it has one: it is told to ask by itself, once.
func TestALinkOnAnotherSiteLeadsToThePage(t *testing.T) {
	b := serve(t, Config{Dir: t.TempDir()})
	from := func(site string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Cookie")
			r.Header.Set("Sec-Fetch-Site", site)
		}
	}
	if w := b.request("GET", "/", from("cross-site")); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `http-equiv="refresh" content="0; url=/"`) {
		t.Errorf("who comes from another site is told %d %s", w.Code, w.Body)
	}
	for path, site := range map[string]string{"/": "same-origin", "/api/runs": "cross-site"} {
		if w := b.request("GET", path, from(site)); w.Code != http.StatusUnauthorized || strings.Contains(w.Body.String(), "refresh") {
			t.Errorf("who asks for %s (%s) without a cookie is told %d %s", path, site, w.Code, w.Body)
		}
	}
}

// Parameters are bounded, and what is wrong is said.
func TestWhatIsAskedIsChecked(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "r")
	b := serve(t, Config{Dir: dir})
	b.read("")
	for path, want := range map[string]int{
		"/api/heat?cols=0": 400, "/api/heat?rows=2001": 400, "/api/heat?from=NaN": 400, "/api/heat?to=1e300": 400, "/api/heat?sort=size": 400, "/api/heat?offset=-1": 400,
		"/api/heat?from=9&to=1": 200, "/api/heat?from=-5&to=1e9&offset=1000": 200, "/api/heat?table=none": 200, "/api/heat?cols=1&rows=1": 200,
		"/api/instant?t=x": 400, "/api/instant?t=-1": 200, "/api/instant?limit=99999999999": 400, "/api/keys?limit=1001": 400, "/api/keys?q=" + strings.Repeat("x", 201): 400,
		"/api/affinity?keys=1,,2": 400, "/api/affinity?keys=99": 400, "/api/affinity?keys=" + strings.Repeat("1,", 1000) + "1": 400, "/api/key/99": 404, "/api/key/x:1": 404, "/api/key/5": 200,
		"/api/key/" + url.PathEscape(hostile+":3"): 200, "/api/key/" + url.PathEscape(hostile): 200, "/api/key/" + url.PathEscape("/m/0dl"): 200, "/api/key/" + url.PathEscape("two of it"): 404, "/api/cluster?cols=1001": 400, "/api/run?run=none": 404, "/api/compare?other=none": 404, "/api/overview?from=0&to=3": 200,
		"/api/tour": 200, "/api/none": 404,
	} {
		w := b.request("GET", path, nil)
		var e struct{ Error string }
		if w.Code != want || want != 200 && (json.Unmarshal(w.Body.Bytes(), &e) != nil || e.Error == "") {
			t.Errorf("%.60s gives %d %.100s, want %d", path, w.Code, w.Body, want)
		}
	}
}

// Names are what users call things: no text of them is a tag or a command of a terminal in what is sent.
func TestNamesAreSentAsData(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, hostile)
	b := serve(t, Config{Dir: dir})
	b.read("")
	for _, path := range []string{"/api/runs", "/api/run", "/api/keys", "/api/key/3", "/api/affinity", "/api/keys?q=" + url.QueryEscape("<SCRIPT>")} {
		body := b.get(path)
		if strings.ContainsAny(string(body), "<>&\x1b") {
			t.Errorf("%s sends %s", path, body)
		}
	}
	var found struct {
		Keys []struct {
			Key         int
			Name, Table string
		}
	}
	b.json("/api/keys?q="+url.QueryEscape("<SCRIPT>"), &found)
	if len(found.Keys) != 1 || found.Keys[0].Key != 3 || found.Keys[0].Name != hostile || found.Keys[0].Table != hostile {
		t.Errorf("found %+v", found)
	}
	if w := b.request("GET", "/api/run?run="+url.QueryEscape(hostile+"?"), nil); strings.ContainsAny(w.Body.String(), "<>\x1b") {
		t.Errorf("an error sends %s", w.Body)
	}
}

func TestViewsTellWhatBecameOfKeys(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "a")
	write(t, filepath.Join(dir, "b"), "b")
	b := serve(t, Config{Dir: dir})
	b.read("a", "b")
	var life struct {
		Owner  int
		Why    string
		Text   []string
		Reigns []struct {
			Owner    int
			From, To *float64
		}
		Nodes []struct {
			Owned            float64
			Moves            int
			Accesses, Missed uint64
			Replica, Intent  [][2]*float64
			Age              [][2]float64
		}
	}
	b.json("/api/key/3", &life)
	if life.Owner != 1 || len(life.Reigns) != 2 || *life.Reigns[0].To != 1 || life.Reigns[1].To != nil || life.Nodes[1].Moves != 1 || life.Nodes[1].Accesses != 5 || life.Nodes[1].Missed != 1 ||
		math.Abs(life.Nodes[1].Owned-2./3) > 1e-9 || len(life.Nodes[1].Intent) != 1 || !strings.Contains(life.Why, "came to node 1 at 1.000 s, because a worker there had announced") || len(life.Text) < 3 {
		t.Errorf("the life of key 3 is %+v", life)
	}
	b.json("/api/key/4", &life)
	if life.Owner != 0 || len(life.Nodes[1].Replica) != 1 || *life.Nodes[1].Replica[0][0] != 1.5 || life.Nodes[1].Replica[0][1] != nil || len(life.Nodes[1].Age) != 2 || life.Nodes[1].Age[0] != [2]float64{2.5, 1} ||
		life.Nodes[1].Age[1][0] != 2.8 || math.Abs(life.Nodes[1].Age[1][1]-0.1) > 1e-9 || !strings.Contains(life.Why, "4 refreshes") { // three within 0.3 s
		t.Errorf("the life of key 4 is %+v", life)
	}
	var compared struct {
		Runs []struct {
			Name     string
			Accesses uint64
			Moves    int
		}
	}
	b.json("/api/compare?run=a&other=b", &compared)
	if r := compared.Runs; len(r) != 2 || r[0].Name != "a" || r[1].Name != "b" || r[0].Accesses != 14 || r[1].Moves != 1 {
		t.Errorf("compared %+v", compared)
	}
	var tour struct {
		Steps []struct{ Run, Policy, Title, Text string }
	}
	b.json("/api/tour", &tour)
	if len(tour.Steps) != 2 || tour.Steps[1].Run != "b" || tour.Steps[1].Title != pictures["adapm"].title+" (2 nodes)" {
		t.Errorf("the tour is %+v", tour)
	}
	var all struct {
		T     []float64
		Nodes []struct{ Series map[string][]*float64 }
	}
	b.json("/api/cluster?run=a&cols=1", &all)
	if len(all.T) != 1 || math.Abs(*all.Nodes[1].Series["accesses"][0]*all.T[0]-14) > 1e-9 {
		t.Errorf("the cluster is %+v", all)
	}
	body := b.get("/api/instant?run=a&t=1.2&sort=key")
	if n := binary.LittleEndian.Uint32(body[4:]); string(body[:4]) != "GDI1" || n != 2 || len(body) != 24+2*(8+1+1+1) || body[24+16] != 1 || body[24+17] != 0 {
		t.Errorf("the instant is %v", body)
	}
	body = b.get("/api/heat?run=a&sort=key")
	rows, cols := int(binary.LittleEndian.Uint32(body[4:])), int(binary.LittleEndian.Uint32(body[8:]))
	if string(body[:4]) != "GDH1" || rows != 2 || len(body) != 40+8*rows+4*rows*cols {
		t.Fatalf("the tile has %d rows, %d columns and %d bytes", rows, cols, len(body))
	}
	if owners := body[40+8*rows:]; owners[0] != 0 || owners[cols-1] != 1 || owners[2*cols-1] != 0 {
		t.Errorf("the tile's owners are %v", owners[:2*cols])
	}
}

// A page hears of a run that begins and grows, and of the end of the server.
func TestAStreamTellsTheNewestState(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "later")
	b := serve(t, Config{Dir: dir, Live: true})
	if got := string(b.get("/api/runs")); got != `{"current":"","runs":[]}` {
		t.Errorf("before a run there are %s", got)
	}
	r, err := http.NewRequestWithContext(context.Background(), "GET", "http://"+b.s.listen.Addr().String()+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.AddCookie(b.cookie)
	w, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	lines := bufio.NewScanner(w.Body)
	next := func(what string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), what) {
				return
			}
		}
		t.Fatalf("the stream ended before %q: %v", what, lines.Err())
	}
	next(`"waiting":`)
	write(t, filepath.Join(dir, "r"), "r")
	next(`"to":3`)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ended := make(chan error)
	go func() { ended <- b.s.Close(ctx) }()
	next("event: bye")
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if rest, err := io.ReadAll(w.Body); err != nil || len(rest) > 100 {
		t.Errorf("after the end there are %q (%v)", rest, err)
	}
}

// A stuck writer is a browser that reads nothing of what it is sent.
type stuck struct {
	http.ResponseWriter
	free chan struct{}
}

func (w stuck) Write(b []byte) (int, error) {
	<-w.free
	return len(b), nil
}

func TestAStuckBrowserHoldsUpNobody(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "r")
	b := serve(t, Config{Dir: dir})
	b.read("")
	free := make(chan struct{})
	var all sync.WaitGroup
	for range 3 * mostRequests {
		all.Go(func() {
			r := httptest.NewRequest("GET", "http://localhost/api/heat", nil)
			r.AddCookie(b.cookie)
			b.s.http.Handler.ServeHTTP(stuck{httptest.NewRecorder(), free}, r)
		})
	}
	for range 20 {
		b.get("/api/heat")
	}
	close(free)
	all.Wait()
}

func TestOtherMachinesAreListenedToWithTLSOnly(t *testing.T) {
	for addr, want := range map[string]bool{":0": true, "127.0.0.1:1": true, "[::1]:0": true, "localhost:0": true, "0.0.0.0:0": false, "192.168.1.1:80": false, "example.org:80": false} {
		if _, err := Address(addr, false); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
		if _, err := Address(addr, true); err != nil {
			t.Errorf("%s with TLS: %v", addr, err)
		}
	}
	for _, addr := range []string{"", "here", "1.2.3.4", ":http", ":70000"} {
		if _, err := Address(addr, true); err == nil {
			t.Errorf("%q is an address", addr)
		}
	}
	s := httptest.NewUnstartedServer(nil)
	s.StartTLS()
	defer s.Close()
	b := serve(t, Config{Dir: t.TempDir(), TLS: &tls.Config{Certificates: s.TLS.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}})
	if !b.cookie.Secure || !strings.HasPrefix(b.s.URL(), "https://") {
		t.Errorf("%s with %+v", b.s.URL(), b.cookie)
	}
	w, err := s.Client().Get(b.s.URL()) // its certificate is trusted by this client
	if err != nil {
		t.Fatal(err)
	}
	w.Body.Close()
}

func TestFilesOfOthersAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "node-0"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "node-0", "000001.trace"), []byte("no trace at all, but long enough"), 0o666); err != nil {
		t.Fatal(err)
	}
	b := serve(t, Config{Dir: dir})
	if got := string(b.get("/api/runs")); got != `{"current":"","runs":[]}` {
		t.Errorf("there are %s", got)
	}
}

func TestAReplicaEndsWhereTheMainCopyComes(t *testing.T) {
	var x lane
	for _, e := range []trace.Event{{Time: 1e9, Kind: trace.Copied}, {Time: 2e9, Kind: trace.Arrived}, {Time: 3e9, Kind: trace.Left}, {Time: 4e9, Kind: trace.Copied}, {Time: 5e9, Kind: trace.Ended}, {Time: 6e9, Kind: trace.Copied}} {
		x.add(&e)
	}
	if want := [][2]any{{1., 2.}, {4., 5.}, {6., nil}}; !slices.Equal(x.Replica, want) {
		t.Errorf("the replicas are %v, want %v", x.Replica, want)
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so within a minute: %s", what)
		}
	}
}

// A connection by which nothing is asked, as browsers open them, and a run that is being read hold up the end up to ctx at the most.
func TestCloseWaitsForNobodyBeyondItsContext(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "r")
	s, err := Serve(Config{Dir: dir, Addr: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", s.listen.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stuck := &run{done: make(chan struct{}), stop: func() {}} // as by a disk that does not answer
	s.runs.mu.Lock()
	s.runs.open = append(s.runs.open, stuck)
	s.runs.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- s.Close(ctx) }()
	select {
	case err := <-closed:
		if err != nil {
			t.Errorf("the server ends with %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the server does not end")
	}
}

// Who follows a link with the token in it stays at this server.
func TestTheTokenLeadsNowhereElse(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "r")
	b := serve(t, Config{Dir: dir})
	for _, path := range []string{"//evil.example/x", "/\\evil.example/", "/x/..//evil.example"} {
		w := b.request("GET", "/", func(r *http.Request) { r.URL.Path, r.URL.RawQuery = path, "token=1" })
		if to := w.Header().Get("Location"); w.Code != http.StatusSeeOther || to != "/" {
			t.Errorf("%s leads to %d %q", path, w.Code, to)
		}
	}
}

// A run whose files cannot be read for a moment is shown again afterwards.
func TestAShortFaultDoesNotEndTheViewOfARun(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	write(t, dir, "r")
	if err := os.WriteFile(filepath.Join(dir, "node-0", "000001.samples"), []byte(`{"format":"godwit-samples","version":1,"run":"r","node":0,"nodes":2,"workers":1}`+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	b := serve(t, Config{Dir: dir})
	b.read("r")
	r, err := b.s.runs.get("r")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fault is told", func() bool { _, err := r.index(); return err != nil })
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run is read again", func() bool { _, err := r.index(); return err == nil })
}

// A run that was removed, and begun again under its name, is another one.
func TestARunThatIsMadeAnewIsReadAnew(t *testing.T) {
	dir := t.TempDir()
	at := filepath.Join(dir, "r")
	write(t, at, "r")
	b := serve(t, Config{Dir: dir})
	b.read("r")
	before, err := b.s.runs.get("r")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if got := string(b.get("/api/runs")); got != `{"current":"","runs":[]}` {
		t.Errorf("after the run was removed there are %s", got)
	}
	write(t, at, "r")
	b.read("r")
	if now, err := b.s.runs.get("r"); err != nil || now == before {
		t.Errorf("the run that was removed is still shown (%v)", err)
	}
}

// A trace that cannot be read is not one that has not begun.
func TestATraceThatCannotBeReadIsTold(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "r")
	path := filepath.Join(dir, "node-0", trace.SegmentName(1))
	x, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(x[8:], 99) // its version
	if err := os.WriteFile(path, x, 0o666); err != nil {
		t.Fatal(err)
	}
	b := serve(t, Config{Dir: dir})
	if w := b.request("GET", "/api/run", nil); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "version") {
		t.Errorf("a trace of another version is answered by %d %s", w.Code, w.Body)
	}
	now, _ := b.s.state(httptest.NewRequest("GET", "/events", nil), nil)
	if text, _ := now["error"].(string); !strings.Contains(text, "version") {
		t.Errorf("pages are told %v", now)
	}
}

// Each page that is open has its run read, up to a bound. Others only have the two that were asked for last.
func TestRunsThatPagesShowAreHeld(t *testing.T) {
	dir := t.TempDir()
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		write(t, filepath.Join(dir, name), name)
	}
	b := serve(t, Config{Dir: dir})
	shown := map[string]*run{}
	for range 2 {
		for _, name := range names[:mostShown] {
			r, err := b.s.runs.show(name, shown[name])
			if err != nil || shown[name] != nil && r != shown[name] {
				t.Fatalf("run %s, which a page shows, is not held (%v)", name, err)
			}
			shown[name] = r
		}
	}
	if w := b.request("GET", "/api/run?run=e", nil); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "close one") {
		t.Errorf("one run too many is answered by %d %s", w.Code, w.Body)
	}
	for _, r := range shown {
		b.s.runs.hide(r)
	}
	b.read("e")
	for _, name := range names {
		b.read(name)
	}
	eventually(t, "what no page shows is not read", func() bool {
		select {
		case <-shown["a"].done:
			return true
		default:
			return false
		}
	})
}

// sample writes what the nodes of a run told of themselves in the first three seconds: how many items each of them trained in a second.
func sample(t *testing.T, dir, run string, items ...int64) {
	t.Helper()
	for n, each := range items {
		w, err := record.Create(record.Config{Dir: dir, Header: record.Header{Run: run, Policy: "adapm", Node: godwit.NodeID(n), Nodes: len(items), Workers: 1, Start: 1e18}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range int64(4) {
			w.Add(record.Sample{Time: i * 1e9, Items: i * each, Waste: record.Waste{Accesses: uint64(i)}})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// serveSampled serves the run a, of which node 0 trains 1,000 items a second and node 1 500, when all of it was read.
func serveSampled(t *testing.T) *browser {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "a")
	sample(t, filepath.Join(dir, "a"), "a", 1000, 500)
	b := serve(t, Config{Dir: dir})
	b.read("a")
	return b
}

// A node's speed is told beside that of the other ones, and accesses beside moves are those of keys that moved.
func TestTheOverviewComparesANodeWithTheOthers(t *testing.T) {
	b := serveSampled(t)
	var o struct {
		Nodes   []struct{ Speed float64 }
		Slowest struct {
			Node  int
			Speed float64
		}
		Waste struct{ Touches float64 }
	}
	b.json("/api/overview?run=a&from=0&to=3", &o)
	if len(o.Nodes) != 2 || o.Nodes[0].Speed != 2 || o.Nodes[1].Speed != 0.5 || o.Slowest.Node != 1 || o.Slowest.Speed != 0.5 {
		t.Errorf("of two nodes of which one computes half as fast as the other one, the overview tells %+v", o)
	}
	if o.Waste.Touches != 5 { // of key 3; key 4, which never moved, has nine
		t.Errorf("keys that moved were accessed %v times for each move, want 5", o.Waste.Touches)
	}
}

// Runs of the same name are told apart by their folders.
func TestRunsOfTheSameNameAreTwoRuns(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "one"), "a")
	write(t, filepath.Join(dir, "two"), "a")
	sample(t, filepath.Join(dir, "two"), "a", 1, 1)
	b := serve(t, Config{Dir: dir})
	b.read("a in one", "a in two")
	var list struct{ Runs []struct{ Name string } }
	b.json("/api/runs", &list)
	if len(list.Runs) != 2 || list.Runs[0].Name != "a in one" || list.Runs[1].Name != "a in two" {
		t.Errorf("the runs are %+v", list.Runs)
	}
	for i, name := range []string{"a in one", "a in two"} {
		var run struct {
			Name  string
			Nodes []struct{ Workers int }
		}
		b.json("/api/run?run="+url.QueryEscape(name), &run)
		if run.Name != name || len(run.Nodes) != 2 || run.Nodes[0].Workers != i {
			t.Errorf("run %q is %+v", name, run)
		}
	}
}

// Who asks for something waits for a piece of what nodes told, not for all of it.
func TestSamplesAreReadInPieces(t *testing.T) {
	dir := t.TempDir()
	w, err := record.Create(record.Config{Dir: dir, Header: record.Header{Run: "a", Nodes: 1, Workers: 1}})
	if err != nil {
		t.Fatal(err)
	}
	const all = 3 * sampleBytes / 2 >> 18
	for i := range int64(all) {
		w.Add(record.Sample{Time: i, Whole: []record.Whole{{Name: strings.Repeat("w", 1<<18)}}})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r := &run{folder: folder{path: dir}}
	var read []int
	for more := true; more; read = append(read, len(r.rec.Nodes[0].Samples)) {
		if more, err = r.sample(); err != nil {
			t.Fatal(err)
		}
	}
	if len(read) != 3 || read[0] >= all || read[2] != all {
		t.Errorf("of %d samples, %v are read bit by bit", all, read)
	}
}

// Of a run that was over before its nodes had told of themselves more than twice, the overview tells that.
func TestTheOverviewOfAShortRunHasItsLastSample(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "a") // its last event is at 3 s
	w, err := record.Create(record.Config{Dir: filepath.Join(dir, "a"), Header: record.Header{Run: "a", Policy: "adapm", Nodes: 2, Workers: 1, Start: 1e18}})
	if err != nil {
		t.Fatal(err)
	}
	w.Add(record.Sample{Time: 25e8, Items: 1})
	w.Add(record.Sample{Time: 35e8, Items: 8})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := serve(t, Config{Dir: dir})
	b.read("a")
	var o struct {
		Nodes []struct{ Throughput *float64 }
	}
	b.json("/api/overview?run=a&from=0", &o)
	if x := o.Nodes[0].Throughput; x == nil || *x != 7 {
		t.Errorf("a node that trained 7 items in a second is told as %v", o.Nodes)
	}
}

// Between two samples, what was done is spread evenly; behind the last one it is not known.
func TestCurvesLieBetweenSamples(t *testing.T) {
	b := serveSampled(t)
	var all struct {
		T     []float64
		Nodes []struct{ Series map[string][]*float64 }
	}
	b.json("/api/cluster?run=a&cols=1000", &all)
	for n, want := range []float64{1000, 500} {
		for i, x := range all.Nodes[n].Series["throughput"] {
			if known := all.T[i] <= 3; known != (x != nil) || known && math.Abs(*x-want) > 1e-6*want {
				t.Errorf("at %v s node %d trains %v items a second, want %v up to 3 s", all.T[i], n, x, want)
			}
		}
	}
}

// What the evaluation at the end found follows what was found before it, once: who looks for the last value finds that.
func TestTheEndOfARunHasItsMetrics(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1e9+int64(s), 0) }
	mrr := func(split string, x float64) []record.Metric {
		return []record.Metric{{Split: split, Name: "MRR", Value: record.Figure(x)}}
	}
	r := &run{rec: &record.Run{Events: []record.Event{{Time: at(1), Evaluation: &record.Evaluation{Metrics: mrr("test", 0.004)}},
		{Time: at(2), Evaluation: &record.Evaluation{Epoch: 3, Metrics: mrr("valid", 0.8)}}, {Time: at(3), End: &record.End{Epochs: 3, Metrics: append(mrr("valid", 0.8), mrr("test", 0.9)...)}}}}}
	_, metrics := r.curves(1e18)
	var got []string
	for _, m := range metrics {
		got = append(got, m["split"].(string))
	}
	if want := []string{"test", "valid", "test"}; !slices.Equal(got, want) || metrics[2]["value"] != record.Figure(0.9) || metrics[2]["epoch"] != 3 || metrics[2]["t"] != 3.0 {
		t.Errorf("the metrics are of %q, want %q: %v", got, want, metrics)
	}
}

// Garbage collection takes no more of the processor time than all of it.
func TestAShareOfTheProcessorTimeIsOne(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "a")
	w, err := record.Create(record.Config{Dir: filepath.Join(dir, "a"), Header: record.Header{Run: "a", Nodes: 2, Workers: 1, Start: 1e18}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(4) {
		w.Add(record.Sample{Time: i * 1e9, Process: record.Process{Processor: i * 1e8, GC: i * 6e8}})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	b := serve(t, Config{Dir: dir})
	b.read("a")
	var all struct {
		Nodes []struct{ Series map[string][]*float64 }
	}
	b.json("/api/cluster?run=a&cols=3", &all)
	if gc, cpu := all.Nodes[0].Series["gc"][1], all.Nodes[0].Series["processor"][1]; gc == nil || cpu == nil || *gc != *cpu || *cpu == 0 {
		t.Errorf("garbage collection took %v of %v", gc, cpu)
	}
}

// Of a run that a lost node ended, the overview tells that first, whatever held it up before.
func TestTheOverviewTellsThatARunFailed(t *testing.T) {
	r := &run{rec: &record.Run{Events: []record.Event{{Start: &record.Start{}}, {End: &record.End{Error: "node 2: node lost"}}}}}
	sentence, findings := r.verdict(time.Second)
	if o, ok := sentence.(object); !ok || o["text"] != "the run failed: node 2: node lost" || o["level"] != "bad" || len(findings) != 1 {
		t.Errorf("the verdict is %v, of %v", sentence, findings)
	}
	r = &run{rec: &record.Run{Events: []record.Event{{Start: &record.Start{}}, {End: &record.End{}}}}}
	if sentence, _ := r.verdict(time.Second); strings.Contains(sentence.(object)["text"].(string), "yet") {
		t.Errorf("the verdict is %v, of a run that is over", sentence)
	}
}

// A run of very many epochs has curves that a page can draw: evenly chosen points, the first and the last ones among them.
func TestCurvesOfManyEpochsHaveFewPoints(t *testing.T) {
	for _, n := range []int{0, 1, mostPoints, mostPoints + 1, 100 * mostPoints} {
		rec := &record.Run{}
		for i := range n {
			rec.Events = append(rec.Events, record.Event{Epoch: &record.Epoch{Epoch: i + 1}}, record.Event{Evaluation: &record.Evaluation{Epoch: i + 1, Metrics: []record.Metric{{Name: "MRR"}, {Name: "RMSE"}}}})
		}
		loss, metrics := (&run{rec: rec}).curves(0)
		want := min(n, mostPoints)
		if len(loss) < want || len(loss) > want+1 || len(metrics) != 2*len(loss) {
			t.Fatalf("%d epochs have %d losses and %d metrics", n, len(loss), len(metrics))
		}
		if n == 0 {
			continue
		}
		if loss[0]["epoch"] != 1 || loss[len(loss)-1]["epoch"] != n || metrics[len(metrics)-1]["epoch"] != n {
			t.Errorf("%d epochs have losses from %v to %v", n, loss[0], loss[len(loss)-1])
		}
		for i := 1; i < len(loss); i++ {
			if step := loss[i]["epoch"].(int) - loss[i-1]["epoch"].(int); step < 1 || step > n/mostPoints+1 {
				t.Fatalf("%d epochs: a loss %d epochs after the one before", n, step)
			}
		}
	}
}

// Whether a run goes on is known by what changes, not by the clock of the machine that writes.
func TestARunUnderAnotherClockGoesOnWhileItsFilesChange(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	sample(t, dir, "a", 1000)
	written := func(ago time.Duration) {
		if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			return errors.Join(err, os.Chtimes(path, time.Now().Add(-ago), time.Now().Add(-ago)))
		}); err != nil {
			t.Fatal(err)
		}
	}
	open := func(live bool) *run {
		rec, err := record.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		return &run{folder: folder{path: dir}, live: live, rec: rec}
	}
	written(time.Minute)
	r := open(false)
	if r.growing() || !open(true).growing() {
		t.Error("a run goes on whose files stay as they are, or one is over that the server knows to be under way")
	}
	if written(30 * time.Second); !r.growing() {
		t.Error("a run is over that has just written by a clock that is slow")
	}
	r.rec.Events = append(r.rec.Events, record.Event{End: &record.End{}})
	if r.growing() {
		t.Error("a run goes on after its end")
	}
}
