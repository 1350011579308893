package search

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// The slow reader: it decodes everything with encoding/json and applies the rules of docs/design.md to what it gets.

// slowEntry is an entry, or a title, as the slow reader has it.
type slowEntry struct {
	file, name string
	time       time.Time
	cwd        string
	role       string
	tools      []string
	pieces     []string
	folded     []string
	asked      *slowEntry // the words of a person's call of an extension, nil for others
}

// slowQuery is a query before it is written down.
type slowQuery struct {
	words, without  []string
	role, tool, cwd string
	after, before   time.Time
	either          []string // one of them is there, in that case
}

// parse parses the query as it is written down.
func (q slowQuery) parse() (*Query, error) {
	if q.either == nil {
		return ParseQuery(q.String())
	}
	var patterns []string
	for _, w := range q.either {
		patterns = append(patterns, regexp.QuoteMeta(w))
	}
	return Parser{}.Regexp(strings.Join(patterns, "|"), q.String())
}

// String writes the query down, without its alternatives.
func (q slowQuery) String() string {
	var terms []string
	for _, w := range q.words {
		terms = append(terms, quoted(w))
	}
	for _, w := range q.without {
		terms = append(terms, "-"+quoted(w))
	}
	date := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.Format(time.DateOnly)
	}
	for _, t := range [][2]string{{"role", q.role}, {"tool", q.tool}, {"cwd", q.cwd}, {"after", date(q.after)}, {"before", date(q.before)}} {
		if t[1] != "" {
			terms = append(terms, t[0]+":"+quoted(t[1]))
		}
	}
	return strings.Join(terms, "  ")
}

// quoted writes a word as a phrase where it has to be one.
func quoted(w string) string {
	if strings.IndexFunc(w, unicode.IsSpace) >= 0 || w[0] == '-' || strings.Contains(w, ":") {
		return `"` + w + `"`
	}
	return w
}

// slowFold replaces each character by one that stands for all its cases. A character of ASCII and another one
// never fold to the same.
func slowFold(text string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 {
			return unicode.ToLower(r)
		}
		all := []rune{r}
		for o := unicode.SimpleFold(r); o != r; o = unicode.SimpleFold(o) {
			if o >= 0x80 {
				all = append(all, o)
			}
		}
		return slices.Min(all)
	}, text)
}

// isExact reports whether a word has a capital, and so matches only in its own case.
func isExact(w string) bool { return strings.ContainsFunc(w, unicode.IsUpper) }

// has reports whether one text of the entry has a word.
func (e *slowEntry) has(w string) bool {
	pieces := e.pieces
	if !isExact(w) {
		w = slowFold(w)
		pieces = e.folded
	}
	return slices.ContainsFunc(pieces, func(piece string) bool {
		return strings.Contains(piece, w)
	})
}

// hits reports whether an entry is a hit of the query. For the role of a user, of a person's call of an extension
// only the words count.
func (q *slowQuery) hits(e *slowEntry) bool {
	if q.role == "user" && e.asked != nil {
		e = e.asked
	}
	lacks := func(w string) bool {
		return !e.has(w)
	}
	hasAll := !slices.ContainsFunc(q.words, lacks)
	hasExcluded := slices.ContainsFunc(q.without, e.has)
	return hasAll && !hasExcluded && q.hasEither(e) && q.isOfKeys(e)
}

// hasEither reports whether a text of an entry has one of the alternatives, in their case.
func (q *slowQuery) hasEither(e *slowEntry) bool {
	isIn := func(w string) bool {
		return slices.ContainsFunc(e.pieces, func(piece string) bool {
			return strings.Contains(piece, w)
		})
	}
	return q.either == nil || slices.ContainsFunc(q.either, isIn)
}

// isOfKeys reports whether an entry has the role, the tool, the directory and the time of the query.
func (q *slowQuery) isOfKeys(e *slowEntry) bool {
	isTool := func(name string) bool {
		return name == q.tool || !isExact(q.tool) && slowFold(name) == slowFold(q.tool)
	}
	isBelow := strings.HasPrefix(e.cwd, strings.TrimSuffix(q.cwd, "/")+"/")
	switch {
	case q.role != "" && e.role != q.role:
		return false
	case q.tool != "" && !slices.ContainsFunc(e.tools, isTool):
		return false
	case q.cwd != "" && e.cwd != q.cwd && !isBelow:
		return false
	case !q.before.IsZero() && !e.time.Before(q.before):
		return false
	}
	return !e.time.Before(q.after)
}

type object = map[string]any

// get returns the first member of an object that is there, by its keys; nil for none.
func get(o object, keys ...string) any {
	for _, key := range keys {
		member, isThere := o[key]
		if isThere {
			return member
		}
	}
	return nil
}

// add adds texts: strings, and with all set every string and number below a value.
func (e *slowEntry) add(all bool, values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			e.pieces = append(e.pieces, v)
		case json.Number:
			if all {
				e.pieces = append(e.pieces, v.String())
			}
		case []any:
			if all {
				e.add(true, v...)
			}
		case object:
			if all {
				for _, key := range slices.Sorted(maps.Keys(v)) { // so that each run draws the same words
					e.add(true, v[key])
				}
			}
		}
	}
}

// fold folds the pieces.
func (e *slowEntry) fold() {
	for _, p := range e.pieces {
		e.folded = append(e.folded, slowFold(p))
	}
}

// content adds the texts and the tools of a content, of a message or a block.
func (e *slowEntry) content(v any) {
	switch v := v.(type) {
	case string:
		e.add(false, v)
	case []any:
		for _, b := range v {
			e.content(b)
		}
	case object:
		e.add(false, v["text"], v["thinking"], v["reasoning"], v["name"], get(v, "toolName", "tool_name"), v["intent"])
		e.add(true, get(v, "arguments", "input", "args", "parameters"))
		switch v["type"] {
		case "toolCall", "tool_call", "toolUse", "tool_use", "functionCall", "function_call", "serverToolUse", "server_tool_use":
			e.tool(v["name"])
		}
		e.tool(get(v, "toolName", "tool_name"))
		e.content(v["content"])
		if inner, ok := v["block"].(object); ok {
			e.content(inner)
		}
	}
}

// tool adds the name of a tool, if it is a text.
func (e *slowEntry) tool(name any) {
	if text, ok := name.(string); ok {
		e.tools = append(e.tools, text)
	}
}

// message adds the texts and the tools of a message.
func (e *slowEntry) message(m object) {
	e.add(false, m["command"], m["code"], m["output"], get(m, "errorMessage", "error_message"), m["summary"],
		get(m, "shortSummary", "short_summary"), get(m, "toolName", "tool_name"), get(m, "customType", "custom_type"))
	e.tool(get(m, "toolName", "tool_name"))
	if files, ok := m["files"].([]any); ok {
		for _, f := range files {
			if f, ok := f.(object); ok {
				e.add(false, f["path"], f["content"])
			}
		}
	}
	e.content(m["content"])
}

// read sets the texts, the tools and the role of the entry by its object. The dialect of operator has other types
// of entries.
func (e *slowEntry) read(v object, isOperator bool) {
	kind, _ := v["type"].(string)
	switch kind {
	case "message":
		m, _ := v["message"].(object)
		e.message(m)
		e.role = map[any]string{"user": "user", "assistant": "assistant", "toolResult": "tool", "tool_result": "tool", "tool": "tool"}[m["role"]]
	case "custom_message":
		e.message(v)
		e.call(v)
	case "compaction":
		e.message(v)
	case "branch_summary", "branch":
		if (kind == "branch") == isOperator {
			e.message(v)
		}
	case "title_change", "session_info":
		if kind == "session_info" || !isOperator { // pi writes it too
			e.add(false, v["title"], v["name"])
		}
	case "label":
		e.add(false, v["label"])
	}
}

// call adds the words of a person's call of an extension. They alone have the role of a user.
func (e *slowEntry) call(v object) {
	kind, _ := v["customType"].(string)
	isCall := kind == "skill-prompt" || kind == "collab-prompt" || strings.HasSuffix(kind, "/prompt")
	if !isCall || v["attribution"] != "user" {
		return
	}
	details, _ := v["details"].(object)
	words, _ := details["prompt"].(string)
	name, _ := details["name"].(string)
	arguments, _ := details["args"].(string)
	if words == "" && name != "" && kind == "skill-prompt" {
		words = strings.TrimSpace("/skill:" + name + " " + strings.TrimSpace(arguments))
	}
	asked := *e
	asked.role = "user"
	asked.pieces = nil
	if words == "" {
		asked.content(v["content"])
	} else {
		asked.add(false, words)
	}
	e.asked = &asked
	e.pieces = append(e.pieces, asked.pieces...)
}

// slowRead reads all sessions of a storage. ok is false for one that encoding/json cannot read.
func slowRead(t *testing.T, files *memory.Storage, name string) (entries []*slowEntry, ok bool) {
	session := sessioncore.NewStore(files).Session(name)
	snap, err := session.Acquire(t.Context())
	if err != nil {
		return nil, true
	}
	defer session.Drop()
	defer snap.Release()
	decode := func(text []byte) (v object, ok bool) {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		return v, d.Decode(&v) == nil
	}
	header, slot, err := snap.ReadHeader()
	require.NoError(t, err)
	h, ok := decode(header)
	if !ok {
		return nil, false
	}
	cwd, _ := h["cwd"].(string)
	if slot != nil {
		h, _ = decode(slot)
	}
	title := &slowEntry{file: name, time: snap.HeaderTime(), cwd: cwd}
	if title.add(false, h["title"]); len(title.pieces) > 0 {
		entries = append(entries, title)
	}
	isOperator := snap.Dialect() == sessioncore.DialectOfType("session_header")
	for n := range snap.Len() {
		e := sessioncore.Entry(n)
		text, err := snap.EntryText(e)
		require.NoError(t, err)
		v, ok := decode(text)
		if !ok {
			return nil, false
		}
		entry := &slowEntry{file: name, name: snap.Name(e), time: snap.Time(e), cwd: cwd}
		entry.read(v, isOperator)
		entries = append(entries, entry)
	}
	for _, e := range entries {
		e.fold()
		if e.asked != nil {
			e.asked.fold()
		}
	}
	return entries, true
}

// allStores are the session files of testdata and of the conformance cases, in one storage.
func allStores(t *testing.T) (*memory.Storage, []*slowEntry) {
	files := memory.New()
	var entries []*slowEntry
	roots, seen := []string{sessiontest.TestData(t)}, map[string]bool{}
	for _, c := range sessiontest.Cases(t) {
		roots = append(roots, c.Dir)
	}
	for _, root := range roots {
		require.NoError(t, filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".jsonl") || strings.HasPrefix(d.Name(), ".") || seen[name] {
				return err
			}
			file := path.Join("p", fmt.Sprintf("%04d.jsonl", len(seen)))
			seen[name] = true
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			require.NoError(t, files.WriteFile(file, content))
			read, ok := slowRead(t, files, file)
			if !ok {
				require.NoError(t, files.WriteFile(file, nil))
			}
			entries = append(entries, read...)
			return nil
		}))
	}
	return files, entries
}

// randomQuery draws a query whose words are in the stores, most of them in one entry of the file from.
func randomQuery(rnd *rand.Rand, entries []*slowEntry) (q slowQuery, from string) {
	of := entries[rnd.IntN(len(entries))]
	from = of.file
	for range 1 + rnd.IntN(2) {
		if w := randomWord(rnd, of); w != "" {
			q.words = append(q.words, w)
		}
		if rnd.IntN(12) == 0 {
			of = entries[rnd.IntN(len(entries))]
		}
	}
	if rnd.IntN(4) == 0 {
		if w := randomWord(rnd, entries[rnd.IntN(len(entries))]); w != "" {
			q.without = append(q.without, w)
		}
	}
	switch rnd.IntN(8) {
	case 0:
		q.role = []string{"user", "assistant", "tool"}[rnd.IntN(3)]
	case 1:
		if len(of.tools) > 0 && of.tools[0] != "" && !strings.Contains(of.tools[0], `"`) {
			q.tool = of.tools[rnd.IntN(len(of.tools))]
		}
	case 2:
		isClean := path.IsAbs(of.cwd) && path.Clean(of.cwd) == of.cwd
		hasQuote := strings.Contains(of.cwd, `"`) // which no query can have
		if isClean && !hasQuote {
			dirs := []string{of.cwd, path.Dir(of.cwd)}
			q.cwd = dirs[rnd.IntN(len(dirs))]
		}
	case 3:
		q.after = day(of.time, -rnd.IntN(2))
	case 4:
		q.before = day(of.time, rnd.IntN(2))
	}
	return q, from
}

// day returns the beginning of the day that is some days after a time.
func day(t time.Time, after int) time.Time {
	return t.UTC().Truncate(24*time.Hour).AddDate(0, 0, after)
}

// randomWord draws a piece of an entry's text, in its case or another, if it can be a word.
func randomWord(rnd *rand.Rand, e *slowEntry) string {
	text := []rune(e.pieces[rnd.IntN(len(e.pieces))])
	from := rnd.IntN(len(text) + 1)
	w := string(text[from:min(len(text), from+1+rnd.IntN(12))])
	w = strings.TrimSpace(w)
	if w == "" || strings.ContainsAny(w, "\"\uFFFD") {
		return ""
	}
	switch rnd.IntN(5) {
	case 0:
		w = strings.ToUpper(w)
	case 1, 2:
		w = strings.ToLower(w)
	}
	return w
}

// TestAgreesWithSlowReader: the hits of 500 random queries are those of the slow reader, of some in all sessions, and
// of most in the one that a word is from and in others.
func TestAgreesWithSlowReader(t *testing.T) {
	sessiontest.NotUnderRace(t)
	files, entries := allStores(t)
	require.Greater(t, len(entries), 1000)
	ofFile := map[string][]*slowEntry{}
	var texts []*slowEntry // those that have a text
	for _, e := range entries {
		ofFile[e.file] = append(ofFile[e.file], e)
		if len(e.pieces) > 0 {
			texts = append(texts, e)
		}
	}
	names := slices.Sorted(maps.Keys(ofFile))
	const queries, everywhere = 500, 100
	rnd := rand.New(rand.NewPCG(2026, 5))
	searcher := New(SearchedSessions{Files: files})
	withHits := 0
	for n := 0; n < queries; {
		want, from := randomQuery(rnd, texts)
		if len(want.words) == 0 {
			continue
		}
		if other := randomWord(rnd, texts[rnd.IntN(len(texts))]); n%5 == 0 && other != "" {
			want.words, want.either = want.words[1:], []string{want.words[0], other}
		}
		q, err := want.parse()
		require.NoError(t, err, "%q", want.String())
		found := 0
		if n%everywhere == 0 {
			result, err := searcher.Search(t.Context(), q)
			require.NoError(t, err)
			found = compareHits(t, &want, result, entries)
		}
		for _, name := range []string{from, names[rnd.IntN(len(names))], names[rnd.IntN(len(names))]} {
			result, err := searcher.SearchIn(t.Context(), q, name)
			require.NoError(t, err)
			found += compareHits(t, &want, result, ofFile[name])
		}
		if found > 0 {
			withHits++
		}
		n++
	}
	require.Greater(t, withHits, queries/2)
}

// compareHits compares a result with what the slow reader finds among entries, and returns the number of hits.
func compareHits(t *testing.T, want *slowQuery, result *Result, entries []*slowEntry) int {
	t.Helper()
	require.Empty(t, result.Unread)
	var expected, got []string
	for _, e := range entries {
		if want.hits(e) {
			expected = append(expected, e.file+" "+e.name)
		}
	}
	copies := 0
	for i, h := range result.Hits {
		copies += h.Copies
		got = append(got, h.File+" "+h.Entry)
		require.NotEmpty(t, h.Line)
		require.True(t, i == 0 || !h.Time.After(result.Hits[i-1].Time), "newest first")
	}
	if copies == 0 {
		require.ElementsMatch(t, expected, got, "%q", want.String())
	}
	require.Subset(t, expected, got, "%q", want.String())
	require.Len(t, expected, len(got)+copies, "%q", want.String())
	return len(got)
}
