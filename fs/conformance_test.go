package fs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOwnCases: every session of the project's own cases shows in the mount what the real client reads. Package sessioncore
// compares the model with these and with the cases of testdata/conformance.
func TestOwnCases(t *testing.T) {
	onceIsEnough(t)
	a := newAgent(t)
	require.NoError(t, os.CopyFS(a.path(""), os.DirFS("../testdata/cases")))
	require.NoError(t, os.Rename(a.path("blobs"), filepath.Join(a.dir, "blobs")))
	wants, err := filepath.Glob("../testdata/cases/*.want.json")
	require.NoError(t, err)
	require.NotEmpty(t, wants)
	m := mountForTest(t, a.dir)
	for _, want := range wants {
		name := strings.TrimSuffix(filepath.Base(want), ".want.json")
		if name == "odd-ids" {
			continue // lone surrogates: TestOddIDs and TestNamesInMount
		}
		t.Run(name, func(t *testing.T) { checkAgainst(t, m.session(name), want, nil) })
	}
}

// shown is a session's directory in the mount.
type shown struct {
	t    *testing.T
	dir  string
	want object
	diff object
	raw  string
	// normalized: ids are given as #0, #1, ... by position.
	normalized bool

	ids []string // of the entries, in order; "" and false in has for none
	has []bool
	all []object
}

func checkAgainst(t *testing.T, dir, wantFile string, diff object) {
	text, err := os.ReadFile(wantFile)
	require.NoError(t, err)
	want := parseJSON(t, string(text)).(object)
	raw, err := os.ReadFile(dir + ".jsonl")
	require.NoError(t, err)
	if want["refused"] == true {
		_, err := os.Lstat(dir)
		require.ErrorIs(t, err, os.ErrNotExist, "it is no session")
		return
	}
	s := &shown{t: t, dir: dir, want: want, diff: diff, raw: string(raw), normalized: want["idsNormalized"] == true}
	if h, ok := want["header"]; ok {
		sameJSON(t, "header.json", h, s.read("header.json"))
	}
	context := s.read("context.json").(object)
	if slot, ok := want["withoutSlot"].(object); ok {
		s.want = slot // contexts by the rules of 14.9.9
	}
	if oracle, ok := want["oracle"]; ok && oracle == nil {
		return
	}
	s.checkEntries()
	s.checkLeaf()
	if want, ok := s.expect("labels"); ok {
		sameJSON(t, "labels", want, s.labels())
	}
	if want, ok := s.expect("tree"); ok {
		sameJSON(t, "tree/", s.named(want), s.tree(filepath.Join(dir, "tree")))
	}
	s.checkBranch()
	s.checkContext(context)
}

// expect returns an expected value, unless we mean to differ in it.
func (s *shown) expect(key string) (any, bool) {
	if keys, ok := s.diff["keys"].([]any); ok && slices.Contains(keys, any(key)) && s.diff["only"] == nil {
		return nil, false
	}
	v, ok := s.want[key]
	return v, ok
}

func (s *shown) file(name string) string {
	b, err := os.ReadFile(filepath.Join(s.dir, name))
	require.NoError(s.t, err)
	return string(b)
}

// read returns a generated file's one line of JSON.
func (s *shown) read(name string) any {
	text := s.file(name)
	require.Equal(s.t, len(text)-1, strings.IndexByte(text, '\n'), "%s is one line", name)
	return parseJSON(s.t, text)
}

// names lists a directory in the order of readdir.
func names(t testing.TB, dir string) []string {
	f, err := os.Open(dir)
	require.NoError(t, err)
	defer f.Close()
	list, err := f.Readdirnames(-1)
	require.NoError(t, err)
	return list
}

var repeatedName = regexp.MustCompile(`^(.*)~([0-9]+)\.json$`)

// checkEntries: entries/ has the file's entries in its order, each with its bytes.
func (s *shown) checkEntries() {
	flat := strings.ReplaceAll(strings.ReplaceAll(s.raw, "\r\n", "  "), "\n", " ")
	at := 0
	list := names(s.t, filepath.Join(s.dir, "entries"))
	last := map[string]int{}
	for i, name := range list {
		text := s.file("entries/" + name)
		e := parseJSON(s.t, text).(object)
		id, ok := e["id"].(string)
		s.ids, s.has, s.all = append(s.ids, id), append(s.has, ok), append(s.all, e)
		if ok {
			last[id] = i
		}
		value := strings.TrimSuffix(text, "\n")
		require.NotContains(s.t, value, "\n")
		found := strings.Index(flat[at:], value)
		if s.normalized || found < 0 && strings.Contains(s.raw, `"hookMessage"`) {
			continue // migrated: rendered anew
		}
		require.GreaterOrEqual(s.t, found, 0, "%s has not the bytes of the file: %.200q", name, value)
		line := 1 + strings.Count(s.raw[:at+found], "\n")
		at += found + len(value)
		if m := repeatedName.FindStringSubmatch(name); m != nil && len(m[1]) != 200 {
			require.Equal(s.t, m[2], strconv.Itoa(line), "the line of %s", name)
		}
	}
	for i, name := range list {
		base := ""
		if s.has[i] {
			base = nameOf(s.ids[i])
		}
		if s.has[i] && last[s.ids[i]] == i {
			require.Equal(s.t, base+".json", name)
		} else {
			require.Regexp(s.t, "^"+regexp.QuoteMeta(base)+`~[0-9]+\.json$`, name)
		}
	}
	want, ok := s.expect("entries")
	if !ok {
		return
	}
	got := []any{}
	parentKey := "parentId"
	if h, _ := s.want["header"].(object); h["type"] == "session_header" {
		parentKey = "parent_id"
	}
	for i, e := range s.all {
		part := object{}
		for _, key := range []string{"id", parentKey, "type"} {
			if v, ok := e[key]; ok {
				part[key] = v
			}
		}
		if s.normalized { // ids are written #0, #1, ... by position
			part["id"] = "#" + strconv.Itoa(i)
			if parent, ok := part["parentId"].(string); ok {
				part["parentId"] = "#" + strconv.Itoa(slices.Index(s.ids, parent))
			}
		}
		got = append(got, part)
	}
	sameJSON(s.t, "entries/", want, got)
}

// id is the id that an expected one stands for.
func (s *shown) id(want string) string {
	if !s.normalized {
		return want
	}
	n, err := strconv.Atoi(strings.TrimPrefix(want, "#"))
	require.NoError(s.t, err)
	return s.ids[n]
}

func (s *shown) checkLeaf() {
	want, ok := s.expect("leafId")
	target, err := os.Readlink(filepath.Join(s.dir, "leaf"))
	switch id, isText := want.(string); {
	case !ok:
	case !isText:
		require.NoError(s.t, err)
		require.Equal(s.t, "tree", target, "before the first entry")
	default:
		require.NoError(s.t, err)
		require.Equal(s.t, "entries/"+nameOf(s.id(id))+".json", target)
		require.FileExists(s.t, filepath.Join(s.dir, "leaf"))
	}
}

var labelEscape = regexp.MustCompile(`\\(\\|t|n|r|ud[89a-f][0-9a-f]{2})`)

// labels reads the file labels.
func (s *shown) labels() object {
	o := object{}
	plain := func(text string) string {
		return labelEscape.ReplaceAllStringFunc(text, func(e string) string {
			return parseJSON(s.t, `"`+e+`"`).(string)
		})
	}
	for line := range strings.Lines(s.file("labels")) {
		id, label, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		require.True(s.t, ok, line)
		o[plain(id)] = plain(label)
	}
	return o
}

// named turns an expected tree into one of the names that tree/ has.
func (s *shown) named(want any) any {
	out := []any{}
	for _, n := range want.([]any) {
		node := n.(object)
		out = append(out, object{"name": treeNameOf(s.id(node["id"].(string))), "children": s.named(node["children"])})
	}
	return out
}

// tree reads a directory of tree/, links to .deep followed.
func (s *shown) tree(dir string) any {
	out := []any{}
	for _, name := range names(s.t, dir) {
		if name == ".deep" || name == "entry.json" {
			continue
		}
		path := filepath.Join(dir, name)
		if target, err := os.Readlink(path); err == nil {
			path = filepath.Join(dir, target)
			require.Equal(s.t, filepath.Join(s.dir, "tree/.deep", name), path)
		}
		link, err := os.Readlink(filepath.Join(path, "entry.json"))
		require.NoError(s.t, err)
		entry := filepath.Join(path, link)
		require.Equal(s.t, filepath.Join(s.dir, "entries"), filepath.Dir(entry))
		require.Equal(s.t, name, treeNameOf(parseJSON(s.t, s.file("entries/"+filepath.Base(entry))).(object)["id"].(string)))
		out = append(out, object{"name": name, "children": s.tree(path)})
	}
	return out
}

// checkBranch: branches/current leads along the expected path, and entries.jsonl is its entries.
func (s *shown) checkBranch() {
	want, ok := s.expect("branch")
	if list, isList := want.([]any); !ok || !isList || len(list) == 0 {
		require.False(s.t, ok && slices.Contains(names(s.t, filepath.Join(s.dir, "branches")), "current"))
		return
	}
	flat := ""
	path := names(s.t, filepath.Join(s.dir, "branches/current/path"))
	require.Len(s.t, path, len(want.([]any)))
	for i, id := range want.([]any) {
		name := nameOf(s.id(id.(string)))
		require.Regexp(s.t, fmt.Sprintf(`^%06d-.+-%s\.json$`, i+1, regexp.QuoteMeta(name)), path[i])
		target, err := os.Readlink(filepath.Join(s.dir, "branches/current/path", path[i]))
		require.NoError(s.t, err)
		require.Equal(s.t, "../../../../entries/"+name+".json", target)
		flat += s.file("entries/" + name + ".json")
	}
	require.Equal(s.t, flat, s.file("branches/current/entries.jsonl"))
}

// checkContext compares the context at the leaf.
func (s *shown) checkContext(got object) {
	want, ok := s.want["context"].(object)
	if _, same := s.expect("context"); !ok || !same || want["oracleFails"] != nil {
		return
	}
	if only, ok := s.diff["only"].(string); ok && slices.Contains(s.diff["keys"].([]any), any("context")) {
		delete(want, only)
		delete(got, only)
	}
	delete(want, "configuredThinkingLevel")
	if want["sha256"] != nil {
		return // it is a large one, of which there is the hash alone
	}
	if want["selectedMCPToolNames"] == nil { // 18.2.3 has no such keys
		delete(got, "selectedMCPToolNames")
		delete(got, "hasPersistedMCPToolSelection")
	}
	sameJSON(s.t, "context.json", want, got)
}

func sum256(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
