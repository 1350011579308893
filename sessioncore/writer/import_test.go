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

func copyOf(text string) Copy {
	return Copy{ReaderAt: strings.NewReader(text), Size: int64(len(text)), Modified: time.UnixMilli(1_700_000_000_123)}
}

// startImport returns a writer over a directory, in which a file may be.
func startImport(t *testing.T, content string) (w *writing, top string) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	return startWriting(t, sessiontest.OpenDir(t, top), content, Options{Root: top}), top
}

// TestImport: what is there is added to if a copy begins with it, but for the title slot, and never changed otherwise.
func TestImport(t *testing.T) {
	early, late := string(titleSlot("early", titleByUser, plainNow)), string(titleSlot("late", titleByUser, "2026-03-02T00:00:00.000Z"))
	large := plainFile + strings.Repeat(importMore, (512<<10)/len(importMore))
	for _, c := range []struct {
		name, there, copied string
		artifact            bool
		want                string // what is there then
		outcome             Outcome
		err                 error
	}{
		{"new", "", plainFile, false, plainFile, Added, nil},
		{"no newline at its end", "", strings.TrimSuffix(plainFile, "\n"), false, strings.TrimSuffix(plainFile, "\n"), Added, nil},
		{"the same", plainFile, plainFile, false, plainFile, Unchanged, nil},
		{"less", plainFile, plainHeader + plainUser, false, plainFile, Unchanged, nil},
		{"more", plainFile, plainFile + importMore, false, plainFile + importMore, Grown, nil},
		{"much more", plainFile, large, false, large, Grown, nil},
		{"more than a torn one", plainFile[:len(plainFile)-30], plainFile, false, plainFile, Grown, nil},
		{"another one", plainFile, strings.Replace(plainFile, "two", "six", 1) + importMore, false, plainFile, Unchanged, ErrOther},
		{"one that goes on otherwise", plainFile + importMore, plainFile + strings.Replace(importMore, "three", "seven", 1), false,
			plainFile + importMore, Unchanged, ErrOther},
		{"another title", early + plainFile, late + plainFile, false, early + plainFile, Unchanged, nil},
		{"a later title, and more", early + plainFile, late + plainFile + importMore, false, late + plainFile + importMore, Grown, nil},
		{"an earlier title, and more", late + plainFile, early + plainFile + importMore, false, early + plainFile + importMore, Grown, nil},
		{"a title that it had not", plainFile, late + plainFile, false, plainFile, Unchanged, ErrOther},
		{"an artifact", "", "anything", true, "anything", Added, nil},
		{"the same artifact", "anything", "anything", true, "anything", Unchanged, nil},
		{"more of an artifact", "a log", "a log that goes on", true, "a log", Unchanged, ErrOther},
		{"less of an artifact", "a log that goes on", "a log", true, "a log that goes on", Unchanged, ErrOther},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, top := startImport(t, c.there)
			file := copyOf(c.copied)
			file.Artifact = c.artifact
			for _, outcome := range []Outcome{c.outcome, Unchanged} {
				seen, err := w.Examine(t.Context(), plainName, file)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, outcome, seen)
				got, err := w.Import(t.Context(), plainName, file)
				require.ErrorIs(t, err, c.err)
				require.Equal(t, outcome, got)
				require.Equal(t, map[string]string{filepath.Join(top, plainName): c.want}, snapshotOf(t, top))
			}
			info, err := os.Stat(filepath.Join(top, plainName))
			require.NoError(t, err)
			require.Equal(t, c.outcome == Added, info.ModTime().Equal(file.Modified))
			require.Equal(t, os.FileMode(storage.FileMode), info.Mode())
		})
	}
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
