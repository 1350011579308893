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
// NAME.jsonl.want or NAME.json.want, and those of a .jsonl that grows are the same at every length.
func (k Kit) Samples(t *testing.T) {
	samples, err := filepath.Glob(filepath.Join(sessiontest.TestData(t), "agents", k.Agent, "*.json*"))
	require.NoError(t, err)
	require.NotEmpty(t, samples)
	for _, sample := range samples {
		if strings.HasSuffix(sample, ".want") {
			continue
		}
		t.Run(filepath.Base(sample), func(t *testing.T) {
			text, err := os.ReadFile(sample)
			require.NoError(t, err)
			got := k.Check(t, filepath.Base(sample), string(text))
			if os.Getenv(update) != "" {
				require.NoError(t, os.WriteFile(sample+".want", []byte(got), 0o600))
			}
			want, err := os.ReadFile(sample + ".want")
			require.NoError(t, err)
			require.Equal(t, string(want), got)
			if strings.HasSuffix(sample, ".jsonl") {
				k.Growth(t, filepath.Base(sample), string(text))
			}
		})
	}
}

// Pages checks each case of the pages testdata/convert/*.txt: the file of an agent, named by its rule,
// has the entries in the outline behind it, and the same ones at each length.
func (k Kit) Pages(t *testing.T) {
	eachCase(t, func(name, file, want string) {
		t.Run(name, func(t *testing.T) {
			k.Growth(t, "s.jsonl", file)
			h := k.with(t, "s.jsonl", file)
			require.Equal(t, want, strings.Join(h.Outline(h.Sessions("")[0])[1:], "\n")+"\n")
		})
	})
}

// Own checks the files below the directory that an environment variable names: a text is in as many entries of the sessions
// as records have it. said returns the content of a record with words; of a repeated uuid the last record counts.
func (k Kit) Own(t *testing.T, variable string, said func(record map[string]any) any) {
	if os.Getenv(variable) == "" {
		t.Skip(variable + " names no directory")
	}
	require.NoError(t, filepath.WalkDir(os.Getenv(variable), func(name string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".jsonl") {
			return err
		}
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, err := os.ReadFile(name)
			require.NoError(t, err)
			contents := map[any]any{}
			want := map[string]int{}
			got := map[string]int{}
			for line := range strings.Lines(string(file)) {
				var r map[string]any
				id := any(len(contents))
				if json.Unmarshal([]byte(line), &r) == nil {
					if uuid, _ := r["uuid"].(string); uuid != "" {
						id = uuid
					}
					contents[id] = said(r)
				}
			}
			for _, content := range contents {
				eachText(content, func(text string) { want[text]++ })
			}
			h := k.with(t, filepath.Base(name), string(file))
			for _, session := range h.Sessions("") {
				for line := range strings.Lines(h.Read(session)) {
					var e struct{ Content, Summary, Message any }
					if line[0] == '{' && json.Unmarshal([]byte(line), &e) == nil {
						eachText([]any{e.Content, e.Summary, e.Message}, func(text string) {
							got[text]++
						})
					}
				}
			}
			for text, n := range want {
				require.Equal(t, n, got[text], text)
			}
		})
		return nil
	}))
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
			if kept := open[name]; kept != nil {
				was := storagetest.ReadObject(t, kept)
				require.True(t, was == now && strings.HasPrefix(now, before[name]) || was == before[name], "%q\n%q", was, now)
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
	for i := 0; i < len(states); i++ {
		at += strings.IndexByte(file[at:], '\n') + 1
		got, _ := Convert(t, newConverter(), file[:at])
		Entries(t, got)
		checkTree(t, got)
		_, entries, _ := strings.Cut(got, "\n")
		_, grown, _ := strings.Cut(states[i], "\n") // its header has the title found later
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
		require.True(t, e.ParentID == "" || seen[e.ParentID], line)
		require.True(t, e.FirstKeptEntryID == "" || seen[e.FirstKeptEntryID], line)
		seen[e.ID] = true
	}
}
