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
	err := filepath.WalkDir(top, func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".jsonl") {
			return err
		}
		base := filepath.Base(name)
		t.Run(base, func(t *testing.T) {
			file, err := os.ReadFile(name)
			require.NoError(t, err)
			h := k.with(t, base, string(file))
			want := textsOfRecords(string(file), said)
			got := h.textsOfEntries()
			for text, n := range want {
				require.Equal(t, n, got[text], text)
			}
		})
		return nil
	})
	require.NoError(t, err)
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
	began := func(session string) string {
		_, time, _ := strings.Cut(session, `"timestamp":"`)
		return time[:min(len(time), len("2026-01-01T00:00:00.000Z"))]
	}
	slices.SortStableFunc(sessions, func(a, b string) int {
		return strings.Compare(began(a), began(b))
	})
	return strings.Join(sessions, "")
}

// with returns a home with a sample.
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
	live := k.with(t, sample, "")
	length := 0
	open := map[string]storage.Object{}
	before := map[string]string{}
	step := func(to int) {
		sessiontest.AppendTo(t, filepath.Join(live.Dir, k.Place(sample)), text[length:to])
		length = to
		fresh := k.with(t, sample, text[:to])
		for _, name := range fresh.Sessions("") {
			once, onceState := fresh.ReadOnce(name, false)
			words, _ := fresh.ReadOnce(name, true)
			obj, err := live.Open(name)
			require.NoError(t, err)
			now := storagetest.ReadObject(t, obj)
			require.Equal(t, fresh.Read(name), now, "%d bytes", to)
			require.Equal(t, once, now, "%d bytes", to)
			require.Equal(t, Searched(t, now), Searched(t, words), "%d bytes", to)
			require.Equal(t, onceState, storagetest.Stat(t, fresh, name))
			st, err := obj.Stat()
			require.NoError(t, err)
			require.Equal(t, storagetest.Stat(t, live, name), st)
			kept := open[name]
			if kept != nil {
				was := storagetest.ReadObject(t, kept)
				hasGrown := was == now && strings.HasPrefix(now, before[name])
				hasStayed := was == before[name]
				require.True(t, hasGrown || hasStayed, "%q\n%q", was, now)
				require.NoError(t, kept.Close())
			}
			open[name] = obj
			before[name] = now
		}
	}
	for line := range strings.Lines(text) {
		end := length + len(line)
		half := length + len(line)/2
		if half > length {
			step(half)
		}
		step(end)
	}
	for _, obj := range open {
		require.NoError(t, obj.Close())
	}
}

// Prefixes checks the conversion of each prefix of whole lines of a file, as Check does, and that one
// that grew has the same entries.
func Prefixes(t testing.TB, newConverter func() *agents.Builder, file string) {
	_, states := Convert(t, newConverter(), file)
	at := 0
	for _, state := range states {
		at += strings.IndexByte(file[at:], '\n') + 1
		got, _ := Convert(t, newConverter(), file[:at])
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
