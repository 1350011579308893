// Package docs holds the documents of the project, and tests that what names them, and what they name, is there.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
)

const root = ".."

// mountFile is the one file of the mount that is called like a document.
const mountFile = "transcript.md"

var (
	// documentName is a document in a comment.
	documentName = regexp.MustCompile(`[\w./-]*\w\.md\b`)
	// citation is a document of this directory, the sections that are cited, and what follows a comma.
	citation = regexp.MustCompile(`docs/(\w+)\.md(?: sections? (\d+(?:(?:, | and )\d+)*))?(?:, (.{1,60}))?`)
	number   = regexp.MustCompile(`\d+`)
	// foreign is what a reader of the project does not have.
	foreign = regexp.MustCompile(`\bseeds? (?:omp|xcsh|operator|session)-[a-z]+|\bissue \d+`)
	heading = regexp.MustCompile(`(?m)^##+ (?:(\d+)\. )?(.+)$`)
	// commentLine is a line comment of Go, TypeScript and the shell, or a line of a block comment.
	commentLine = regexp.MustCompile(`^\s*(?://|#|/?\*\*?)\s?(.*)$`)
	behindCode  = regexp.MustCompile(`\s//\s(.*)$`)
)

// document is what can be cited of a file in this directory.
type document struct {
	sections []string // numbers
	headings []string // lower case
}

func readDocuments(t *testing.T) map[string]document {
	docs := map[string]document{}
	files, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var d document
		for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				d.sections = append(d.sections, m[1])
			}
			d.headings = append(d.headings, strings.ToLower(m[2]))
		}
		docs[strings.TrimSuffix(file, ".md")] = d
	}
	return docs
}

// cites returns what is wrong with the citations in a comment.
func cites(docs map[string]document, comment string) (wrong []string) {
	for _, m := range citation.FindAllStringSubmatch(comment, -1) {
		d, ok := docs[m[1]]
		if !ok {
			wrong = append(wrong, m[0])
			continue
		}
		for _, n := range number.FindAllString(m[2], -1) {
			if !slices.Contains(d.sections, n) {
				wrong = append(wrong, m[0])
			}
		}
		text := strings.ToLower(m[3])
		isHeading := func(h string) bool {
			rest, ok := strings.CutPrefix(text, h)
			return ok && (rest == "" || strings.IndexByte(").,;: ", rest[0]) >= 0)
		}
		if text != "" && !slices.ContainsFunc(d.headings, isHeading) {
			wrong = append(wrong, m[0])
		}
	}
	return wrong
}

// comments returns the comments of a source file, each as one line.
func comments(text string) (list []string) {
	var block []string
	end := func() {
		if len(block) > 0 {
			list = append(list, strings.Join(block, " "))
		}
		block = nil
	}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := commentLine.FindStringSubmatch(line); m != nil {
			block = append(block, strings.TrimSpace(m[1]))
			continue
		}
		end()
		if m := behindCode.FindStringSubmatch(line); m != nil {
			block = append(block, m[1])
		}
	}
	end()
	return list
}

// isSource reports whether a file of the project is code.
func isSource(file string) bool {
	dir := path.Dir(file)
	return slices.Contains([]string{".go", ".ts"}, path.Ext(file)) || (dir == "scripts" || dir == ".ci") && path.Ext(file) != ".md"
}

// eachSource calls f with the name and the text of each source file.
func eachSource(t *testing.T, f func(file, text string)) {
	seen := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if file = filepath.ToSlash(file); !d.Type().IsRegular() || !isSource(file) {
			return nil
		}
		text, err := os.ReadFile(name)
		if err == nil {
			seen++
			f(file, string(text))
		}
		return err
	})
	require.NoError(t, err)
	require.Greater(t, seen, 100)
}

// TestComments: no comment names a document, a section or a heading that is not in the project.
func TestComments(t *testing.T) {
	docs := readDocuments(t)
	cited := 0
	eachSource(t, func(file, text string) {
		if file == "docs/docs_test.go" {
			return
		}
		for _, comment := range comments(text) {
			for _, name := range documentName.FindAllString(comment, -1) {
				_, atRoot := os.Stat(filepath.Join(root, name))
				_, beside := os.Stat(filepath.Join(root, path.Dir(file), name))
				if path.Base(name) != mountFile && atRoot != nil && beside != nil {
					t.Errorf("%s: there is no document %s", file, name)
				}
			}
			for _, wrong := range cites(docs, comment) {
				t.Errorf("%s: no such place: %s", file, wrong)
			}
			for _, wrong := range foreign.FindAllString(comment, -1) {
				t.Errorf("%s: a reader does not have %s", file, wrong)
			}
			cited += len(citation.FindAllString(comment, -1))
		}
	})
	require.Greater(t, cited, 50)
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// anchor returns what a link to a heading says behind #: its words in lower case, joined by hyphens.
func anchor(heading string) string {
	kept := func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return r
		}
		return -1
	}
	return strings.Map(kept, strings.ToLower(heading))
}

// anchors returns those of a document.
func anchors(t *testing.T, file string) (list []string) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, m := range title.FindAllStringSubmatch(string(text), -1) {
		list = append(list, anchor(m[1]))
	}
	return list
}

var title = regexp.MustCompile(`(?m)^#+ (.+)$`)

// TestLinks: links in the documents of the project lead somewhere, also to a heading.
func TestLinks(t *testing.T) {
	var files []string
	for _, pattern := range []string{"*.md", "../*.md", "../testdata/*.md", "../testdata/*/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		files = append(files, found...)
	}
	links := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			name, heading, toHeading := strings.Cut(m[1], "#")
			place := file
			if name != "" {
				place = filepath.Join(filepath.Dir(file), name)
			}
			_, err := os.Stat(place)
			require.NoError(t, err, "%s links to %s", file, m[1])
			if !strings.Contains(file, "testdata") {
				require.Regexp(t, `^(\.\./(docs/)?)?[^/]*\.(md|svg|png)$`, place, "%s links to %s, which packages do not have", file, m[1])
			}
			if toHeading {
				require.Contains(t, anchors(t, place), heading, "%s links to %s", file, m[1])
			}
		}
	}
	require.Greater(t, links, 5)
}

// TestContents: the contents of the cookbook name its sections, and each recipe begins with its purpose.
func TestContents(t *testing.T) {
	text, err := os.ReadFile("cookbook.md")
	require.NoError(t, err)
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(string(text), "")
	sections := regexp.MustCompile(`(?m)^## (.+)$`).FindAllStringSubmatch(prose, -1)
	recipes := regexp.MustCompile(`(?m)^###? (.+)\n\n(.*)`).FindAllStringSubmatch(prose, -1)
	require.NotEmpty(t, sections)
	require.Greater(t, len(recipes), 50)
	for _, m := range sections {
		require.Contains(t, prose, "](#"+anchor(m[1])+")")
	}
	for _, m := range recipes {
		if !strings.HasPrefix(m[2], "### ") && m[2] != "" {
			require.True(t, strings.HasPrefix(m[2], "You want "), "%s begins with %q", m[1], m[2])
		}
	}
}

var (
	// codeName is a piece of code in a document.
	codeName = regexp.MustCompile("`([^`]+)`")
	goFile   = regexp.MustCompile(`^[\w/]+\.go$`)
	// member is a method or a field by its type, as they are written in the documents.
	member   = regexp.MustCompile(`^[A-Za-z]\w*\.[A-Za-z]\w*$`)
	notAType = []string{".go", ".md", ".json", ".jsonl", ".tsv", ".db"}
)

// TestArchitecture: the files and the functions that architecture.md names are there, each function in the
// file that is named before it.
func TestArchitecture(t *testing.T) {
	declared := map[string][]string{} // name: files
	eachSource(t, func(file, text string) {
		if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
			for _, name := range declarations(t, file, text) {
				declared[name] = append(declared[name], file)
			}
		}
	})
	text, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	named := 0
	file := ""
	end := 0 // of the name of that file
	for _, m := range codeName.FindAllStringSubmatchIndex(string(text), -1) {
		name := string(text[m[2]:m[3]])
		behindFile := file != "" && strings.TrimSpace(string(text[end:m[0]])) == ""
		switch {
		case goFile.MatchString(name) && strings.Contains(name, "/"):
			if _, err := os.Stat(filepath.Join(root, name)); err != nil {
				t.Errorf("there is no file %s", name)
			}
			file, end = name, m[1]
			continue
		case behindFile:
			named++
			if !slices.Contains(declared[name], file) {
				t.Errorf("%s is not in %s but in %v", name, file, declared[name])
			}
		case member.MatchString(name) && !slices.Contains(notAType, path.Ext(name)):
			named++
			if declared[name] == nil {
				t.Errorf("there is no %s", name)
			}
		}
		file = ""
	}
	require.Greater(t, named, 50)
}

// declarations returns what a Go file declares; methods and fields behind their type and a dot.
func declarations(t *testing.T, file, text string) (names []string) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
	require.NoError(t, err)
	for _, decl := range parsed.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				name = receiver(d.Recv.List[0].Type) + "." + name
			}
			names = append(names, name)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.ValueSpec:
					for _, n := range s.Names {
						names = append(names, n.Name)
					}
				case *ast.TypeSpec:
					names = append(names, s.Name.Name)
					if st, ok := s.Type.(*ast.StructType); ok {
						for _, field := range st.Fields.List {
							for _, n := range field.Names {
								names = append(names, s.Name.Name+"."+n.Name)
							}
						}
					}
				}
			}
		}
	}
	return names
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// TestPackages: every package is in the table of architecture.md and says in its doc.go what it is for; commands may
// do so in another file.
func TestPackages(t *testing.T) {
	said := map[string]bool{} // by directory
	eachSource(t, func(file, text string) {
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.ParseComments|parser.PackageClauseOnly)
		require.NoError(t, err)
		dir, base := path.Split(file)
		inPlace := base == "doc.go" || parsed.Name.Name == "main" || dir == parsed.Name.Name+"/" && base == parsed.Name.Name+".go"
		said[dir] = said[dir] || inPlace && len(strings.Fields(parsed.Doc.Text())) >= 8
	})
	require.Greater(t, len(said), 8)
	text, err := os.ReadFile("architecture.md")
	require.NoError(t, err)
	inTable := map[string]bool{}
	_, table, _ := strings.Cut(string(text), "## Packages")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, m := range packageRow.FindAllStringSubmatch(table, -1) {
		inTable[m[1]+"/"] = true
		if _, ok := said[m[1]+"/"]; !ok {
			t.Errorf("architecture.md: there is no package %s", m[1])
		}
	}
	for dir, ok := range said {
		if !ok {
			t.Errorf("%s has no doc.go that says what it is for", dir)
		}
		if !inTable[dir] && !forTests.MatchString(dir) {
			t.Errorf("%s is not in the table of packages in architecture.md", dir)
		}
	}
}

var (
	// packageRow is a row of the table of packages.
	packageRow = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\|")
	// forTests are directories of code that serves tests and measurements alone.
	forTests = regexp.MustCompile(`^(?:docs|scripts|testdata)/|test/`)
)

// TestSecurity: the tests that security.md names are there, each in the package that is named before it, and the pages of TestScripts.
func TestSecurity(t *testing.T) {
	tests := map[string]bool{} // package and name
	eachSource(t, func(file, text string) {
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			tests[path.Dir(file)+" "+m[1]] = true
		}
	})
	text, err := os.ReadFile("security.md")
	require.NoError(t, err)
	pkg, named := "", 0
	for _, m := range codeName.FindAllStringSubmatch(string(text), -1) {
		switch {
		case !testName.MatchString(m[1]):
			pkg = m[1]
		case !tests[pkg+" "+m[1]]:
			t.Errorf("security.md: there is no %s in %s", m[1], pkg)
		default:
			named++
		}
	}
	require.Greater(t, named, 40)
	for _, m := range pageNames.FindAllStringSubmatch(string(text), -1) {
		for _, page := range codeName.FindAllStringSubmatch(m[1], -1) {
			require.FileExists(t, "../cmd/sessionfs/testdata/script/"+page[1]+".txt")
		}
	}
}

var (
	testName = regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*$`)
	// pageNames are the pages that a document names behind TestScripts.
	pageNames = regexp.MustCompile("`TestScripts`\\s+\\(([^)]+)\\)")
	testFunc  = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Z]\w*)\(`)
)

// TestSections: the sections of design.md are numbered without a gap, since comments cite them by number.
func TestSections(t *testing.T) {
	for i, n := range readDocuments(t)["design"].sections {
		require.Equal(t, strconv.Itoa(i+1), n)
	}
}

// TestPicture: the picture of README.md shows the transcript. If it does not, run scripts/picture.
func TestPicture(t *testing.T) {
	drawn := filepath.Join(t.TempDir(), "picture.svg")
	out, err := exec.Command("../scripts/picture", drawn).CombinedOutput()
	require.NoError(t, err, "%s", out)
	want, err := os.ReadFile(drawn)
	require.NoError(t, err)
	require.Greater(t, strings.Count(string(want), "<text"), 20)
	picture, err := os.ReadFile("picture.svg")
	require.NoError(t, err)
	require.Equal(t, string(want), string(picture))
}
