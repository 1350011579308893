package fs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage/dir"
)

// Ways to show a directory as a server of several machines does. O_APPEND does not get there: whoever appends writes where
// its kernel believes the end of the file to be.
const (
	remembers = "remembers" // the kernel remembers what it knows of files for an hour
	delays    = "delays"    // the kernel keeps what is written until the file is closed
	slow      = "slow"      // each read takes its time, and the kernel keeps nothing
	overlaps  = "overlaps"  // another machine appends at the same place while a session is appended to
)

func sharedLoopback(from, how string, options *fusefs.Options) (fusefs.InodeEmbedder, error) {
	embedder, err := fusefs.NewLoopbackRoot(from)
	if err != nil {
		return nil, err
	}
	root := embedder.(*fusefs.LoopbackNode)
	if how != "" {
		options.DisabledCapabilities = fuse.CAP_PASSTHROUGH // the kernel would have the files of the directory itself
	}
	hour := time.Hour
	switch how {
	case remembers:
		options.AttrTimeout = &hour
		return &remembered{root}, nil
	case delays:
		options.ExtraCapabilities |= fuse.CAP_WRITEBACK_CACHE
	case slow:
		return &slowDisk{root}, nil
	case overlaps:
		options.AttrTimeout = &hour
		return &overlapped{root, &otherMachine{}}, nil
	}
	return root, nil
}

// remembered is a directory in which the kernel remembers which session is behind a name too: it asks again for nothing.
type remembered struct{ *fusefs.LoopbackNode }

var (
	_ = (fusefs.NodeLookuper)((*remembered)(nil))
	_ = (fusefs.NodeWrapChilder)((*remembered)(nil))
)

func (n *remembered) WrapChild(_ context.Context, ops fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &remembered{ops.(*fusefs.LoopbackNode)}
}

func (n *remembered) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	child, errno := n.LoopbackNode.Lookup(ctx, name, out)
	if errno == 0 && strings.HasSuffix(name, ".jsonl") {
		out.SetEntryTimeout(time.Hour)
	}
	return child, errno
}

// slowDisk is a directory whose files are read slowly.
type slowDisk struct{ *fusefs.LoopbackNode }

var (
	_ = (fusefs.NodeOpener)((*slowDisk)(nil))
	_ = (fusefs.NodeWrapChilder)((*slowDisk)(nil))
)

func (n *slowDisk) WrapChild(_ context.Context, ops fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &slowDisk{ops.(*fusefs.LoopbackNode)}
}

func (n *slowDisk) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	f, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &slowFile{f.(*fusefs.LoopbackFile)}, fuse.FOPEN_DIRECT_IO, 0
}

type slowFile struct{ *fusefs.LoopbackFile }

var _ = (fusefs.FileReader)((*slowFile)(nil))

func (f *slowFile) Read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	time.Sleep(100 * time.Millisecond)
	return f.LoopbackFile.Read(ctx, buf, off)
}

// otherMachine appends to the same file while we do, every second time.
type otherMachine struct {
	mu     sync.Mutex // guards writes
	writes int
}

type overlapped struct {
	*fusefs.LoopbackNode
	other *otherMachine
}

var (
	_ = (fusefs.NodeWriter)((*overlapped)(nil))
	_ = (fusefs.NodeWrapChilder)((*overlapped)(nil))
)

func (n *overlapped) WrapChild(_ context.Context, ops fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &overlapped{ops.(*fusefs.LoopbackNode), n.other}
}

func (n *overlapped) Write(ctx context.Context, f fusefs.FileHandle, data []byte, off int64) (uint32, syscall.Errno) {
	path := filepath.Join(n.RootData.Path, n.Path(nil))
	o := n.other
	o.mu.Lock()
	defer o.mu.Unlock()
	isSession := strings.HasSuffix(path, ".jsonl") && bytes.HasPrefix(data, []byte("{"))
	if isSession {
		o.writes++
	}
	writes := o.writes
	theirs := func(length int) {
		line := fmt.Sprintf(`{"type":"custom","id":"%s","parentId":"e3","timestamp":"2026-02-16T10:20:30.000Z","customType":"theirs","data":"`, entryID(1<<24+writes))
		line += strings.Repeat("x", max(0, length-len(line)-3)) + `"}` + "\n"
		if file, err := os.OpenFile(path, os.O_WRONLY, 0); err == nil {
			_, _ = file.WriteAt([]byte(line), off)
			_ = file.Close()
		}
	}
	if isSession && writes%8 == 1 {
		theirs(len(data) + 100) // ours is written over theirs
	}
	written, errno := f.(fusefs.FileWriter).Write(ctx, data, off)
	switch {
	case !isSession:
	case writes%8 == 3:
		theirs(len(data) + 200)
	case writes%8 == 5:
		theirs(len(data))
	case writes%8 == 7:
		theirs(0)
	}
	return written, errno
}

// lines returns the texts of the user's messages in a session file, in whole lines, and how many lines are none.
func (a agent) lines(name string) (texts map[string]int, torn int) {
	texts = map[string]int{}
	for line := range strings.SplitSeq(strings.TrimSuffix(a.raw(name), "\n"), "\n") {
		var e struct {
			Message struct {
				Content string `json:"content"`
			} `json:"message"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			torn++
		} else if e.Message.Content != "" {
			texts[e.Message.Content]++
		}
	}
	return texts, torn
}

// TestSharedOverlap: whatever another machine writes at the place of an append, what was acknowledged is there once, and
// each line under the one before it.
func TestSharedOverlap(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), strings.Join(writtenEntries, ""))
	m := mountForTest(t, newLoopbackAs(t, a.dir, t.TempDir(), overlaps).dir)
	var want []string
	for n := range 24 {
		var text strings.Builder
		for line := range 1 + n%3 {
			want = append(want, fmt.Sprintf("write %d, line %d", n, line))
			text.WriteString(message(want[len(want)-1]) + "\n")
		}
		require.NoError(t, put(m.session("s", "append"), text.String()))
		branch, err := os.ReadFile(m.session("s", "branches/current/entries.jsonl"))
		require.NoError(t, err)
		for line := range 1 + n%3 {
			require.Contains(t, string(branch), fmt.Sprintf(`"write %d, line %d"`, n, line), "lines of one write are one branch")
		}
	}
	texts, torn := a.lines("s")
	for _, text := range want {
		require.Equal(t, 1, texts[text], text)
	}
	require.NotZero(t, torn, "nothing was written at the same place")
	require.Contains(t, m.logged(), "another machine wrote to the same place")
}

// TestSharedMounts: two daemons write to one session, each through a file system of its own whose kernel remembers what
// it knew of the file.
func TestSharedMounts(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), strings.Join(writtenEntries, ""))
	var mounts []*mount
	for range 2 {
		mounts = append(mounts, mountForTest(t, newLoopbackAs(t, a.dir, t.TempDir(), remembers).dir))
	}
	const each = 60
	var wg sync.WaitGroup
	for i, m := range mounts {
		wg.Go(func() {
			for n := range each {
				for {
					err := put(m.session("s", "append"), message(fmt.Sprintf("mount %d, line %d", i, n))+"\n")
					if err == syscall.EBUSY {
						continue // the other one had the lock all the time
					}
					if err != nil {
						t.Errorf("mount %d, line %d: %v", i, n, err)
					}
					break
				}
			}
		})
	}
	wg.Wait()
	texts, torn := a.lines("s")
	require.Zero(t, torn)
	for i := range mounts {
		for n := range each {
			require.Equal(t, 1, texts[fmt.Sprintf("mount %d, line %d", i, n)], "mount %d, line %d", i, n)
		}
	}
	parents := map[string]int{}
	for _, r := range records(t, a.raw("s")) {
		parents[r.parent()]++
	}
	for parent, children := range parents {
		if parent != "" && parent != "e0" {
			require.Equal(t, 1, children, "each write was made on what the other one had written before it")
		}
	}

	a.add("s", entry(9, "seen", "e3", "another machine's"))
	require.Eventually(t, func() bool {
		_, err := os.Stat(mounts[0].session("s", "entries/seen.json"))
		return err == nil
	}, patience, 10*time.Millisecond)
}

// TestSharedLockIsSeen: who looks at a lock from another machine sees whose it is.
func TestSharedLockIsSeen(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"))
	s, err := dir.Open(filepath.Join(newLoopbackAs(t, a.dir, t.TempDir(), delays).dir, "sessions"))
	require.NoError(t, err)
	defer s.Close()
	require.True(t, s.Shared())
	unlock, err := s.Lock(t.Context(), "p/s.jsonl")
	require.NoError(t, err)
	text, err := os.ReadFile(a.path(".s.jsonl.lock"))
	require.NoError(t, err)
	require.Contains(t, string(text), fmt.Sprint(os.Getpid(), ":"))
	require.NoError(t, unlock())
}
