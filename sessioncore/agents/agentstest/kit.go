package agentstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
)

// update has Samples write the expected texts instead of comparing them.
const update = "SESSIONFS_UPDATE_WANTS"

// Kit tests an agent whose converter is made with agents.Builder.
type Kit struct {
	// Home makes a home of the agent in a directory, but for the sample's file.
	Home func(t testing.TB, dir string)
	// Open returns the agent's sessions in a home.
	Open func(t testing.TB, home string) *agents.Files
	// Place returns the place of a sample's file in a home, and the names of its sessions.
	Place func(sample string) (file string, sessions []string)
}

// Samples checks each sample NAME.jsonl or NAME.json in a directory: its sessions are the text
// NAME.jsonl.want or NAME.json.want, and those of a .jsonl that grows are the same at every length.
func (k Kit) Samples(t *testing.T, dir string) {
	samples, err := filepath.Glob(filepath.Join(dir, "*.json*"))
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

// Check returns the sessions of a sample: whole lines of JSON, in which each id stands once and each
// parent before its children.
func (k Kit) Check(t testing.TB, sample, text string) string {
	dir := t.TempDir()
	files := k.write(t, dir, sample, text)
	_, sessions := k.Place(sample)
	all := ""
	for _, name := range sessions {
		got := read(t, files, name)
		Entries(t, got)
		checkTree(t, got)
		all += got
	}
	return all
}

// write makes a home with a sample.
func (k Kit) write(t testing.TB, dir, sample, text string) *agents.Files {
	k.Home(t, dir)
	file, _ := k.Place(sample)
	sessiontest.WriteFile(t, filepath.Join(dir, file), text)
	return k.Open(t, dir)
}

// Growth checks that a file that is written in pieces shows at each length the text that it shows when
// it is opened with that length.
func (k Kit) Growth(t *testing.T, sample, text string) {
	dir := t.TempDir()
	live := k.write(t, dir, sample, "")
	file, sessions := k.Place(sample)
	length := 0
	step := func(to int) {
		sessiontest.AppendTo(t, filepath.Join(dir, file), text[length:to])
		length = to
		fresh := k.write(t, t.TempDir(), sample, text[:to])
		for _, name := range sessions {
			require.Equal(t, read(t, fresh, name), read(t, live, name), "%d bytes", to)
		}
	}
	for line := range strings.Lines(text) {
		end := length + len(line)
		if half := length + len(line)/2; half > length {
			step(half)
		}
		step(end)
	}
}

// Prefixes checks the conversion of each prefix of whole lines of a file, as Check does, and that one
// that grew has the same entries.
func Prefixes(t testing.TB, newConverter func() *agents.Builder, file string) {
	_, states := Convert(t, newConverter(), file)
	for at, i := 0, 0; i < len(states); i++ {
		at += strings.IndexByte(file[at:], '\n') + 1
		got, _ := Convert(t, newConverter(), file[:at])
		Entries(t, got)
		checkTree(t, got)
		_, entries, _ := strings.Cut(got, "\n")
		_, grown, _ := strings.Cut(states[i], "\n") // its header has the title found later
		require.Equal(t, entries, grown)
	}
}

// read returns the text of a session, "" for one that is not there.
func read(t testing.TB, files *agents.Files, name string) string {
	obj, err := files.Open(name)
	if storage.IsMissing(err) {
		return ""
	}
	require.NoError(t, err)
	defer obj.Close()
	st, err := obj.Stat()
	require.NoError(t, err)
	text := make([]byte, st.Size)
	require.NoError(t, storage.ReadFull(obj, text, 0))
	return string(text)
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
