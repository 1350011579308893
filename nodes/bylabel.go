package nodes

import (
	"context"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// ByLabelDir is by-label/: a link to the entry that each label in effect is on, in the order in which the
// labels were set.
type ByLabelDir struct{ snapshotDir }

func makeByLabel(d *SessionDir) fusefs.InodeEmbedder { return &ByLabelDir{d.part()} }

// find finds a label.
func (d *ByLabelDir) find(_ context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return d.link(kindLabelLink, nil, inSession(d.session, labelledEntry(it.name))), nil
}

// labelledEntry returns a function that finds the entry with a label.
func labelledEntry(name string) func(*sessioncore.Snapshot) (string, time.Time, error) {
	return func(snap *sessioncore.Snapshot) (string, time.Time, error) {
		l, err := snap.FindLabelName(name)
		if err != nil {
			return "", time.Time{}, err
		}
		return "../" + layout.EntryPath(snap, l.Entry), l.Time, nil
	}
}

func (d *ByLabelDir) list(_ context.Context, snap *sessioncore.Snapshot) ([]item, error) {
	labels := snap.ByLabel()
	items := make([]item, len(labels))
	for i, l := range labels {
		items[i] = d.newItem(kindLabelLink, l.Name, syscall.S_IFLNK)
	}
	return items, nil
}
