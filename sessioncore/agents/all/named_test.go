package all

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
)

const root = "../../../"

// TestNamed: no product file but those of an agent, and all.go, has a name of an agent in an identifier or a string. Names of
// models and providers, such as claude-opus-4-5 and github-copilot, are none.
func TestNamed(t *testing.T) {
	named := names(t)
	files := 0
	err := filepath.WalkDir(root, func(file string, item fs.DirEntry, err error) error {
		rel := filepath.ToSlash(strings.TrimPrefix(file, root))
		switch {
		case err != nil:
			return err
		case item.IsDir() && file != root && isOutside(rel):
			return fs.SkipDir
		case item.IsDir() || !isProduct(rel):
			return nil
		}
		files++
		return checkNamed(t, named, file, rel)
	})
	require.NoError(t, err)
	require.Greater(t, files, 300)
}

// checkNamed fails for each name of an agent in a file of Go. rel is the file's path for messages.
func checkNamed(t *testing.T, named *regexp.Regexp, file, rel string) error {
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, file, nil, 0)
	if err != nil {
		return err
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		text := ""
		switch n := n.(type) {
		case *ast.Ident:
			text = n.Name
		case *ast.BasicLit:
			text = n.Value
		}
		name := named.FindString(models.ReplaceAllString(text, ""))
		if name != "" {
			at := positions.Position(n.Pos())
			t.Errorf("%s:%d names an agent: %s; ask the registry instead", rel, at.Line, name)
		}
		return true
	})
	return nil
}

// isProduct reports whether a file is one of the product that must name no agent.
func isProduct(file string) bool {
	isTest := strings.HasSuffix(file, "_test.go")
	return strings.HasSuffix(file, ".go") && !isTest && file != "sessioncore/agents/all/all.go"
}

// isOutside reports whether a directory is an agent's own, or has no product.
func isOutside(dir string) bool {
	base := filepath.Base(dir)
	if strings.HasPrefix(base, ".") || strings.HasSuffix(base, "test") || dir == "scripts" {
		return true
	}
	name, isInAgents := strings.CutPrefix(dir, "sessioncore/agents/")
	return isInAgents && agents.Find(name) != nil
}

// models matches names of models and providers.
var models = regexp.MustCompile(`(?i)\b((anthropic|google|github|openai)[-/a-z]*|(claude|gemini|gpt|codex)-[0-9a-z])`)

// names returns a pattern of all names of the registered agents.
func names(t *testing.T) *regexp.Regexp {
	var all []string
	for _, a := range agents.All() {
		all = append(all, regexp.QuoteMeta(a.Name), regexp.QuoteMeta(a.Title))
	}
	require.NotEmpty(t, all)
	return regexp.MustCompile("(?i)" + strings.Join(all, "|"))
}

// TestNamedFinds: the names are found, and those of models are not.
func TestNamedFinds(t *testing.T) {
	for text, want := range map[string]string{
		"claude": "claude", "DemoCodex": "Codex", "~/.claude": "claude", "of Claude Code": "Claude", "a model: claude-opus-4-5": "",
		"anthropic/claude-opus": "", "omp": "",
	} {
		others := models.ReplaceAllString(text, "")
		require.Equal(t, want, names(t).FindString(others), text)
	}
}

// TestReadme: the README's table has all agents with their directories.
func TestReadme(t *testing.T) {
	var titles, homes []string
	for _, a := range agents.All() {
		titles = append(titles, a.Title)
		homes = append(homes, "`"+a.InHome()+"`")
	}
	text, err := os.ReadFile(root + "README.md")
	require.NoError(t, err)
	require.Contains(t, string(text), "| "+strings.Join(titles, ", ")+" | "+strings.Join(homes, ", ")+": read; ")
}
