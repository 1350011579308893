package nodes

import (
	"context"
	"fmt"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
)

// TestCopiedInIsRemembered: a file counts as copied in while its name stands for it, and is new until something is added to
// one that was there.
func TestCopiedInIsRemembered(t *testing.T) {
	var s copiedIn
	ctx := context.Background()
	file := func(inode uint64, size int64) storage.Token {
		return storage.Token{Device: 1, Inode: inode, Size: size}
	}
	require.False(t, s.isMade("p/x.jsonl", file(1, 10)))
	s.noteMade(ctx, "p/x.jsonl", made{kind: layout.CopiedSession, token: file(1, 10)})
	require.True(t, s.isMade("p/x.jsonl", file(1, 20)), "it may have grown")
	require.False(t, s.isMade("p/x.jsonl", file(2, 10)), "another file")
	require.False(t, s.isMade("p/y.jsonl", file(1, 10)))

	require.True(t, s.beginGrowing("p/x.jsonl", file(1, 10)))
	require.True(t, s.isMade("p/x.jsonl", file(3, 30)), "it is replaced to add to it")
	s.endGrowing("p/x.jsonl")
	require.False(t, s.isMade("p/x.jsonl", file(3, 30)))
	require.True(t, s.isMade("p/x.jsonl", file(1, 30)))

	s.noteMade(ctx, "p/old.jsonl", made{kind: layout.CopiedSession, token: file(4, 1), grown: true})
	require.False(t, s.isMade("p/old.jsonl", file(4, 1)))
	require.False(t, s.beginGrowing("p/old.jsonl", file(4, 1)))
	_, ok := s.findMade("p/old.jsonl", file(4, 1))
	require.True(t, ok)
	s.forgetMade("p/x.jsonl")
	require.False(t, s.isMade("p/x.jsonl", file(1, 10)))
	require.False(t, s.beginGrowing("p/x.jsonl", file(1, 10)))
	s.endGrowing("p/x.jsonl")
	require.False(t, s.isMade("p/x.jsonl", file(1, 10)))
}

// TestCopiedInIsBounded: of more files than are remembered the oldest are forgotten, also where names come and go.
func TestCopiedInIsBounded(t *testing.T) {
	var s copiedIn
	for n := range 3 * maxCopiedIn {
		name := fmt.Sprintf("p/%d.jsonl", n)
		s.noteMade(context.Background(), name, made{token: storage.Token{Inode: uint64(n)}})
		if n%2 == 0 {
			s.forgetMade(name)
		}
	}
	require.LessOrEqual(t, len(s.made), maxCopiedIn)
	require.LessOrEqual(t, len(s.order), 2*maxCopiedIn)
	last := 3*maxCopiedIn - 1
	require.True(t, s.isMade(fmt.Sprintf("p/%d.jsonl", last), storage.Token{Inode: uint64(last)}))
	require.False(t, s.isMade("p/1.jsonl", storage.Token{Inode: 1}))
}

// TestManyCopiesAtATime: there is room for so many copies, one that nobody has open gives way, and no other user takes more
// than half.
func TestManyCopiesAtATime(t *testing.T) {
	var s copies
	for range maxCopies / 2 {
		_, err := s.add(&copying{user: 7}, 7, true)
		require.NoError(t, err)
	}
	_, err := s.add(&copying{user: 7}, 7, true)
	require.ErrorIs(t, err, errManyCopies)
	var open []*copying
	for n := range maxCopies / 2 {
		c := &copying{}
		_, err := s.add(c, 0, false)
		require.NoError(t, err)
		require.Nil(t, s.wait(fmt.Sprint(n), c))
		open = append(open, c)
	}
	_, err = s.add(&copying{}, 0, false)
	require.ErrorIs(t, err, errManyCopies)
	open[3].idle.Store(20)
	open[5].idle.Store(10)
	dropped, err := s.add(&copying{}, 0, false)
	require.NoError(t, err)
	require.Same(t, open[5], dropped)
	require.Nil(t, s.find("5"))
	require.Same(t, open[3], s.find("3"))
	require.Same(t, open[3], s.wait("3", open[6]), "two have the same name: the first gives way")
	require.Len(t, s.takeAll(), maxCopies)
	require.Empty(t, s.takeAll())
}

// TestThreadOf: only requests of the kernel have a thread.
func TestThreadOf(t *testing.T) {
	require.Zero(t, threadOf(context.Background()))
	require.Equal(t, uint32(42), threadOf(fuse.NewContext(context.Background(), &fuse.Caller{Pid: 42})))
	require.Equal(t, closes, whoCloses(context.Background()))
	gone, cancel := context.WithCancel(fuse.NewContext(context.Background(), &fuse.Caller{Pid: 1 << 30}))
	require.Equal(t, closes, whoCloses(gone), "of another user, for example")
	cancel()
	require.Equal(t, killed, whoCloses(gone))
	require.False(t, isMakingDir(fuse.NewContext(context.Background(), &fuse.Caller{Pid: 1 << 30})))
}
