package sessioncore

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
	"golang.org/x/sys/unix"
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

// TestRewriteKeepsStrayLines: a program that knows of no lock appends while the file is written anew again and again;
// none of its lines is lost, and none comes twice.
func TestRewriteKeepsStrayLines(t *testing.T) {
	for name, hold := range map[string]int{"opened for each line": 1, "opened for ten lines": 10} {
		t.Run(name, func(t *testing.T) {
			lines := 1500
			if testing.Short() {
				lines = 300
			}
			storage := newFileStorage(t)
			w := startWriting(t, storage, headerWithoutSlot, WriteOptions{})
			_, end := startChild(t, "stray", onDisk(storage, plainName), fmt.Sprint(lines), fmt.Sprint(hold))
			rewrites := 0
			for i := 0; !strings.Contains(w.content(), fmt.Sprintf(`"stray-%d"`, lines-1)); i++ {
				err := w.SetTitle(context.Background(), w.session, fmt.Sprintf("title %d", i))
				switch {
				case err == nil:
					rewrites++
				case !errors.Is(err, ErrBusy) && !errors.Is(err, ErrStale):
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
			require.Empty(t, leftovers(t, storage.Path()))
		})
	}
}

// TestReplaceCarriesOver: what is appended to the old file right before and after it loses its name is in the new one;
// also what a program writes through a descriptor that it had by then.
func TestReplaceCarriesOver(t *testing.T) {
	s := newFileStorage(t)
	writeDisk(t, s, "x.jsonl", "old\n")
	var late *os.File
	done := make(chan error, 1)
	sys := kernel
	sys.renameat2 = func(fromDir int, from string, toDir int, to string, flags uint) error {
		stray, err := os.OpenFile(onDisk(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		_, err = stray.WriteString("before\n")
		require.NoError(t, err)
		require.NoError(t, stray.Close())
		late, err = os.OpenFile(onDisk(s, "x.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
		require.NoError(t, err)
		go func() {
			time.Sleep(carryLimit / 10)
			_, err := late.WriteString("after\nin two")
			time.Sleep(carryLimit / 10)
			_, err2 := late.WriteString(" writes\ntorn")
			done <- errors.Join(err, err2, late.Close())
		}()
		return unix.Renameat2(fromDir, from, toDir, to, flags)
	}
	st, err := s.replaceIf(sys, "x.jsonl", stat(t, s, "x.jsonl").Token, content("new\n"), func() error { return nil })
	require.NoError(t, err)
	require.NoError(t, <-done)
	require.Equal(t, "new\nbefore\nafter\nin two writes\ntorn", readDisk(t, s, "x.jsonl"))
	require.Equal(t, stat(t, s, "x.jsonl"), st, "of the file with all of that")
	require.Empty(t, leftovers(t, s.Path()))

	before := readDisk(t, s, "x.jsonl")
	_, err = s.ReplaceIf("x.jsonl", st.Token, content("no\n"), func() error { return ErrBusy })
	require.ErrorIs(t, err, ErrBusy)
	require.Equal(t, before, readDisk(t, s, "x.jsonl"))
	require.Empty(t, leftovers(t, s.Path()))
}

// TestRewriteLooksForClientsAgain: a client that comes while the file is written anew ends that.
func TestRewriteLooksForClientsAgain(t *testing.T) {
	a := newAgentDir(t)
	tty, id := terminal(t)
	store := NewStore(a.sessions)
	t.Cleanup(store.Close)
	w, s := NewWriter(store, WriteOptions{Clients: a.clients}), store.Session("p/s.jsonl")
	before := readDisk(t, a.sessions, "p/s.jsonl")
	for what, come := range map[string]func() func(){
		"at its terminal": func() func() {
			_, end := imitation{stdin: tty, control: tty, files: []string{a.database("agent.db")}}.start(t)
			a.crumb(id, "p/s.jsonl")
			return end
		},
		"with a descriptor": func() func() {
			_, end := imitation{files: []string{onDisk(a.sessions, "p/s.jsonl")}}.start(t)
			return end
		},
	} {
		var end func()
		err := w.change(context.Background(), s, func(c *change) error {
			_, err := c.replace(func(out io.Writer) error {
				end = come()
				_, err := io.WriteString(out, "another file")
				return err
			})
			return err
		})
		require.ErrorIs(t, err, ErrBusy, what)
		require.Equal(t, before, readDisk(t, a.sessions, "p/s.jsonl"), what)
		end()
	}
	require.NoError(t, w.SetTitle(context.Background(), s, "free again"))
}
