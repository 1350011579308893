package kernel

import (
	"context"
	"syscall"
	"testing"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/sessioncore"
)

// slowDir reads a session for each call, and stops when the caller has a signal.
type slowDir struct{ longDir }

func (d *slowDir) Acquire(ctx context.Context) (*sessioncore.Snapshot, error) { return nil, ctx.Err() }

func (d *slowDir) Symlink(ctx context.Context, _, _ string) syscall.Errno {
	return nodes.Errno(ctx.Err())
}

func (d *slowDir) Remove(context.Context, string) syscall.Errno { return syscall.EPERM }

func (d *slowDir) Rename(ctx context.Context, _, _ string, _ uint32) syscall.Errno {
	return nodes.Errno(ctx.Err())
}

// TestSignalsInterruptNoLink: a program with a signal repeats a call that failed with EINTR. It must not find that its first
// call made or renamed the link.
func TestSignalsInterruptNoLink(t *testing.T) {
	dir := &slowDir{longDir{Directory: nodes.NewDirectory(&nodes.View{})}}
	root := &rootInode{dirInode{dir: dir}, New(nodes.NewRootDir(dir.View(), nil, nil))}
	served := fusefs.NewNodeFS(root, &fusefs.Options{})
	signal := make(chan struct{})
	close(signal)
	at := fuse.InHeader{NodeId: fuse.FUSE_ROOT_ID}
	require.Equal(t, fuse.OK, served.Symlink(signal, &at, "entries/e1.json", "new", &fuse.EntryOut{}))
	rename := fuse.RenameIn{InHeader: at, Newdir: fuse.FUSE_ROOT_ID}
	require.Equal(t, fuse.OK, served.Rename(signal, &rename, "new", "leaf"))
}
