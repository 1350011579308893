package testdata

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A want is what a reader must see in the session of a case.
type want struct {
	Refused       bool
	IDsNormalized bool `json:"idsNormalized"`
	Header        map[string]any
	LeafID        *string `json:"leafId"`
	Labels        map[string]string
	Branch        []string
	Context       *wantContext
	Contexts      map[string]*wantContext // of other tips
	Entries       []map[string]any
	Tree          []wantNode
}

type wantContext struct {
	Messages              []map[string]any
	ThinkingLevel         any
	Models                map[string]string
	InjectedTtsrRules     []string
	SelectedMCPToolNames  []string `json:"selectedMCPToolNames"`
	HasPersistedSelection bool     `json:"hasPersistedMCPToolSelection"`
	Mode                  string
	ModeData, ServiceTier any
	Level                 any    `json:"thinking_level"` // operator's
	ModelID               string `json:"model_id"`
}

type wantNode struct {
	ID       string
	Label    string
	Children []wantNode
}

// inconsistent tells where a want contradicts itself. It is no reader: that the
// want is right for its session is up to the tests of the reader.
func inconsistent(w *want, session []byte) (problems []string) {
	report := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	parents := map[string]string{} // id → parent, of the last entry of an id
	for _, e := range w.Entries {
		if id, ok := e["id"].(string); ok {
			parents[id], _ = e["parentId"].(string)
			if parent, ok := e["parent_id"].(string); ok {
				parents[id] = parent
			}
		}
	}
	at := ""
	for i, id := range w.Branch {
		parent, ok := parents[id]
		if !ok {
			report("branch: %q is no entry", id)
		}
		if _, joined := parents[parent]; i > 0 && parent != at {
			report("branch: %q is not the parent of %q", at, id)
		} else if i == 0 && parent != "" && joined && !slices.Contains(w.Branch, parent) {
			report("branch: %q is no root", id)
		}
		at = id
	}
	if w.LeafID == nil && len(w.Branch) > 0 || w.LeafID != nil && at != *w.LeafID {
		report("the branch does not end at the leaf")
	}
	seen := map[string]bool{}
	var walk func(n wantNode, parent string)
	walk = func(n wantNode, parent string) {
		if seen[n.ID] {
			report("tree: %q is there twice", n.ID)
			return
		}
		seen[n.ID] = true
		if _, ok := parents[n.ID]; !ok {
			report("tree: %q is no entry", n.ID)
		}
		if parent != "" && parents[n.ID] != parent {
			report("tree: %q is not the parent of %q", parent, n.ID)
		}
		if n.Label != w.Labels[n.ID] {
			report("tree: the label of %q is %q", n.ID, n.Label)
		}
		for _, child := range n.Children {
			walk(child, n.ID)
		}
	}
	for _, root := range w.Tree {
		walk(root, "")
	}
	for id := range parents {
		// A leaf move without children is in no tree; nothing else is left out.
		if !seen[id] && !isMove(session, id) {
			report("tree: %q is missing", id)
		}
	}
	return problems
}

// isMove tells whether an entry of a case is a durable move of the leaf.
func isMove(session []byte, id string) bool {
	for line := range bytes.Lines(session) {
		line = bytes.ReplaceAll(line, []byte(`": `), []byte(`":`)) // Python's way
		move := bytes.Contains(line, []byte(`"customType":"sessionfs/leaf"`)) || bytes.Contains(line, []byte(`"type":"leaf"`))
		if move && bytes.Contains(line, []byte(`"id":"`+id+`"`)) {
			return true
		}
	}
	return false
}

func TestCasesAreConsistent(t *testing.T) {
	sessions, err := filepath.Glob("cases/*.jsonl")
	require.NoError(t, err)
	wants, err := filepath.Glob("cases/*.want.json")
	require.NoError(t, err)
	require.NotEmpty(t, sessions)
	require.Len(t, wants, len(sessions), "every session has its want")
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, file := range sessions {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		t.Run(name, func(t *testing.T) {
			assert.Contains(t, string(readme), "\n- `"+name+"`: ")
			session, err := os.ReadFile(file)
			require.NoError(t, err)
			if strings.HasPrefix(name, "refused-") {
				data, err := os.ReadFile("cases/" + name + ".want.json")
				require.NoError(t, err)
				assert.JSONEq(t, `{"refused":true}`, string(data))
				return
			}
			w := readWant(t, "cases/"+name+".want.json")
			assert.Equal(t, "session", w.Header["type"])
			require.NotNil(t, w.Context)
			assert.Empty(t, inconsistent(w, session))
		})
	}
}

func readWant(t *testing.T, file string) *want {
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	w := new(want)
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(w))
	return w
}

// TestStoresAreConsistent: the stores of other clients, with their wants.
func TestStoresAreConsistent(t *testing.T) {
	wants, err := filepath.Glob("wants/*.want.json")
	require.NoError(t, err)
	sessions := 0
	for store, headerType := range map[string]string{"operator": "session_header", "xcsh": "session", "pi": "session"} {
		var all []byte
		require.NoError(t, filepath.WalkDir(store+"/sessions", func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			sessions++
			session, err := os.ReadFile(path)
			require.NoError(t, err)
			all = append(all, session...)
			name := strings.TrimSuffix(d.Name(), ".jsonl")
			w := readWant(t, "wants/"+name+".want.json")
			assert.Equal(t, headerType, w.Header["type"])
			assert.True(t, strings.HasSuffix(name, fmt.Sprint("_", w.Header["id"])), name)
			assert.Equal(t, store == "operator", filepath.Dir(path) == store+"/sessions", "operator's lie flat")
			assert.Empty(t, inconsistent(w, session))
			return nil
		}))
		blobs, err := filepath.Glob(store + "/blobs/*")
		require.NoError(t, err)
		for _, blob := range blobs {
			data, err := os.ReadFile(blob)
			require.NoError(t, err)
			sum := sha256.Sum256(data)
			assert.Equal(t, hex.EncodeToString(sum[:]), filepath.Base(blob))
			assert.Contains(t, string(all), "blob:sha256:"+filepath.Base(blob))
		}
	}
	require.Len(t, wants, sessions)
}

func TestCaseBlobsAreNamedAfterTheirContent(t *testing.T) {
	blobs, err := os.ReadDir("cases/blobs")
	require.NoError(t, err)
	require.NotEmpty(t, blobs)
	for _, d := range blobs {
		data, err := os.ReadFile("cases/blobs/" + d.Name())
		require.NoError(t, err)
		sum := sha256.Sum256(data)
		assert.Equal(t, hex.EncodeToString(sum[:]), d.Name())
	}
}

// TestConformanceCases: conformance/ has all that its README lists, and, where the collection is at hand that it is
// a part of, the files are the same to the byte.
func TestConformanceCases(t *testing.T) {
	readme, err := os.ReadFile("conformance/README.md")
	require.NoError(t, err)
	cases, err := filepath.Glob("conformance/*/*")
	require.NoError(t, err)
	assert.Equal(t, strings.Count(string(readme), "\n- `"), len(cases), "cases in README.md")
	for _, c := range cases {
		assert.Contains(t, string(readme), "\n- `"+filepath.Base(c)+"`: ")
	}

	whole := os.Getenv("SESSIONFS_CONFORMANCE")
	if whole == "" {
		whole = "../../shared/conformance"
	}
	if _, err := os.Stat(whole); err != nil {
		if os.Getenv("SESSIONFS_REQUIRE_FUSE") != "" {
			t.Fatalf("SESSIONFS_REQUIRE_FUSE is set, so all conformance cases must be there: %v. SESSIONFS_CONFORMANCE names their folder", err)
		}
		t.Skipf("the whole collection is not there to compare with: %v", err)
	}
	for _, c := range cases {
		name, err := filepath.Rel("conformance", c)
		require.NoError(t, err)
		assert.Equal(t, filesIn(t, filepath.Join(whole, name)), filesIn(t, c), name)
	}
}

// filesIn maps the path of each file in a directory to its content.
func filesIn(t *testing.T, dir string) map[string]string {
	files := map[string]string{}
	require.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name))
		files[name] = string(content)
		return err
	}))
	require.NotEmpty(t, files, dir)
	return files
}
