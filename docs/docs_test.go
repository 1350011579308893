// Package docs holds the documents of the project, and tests that what names them, and what they name, is there.
package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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
	citation = regexp.MustCompile(`docs/([\w-]+)\.md(?: sections? (\d+(?:(?:, | and )\d+)*))?(?:, (.{1,60}))?`)
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

// read returns the text of a file of the project, by its path from the root.
func read(t *testing.T, file string) string {
	text, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	return string(text)
}

// readDocuments returns the documents of this directory, by their names without .md.
func readDocuments(t *testing.T) map[string]document {
	docs := map[string]document{}
	files, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		var d document
		for _, m := range heading.FindAllStringSubmatch(read(t, "docs/"+file), -1) {
			if m[1] != "" {
				d.sections = append(d.sections, m[1])
			}
			d.headings = append(d.headings, strings.ToLower(m[2]))
		}
		docs[strings.TrimSuffix(file, ".md")] = d
	}
	return docs
}

// wrongCitations returns the citations in a comment that name no document, no section or no heading.
func wrongCitations(docs map[string]document, comment string) (wrong []string) {
	for _, m := range citation.FindAllStringSubmatch(comment, -1) {
		cited := m[0]
		sections := m[2]
		behindComma := strings.ToLower(m[3])
		d, isThere := docs[m[1]]
		if !isThere {
			wrong = append(wrong, cited)
			continue
		}
		for _, section := range number.FindAllString(sections, -1) {
			if !slices.Contains(d.sections, section) {
				wrong = append(wrong, cited)
			}
		}
		isHeading := func(heading string) bool {
			rest, isPrefix := strings.CutPrefix(behindComma, heading)
			endsWord := rest == "" || strings.ContainsRune(").,;: ", rune(rest[0]))
			return isPrefix && endsWord
		}
		if behindComma != "" && !slices.ContainsFunc(d.headings, isHeading) {
			wrong = append(wrong, cited)
		}
	}
	return wrong
}

// comments returns the comments of a source file, each as one line. Some are empty.
func comments(text string) (list []string) {
	block := ""
	for line := range strings.Lines(text + "\n\n") {
		line = strings.TrimRight(line, "\n")
		if m := commentLine.FindStringSubmatch(line); m != nil {
			block += strings.TrimSpace(m[1]) + " "
			continue
		}
		list = append(list, strings.TrimSpace(block))
		block = ""
		if m := behindCode.FindStringSubmatch(line); m != nil {
			block = m[1] + " "
		}
	}
	return list
}

// sources returns the texts of the source files of the project, by their paths from the root.
func sources(t *testing.T) map[string]string {
	texts := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(root), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && slices.Contains([]string{".git", "bin", "node_modules"}, d.Name()) {
			return fs.SkipDir
		}
		dir, ext := path.Dir(file), path.Ext(file)
		isScript := (dir == "scripts" || dir == ".ci") && ext != ".md"
		if d.Type().IsRegular() && (ext == ".go" || ext == ".ts" || isScript) {
			texts[file] = read(t, file)
		}
		return nil
	}))
	require.Greater(t, len(texts), 100)
	return texts
}

// product returns the sources of Go without the tests.
func product(t *testing.T) map[string]string {
	texts := sources(t)
	maps.DeleteFunc(texts, func(file, _ string) bool {
		return path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go")
	})
	return texts
}

// TestComments: no comment names a document, a section or a heading that is not in the project.
func TestComments(t *testing.T) {
	docs := readDocuments(t)
	texts := sources(t)
	delete(texts, "docs/docs_test.go")
	cited := 0
	for file, text := range texts {
		for _, comment := range comments(text) {
			for _, name := range documentName.FindAllString(comment, -1) {
				_, atRoot := os.Stat(filepath.Join(root, name))
				_, beside := os.Stat(filepath.Join(root, path.Dir(file), name))
				if path.Base(name) != mountFile && atRoot != nil && beside != nil {
					t.Errorf("%s: there is no document %s", file, name)
				}
			}
			for _, wrong := range wrongCitations(docs, comment) {
				t.Errorf("%s: no such place: %s", file, wrong)
			}
			for _, wrong := range foreign.FindAllString(comment, -1) {
				t.Errorf("%s: a reader does not have %s", file, wrong)
			}
			cited += len(citation.FindAllString(comment, -1))
		}
	}
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
		for _, m := range link.FindAllStringSubmatch(read(t, "docs/"+file), -1) {
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
			if !toHeading {
				continue
			}
			isMeant := func(m []string) bool { return anchor(m[1]) == heading }
			titles := title.FindAllStringSubmatch(read(t, "docs/"+place), -1)
			require.True(t, slices.ContainsFunc(titles, isMeant), "%s links to %s", file, m[1])
		}
	}
	require.Greater(t, links, 5)
}

// TestContents: the contents of the cookbook name its sections, and each recipe begins with its purpose.
func TestContents(t *testing.T) {
	prose := regexp.MustCompile("(?s)```.*?```").ReplaceAllString(read(t, "docs/cookbook.md"), "")
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
	for file, text := range product(t) {
		for _, name := range declarations(text) {
			declared[name] = append(declared[name], file)
		}
	}
	text := read(t, "docs/architecture.md")
	named := 0
	file := ""
	end := 0 // of the name of that file
	for _, m := range codeName.FindAllStringSubmatchIndex(text, -1) {
		name := text[m[2]:m[3]]
		behindFile := file != "" && strings.TrimSpace(text[end:m[0]]) == ""
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

// typeRow is a row of the table of types: a name, the packages that declare it, and its meaning.
var typeRow = regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (`[a-z/`, ]+) \\| [^|]+ \\|$")

// declaredTypes returns the packages that declare a type, by its name. Packages for tests are left out.
func declaredTypes(t *testing.T) map[string][]string {
	packages := map[string][]string{}
	for file, text := range product(t) {
		dir := path.Dir(file)
		if forTests.MatchString(dir + "/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, declaration := range parsed.Decls {
			group, ok := declaration.(*ast.GenDecl)
			if !ok || group.Tok != token.TYPE {
				continue
			}
			for _, spec := range group.Specs {
				name := spec.(*ast.TypeSpec).Name.Name
				if !slices.Contains(packages[name], dir) { // a type may have a declaration for each system
					packages[name] = append(packages[name], dir)
				}
			}
		}
	}
	return packages
}

// maxShared bounds the names of types that several packages declare: a reader who searches for one finds several things.
const maxShared = 20

// TestTypes: the types of the table in architecture.md are declared where it says, and a name that two packages declare
// has all of them in the table; few names are so.
func TestTypes(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "docs/architecture.md"), "## The types")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := typeRow.FindAllStringSubmatch(table, -1)
	require.Len(t, rows, strings.Count(table, "\n| ")-2, "a row is not in the form of the others")
	declared := declaredTypes(t)
	require.Greater(t, len(declared), 300)
	listed := map[string][]string{}
	for _, m := range rows {
		for _, dir := range codeName.FindAllStringSubmatch(m[2], -1) {
			listed[m[1]] = append(listed[m[1]], dir[1])
			if !slices.Contains(declared[m[1]], dir[1]) {
				t.Errorf("there is no type %s in %s but in %v", m[1], dir[1], declared[m[1]])
			}
		}
	}
	shared := 0
	for name, dirs := range declared {
		if len(dirs) < 2 {
			continue
		}
		shared++
		for _, dir := range dirs {
			if !slices.Contains(listed[name], dir) {
				t.Errorf("the type %s is in %v: give it a name of its own in %s, or a row in the table", name, dirs, dir)
			}
		}
	}
	require.LessOrEqual(t, shared, maxShared, "names that several packages declare")
}

var (
	function  = regexp.MustCompile(`(?m)^func (?:\((?:\w+ )?\*?(\w+).*?\) )?(\w+)`)
	single    = regexp.MustCompile(`(?m)^(?:type|var|const) (\w+)`)
	group     = regexp.MustCompile(`(?ms)^(?:type|var|const) \(\n(.*?)^\)`)
	structure = regexp.MustCompile(`(?ms)^type (\w+)(?:\[.*?\])? struct \{\n(.*?)^\}`)
	short     = regexp.MustCompile(`(?m)^type (\w+) struct\{ (.*) \}$`)
	// members start a line of a group or a structure.
	members = regexp.MustCompile(`(?m)^\t(\w+(?:, \w+)*)\b`)
)

// declarations returns the names that a formatted Go file declares; methods and fields behind their type and a dot.
func declarations(text string) (names []string) {
	for _, m := range function.FindAllStringSubmatch(text, -1) {
		names = append(names, strings.TrimPrefix(m[1]+"."+m[2], "."))
	}
	for _, m := range single.FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	add := func(before, body string) {
		for _, m := range members.FindAllStringSubmatch(body, -1) {
			for name := range strings.SplitSeq(m[1], ", ") {
				names = append(names, before+name)
			}
		}
	}
	for _, m := range group.FindAllStringSubmatch(text, -1) {
		add("", m[1])
	}
	unfolded := short.ReplaceAllString(text, "type $1 struct {\n\t$2\n}")
	for _, m := range structure.FindAllStringSubmatch(unfolded, -1) {
		add(m[1]+".", m[2])
	}
	return names
}

// packageDoc is the comment of a package and its name.
var packageDoc = regexp.MustCompile(`(?m)((?:^//.*\n)*)^package (\w+)$`)

// TestPackages: every package is in the table of architecture.md and says in its doc.go what it is for; commands may
// do so in another file.
func TestPackages(t *testing.T) {
	said := map[string]bool{} // by directory
	for file, text := range product(t) {
		m := packageDoc.FindStringSubmatch(text)
		require.NotNil(t, m, file)
		dir, base := path.Split(file)
		comment := m[1]
		name := m[2]
		isTop := dir == name+"/" && base == name+".go" // testdata/testdata.go has the whole package
		inPlace := base == "doc.go" || name == "main" || isTop
		words := strings.Fields(strings.ReplaceAll(comment, "//", ""))
		said[dir] = said[dir] || inPlace && len(words) >= 8
	}
	require.Greater(t, len(said), 8)
	inTable := map[string]bool{}
	_, table, _ := strings.Cut(read(t, "docs/architecture.md"), "## Packages")
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
	for file, text := range sources(t) {
		for _, m := range testFunc.FindAllStringSubmatch(text, -1) {
			tests[path.Dir(file)+" "+m[1]] = true
		}
	}
	text := read(t, "docs/security.md")
	pkg, named := "", 0
	for _, m := range codeName.FindAllStringSubmatch(text, -1) {
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
	for _, m := range pageNames.FindAllStringSubmatch(text, -1) {
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
	require.Equal(t, string(want), read(t, "docs/picture.svg"))
}
