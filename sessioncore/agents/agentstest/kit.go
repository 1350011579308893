package agentstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// update has Samples write the expected texts instead of comparing them.
const update = "SESSIONFS_UPDATE_WANTS"

// Kit tests an agent by its samples: files with one conversation.
type Kit struct {
	Agent string // its registered name
	// Prepare adds files to a home. It may be nil.
	Prepare func(h *Home)
	// Place returns the path of a sample's file in a home.
	Place func(sample string) string
}

// Samples checks each sample NAME.jsonl or NAME.json in testdata/agents/AGENT: its sessions are the text
// NAME.jsonl.want or NAME.json.want, and the sessions of a .jsonl that grows are the same at every length.
func (k Kit) Samples(t *testing.T) {
	pattern := filepath.Join(sessiontest.TestData(t), "agents", k.Agent, "*.json*")
	samples, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, sample := range samples {
		if strings.HasSuffix(sample, ".want") {
			continue
		}
		t.Run(filepath.Base(sample), func(t *testing.T) {
			k.sample(t, sample)
		})
	}
}

// sample checks one sample.
func (k Kit) sample(t *testing.T, sample string) {
	base := filepath.Base(sample)
	wantName := sample + ".want"
	text, err := os.ReadFile(sample)
	require.NoError(t, err)
	got := k.Check(t, base, string(text))
	if os.Getenv(update) != "" {
		err := os.WriteFile(wantName, []byte(got), 0o600)
		require.NoError(t, err)
	}
	want, err := os.ReadFile(wantName)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
	if strings.HasSuffix(sample, ".jsonl") {
		k.Growth(t, base, string(text))
	}
}

// Pages checks each case of the pages testdata/convert/*.txt: the file of an agent, named by its rule,
// has the entries in the outline behind it, and the same ones at each length.
func (k Kit) Pages(t *testing.T) {
	eachCase(t, func(name, file, want string) {
		t.Run(name, func(t *testing.T) {
			k.Growth(t, "s.jsonl", file)
			h := k.with(t, "s.jsonl", file)
			session := h.Sessions("")[0]
			entries := h.Outline(session)[1:] // without the header
			require.Equal(t, want, strings.Join(entries, "\n")+"\n")
		})
	})
}

// Own checks the files below the directory that an environment variable names: a text is in as many entries of the sessions
// as records have it. said returns the content of a record with words; of a repeated uuid the last record counts.
func (k Kit) Own(t *testing.T, variable string, said func(record map[string]any) any) {
	top := os.Getenv(variable)
	if top == "" {
		t.Skip(variable + " names no directory")
	}
	err := filepath.WalkDir(top, func(file string, item os.DirEntry, err error) error {
		if err != nil || item.IsDir() || !strings.HasSuffix(file, ".jsonl") {
			return err
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			k.own(t, file, said)
		})
		return nil
	})
	require.NoError(t, err)
}

// own is Own for one file.
func (k Kit) own(t *testing.T, file string, said func(record map[string]any) any) {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	h := k.with(t, filepath.Base(file), string(text))
	want := textsOfRecords(string(text), said)
	got := h.textsOfEntries()
	for text, n := range want {
		require.Equal(t, n, got[text], text)
	}
}

// textsOfRecords counts the texts in the records of a file.
func textsOfRecords(file string, said func(record map[string]any) any) map[string]int {
	contents := map[any]any{} // by the uuids of records, else by numbers
	for line := range strings.Lines(file) {
		var record map[string]any
		err := json.Unmarshal([]byte(line), &record)
		if err != nil {
			continue
		}
		id := any(len(contents))
		uuid, _ := record["uuid"].(string)
		if uuid != "" {
			id = uuid
		}
		contents[id] = said(record)
	}
	counts := map[string]int{}
	for _, content := range contents {
		eachText(content, func(text string) { counts[text]++ })
	}
	return counts
}

// textsOfEntries counts the texts in the entries of all sessions.
func (h *Home) textsOfEntries() map[string]int {
	counts := map[string]int{}
	for _, session := range h.Sessions("") {
		for line := range strings.Lines(h.Read(session)) {
			if line[0] != '{' {
				continue
			}
			var entry struct{ Content, Summary, Message any }
			err := json.Unmarshal([]byte(line), &entry)
			if err != nil {
				continue
			}
			contents := []any{entry.Content, entry.Summary, entry.Message}
			eachText(contents, func(text string) { counts[text]++ })
		}
	}
	return counts
}

// eachText calls f for each text in content: in strings, and in blocks and lists of them.
func eachText(content any, f func(text string)) {
	switch v := content.(type) {
	case string:
		if v != "" {
			f(v)
		}
	case []any:
		for _, element := range v {
			eachText(element, f)
		}
	case map[string]any:
		for _, key := range []string{"text", "thinking", "content"} {
			eachText(v[key], f)
		}
	}
}

// Check returns the sessions of a sample, the oldest first: whole lines of JSON, in which each id stands once
// and each parent before its children.
func (k Kit) Check(t testing.TB, sample, text string) string {
	h := k.with(t, sample, text)
	var sessions []string
	for _, name := range h.Sessions("") {
		got := h.Read(name)
		Entries(t, got)
		checkTree(t, got)
		sessions = append(sessions, got)
	}
	slices.SortStableFunc(sessions, func(left, right string) int {
		return strings.Compare(beginOf(left), beginOf(right))
	})
	return strings.Join(sessions, "")
}

// beginOf returns the first time in a session, which is its header's.
func beginOf(session string) string {
	_, time, _ := strings.Cut(session, `"timestamp":"`)
	return time[:min(len(time), len("2026-01-01T00:00:00.000Z"))]
}

// with returns a home with a file of the text at the place of a sample.
func (k Kit) with(t testing.TB, sample, text string) *Home {
	h := New(t, k.Agent)
	if k.Prepare != nil {
		k.Prepare(h)
	}
	sessiontest.WriteFile(t, filepath.Join(h.Dir, k.Place(sample)), text)
	return h
}

// Growth checks that a file that is written in pieces shows at each length the text that it shows when
// it is opened with that length, and that an open reader reads that or keeps the text before.
func (k Kit) Growth(t *testing.T, sample, text string) {
	g := growth{
		kit:    k,
		t:      t,
		sample: sample,
		text:   text,
		live:   k.with(t, sample, ""),
		open:   map[string]storage.Object{},
		before: map[string]string{},
	}
	for line := range strings.Lines(text) {
		end := g.length + len(line)
		half := g.length + len(line)/2
		if half > g.length {
			g.growTo(half)
		}
		g.growTo(end)
	}
	for _, obj := range g.open {
		require.NoError(t, obj.Close())
	}
}

// growth is a sample that is written in pieces.
type growth struct {
	kit          Kit
	t            *testing.T
	sample, text string
	live         *Home                     // the home with the sample as it grows
	length       int                       // bytes of it that are written
	open         map[string]storage.Object // readers of its sessions, opened at the last length
	before       map[string]string         // the texts that these had then
}

// growTo writes the sample up to a length, and checks its sessions.
func (g *growth) growTo(length int) {
	file := filepath.Join(g.live.Dir, g.kit.Place(g.sample))
	sessiontest.AppendTo(g.t, file, g.text[g.length:length])
	g.length = length
	fresh := g.kit.with(g.t, g.sample, g.text[:length])
	for _, name := range fresh.Sessions("") {
		g.checkSession(fresh, name)
	}
}

// checkSession compares a session with the one in a fresh home with the same file, in each way to read it, and with its
// reader of the last length.
func (g *growth) checkSession(fresh *Home, name string) {
	once, onceState := fresh.ReadOnce(name, false)
	words, _ := fresh.ReadOnce(name, true)
	obj, err := g.live.Open(name)
	require.NoError(g.t, err)
	now := storagetest.ReadObject(g.t, obj)
	require.Equal(g.t, fresh.Read(name), now, "%d bytes", g.length)
	require.Equal(g.t, once, now, "%d bytes", g.length)
	require.Equal(g.t, Searched(g.t, now), Searched(g.t, words), "%d bytes", g.length)
	require.Equal(g.t, onceState, storagetest.Stat(g.t, fresh, name))
	st, err := obj.Stat()
	require.NoError(g.t, err)
	require.Equal(g.t, storagetest.Stat(g.t, g.live, name), st)
	kept := g.open[name]
	if kept != nil {
		was := storagetest.ReadObject(g.t, kept)
		hasGrown := was == now && strings.HasPrefix(now, g.before[name])
		hasStayed := was == g.before[name]
		require.True(g.t, hasGrown || hasStayed, "%q\n%q", was, now)
		require.NoError(g.t, kept.Close())
	}
	g.open[name] = obj
	g.before[name] = now
}

// Prefixes checks the conversion of each prefix of whole lines of a file, as Check does, and that one
// that grew has the same entries.
func Prefixes(t testing.TB, newConverter func() *agents.Builder, file string) {
	_, states := Convert(t, newConverter(), file)
	end := 0 // of the lines so far
	for _, state := range states {
		end += strings.IndexByte(file[end:], '\n') + 1
		got, _ := Convert(t, newConverter(), file[:end])
		Entries(t, got)
		checkTree(t, got)
		_, entries, _ := strings.Cut(got, "\n")
		_, grown, _ := strings.Cut(state, "\n") // its header has the title found later
		require.Equal(t, entries, grown)
	}
}

// checkTree fails unless each id stands once, and behind its parent.
func checkTree(t testing.TB, text string) {
	seen := map[string]bool{}
	for line := range strings.Lines(text) {
		var e struct{ Type, ID, ParentID, FirstKeptEntryID string }
		if line[0] != '{' {
			continue
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		if e.Type == "session" {
			continue
		}
		require.False(t, seen[e.ID], line)
		for _, earlier := range []string{e.ParentID, e.FirstKeptEntryID} {
			if earlier != "" {
				require.True(t, seen[earlier], line)
			}
		}
		seen[e.ID] = true
	}
}
