package fs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// row is a row of the table in nodes/doc.go.
type row struct {
	path     string // as written
	unlisted bool
	kind     fs.FileMode
	pattern  *regexp.Regexp
	node     string
	file     string // that makes what is read
	writes   string // the file that carries out what is written; "-" for none
	answers  []string
	cache    string
}

const nodesDir = "../nodes"

// readTable parses the table.
func readTable(t *testing.T) []row {
	text, err := os.ReadFile(filepath.Join(nodesDir, "doc.go"))
	require.NoError(t, err)
	var rows []row
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(strings.TrimPrefix(line, "//\t"))
		if !strings.HasPrefix(line, "//\t") || f[0] == "path" {
			continue
		}
		r := row{path: f[0], node: f[1]}
		if r.unlisted = f[1] == "(unlisted)"; r.unlisted {
			f = slices.Delete(f, 1, 2)
		}
		r.node, r.file, r.writes, r.answers, r.cache = f[1], f[2], f[3], f[4:len(f)-1], f[len(f)-1]
		path := strings.TrimSuffix(strings.TrimSuffix(r.path, "@"), "/")
		switch {
		case strings.HasSuffix(r.path, "/"):
			r.kind = fs.ModeDir
		case strings.HasSuffix(r.path, "@"):
			r.kind = fs.ModeSymlink
		}
		path = regexp.QuoteMeta(path)
		path = strings.ReplaceAll(path, "…/", "(?:[^/]+/)*")
		path = strings.ReplaceAll(path, "<session>", `([^/]+)`)
		path = strings.ReplaceAll(path, "<sha256>", `[0-9a-f]{64}`)
		path = regexp.MustCompile("<[a-z]+>").ReplaceAllString(path, `[^/]+`)
		r.pattern = regexp.MustCompile("^" + path + "$")
		rows = append(rows, r)
	}
	require.Greater(t, len(rows), 20)
	return rows
}

// fits reports whether a path of the mount is of the row.
func (r *row) fits(root, path string, kind fs.FileMode, isSession func(path string) bool) bool {
	if kind != r.kind {
		return false
	}
	at := r.pattern.FindStringSubmatchIndex(path)
	if at == nil {
		return false
	}
	if len(at) < 4 {
		return true
	}
	return isSession(filepath.Join(root, path[:at[3]]))
}

// TestEveryPathHasItsRow: the table of package nodes tells of all that is in a mount, and of nothing else.
func TestEveryPathHasItsRow(t *testing.T) {
	t.Parallel()
	onceIsEnough(t)
	notUnderRace(t)
	a := demo(t)
	long := []string{header("long")}
	for n := range 150 {
		long = append(long, entry(n, entryID(n), before(n, n-1), "deep"))
	}
	dir := filepath.Join(a, "sessions/--home-dev-tidetable--")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long.jsonl"), []byte(strings.Join(long, "")), 0o644))
	require.NoError(t, os.Symlink("long.jsonl", filepath.Join(dir, "link")))
	require.NoError(t, os.CopyFS(filepath.Join(a, "sessions"), os.DirFS("../testdata/operator/sessions"))) // which lie flat
	require.NoError(t, os.Symlink("elsewhere", filepath.Join(a, "archive/sessions/link")))
	m := mountForTest(t, a)
	rows := readTable(t)
	hit := map[string]int{}
	sessions := map[string]bool{}
	isSession := func(path string) bool { // it has its file beside it
		known, ok := sessions[path]
		if !ok {
			info, err := os.Lstat(path + ".jsonl")
			if err != nil {
				info, err = os.Lstat(path + ".jsonl.gz")
			}
			known = err == nil && info.Mode().IsRegular()
			sessions[path] = known
		}
		return known
	}
	check := func(path string, kind fs.FileMode, unlisted bool) {
		for i := range rows {
			if r := &rows[i]; r.unlisted == unlisted && r.fits(m.dir, path, kind, isSession) {
				hit[r.path]++
				return
			}
		}
		t.Errorf("no row for %s (%v)", path, kind)
	}
	for line := range strings.Lines(run(t, "find", m.dir, "-printf", `%y %P\n`)) {
		kind := map[byte]fs.FileMode{'d': fs.ModeDir, 'l': fs.ModeSymlink, 'f': 0}[line[0]]
		check(strings.TrimSuffix(line[2:], "\n"), kind, false)
	}
	const subagent = "sessions/--home-dev-tidetable--/2026-03-30T07-12-41-318Z_019d3d96-6b66-7996-8ead-42aae5653abc"
	require.NoError(t, os.Symlink("entries/x.json", m.path(subagent, "waiting"))) // to be renamed to leaf
	unlisted := []string{"0.bash.log", "local", "owner", "secrets.jsonl", "waiting"}
	current, err := os.Readlink(m.path(subagent, "branches/current"))
	require.NoError(t, err)
	branch := "branches/" + current
	unlisted = append(unlisted, branch, branch+"/path/"+names(t, m.path(subagent, branch, "path"))[0])
	for _, name := range names(t, m.path(subagent, branch)) {
		unlisted = append(unlisted, branch+"/"+name)
	}
	for _, name := range unlisted {
		info, err := os.Lstat(m.path(subagent, name))
		require.NoError(t, err)
		check(subagent+"/"+name, info.Mode().Type(), true)
	}
	check("by-id/019d3d", fs.ModeSymlink, true)
	for _, query := range []string{"search/the", subagent + "/search/the", "by-file/home/dev"} {
		require.DirExists(t, m.path(query))
		check(query, fs.ModeDir, true)
		for line := range strings.Lines(run(t, "find", m.path(query), "-mindepth", "1", "-printf", `%y/%P\n`)) {
			kind, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "/")
			check(query+"/"+name, map[string]fs.FileMode{"d": fs.ModeDir, "l": fs.ModeSymlink, "f": 0}[kind], true)
		}
	}
	require.FileExists(t, m.path("history/search/tides"))
	check("history/search/tides", 0, true)
	require.FileExists(t, m.path("usage.jsonl"))
	check("usage.jsonl", 0, true)
	for _, r := range rows {
		require.NotZero(t, hit[r.path], "nothing is at %s", r.path)
	}
}

// operations are the words that the table has for what go-fuse asks.
var operations = map[string]string{
	"NodeGetattrer": "getattr", "NodeLookuper": "lookup", "NodeOpendirHandler": "list",
	"NodeOpener": "open", "NodeReadlinker": "readlink", "NodeSetattrer": "setattr",
	"NodeSymlinker": "symlink", "NodeUnlinker": "unlink", "NodeRenamer": "rename",
}

// manyFiles are the types of which each row names the file that renders its content or finds its target.
var manyFiles = map[string]bool{"GeneratedFile": true, "ControlFile": true, "Link": true, "SessionLink": true, "LinksDir": true, "FixedLink": true}

// TestTableTellsTheTruth: types, files, operations and cache rules of the table are those of the code.
func TestTableTellsTheTruth(t *testing.T) {
	code := readNodes(t)
	told := map[string]bool{}
	for _, r := range readTable(t) {
		n := code[r.node]
		require.NotNil(t, n, "there is no type %s", r.node)
		told[r.node] = true
		require.FileExists(t, filepath.Join(nodesDir, r.file))
		if !manyFiles[r.node] {
			require.Equal(t, n.file, r.file, r.node)
		}
		answers := slices.Collect(maps.Keys(n.answers))
		if n.answers["setattr"] && n.answers["open"] { // what > sends: only where writing is taken
			answers = append(answers, "write")
		}
		require.ElementsMatch(t, answers, r.answers, "operations of %s", r.path)
		require.Contains(t, comments(t, r.file), fixedName(r.path), "%s tells of %s", r.file, r.path)
		takes := slices.ContainsFunc(r.answers, func(a string) bool { return a == "write" || a == "symlink" || a == "rename" }) ||
			r.node == "LeafLink" || r.node == "PendingLink"
		require.Equal(t, takes, r.writes != "-", r.path)
		if takes {
			require.True(t, callsWriter(t, r.writes), "%s does not write %s", r.writes, r.path)
		}
		require.Equal(t, "cache"+strings.ToUpper(r.cache[:1])+r.cache[1:], n.cache, "cache rule of %s", r.path)
	}
	for name, n := range code {
		require.True(t, len(n.answers) == 0 || told[name] || !ast.IsExported(name), "%s is not in the table", name)
	}
}

// fixedName is the last name of a path; "" where that is one of many.
func fixedName(path string) string {
	path = strings.TrimRight(path, "/@")
	name := path[strings.LastIndexByte(path, '/')+1:]
	if strings.ContainsAny(name, "<…") {
		return ""
	}
	return name
}

// comments returns the comments of a file of package nodes, each as one line.
func comments(t *testing.T, file string) string {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(nodesDir, file), nil, parser.ParseComments)
	require.NoError(t, err)
	var text strings.Builder
	for _, c := range parsed.Comments {
		text.WriteString(strings.ReplaceAll(c.Text(), "\n", " "))
	}
	return text.String()
}

// callsWriter reports whether a file of package nodes calls the model's Writer, to do more than to sync.
func callsWriter(t *testing.T, file string) (calls bool) {
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(nodesDir, file), nil, 0)
	require.NoError(t, err)
	ast.Inspect(parsed, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.SelectorExpr); ok && !strings.HasPrefix(f.Sel.Name, "Sync") {
				if of, ok := f.X.(*ast.SelectorExpr); ok && of.Sel.Name == "Writer" {
					calls = true
				}
			}
		}
		return true
	})
	return calls
}

// nodeType is what the code says of a type.
type nodeType struct {
	file    string
	answers map[string]bool
	cache   string
	base    string // what it embeds first
}

// readNodes parses package nodes.
func readNodes(t *testing.T) map[string]*nodeType {
	files, err := filepath.Glob(filepath.Join(nodesDir, "*.go"))
	require.NoError(t, err)
	types := map[string]*nodeType{}
	of := func(name string) *nodeType {
		if types[name] == nil {
			types[name] = &nodeType{answers: map[string]bool{}}
		}
		return types[name]
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeSpec:
				of(n.Name.Name).file = filepath.Base(file)
				if s, ok := n.Type.(*ast.StructType); ok && len(s.Fields.List) > 0 && s.Fields.List[0].Names == nil {
					if base, ok := s.Fields.List[0].Type.(*ast.Ident); ok {
						of(n.Name.Name).base = base.Name
					}
				}
			case *ast.ValueSpec: // var _ = (fusefs.NodeX)((*T)(nil))
				if name, iface := assertion(n); name != "" && operations[iface] != "" {
					of(name).answers[operations[iface]] = true
				}
			case *ast.FuncDecl: // func (*T) cache() cacheRule { return x }
				if n.Recv != nil && n.Name.Name == "cache" {
					name := n.Recv.List[0].Type.(*ast.StarExpr).X.(*ast.Ident).Name
					of(name).cache = n.Body.List[0].(*ast.ReturnStmt).Results[0].(*ast.Ident).Name
				}
			}
			return true
		})
	}
	for _, n := range types { // methods of what is embedded
		for base := n.base; types[base] != nil; base = types[base].base {
			if n.cache == "" {
				n.cache = types[base].cache
			}
			maps.Copy(n.answers, types[base].answers)
		}
	}
	return types
}

// assertion returns T and NodeX of var _ = (fusefs.NodeX)((*T)(nil)).
func assertion(v *ast.ValueSpec) (name, iface string) {
	if v.Names[0].Name != "_" || len(v.Values) != 1 {
		return "", ""
	}
	outer, ok := v.Values[0].(*ast.CallExpr)
	if !ok {
		return "", ""
	}
	ast.Inspect(outer, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			iface = n.Sel.Name
		case *ast.StarExpr:
			if id, ok := n.X.(*ast.Ident); ok {
				name = id.Name
			}
		}
		return true
	})
	return name, iface
}
