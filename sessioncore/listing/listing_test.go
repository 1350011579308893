package listing

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// newListing returns the listing of a storage.
func newListing(t testing.TB, files storage.Storage) *Listing {
	store := sessioncore.NewStore(files)
	t.Cleanup(store.Close)
	return New(store, "/home/dev/.omp/agent/sessions")
}

// listDir returns the listing of a directory on disk.
func listDir(t testing.TB, root string) *Listing {
	return newListing(t, sessiontest.OpenDir(t, root))
}

// write makes a file of a listing in memory.
func (l *Listing) write(t testing.TB, name, text string) {
	require.NoError(t, l.store.Storage().(*memory.Storage).WriteFile(name, []byte(text)))
}

// named returns the directory or the session's file that a name in a tree stands for, "" if there is none.
func (l *Listing) named(t testing.TB, tree KeyTable, dir, name string) string {
	e, err := l.TreeFind(t.Context(), tree, dir, name, false)
	if err != nil {
		require.ErrorIs(t, err, sessioncore.ErrNotFound, "%q in %q", name, dir)
		return ""
	}
	if e.Dir != "" {
		return e.Dir
	}
	return e.Session.Name()
}

// resume returns the file of the session that a key of --resume finds, "" if there is none.
func (l *Listing) resume(t testing.TB, key string) string {
	info, err := l.Resume(t.Context(), key, false)
	if err != nil {
		require.ErrorIs(t, err, sessioncore.ErrNotFound, key)
		return ""
	}
	return info.Name()
}

// all lists the sessions.
func (l *Listing) all(t testing.TB) []*Info {
	found, err := l.Sessions(t.Context())
	require.NoError(t, err)
	return found.All()
}

// copyAgent copies the sessions of a case and sets their times.
func copyAgent(t *testing.T, caseDir string) string {
	to := t.TempDir()
	require.NoError(t, os.CopyFS(filepath.Join(to, "sessions"), os.DirFS(filepath.Join(caseDir, "agent/sessions"))))
	times := map[string]time.Time{}
	text, err := os.ReadFile(filepath.Join(caseDir, "mtimes.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &times))
	for file, at := range times {
		require.NoError(t, os.Chtimes(filepath.Join(to, file), at, at))
	}
	return to
}

// listedAs returns the value of a key in a line as JSON, with U+FFFD for lone surrogates as in the index, and null if it is
// missing.
func listedAs(line rawjson.Value, key string) string {
	v := line.Member(key)
	if v == nil {
		return "null"
	}
	text, isText := v.Text()
	if !isText {
		return sessiontest.Canonical(v)
	}
	return string(rawjson.AppendQuoted(nil, names.TextUTF8(text)))
}

// TestListConformance: the list of each case is the client's.
func TestListConformance(t *testing.T) {
	for _, c := range sessiontest.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(c.Dir, "expected/list.json"))
			require.NoError(t, err)
			sessions, err := listDir(t, filepath.Join(copyAgent(t, c.Dir), "sessions")).Sessions(t.Context())
			require.NoError(t, err)
			lines := slices.Collect(bytes.Lines(sessions.Index()))
			n := 0
			for want := range rawjson.Value(bytes.TrimSpace(text)).Member("sessions").EachElement {
				require.Less(t, n, len(lines), "%s is not listed", want)
				line := rawjson.Value(bytes.TrimSuffix(lines[n], []byte("\n")))
				require.True(t, rawjson.IsValidObject(line) && json.Valid(line), "%s", line)
				path, _ := line.Member("path").Text()
				require.Equal(t, listedAs(want, "file"), `"`+filepath.Base(path)+sessioncore.FileEnding+`"`)
				for _, key := range []string{"id", "cwd", "title", "messageCount", "firstMessage", "parentSession"} {
					require.Equal(t, listedAs(want, key), listedAs(line, key), "%s of %s", key, path)
				}
				n++
			}
			require.Equal(t, len(lines), n, "sessions in the list")
		})
	}
}

// TestListingTogether: concurrent look-ups while files change.
func TestListingTogether(t *testing.T) {
	files := memory.New()
	l := newListing(t, files)
	require.NoError(t, files.WriteFile("p/steady.jsonl", []byte(headerLine("steady", "/w"))))
	steady := time.Date(2026, 2, 16, 10, 20, 30, 0, time.UTC).Local().Format("2006-01-02T15-04-") + "steady"
	change := func(dir, n int) {
		name := fmt.Sprintf("p%d/%d.jsonl", dir, n%5)
		if n%7 == 0 {
			_ = files.Remove(name) // it may be gone
			return
		}
		assert.NoError(t, files.WriteFile(name, []byte(headerLine(name, "/w"))))
	}
	query := func() {
		found, err := l.Sessions(context.Background())
		if assert.NoError(t, err) {
			assert.NotEmpty(t, found.All())
		}
		info, err := l.Resume(context.Background(), "steady", false)
		if assert.NoError(t, err) {
			assert.Equal(t, "steady", info.ID)
		}
		e, err := l.TreeFind(context.Background(), ByCwd, "/w", steady, false)
		if assert.NoError(t, err) {
			assert.Equal(t, "steady", e.Session.ID)
		}
	}
	var group sync.WaitGroup
	for dir := range 4 {
		group.Go(func() {
			for n := range 100 {
				change(dir, n)
				query()
			}
		})
	}
	group.Wait()
}

// TestCancelledRead: a caller that is cancelled returns while the storage still works on a file, and the next caller gets
// the file.
func TestCancelledRead(t *testing.T) {
	files := memory.New()
	require.NoError(t, files.WriteFile("p/a.jsonl", []byte(headerLine("a", "/w"))))
	reading := make(chan struct{})
	release := make(chan struct{})
	slow := &storagetest.Hooked{Storage: files, Before: func(c storagetest.Call) error {
		if c.Op == "Open" {
			reading <- struct{}{}
			<-release
		}
		return nil
	}}
	l := newListing(t, slow)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := l.Sessions(ctx)
		failed <- err
	}()
	<-reading
	cancel()
	require.ErrorIs(t, <-failed, context.Canceled)
	close(release)
	t.Cleanup(func() { close(reading) })
	go func() {
		for range reading {
		}
	}()
	require.Equal(t, []string{"a"}, l.firstIDs(t, 1))
}
