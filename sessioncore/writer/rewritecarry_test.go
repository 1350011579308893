package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/childtest"
	"sessionfs/sessioncore/internal/clienttest"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/storagetest"
)

// headerWithoutSlot is a session whose title stands in the header, so that each new one writes the file anew.
const headerWithoutSlot = plainFile

// childStrayWriter FILE LINES HOLD: appends lines without any lock, one every 5 ms: each through a descriptor of its
// own, or, with HOLD, 10 through one.
func childStrayWriter(args []string) error {
	var lines, hold int
	if _, err := fmt.Sscan(args[1]+" "+args[2], &lines, &hold); err != nil {
		return err
	}
	fmt.Println("ready")
	var f *os.File
	for i := range lines {
		if i%hold == 0 {
			var err error
			if f, err = os.OpenFile(args[0], os.O_WRONLY|os.O_APPEND, 0); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(f, `{"type":"custom","customType":"stray","id":"stray-%d","parentId":null,"timestamp":"%s"}`+"\n", i, plainNow); err != nil {
			return err
		}
		if i%hold == hold-1 {
			if err := f.Close(); err != nil {
				return err
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// TestRewriteKeepsStrayLines: a program without the lock appends while the file is rewritten again and again; none of
// its lines is lost or duplicated.
func TestRewriteKeepsStrayLines(t *testing.T) {
	for name, hold := range map[string]int{"opened for each line": 1, "opened for ten lines": 10} {
		t.Run(name, func(t *testing.T) {
			lines := 1500
			if testing.Short() {
				lines = 300
			}
			files := dirtest.New(t)
			w := startWriting(t, files, headerWithoutSlot, Options{})
			_, end := childtest.Start(t, "stray", dirtest.Path(files, plainName), fmt.Sprint(lines), fmt.Sprint(hold))
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
			_, end := clienttest.Imitation{Files: []string{dirtest.Path(a.Sessions, "p/s.jsonl")}}.Start(t)
			return end
		},
	} {
		var end func()
		err := w.change(context.Background(), s, func(c *change) error {
			return c.replace(func(out io.Writer) error {
				end = come()
				_, err := io.WriteString(out, "another file")
				return err
			}, true)
		})
		require.ErrorIs(t, err, sessioncore.ErrBusy, what)
		require.Equal(t, before, fileContent(t, a.Sessions, "p/s.jsonl"), what)
		end()
	}
	require.NoError(t, w.SetTitle(context.Background(), s, "free again"))
}
