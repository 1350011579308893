package fs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
)

// Ways to show a directory as a server of several machines does. O_APPEND does not get there: whoever appends writes where
// its kernel believes the end of the file to be.
const (
	remembers = "remembers" // the kernel remembers what it knows of files for an hour
	slow      = "slow"      // each read takes its time, and the kernel keeps nothing
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
	case slow:
		return &slowDisk{root}, nil
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
