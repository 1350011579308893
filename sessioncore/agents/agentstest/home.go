package agentstest

import (
	"context"
	"encoding/json"
	"os"
	"path"
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

// Home is the directory of an agent with its sessions, opened as a mount opens them.
type Home struct {
	*agents.Files
	Agent, Dir string
	Format     agents.Format
	T          testing.TB
}

// New returns an empty home of a registered agent.
func New(t testing.TB, agent string) *Home {
	dir := t.TempDir()
	return Open(t, agent, dir, sessiontest.OpenDir(t, dir))
}

// Open returns the home in a directory, read through files.
func Open(t testing.TB, agent, dir string, files storage.Files) *Home {
	source := agents.Source{Files: files, Path: dir, Temporary: os.TempDir()}
	source.Sub = func(name string) (storage.Files, string, error) {
		at := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(at, 0o700))
		return sessiontest.OpenDir(t, at), at, nil
	}
	store, err := agents.Find(agent).Open(source)
	require.NoError(t, err)
	shown := agents.Shown{Files: store.Files, Format: store.Format}
	return &Home{
		Files:  agents.NewFiles(shown, store.Format, nil, source.Temporary),
		Agent:  agent,
		Dir:    dir,
		Format: store.Format,
		T:      t,
	}
}

// Fresh returns the same home, of which nothing is cached.
func (h *Home) Fresh() *Home { return Open(h.T, h.Agent, h.Dir, sessiontest.OpenDir(h.T, h.Dir)) }

// Put writes a file of whole lines.
func (h *Home) Put(name string, lines ...string) {
	text := strings.Join(append(lines, ""), "\n")
	sessiontest.WriteFile(h.T, filepath.Join(h.Dir, name), text)
}

// Read returns the text of a session. It checks that a bill without a text is that of the text.
func (h *Home) Read(name string) string {
	text := storagetest.Read(h.T, h, name)
	h.checkCharges(name, text)
	return text
}

// ReadOnce returns the text of a session that is read without being kept, and its state. With words it may
// lack texts that no search looks at.
func (h *Home) ReadOnce(name string, words bool) (string, storage.Stat) {
	obj, err := h.Open(name)
	require.NoError(h.T, err)
	defer obj.Close()
	passing := obj.(interface {
		ConvertOnce(ctx context.Context, dst []byte, words bool) ([]byte, storage.Stat, error)
	})
	used := []byte("memory that another session had")
	text, st, err := passing.ConvertOnce(h.T.Context(), used[:0], words)
	require.NoError(h.T, err)
	return string(text), st
}

// Outline returns the outline of a session.
func (h *Home) Outline(name string) []string { return Outline(h.T, h.Read(name)) }

// Names returns the names in a directory, and checks that each has the kind that its Stat tells.
func (h *Home) Names(dir string) (names []string) {
	items, err := storage.ListStat(h, dir, func(storage.Item) bool {
		return true
	})
	require.NoError(h.T, err)
	for _, item := range items {
		names = append(names, item.Name)
		st := storagetest.Stat(h.T, h, path.Join(dir, item.Name))
		require.Equal(h.T, item.Kind, st.Kind)
	}
	slices.Sort(names)
	return names
}

// Sessions returns the paths of the sessions below a directory: each before those of its subagents.
func (h *Home) Sessions(dir string) (sessions []string) {
	for _, name := range h.Names(dir) {
		name = path.Join(dir, name)
		switch {
		case h.Format.IsSession(name):
			sessions = append(sessions, name)
		case storagetest.Stat(h.T, h, name).Kind == storage.KindDir:
			sessions = append(sessions, h.Sessions(name)...)
		}
	}
	slices.Sort(sessions)
	return sessions
}

// Searched returns the lines of a session without the usages of answers and the details of results.
func Searched(t *testing.T, session string) (lines []string) {
	for line := range strings.Lines(session) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) != nil { // of a problem
			lines = append(lines, line)
			continue
		}
		message, _ := entry["message"].(map[string]any)
		delete(message, "usage")
		if message["role"] == "toolResult" {
			delete(message, "details")
		}
		text, err := json.Marshal(entry)
		require.NoError(t, err)
		lines = append(lines, string(text))
	}
	return lines
}
