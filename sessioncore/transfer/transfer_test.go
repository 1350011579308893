package transfer

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	_ "sessionfs/sessioncore/agents/all" // whose sessions are imported
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/writer"
)

// headerOf returns the header of a session of omp.
func headerOf(id, cwd string) string {
	return fmt.Sprintf(`{"type":"session","version":3,"id":"%s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"%s"}`+"\n", id, cwd)
}

const line = `{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-16T10:21:00.000Z","message":{"role":"user","content":"one"}}` + "\n"

// hashOf returns the SHA-256 of a text in lower-case hex.
func hashOf(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }

// packed returns a text compressed by gzip.
func packed(t *testing.T, text string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, text)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return out.String()
}

// put makes files in a directory.
func put(t *testing.T, top string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		sessiontest.WriteFile(t, filepath.Join(top, name), text)
	}
}

// all returns the files in a directory.
func all(t *testing.T, top string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(top, func(file string, item fs.DirEntry, err error) error {
		if err != nil || item.IsDir() {
			return err
		}
		text, err := os.ReadFile(file)
		name, _ := filepath.Rel(top, file)
		files[name] = string(text)
		return err
	}))
	return files
}

// store is an agent directory into which sessions are imported.
type store struct {
	t   *testing.T
	top string
	im  *Importer
}

// newStore returns an empty store.
func newStore(t *testing.T) *store {
	t.Helper()
	top := t.TempDir()
	at := filepath.Join(top, "sessions")
	require.NoError(t, os.Mkdir(at, 0o755))
	live := sessiontest.OpenDir(t, at)
	sessions := sessioncore.NewStore(live)
	t.Cleanup(sessions.Close)
	list := listing.New(sessions, live.Path())
	options := writer.Options{
		Journal: live,
		Root:    live.Path(),
		Scope:   list.Scope,
	}
	importer := &Importer{
		Files:   live,
		Writer:  writer.New(sessions, options),
		Listing: list,
	}
	return &store{t, top, importer}
}

// take imports the sessions at a path, and returns for each its outcome, its path or its error, and its notes.
func (s *store) take(path string) (outcomes []string) {
	s.t.Helper()
	temporary := s.t.TempDir()
	from, err := Open(temporary)
	require.NoError(s.t, err)
	defer func() {
		from.Close()
		require.Empty(s.t, all(s.t, temporary))
	}()
	require.NoError(s.t, from.Add(s.t.Context(), path, nil))
	for _, f := range from.Found {
		r, err := s.im.Import(s.t.Context(), f)
		require.NoError(s.t, err)
		text := string(r.Outcome) + " " + r.Path
		if r.Err != nil {
			text = string(r.Outcome) + " " + r.Err.Error()
		}
		if r.Partly {
			text = "partly " + text
		}
		for _, note := range r.Notes {
			text += "; " + note
		}
		outcomes = append(outcomes, text)
	}
	return outcomes
}

// TestOtherAgentsArchive: sessions of other agents are found in archives, too.
func TestOtherAgentsArchive(t *testing.T) {
	const rollout = `{"timestamp":"2026-02-16T10:20:30.000Z","type":"session_meta","payload":{"id":"x","cwd":"/w"}}` + "\n" +
		`{"timestamp":"2026-02-16T10:20:31.000Z","type":"response_item","payload":{"type":"message","role":"user",` +
		`"content":[{"type":"input_text","text":"one"}]}}` + "\n"
	s := newStore(t)
	elsewhere := t.TempDir()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	archive := w.EncodeAll([]byte(rollout), nil)
	put(t, elsewhere, map[string]string{"x.jsonl.zst": string(archive)})
	require.Contains(t, s.take(filepath.Join(elsewhere, "x.jsonl.zst"))[0], "new sessions/--w--/")
}

// TestRows: a store that has sessions alone gets them alone. A row that is as large and as old as a copy counts as equal.
func TestRows(t *testing.T) {
	s := newStore(t)
	elsewhere := t.TempDir()
	s.im.SessionsAlone = true
	image := strings.Replace(line, `"one"`, `[{"type":"image","data":"blob:sha256:`+hashOf("x")+`"}]`, 1)
	put(t, elsewhere, map[string]string{
		"sessions/p/x.jsonl":     headerOf("x", "/w") + image,
		"sessions/p/x/0.log":     "a log",
		"sessions/p/x/sub.jsonl": headerOf("sub", "/w"),
		"before.jsonl":           headerOf("y", "/w") + line,
		"y.jsonl":                headerOf("y", "/w") + strings.Replace(line, "one", "six", 1),
	})
	outcome := s.take(filepath.Join(elsewhere, "sessions/p/x.jsonl"))[0]
	require.Contains(t, outcome, "1 files beside it are left out")
	require.Contains(t, outcome, "1 blobs are left out: there is no place")
	require.Len(t, all(t, s.top), 2)
	require.Equal(t, []string{"new sessions/p/before.jsonl"}, s.take(filepath.Join(elsewhere, "before.jsonl")))
	info, err := os.Stat(filepath.Join(elsewhere, "before.jsonl"))
	require.NoError(t, err)
	for at, want := range map[time.Duration]string{time.Second: "refused " + writer.ErrOther.Error(), 0: "same sessions/p/before.jsonl"} {
		require.NoError(t, os.Chtimes(filepath.Join(elsewhere, "y.jsonl"), time.Time{}, info.ModTime().Add(at)))
		require.Equal(t, []string{want}, s.take(filepath.Join(elsewhere, "y.jsonl")))
	}
}

// TestInterrupted: an interrupt ends an import between sessions and in the middle of one.
func TestInterrupted(t *testing.T) {
	s, elsewhere := newStore(t), t.TempDir()
	put(t, elsewhere, map[string]string{"sessions/p/x.jsonl": headerOf("x", "/w") + line})
	from, err := Open(t.TempDir())
	require.NoError(t, err)
	defer from.Close()
	require.NoError(t, from.Add(t.Context(), elsewhere, nil))
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.im.Import(gone, from.Found[0])
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, from.Add(gone, elsewhere, nil), context.Canceled)
	require.Empty(t, all(t, s.top))
}

// TestFirstRuns: first runs at once, for several directories of an agent, keep each one's sessions in a directory of its own.
func TestFirstRuns(t *testing.T) {
	agent := agents.Find("claude")
	for range 50 {
		top, kept := t.TempDir(), t.TempDir()
		var runs sync.WaitGroup
		for home := range 4 {
			from := filepath.Join(top, fmt.Sprint(home))
			put(t, from, map[string]string{fmt.Sprintf("projects/-p/%d.jsonl", home): ""})
			runs.Go(func() {
				_, err := Keep(t.Context(), from, agent, kept)
				for errors.Is(err, unix.EWOULDBLOCK) {
					_, err = Keep(t.Context(), from, agent, kept)
				}
				assert.NoError(t, err)
			})
		}
		runs.Wait()
		for home := range 4 {
			at := KeptIn(kept, agent.Name, filepath.Join(top, fmt.Sprint(home)))
			files, err := filepath.Glob(at + "/projects/-p/*")
			require.NoError(t, err)
			require.Equal(t, []string{fmt.Sprintf("%s/projects/-p/%d.jsonl", at, home)}, files)
		}
	}
}
