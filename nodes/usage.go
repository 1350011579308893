package nodes

import (
	"context"
	"errors"
	"io/fs"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// makeUsage makes usage.json: what the session and its current branch cost in tokens and money. It also depends on the
// session that this one was forked from, as far as the caller may read that.
func makeUsage(d *SessionDir) fusefs.InodeEmbedder {
	f := generated(atLeaf(d.renderUsage), nil)(d).(*GeneratedFile)
	f.besides = func(ctx context.Context) (storage.Token, error) {
		parent, err := d.parent(ctx)
		if err != nil {
			return storage.Token{}, unlessNone(err)
		}
		st, err := parent.Session.Probe(ctx)
		return st.Token, unlessNone(err)
	}
	return f
}

func (d *SessionDir) renderUsage(ctx context.Context, snap *sessioncore.Snapshot, leaf sessioncore.Entry) (*document.Document, error) {
	parent, err := d.usageParent(ctx)
	if err != nil {
		return nil, err
	}
	if parent != nil {
		defer parent.Release()
	}
	return report.Usage(ctx, snap, leaf, parent)
}

// usageParent returns the session that parent leads to; nil where there is no such link.
func (d *SessionDir) usageParent(ctx context.Context) (*sessioncore.Snapshot, error) {
	parent, err := d.parent(ctx)
	if err != nil {
		return nil, unlessNone(err)
	}
	snap, err := parent.Session.Acquire(ctx)
	return snap, unlessNone(err)
}

// unlessNone returns nil for an error that means that there is no parent, or none for the caller.
func unlessNone(err error) error {
	if errors.Is(err, sessioncore.ErrNotFound) || errors.Is(err, sessioncore.ErrNotSession) || errors.Is(err, fs.ErrPermission) || storage.IsMissing(err) {
		return nil
	}
	return err
}
