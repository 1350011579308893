package writer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

const importMore = `{"type":"message","id":"c","parentId":"b","timestamp":"2026-02-16T10:23:00.000Z","message":{"role":"user","content":"three"}}` + "\n"

// copyOf returns a text as a copy from elsewhere.
func copyOf(text string) Copy {
	return Copy{ReaderAt: strings.NewReader(text), Size: int64(len(text)), Modified: time.UnixMilli(1_700_000_000_123)}
}

// startImport returns a writer over a directory, in which a file may be.
func startImport(t *testing.T, content string) (w *writing, top string) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return startWriting(t, sessiontest.OpenDir(t, top), content, Options{Root: top}), top
}

// TestImportGrowsByPages: growth that a killed write(2) could leave half done replaces the file; growth within one page of
// the kernel's cache is appended.
func TestImportGrowsByPages(t *testing.T) {
	padded := func(size int) string {
		line := plainFile + strings.Replace(importMore, "three", "%s", 1)
		return fmt.Sprintf(line, strings.Repeat("x", size-len(line)+2))
	}
	for _, c := range []struct {
		name        string
		there, copy int // sizes
		replaced    bool
	}{
		{"within a page", 1000, 1400, false},
		{"up to the end of a page", 2000, pageSize, false},
		{"a page from its beginning", pageSize, 2 * pageSize, false},
		{"across two pages", pageSize - 100, pageSize + 300, true},
		{"a byte across two pages", pageSize - 300, pageSize + 1, true},
		{"several pages", 1000, 5 * pageSize, true},
		{"much more", 1000, 128 * pageSize, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			there := padded(c.there)
			whole := there + strings.Replace(importMore, "three", strings.Repeat("y", c.copy-c.there-len(importMore)+len("three")), 1)
			require.Len(t, whole, c.copy)
			w, top := startImport(t, there)
			file := filepath.Join(top, plainName)
			before, err := os.Stat(file)
			require.NoError(t, err)
			outcome, err := w.Import(t.Context(), plainName, copyOf(whole))
			require.NoError(t, err)
			require.Equal(t, Grown, outcome)
			after, err := os.Stat(file)
			require.NoError(t, err)
			require.Equal(t, c.replaced, !os.SameFile(before, after))
			content, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, whole, string(content))
		})
	}
}

// TestImportRefuses: only a regular file is added to, nothing outside is, and nothing where nothing may be written.
func TestImportRefuses(t *testing.T) {
	w, top := startImport(t, "")
	require.NoError(t, os.MkdirAll(filepath.Join(top, "p/dir.jsonl"), 0o755))
	outside := filepath.Join(t.TempDir(), "outside.jsonl")
	require.NoError(t, os.WriteFile(outside, []byte(plainFile), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(top, "p/link.jsonl")))
	for name, want := range map[string]error{
		"p/dir.jsonl": storage.ErrNotRegular, "p/link.jsonl": storage.ErrNotRegular, "../x.jsonl": storage.ErrBadName, "/x.jsonl": storage.ErrBadName,
	} {
		_, err := w.Import(t.Context(), name, copyOf(plainFile+plainReply))
		require.ErrorIs(t, err, want, name)
	}
	require.Empty(t, snapshotOf(t, top))
	short := copyOf(plainFile)
	short.Size++
	_, err := w.Import(t.Context(), plainName, short)
	require.Error(t, err)
	w.opts.ReadOnly = true
	_, err = w.Import(t.Context(), plainName, copyOf(plainFile))
	require.ErrorIs(t, err, sessioncore.ErrReadOnly)
	require.NoFileExists(t, filepath.Join(top, plainName))
	content, err := os.ReadFile(outside)
	require.NoError(t, err)
	require.Equal(t, plainFile, string(content))
}

// TestImportBesideWriters: of what is appended and imported at the same time nothing is lost, and one of several copies
// wins, also where there was nothing.
func TestImportBesideWriters(t *testing.T) {
	for _, there := range []string{plainFile, ""} {
		w, _ := startImport(t, there)
		var group sync.WaitGroup
		var outcomes [8]Outcome
		var errs [8]error
		for n := range outcomes {
			group.Go(func() {
				line := strings.Replace(importMore, `"c"`, fmt.Sprintf(`"copied%d"`, n), 1)
				outcomes[n], errs[n] = w.Import(t.Context(), plainName, copyOf(plainFile+line))
			})
		}
		if there != "" {
			group.Go(func() {
				w.adds(`{"type":"message","message":{"role":"user","content":"appended"}}`)
			})
		}
		group.Wait()
		content := w.content()
		require.True(t, strings.HasPrefix(content, plainFile))
		require.Equal(t, there != "", strings.Contains(content, `"appended"`))
		won := 0
		for n, outcome := range outcomes {
			has := strings.Contains(content, fmt.Sprintf(`"id":"copied%d"`, n))
			require.Equal(t, errs[n] == nil, has, "%v: %v", outcome, errs[n])
			if !has {
				require.ErrorIs(t, errs[n], ErrOther)
			} else {
				won++
			}
		}
		require.LessOrEqual(t, won, 1)
	}
}

// TestImportWaits: a lock that another import holds for longer than a write may wait is waited for.
func TestImportWaits(t *testing.T) {
	files := memory.New()
	w := startWriting(t, files, plainFile, Options{})
	unlock, err := files.Lock(t.Context(), plainName)
	require.NoError(t, err)
	freed := make(chan error, 1)
	time.AfterFunc(storage.LockLimit+storage.LockLimit/5, func() { freed <- unlock() })
	outcome, err := w.Import(t.Context(), plainName, copyOf(plainFile+importMore))
	require.NoError(t, errors.Join(err, <-freed))
	require.Equal(t, Grown, outcome)
}
