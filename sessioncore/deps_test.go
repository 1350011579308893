package sessioncore

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ownImports is which packages of ours each package of the model may import, without their common beginning
// sessionfs/sessioncore. Imports go one way, and none leads to FUSE.
var ownImports = map[string][]string{
	"/internal/rawjson":               {},
	"/internal/jsonl":                 {"/internal/rawjson", "/storage"},
	"/internal/proc":                  {"/storage"},
	"/internal/childtest":             {},
	"/internal/clienttest":            {"/internal/childtest", "/internal/sessiontest", "/storage/dir"},
	"/internal/sessiontest":           {"/internal/rawjson", "/storage", "/storage/dir", "/storage/storagetest/memory"},
	"/internal/markdown":              {"/internal/rawjson"},
	"/internal/markdown/markdowntest": {},
	"/budget":                         {},
	"/document":                       {"/internal/rawjson", "/storage"},
	"/secrets":                        {"/internal/rawjson", "/storage"},
	"/message":                        {"/internal/rawjson", "/names"},
	"/storage":                        {},
	"/storage/dir":                    {"/storage", "/internal/proc"},
	"/agents":                         {"/budget", "/history", "/internal/jsonl", "/internal/rawjson", "/message", "/storage"},
	"/agents/agentstest":              {"/agents", "/internal/jsonl", "/internal/sessiontest", "/storage"},
	"/agents/all":                     {"/agents/claude", "/agents/codex", "/agents/copilot", "/agents/gemini"},
	"/agents/claude":                  {"/agents", "/history", "/internal/jsonl", "/internal/rawjson", "/storage"},
	"/agents/claude/claudetest":       {},
	"/agents/codex":                   {"/agents", "/history", "/internal/rawjson", "/message", "/storage", "/storage/gzip"},
	"/agents/copilot":                 {"/agents", "/history", "/internal/rawjson", "/message", "/storage"},
	"/agents/gemini":                  {"/agents", "/history", "/internal/rawjson", "/message", "/storage"},
	"/blame":                          {"", "/internal/rawjson", "/message", "/names", "/search", "/view"},
	"/storage/gzip":                   {"/budget", "/storage"},
	"/storage/postgres":               {"/budget", "/names", "/storage"},
	"/storage/postgres/postgrestest":  {},
	"/storage/storagetest":            {"/storage"},
	"/storage/storagetest/every": {"/internal/sessiontest", "/storage", "/storage/dir", "/storage/gzip", "/storage/storagetest/memory",
		"/storage/postgres", "/storage/postgres/postgrestest", "/secrets", "/storage/storagetest"},
	"/storage/storagetest/memory": {"/storage"},
	"/history":                    {"/budget", "/storage"},
	"/names":                      {"/internal/rawjson"},
	"":                            {"/document", "/internal/rawjson", "/internal/jsonl", "/names", "/storage"},
	"/clients":                    {"", "/internal/proc", "/internal/rawjson", "/storage"},
	"/listing":                    {"", "/internal/rawjson", "/names", "/storage"},
	"/report": {"", "/budget", "/document", "/internal/markdown", "/internal/rawjson", "/listing", "/message", "/names", "/secrets",
		"/storage"},
	"/search": {"", "/budget", "/internal/rawjson", "/listing", "/message", "/names", "/storage", "/view"},
	"/transfer": {"", "/budget", "/document", "/internal/jsonl", "/internal/rawjson", "/listing", "/names", "/storage",
		"/agents", "/storage/dir", "/storage/gzip", "/secrets", "/writer"},
	"/view":   {"", "/document", "/internal/markdown", "/internal/rawjson", "/listing", "/message", "/names", "/report", "/storage"},
	"/writer": {"/document", "", "/budget", "/clients", "/internal/jsonl", "/internal/rawjson", "/names", "/storage"},
}

const modelPath = "sessionfs/sessioncore"

// TestImports holds each package's imports against ownImports.
func TestImports(t *testing.T) {
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir(".", func(file string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		pkg := strings.TrimPrefix("/"+filepath.ToSlash(filepath.Dir(file)), "/.")
		seen[pkg] = true
		allowed, known := ownImports[pkg]
		if !known {
			t.Errorf("%s: package %q is not in the table", file, pkg)
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range parsed.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			own, isOwn := strings.CutPrefix(path, modelPath)
			switch {
			case strings.Contains(strings.ToLower(path), "fuse"):
				t.Errorf("%s imports %s", file, path)
			case isOwn && !slices.Contains(allowed, own), !isOwn && strings.HasPrefix(path, "sessionfs/"):
				t.Errorf("%s imports %s, which is not in the table", file, path)
			}
		}
		return nil
	}))
	for pkg := range ownImports {
		require.True(t, seen[pkg], "there is no package %q", pkg)
	}
}
