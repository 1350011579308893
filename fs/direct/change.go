package direct

import (
	"context"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// ReplaceLink makes name in a directory a link to target, in the way of ln -sfn: it makes a link of a temporary name,
// which must not exist, and renames it.
func (n *Node) ReplaceLink(ctx context.Context, target, name, temporary string) error {
	header := n.fs.header(n.id)
	var out fuse.EntryOut
	err := n.fs.ask(ctx, func(gone <-chan struct{}) fuse.Status {
		return n.fs.raw.Symlink(gone, &header, target, temporary, &out)
	})
	if err != nil {
		return err
	}
	defer n.fs.raw.Forget(out.NodeId, 1)
	in := &fuse.RenameIn{InHeader: header, Newdir: n.id}
	err = n.fs.ask(ctx, func(gone <-chan struct{}) fuse.Status { return n.fs.raw.Rename(gone, in, temporary, name) })
	if err != nil {
		_ = n.fs.ask(ctx, func(gone <-chan struct{}) fuse.Status { return n.fs.raw.Unlink(gone, &header, temporary) })
	}
	return err
}
