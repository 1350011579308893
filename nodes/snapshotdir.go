package nodes

import (
	"context"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// aboutSessions is the base of the directories that show something of one session, or of all.
type aboutSessions struct {
	directory
	session *sessioncore.Session // nil for all
}

func newAboutSessions(view *View, session *sessioncore.Session) aboutSessions {
	return aboutSessions{newDirectory(view), session}
}

// stat returns the state of the session file, or of the directory of all.
func (d *aboutSessions) stat(ctx context.Context) (storage.Stat, error) {
	if d.session != nil {
		return d.session.Probe(ctx)
	}
	return d.view.Sessions.Storage().Stat("")
}

func (d *aboutSessions) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := d.stat(ctx)
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	return nil
}

// member is the session among those in which parents and children are looked for.
func (d *aboutSessions) member() listing.Member {
	return listing.Member{Listing: d.view.Listing, Session: d.session}
}

// snapshotDir is the base of the directories that show a part of a session: their names are found in a snapshot.
type snapshotDir struct{ aboutSessions }

// part is the base of a directory that shows a part of the same session.
func (d *aboutSessions) part() snapshotDir { return snapshotDir{newAboutSessions(d.view, d.session)} }

func (d *snapshotDir) acquire(ctx context.Context) (*sessioncore.Snapshot, error) {
	return d.session.Acquire(ctx)
}
