package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/storagetest"
)

// oldFile is of version 1: no ids, a compaction that counts entries, a role of version 2, unreadable
// lines, a value over two lines, a torn tail.
const oldFile = `{"type":"session", "id":"old","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/w","provider":"p","n":1.0}` + "\n" +
	`{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}` + "\n" +
	"not JSON \xff\n" +
	`{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"hookMessage","content":"two", "n":1.50}}` + "\n" +
	"[1,2]\n" +
	`{"type":"compaction","summary":"s","firstKeptEntryIndex":1,"tokensBefore":5}` + "\n" +
	"{\"type\":\"message\",\n\"message\":{\"role\":\"user\",\"content\":\"three\"}}\n" +
	`{"type":"mess`

// shownEntries returns the texts of all entries as the mount shows them, in file order.
func shownEntries(t testing.TB, s *sessioncore.Snapshot) []string {
	out := []string{}
	for e := range sessioncore.Entry(s.Len()) {
		text, err := s.ShownText(e)
		require.NoError(t, err)
		out = append(out, string(text))
	}
	return out
}

// rewriting is a storage that notes the bytes of replacements, and calls beside before it ends to write one.
type rewriting struct {
	storage.Storage
	beside        func()
	copied, added bytes.Buffer // without the lock, and under it
	replacements  int
}

// Replace implements storage.Journal.
func (r *rewriting) Replace(name string, by storage.Replacement) (storage.Stat, error) {
	r.replacements++
	write := func(out io.Writer) error {
		defer r.beside()
		return by.Write(io.MultiWriter(out, &r.copied))
	}
	ready := func(more io.Writer) (storage.Token, error) {
		return by.Ready(io.MultiWriter(more, &r.added))
	}
	watched := storage.Replacement{
		Expect: by.Expect,
		Write:  write,
		Ready:  ready,
	}
	return r.Storage.Replace(name, watched)
}

// childLockedWriter FILE: appends three lines as a client does, under the lock of the file.
func childLockedWriter(args []string) error {
	files, err := dir.Open(filepath.Dir(args[0]))
	if err != nil {
		return err
	}
	name := filepath.Base(args[0])
	for i := range 3 {
		unlock, err := files.Lock(context.Background(), name)
		if err != nil {
			return err
		}
		_, err = files.Append(name, fmt.Appendf(nil,
			`{"type":"custom","customType":"other","id":"other-%d","parentId":null,"timestamp":"%s"}`+"\n", i, plainNow))
		if err = errors.Join(err, unlock()); err != nil {
			return err
		}
	}
	return childtest.SayReady()
}

// TestRewriteWithoutTheLock: a session is copied while the lock is free. What another process appends meanwhile, under
// the lock, is in the new file, and only that is written while the lock is held.
func TestRewriteWithoutTheLock(t *testing.T) {
	files := sessiontest.OpenDir(t, t.TempDir())
	watched := &rewriting{Storage: files, beside: func() {
		_, end := childtest.Start(t, "locked", filepath.Join(files.Path(), plainName))
		end() // fails if it could not take the lock
	}}
	putFile(t, files, plainName, plainFile)
	w := startWriting(t, watched, "", Options{})
	for i := range 3 {
		require.NoError(t, w.SetTitle(context.Background(), w.session, fmt.Sprintf("title %d", i)))
		require.Equal(t, i+1, watched.replacements, "once each")
		for n := range 3 {
			require.Equal(t, i+1, strings.Count(w.content(), fmt.Sprintf(`"other-%d"`, n)))
		}
	}
	require.Greater(t, watched.copied.Len(), 3*len(plainFile))
	require.Equal(t, 9, strings.Count(watched.added.String(), "\n"), "all that was written under the lock")
}

// childStrayWriter FILE LINES HOLD: appends LINES lines without any lock, one every 5 ms. It writes HOLD of
// them through a descriptor before it opens the file anew. Then it lives until its input ends.
func childStrayWriter(args []string) error {
	var lines, hold int
	_, err := fmt.Sscan(args[1]+" "+args[2], &lines, &hold)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	const format = `{"type":"custom","customType":"stray","id":"stray-%d","parentId":null,"timestamp":"%s"}` + "\n"
	var file *os.File
	for i := range lines {
		if i%hold == 0 {
			file, err = os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				return err
			}
		}
		_, err = fmt.Fprintf(file, format, i, plainNow)
		if err != nil {
			return err
		}
		if i%hold == hold-1 {
			err = file.Close()
			if err != nil {
				return err
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// TestRewriteKeepsStrayLines: a program without the lock appends while the file is rewritten again and again; none of
// its lines is lost or duplicated.
func TestRewriteKeepsStrayLines(t *testing.T) {
	for name, hold := range map[string]int{"opened for each line": 1, "opened for ten lines": 10} {
		t.Run(name, func(t *testing.T) {
			lines := 1500
			if testing.Short() || sessiontest.UnderRace { // which sees nothing of the other process
				lines = 300
			}
			files := sessiontest.OpenDir(t, t.TempDir())
			w := startWriting(t, files, plainFile, Options{})
			_, end := childtest.Start(t, "stray", filepath.Join(files.Path(), plainName), fmt.Sprint(lines), fmt.Sprint(hold))
			rewrites := 0
			for i := 0; !strings.Contains(w.content(), fmt.Sprintf(`"stray-%d"`, lines-1)); i++ {
				err := w.SetTitle(context.Background(), w.session, fmt.Sprintf("title %d", i))
				switch {
				case err == nil:
					rewrites++
				case !errors.Is(err, sessioncore.ErrBusy) && !errors.Is(err, storage.ErrStale):
					require.NoError(t, err)
				}
			}
			end()
			t.Logf("%d rewrites", rewrites)
			require.Positive(t, rewrites)
			content := w.content()
			for i := range lines {
				require.Equal(t, 1, strings.Count(content, fmt.Sprintf(`"stray-%d"`, i)), "line %d of %d", i, lines)
			}
			require.Empty(t, problemsOf(t, w.snapshot()))
			require.Empty(t, storagetest.Leftovers(t, files.Path()))
		})
	}
}

// TestRewriteLooksForClientsAgain: a rewrite is abandoned if a client opens the session meanwhile.
func TestRewriteLooksForClientsAgain(t *testing.T) {
	a, known := startAgent(t)
	tty, id := clienttest.Terminal(t)
	store := sessioncore.NewStore(a.Sessions)
	t.Cleanup(store.Close)
	w, s := New(store, Options{Journal: a.Sessions, Clients: known}), store.Session("p/s.jsonl")
	before := fileContent(t, a.Sessions, "p/s.jsonl")
	for what, come := range map[string]func() func(){
		"at its terminal": func() func() {
			_, end := clienttest.Imitation{Stdin: tty, Control: tty, Files: []string{a.Database("agent.db")}}.Start(t)
			a.Crumb(id, "p/s.jsonl")
			return end
		},
		"with a descriptor": func() func() {
			_, end := clienttest.Imitation{Files: []string{filepath.Join(a.Sessions.Path(), "p/s.jsonl")}}.Start(t)
			return end
		},
	} {
		var end func()
		err := w.change(context.Background(), s, func(c *change) error {
			return c.replace(func(out io.Writer) error {
				end = come()
				_, err := io.WriteString(out, "another file")
				return err
			}, copyGrowth)
		})
		require.ErrorIs(t, err, sessioncore.ErrBusy, what)
		require.Equal(t, before, fileContent(t, a.Sessions, "p/s.jsonl"), what)
		end()
	}
	require.NoError(t, w.SetTitle(context.Background(), s, "free again"))
}

// caseFiles are the sessions of testdata's stores and cases and of the conformance cases; not the huge ones.
func caseFiles(t *testing.T) []string {
	roots := []string{"../../testdata/cases", "../../testdata/demo", "../../testdata/operator", "../../testdata/pi", "../../testdata/xcsh"}
	for _, c := range sessiontest.Cases(t) {
		roots = append(roots, filepath.Join(c.Dir, "agent"))
	}
	var files []string
	for _, root := range roots {
		before := len(files)
		require.NoError(t, filepath.WalkDir(root, func(path string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".jsonl") {
				files = append(files, path)
			}
			return err
		}))
		require.Greater(t, len(files), before, root)
	}
	return slices.DeleteFunc(files, func(file string) bool {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Size() >= 1<<20
	})
}

// TestWriteToCases appends to, labels, moves and names every session that there is, and with that migrates what is old.
func TestWriteToCases(t *testing.T) {
	ctx := context.Background()
	sessions := 0
	for _, file := range caseFiles(t) {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if len(content) == 0 {
			continue // no session, and here no file
		}
		w := startMemory(t, string(content), Options{})
		before, err := w.session.Acquire(context.Background())
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession, file)
			continue
		}
		sessions++
		name := filepath.Base(file)
		shown := shownEntries(t, before)
		ids, err := w.append(customLine(before))
		require.NoError(t, err, name)
		if before.Version() >= sessioncore.CurrentVersion {
			require.True(t, strings.HasPrefix(w.content(), string(content)), name)
		}
		require.Equal(t, ids[0], w.leaf(), name)
		require.NoError(t, w.SetLabel(ctx, w.session, ids[0], "L"), name)
		require.NoError(t, w.SetTitle(ctx, w.session, "a title"), name)
		require.NoError(t, w.MoveLeaf(ctx, w.session, new(ids[0])), name)
		require.Equal(t, ids[0], w.leaf(), name)
		after := w.snapshot()
		require.GreaterOrEqual(t, after.Version(), sessioncore.CurrentVersion, name)
		require.Equal(t, shown, shownEntries(t, after)[:len(shown)], name)
		title, err := after.Title()
		require.NoError(t, err)
		require.Equal(t, "a title", title, name)
		before.Release()
	}
	require.Greater(t, sessions, 100)
}

// customLine returns an entry without references, which can be appended to any session of the dialect.
func customLine(s *sessioncore.Snapshot) string {
	if s.Dialect() == sessioncore.Operator {
		return `{"type":"custom_info","custom_type":"x"}`
	}
	return `{"type":"custom","customType":"x"}`
}
