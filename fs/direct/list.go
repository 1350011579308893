package direct

import (
	"context"
	iofs "io/fs"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// Name is a name in a directory.
type Name struct {
	Name string
	Type iofs.FileMode // type bits only
}

// listSize is how many bytes of a listing one request asks for, as the kernel does.
const listSize = 64 << 10

// List returns the names in a directory, in the order in which the file system has them, without "." and "..".
func (n *Node) List(ctx context.Context) (names []Name, err error) {
	if n.attr.Mode&syscall.S_IFMT != syscall.S_IFDIR {
		return nil, syscall.ENOTDIR
	}
	raw := n.fs.raw
	in := &fuse.OpenIn{InHeader: n.fs.header(n.id), Flags: syscall.O_RDONLY}
	var opened fuse.OpenOut
	err = n.fs.ask(ctx, func(gone <-chan struct{}) fuse.Status { return raw.OpenDir(gone, in, &opened) })
	if err != nil {
		return nil, err
	}
	defer raw.ReleaseDir(&fuse.ReleaseIn{InHeader: in.InHeader, Fh: opened.Fh})
	buf := make([]byte, listSize)
	for offset := uint64(0); ; {
		read := &fuse.ReadIn{InHeader: in.InHeader, Fh: opened.Fh, Offset: offset, Size: listSize}
		out := fuse.NewDirEntryList(buf, offset)
		err := n.fs.ask(ctx, func(gone <-chan struct{}) fuse.Status { return raw.ReadDir(gone, read, out) })
		if err != nil {
			return nil, err
		}
		items, err := fuse.ParseDirEntries(out.Bytes())
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return names, ctx.Err()
		}
		for _, it := range items {
			offset = it.Off
			if it.Name != "." && it.Name != ".." {
				names = append(names, Name{it.Name, typeOf(it.Mode)})
			}
		}
	}
}
