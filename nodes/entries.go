package nodes

import (
	"context"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// EntriesDir is entries/: a file for each entry, listed in file order.
type EntriesDir struct{ snapshotDir }

func makeEntries(d *SessionDir) fusefs.InodeEmbedder { return &EntriesDir{d.part()} }

// find uses the entry number of a listed item if that entry still has the name.
func (d *EntriesDir) find(_ context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	name, ok := strings.CutSuffix(it.name, layout.EntrySuffix)
	if !ok {
		return child{}, syscall.ENOENT
	}
	e := sessioncore.Entry(it.number)
	if it.number == unnumbered || int(e) >= snap.Len() || snap.Name(e) != name {
		var err error
		if e, err = snap.FindName(name); err != nil {
			return child{}, err
		}
	}
	state, err := snap.EntryState(e)
	if err != nil {
		return child{}, err
	}
	fillEntry(snap, e, state.Size, uint64(state.Sum), out)
	// Another content has another identity for the kernel.
	content := uint64(state.Size)<<32 ^ uint64(state.Sum)
	return child{kind: kindEntry, mode: syscall.S_IFREG, content: content, make: func() fusefs.InodeEmbedder {
		return &EntryFile{node: node{view: d.view}, session: d.session, name: name, state: state}
	}}, nil
}

func (d *EntriesDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	items := make([]item, snap.Len())
	for e := range items {
		items[e] = d.newItem(kindEntry, snap.Name(sessioncore.Entry(e))+layout.EntrySuffix, syscall.S_IFREG)
		items[e].number = int32(e)
	}
	return items, nil
}
