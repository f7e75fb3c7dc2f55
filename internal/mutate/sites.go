package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"hash/fnv"
	"path/filepath"
	"slices"
	"strings"
)

// A site is a place in the sources that one operator can change.
type site struct {
	Pkg  string // path below the module
	Func string // the declared function that it is in
	Op   string
	N    int // counts the operator's sites in the function, from 1
	File string
	Line int
	From string // what stands there, in short
	To   string // what the mutant makes of it

	id    int // in mutant.On; 0: not drawn
	edits func(id int) []edit
}

// Name names the site, as long as its function is not changed.
func (s *site) Name() string { return fmt.Sprintf("%s %s %s %d", s.Pkg, s.Func, s.Op, s.N) }

// draw reports whether the site is one of the fraction of all that the seed draws.
func (s *site) draw(seed uint64, fraction float64) bool {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %s", seed, s.Name())
	x := h.Sum64() // whose low bits are the good ones
	x ^= x >> 32
	x *= 0x9e3779b97f4a7c15
	x ^= x >> 29
	return float64(x>>11)/(1<<53) < fraction
}

// sites lists the sites of a package, in the order of the source.
func (p *pkg) sites() []*site {
	var all []*site
	for _, f := range p.files {
		if slices.Contains(leftOutFiles, filepath.Base(f.name)) {
			continue
		}
		for _, d := range f.ast.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil || slices.Contains(leftOutFuncs, fn.Name.Name) || nosplit(fn) {
				continue
			}
			v := &finder{p: p, f: f, fn: nameOf(fn), count: map[string]int{}}
			v.block(fn.Body.List, nil)
			all = append(all, v.found...)
		}
	}
	return all
}

var (
	leftOutFiles = []string{"stats.go", "inspect.go", "doc.go"}
	leftOutFuncs = []string{"String", "Error", "Name", "Format", "GoString"}
	counted      = []string{"Stats", "stats", "count"}
	locks        = []string{"Lock", "Unlock", "RLock", "RUnlock"}
)

func nosplit(fn *ast.FuncDecl) bool {
	if fn.Doc == nil {
		return false
	}
	return slices.ContainsFunc(fn.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:nosplit") })
}

// nameOf names a function as in "(*Shard).move".
func nameOf(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	star := ""
	if s, ok := t.(*ast.StarExpr); ok {
		t, star = s.X, "*"
	}
	switch x := t.(type) {
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	name := t.(*ast.Ident).Name
	if star != "" {
		name = "(*" + name + ")"
	}
	return name + "." + fn.Name.Name
}

// A finder goes through one function.
type finder struct {
	p     *pkg
	f     *file
	fn    string
	count map[string]int
	found []*site
}

func (v *finder) add(op string, at ast.Node, from, to string, edits func(id int) []edit) {
	v.count[op]++
	v.found = append(v.found, &site{Pkg: v.p.rel, Func: v.fn, Op: op, N: v.count[op],
		File: v.f.name, Line: v.p.fset.Position(at.Pos()).Line, From: brief(from), To: brief(to), edits: edits})
}

// brief is the first line of a text.
func brief(s string) string {
	s, _, more := strings.Cut(strings.TrimSpace(s), "\n")
	if more {
		s += " …"
	}
	return s
}

func (v *finder) text(n ast.Node) string { return string(v.f.src[v.off(n.Pos()):v.off(n.End())]) }
func (v *finder) off(p token.Pos) int    { return v.p.fset.Position(p).Offset }

// wrap puts text before and after a node.
func (v *finder) wrap(n ast.Node, before, after string) edit {
	return edit{at: v.off(n.Pos()), end: v.off(n.End()), open: before, close: after}
}

// block goes through a list of statements that is the body of the if, if it is.
func (v *finder) block(list []ast.Stmt, of *ast.IfStmt) {
	for i, s := range list {
		v.removable(s)
		if of != nil && of.Else == nil && i == len(list)-1 {
			v.exit(s)
		}
		v.stmt(s)
	}
}

// on is the expression that is true in a mutant.
func on(id int) string { return fmt.Sprintf("%s.On(%d)", alias, id) }

// guarded wraps a statement so that the mutant does without it.
func (v *finder) guarded(op string, s ast.Stmt) {
	v.add(op, s, v.text(s), "", func(id int) []edit { return []edit{v.wrap(s, "if !"+on(id)+" { ", " }")} })
}

func (v *finder) exit(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ReturnStmt:
		v.guarded("exit", s)
	case *ast.BranchStmt:
		if s.Tok == token.CONTINUE {
			v.guarded("exit", s)
		}
	}
}

func (v *finder) removable(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		call, ok := s.X.(*ast.CallExpr)
		if ok && !v.texts(call) && !v.locks(call) && !v.counts(call) {
			v.guarded("remove", s)
		}
	case *ast.IncDecStmt:
		if !v.counts(s.X) {
			v.guarded("remove", s)
		}
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || slices.ContainsFunc(s.Lhs, v.counts) {
			return
		}
		for _, l := range s.Lhs {
			switch l.(type) {
			case *ast.SelectorExpr, *ast.IndexExpr, *ast.StarExpr:
				v.guarded("remove", s)
				return
			}
		}
	}
}

// counts reports whether an expression is about what is counted for display.
func (v *finder) counts(e ast.Expr) (yes bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(counted, s.Sel.Name) {
			yes = true
		}
		_, call := n.(*ast.FuncLit)
		return !call
	})
	return yes
}

func (v *finder) locks(call *ast.CallExpr) bool {
	s, ok := call.Fun.(*ast.SelectorExpr)
	return ok && slices.Contains(locks, s.Sel.Name)
}

// texts reports whether a call only makes or shows text, or is a prefetch.
func (v *finder) texts(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic" || f.Name == "print" || f.Name == "println"
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		if !ok {
			return false
		}
		p, ok := v.p.info.Uses[x].(*types.PkgName)
		if !ok {
			return false
		}
		path := p.Imported().Path()
		return path == "fmt" || path == "errors" && f.Sel.Name == "New" || strings.HasSuffix(path, "/internal/hint")
	}
	return false
}

// mentions reports whether a node has a selector of that name.
func mentions(n ast.Node, name string) (yes bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == name {
			yes = true
		}
		return !yes
	})
	return yes
}

// stmt goes through what is inside a statement.
func (v *finder) stmt(s ast.Stmt) {
	switch s := s.(type) {
	case nil:
	case *ast.BlockStmt:
		v.block(s.List, nil)
	case *ast.IfStmt:
		v.ifStmt(s)
	case *ast.ForStmt:
		v.stmt(s.Init)
		if s.Cond != nil {
			v.cond(s.Cond)
		}
		v.stmt(s.Post)
		v.block(s.Body.List, nil)
	case *ast.SwitchStmt:
		v.stmt(s.Init)
		if s.Tag != nil {
			v.expr(s.Tag)
		}
		for _, c := range s.Body.List {
			c := c.(*ast.CaseClause)
			if s.Tag == nil {
				for _, e := range c.List {
					v.cond(e)
				}
			}
			v.block(c.Body, nil)
		}
	case *ast.TypeSwitchStmt:
		for _, c := range s.Body.List {
			v.block(c.(*ast.CaseClause).Body, nil)
		}
	case *ast.SelectStmt:
		for _, c := range s.Body.List {
			v.block(c.(*ast.CommClause).Body, nil)
		}
	case *ast.LabeledStmt:
		v.stmt(s.Stmt)
	case *ast.RangeStmt:
		v.expr(s.X)
		v.block(s.Body.List, nil)
	case *ast.ReturnStmt:
		for _, e := range s.Results {
			if v.boolean(e) {
				v.add("result", e, "return "+v.text(e), "return !("+v.text(e)+")", func(id int) []edit {
					return []edit{v.wrap(e, "((", ") != "+on(id)+")")}
				})
			}
			v.inner(e, v.boolean(e))
		}
	case *ast.ExprStmt:
		v.expr(s.X)
	case *ast.SendStmt:
		v.expr(s.Value)
	case *ast.GoStmt:
		v.expr(s.Call)
	case *ast.DeferStmt:
		v.expr(s.Call)
	case *ast.AssignStmt:
		if slices.ContainsFunc(s.Lhs, v.counts) {
			return
		}
		for _, e := range s.Lhs {
			v.expr(e)
		}
		for _, e := range s.Rhs {
			v.expr(e)
		}
		v.opAssign(s)
	case *ast.DeclStmt:
		if d := s.Decl.(*ast.GenDecl); d.Tok == token.VAR {
			for _, spec := range d.Specs {
				for _, e := range spec.(*ast.ValueSpec).Values {
					v.expr(e)
				}
			}
		}
	}
}

func (v *finder) ifStmt(s *ast.IfStmt) {
	v.stmt(s.Init)
	v.cond(s.Cond)
	if !mentions(s.Cond, "Broken") {
		v.block(s.Body.List, s)
	}
	switch e := s.Else.(type) {
	case *ast.IfStmt:
		v.ifStmt(e)
	case *ast.BlockStmt:
		if !ends(e.List) {
			v.add("else", e, "else {", "", func(id int) []edit {
				return []edit{{at: v.off(e.Pos()), end: v.off(e.End()), open: "if !" + on(id) + " "}}
			})
		}
		v.block(e.List, nil)
	}
}

// ends reports whether control leaves a list of statements for good.
func ends(list []ast.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	switch list[len(list)-1].(type) {
	case *ast.AssignStmt, *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.GoStmt, *ast.RangeStmt:
		x, ok := list[len(list)-1].(*ast.ExprStmt)
		return ok && mentionsPanic(x)
	}
	return true // perhaps
}

func mentionsPanic(s *ast.ExprStmt) bool {
	c, ok := s.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	id, ok := c.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

func (v *finder) cond(e ast.Expr) {
	if v.p.info.Types[e].Value == nil {
		v.add("negate", e, v.text(e), "!("+v.text(e)+")", func(id int) []edit {
			return []edit{v.wrap(e, "((", ") != "+on(id)+")")}
		})
	}
	v.inner(e, true)
}

func (v *finder) expr(e ast.Expr) { v.inner(e, false) }

// inner goes through an expression. whole says that its negation is a site already.
func (v *finder) inner(e ast.Expr, whole bool) {
	if e == nil || v.p.info.Types[e].IsType() {
		return
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		v.inner(e.X, whole)
	case *ast.BinaryExpr:
		v.binary(e, whole)
	case *ast.UnaryExpr:
		v.expr(e.X)
	case *ast.StarExpr:
		v.expr(e.X)
	case *ast.SelectorExpr:
		v.expr(e.X)
	case *ast.IndexExpr:
		v.expr(e.X)
		v.expr(e.Index)
	case *ast.SliceExpr:
		v.expr(e.X)
		for _, x := range []ast.Expr{e.Low, e.High, e.Max} {
			v.expr(x)
		}
	case *ast.TypeAssertExpr:
		v.expr(e.X)
	case *ast.KeyValueExpr:
		v.expr(e.Value)
	case *ast.CompositeLit:
		for _, x := range e.Elts {
			v.expr(x)
		}
	case *ast.FuncLit:
		v.block(e.Body.List, nil)
	case *ast.CallExpr:
		v.call(e)
	case *ast.BasicLit:
		v.literal(e)
	}
}

func (v *finder) call(e *ast.CallExpr) {
	if v.texts(e) || v.counts(e) {
		return
	}
	v.expr(e.Fun)
	args := e.Args
	if id, ok := e.Fun.(*ast.Ident); ok && id.Name == "make" && len(args) == 3 {
		args = args[:2]
	}
	for _, a := range args {
		v.expr(a)
	}
}

var bounds = map[token.Token][2]string{
	token.LSS: {"Less", "<="}, token.LEQ: {"LessEqual", "<"}, token.GTR: {"Greater", ">="}, token.GEQ: {"GreaterEqual", ">"},
}

func (v *finder) binary(e *ast.BinaryExpr, whole bool) {
	if v.p.info.Types[e].Value != nil {
		return
	}
	other := func(op string) string { return v.text(e.X) + " " + op + " " + v.text(e.Y) }
	switch e.Op {
	case token.LAND, token.LOR:
		op := map[token.Token]string{token.LAND: "||", token.LOR: "&&"}[e.Op]
		v.add("logic", e, v.text(e), other(op), func(id int) []edit {
			var es []edit
			for _, x := range []ast.Expr{e, e.X, e.Y} { // a && b is !(!a || !b)
				es = append(es, v.wrap(x, "((", ") != "+on(id)+")"))
			}
			return es
		})
	case token.EQL, token.NEQ:
		if !whole {
			op := map[token.Token]string{token.EQL: "!=", token.NEQ: "=="}[e.Op]
			v.add("equal", e, v.text(e), other(op), func(id int) []edit {
				return []edit{v.wrap(e, "((", ") != "+on(id)+")")}
			})
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		b := bounds[e.Op]
		if t, ok := v.operands(e); ok {
			v.add("bound", e, v.text(e), other(b[1]), v.function(e, b[0], t))
		}
	case token.ADD, token.SUB:
		name, op := "Plus", "-"
		if e.Op == token.SUB {
			name, op = "Minus", "+"
		}
		if t, ok := v.operands(e); ok && v.numeric(e) {
			v.add("sign", e, v.text(e), other(op), v.function(e, name, t))
		}
	}
	v.expr(e.X)
	v.expr(e.Y)
}

// function has a function of package mutant do what an operator does.
func (v *finder) function(e *ast.BinaryExpr, name, t string) func(id int) []edit {
	return func(id int) []edit {
		op := v.off(e.OpPos)
		return []edit{
			{at: v.off(e.Pos()), end: v.off(e.End()), open: fmt.Sprintf("%s.%s[%s](%d, ", alias, name, t, id), close: ")", inner: true},
			{at: op, end: op + len(e.Op.String()), text: ","},
		}
	}
}

// operands returns how the file names the type of the operands of an operator.
func (v *finder) operands(e *ast.BinaryExpr) (string, bool) {
	t := v.p.info.Types[e.X].Type
	if b, ok := t.(*types.Basic); ok && b.Info()&types.IsUntyped != 0 {
		t = v.p.info.Types[e.Y].Type
	}
	return v.typeName(t, e.Pos())
}

// opAssign makes a site of x += y.
func (v *finder) opAssign(s *ast.AssignStmt) {
	op := map[token.Token]string{token.ADD_ASSIGN: "-=", token.SUB_ASSIGN: "+="}[s.Tok]
	if op == "" || !v.numeric(s.Lhs[0]) {
		return
	}
	t, ok := v.typeName(v.p.info.Types[s.Lhs[0]].Type, s.Pos())
	if !ok {
		return
	}
	v.add("sign", s, v.text(s), v.text(s.Lhs[0])+" "+op+" "+v.text(s.Rhs[0]), func(id int) []edit {
		return []edit{v.wrap(s.Rhs[0], fmt.Sprintf("%s.Sign[%s](%d, ", alias, t, id), ")")}
	})
}

func (v *finder) literal(e *ast.BasicLit) {
	if e.Kind != token.INT || e.Value != "0" && e.Value != "1" {
		return
	}
	t, ok := v.typeName(v.p.info.Types[e].Type, e.Pos())
	if !ok || !v.numeric(e) {
		return
	}
	other := map[string]string{"0": "1", "1": "0"}[e.Value]
	v.add("zero", e, e.Value+" in: "+v.lineOf(e), other, func(id int) []edit {
		return []edit{v.wrap(e, fmt.Sprintf("%s.Number[%s](%d, ", alias, t, id), ", "+other+")")}
	})
}

func (v *finder) lineOf(n ast.Node) string {
	from, to := v.off(n.Pos()), v.off(n.Pos())
	for from > 0 && v.f.src[from-1] != '\n' {
		from--
	}
	for to < len(v.f.src) && v.f.src[to] != '\n' {
		to++
	}
	return strings.TrimSpace(string(v.f.src[from:to]))
}

func (v *finder) boolean(e ast.Expr) bool {
	t := v.p.info.Types[e].Type
	return t != nil && types.Identical(t.Underlying(), types.Typ[types.Bool]) || types.Identical(t, types.Typ[types.UntypedBool])
}

func (v *finder) numeric(e ast.Expr) bool {
	t := v.p.info.Types[e].Type
	if t == nil {
		return false
	}
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&(types.IsInteger|types.IsFloat) != 0 && b.Info()&types.IsUntyped == 0
}

// typeName returns how a type is named at a position, if it can be.
func (v *finder) typeName(t types.Type, at token.Pos) (name string, ok bool) {
	if t == nil {
		return "", false
	}
	switch t := types.Unalias(t).(type) {
	case *types.Basic:
		if t.Info()&types.IsUntyped != 0 || t.Info()&types.IsOrdered == 0 {
			return "", false
		}
	case *types.Named:
		b, basic := t.Underlying().(*types.Basic)
		if !basic || b.Info()&types.IsOrdered == 0 {
			return "", false
		}
	default:
		return "", false
	}
	ok = true
	scope := v.p.types.Scope().Innermost(at)
	name = types.TypeString(t, func(p *types.Package) string {
		if p == v.p.types {
			return ""
		}
		for _, i := range v.f.ast.Imports {
			n, is := v.p.info.Implicits[i].(*types.PkgName)
			if i.Name != nil {
				n, is = v.p.info.Defs[i.Name].(*types.PkgName)
			}
			if is && n.Imported() == p {
				if _, o := scope.LookupParent(n.Name(), at); o == n {
					return n.Name()
				}
			}
		}
		ok = false
		return p.Name()
	})
	if _, o := scope.LookupParent(name, at); o != nil && !isType(o) {
		ok = false // hidden by something else of that name
	}
	return name, ok
}

func isType(o types.Object) bool { _, ok := o.(*types.TypeName); return ok }

// An edit puts texts round a part of a source, or one in its place.
type edit struct {
	at, end     int
	open, close string
	inner       bool   // closest to the part, of all that have the same
	text        string // in its place, if not empty
}

// apply returns the source with the edits. None is in the middle of another's end.
func apply(src []byte, edits []edit) []byte {
	type piece struct {
		at   int
		rank [4]int
		text string
		skip int
	}
	var ps []piece
	for i, e := range edits {
		inner := 0
		if e.inner {
			inner = 1
		}
		switch {
		case e.text != "":
			ps = append(ps, piece{e.at, [4]int{2}, e.text, e.end - e.at})
		default:
			ps = append(ps, piece{e.at, [4]int{1, -e.end, inner, i}, e.open, 0}, // outer first
				piece{e.end, [4]int{0, -e.at, -inner, -i}, e.close, 0}) // inner first
		}
	}
	slices.SortStableFunc(ps, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.at, b.at), slices.Compare(a.rank[:], b.rank[:]))
	})
	var out []byte
	from := 0
	for _, p := range ps {
		out = append(out, src[from:p.at]...)
		out = append(out, p.text...)
		from = p.at + p.skip
	}
	return append(out, src[from:]...)
}
