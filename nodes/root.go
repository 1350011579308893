package nodes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// RootDir is the root of a mount: the directories of SOURCE that are shown, and what is generated from them.
type RootDir struct {
	directory
	names  fixedNames[*View]
	source storage.Files
	// Closed lets nobody in but the user who mounts, and root. The kernel knows only everybody (-o allow_root).
	Closed bool
}

// NewRootDir returns the root of a mount of source with those names, in order.
func NewRootDir(view *View, source storage.Files, names ...Name) *RootDir {
	view.crowd.init(int(min(maxNodes, view.Memory.Size()/nodeShare)), atRest)
	return &RootDir{directory: newDirectory(view), names: names, source: source}
}

func (d *RootDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return d.names.find(ctx, d.view, it)
}

func (d *RootDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	return d.names.list(ctx, d.view, &d.node), nil
}

func (d *RootDir) fillAttr(_ context.Context, out *fuse.Attr) error {
	st, err := d.source.Stat("")
	if err != nil {
		return err
	}
	d.fillDir(out, st)
	if d.Closed {
		out.Mode &^= 0o077
		out.Uid, out.Gid = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return nil
}

// View holds what all nodes of a mount share. Its exported fields do not change after the mount.
type View struct {
	// Log gets the reasons for refusals and the errors of the packages below.
	Log *slog.Logger
	// Blobs are those in SOURCE/blobs.
	Blobs document.Blobs
	// Writer writes to the sessions.
	Writer *writer.Writer
	// Listing finds sessions.
	Listing *listing.Listing
	// Sessions are those that Search finds something in.
	Sessions *sessioncore.Store
	// Search searches them.
	Search *search.Searcher
	// ReadOnly refuses all writes (-o ro).
	ReadOnly bool
	// Redacted says that the sessions are shown with secrets masked (-o redact).
	Redacted bool
	// BlobRefs leaves blob references in context.json as they are (-o context-blobs=ref).
	BlobRefs bool
	// Memory bounds what is held for open files; nil has no limits.
	Memory *budget.Budget
	// Archive shows the archived sessions; nil where there are none to show.
	Archive *View
	// Frozen is the reason why nothing that is shown can be changed (ErrArchived, ErrForeign), nil if it can be.
	Frozen error
	// Family are the listings in the order in which a parent is looked for.
	Family listing.Family
	// Agents are those whose sessions are shown, each in a directory of its own; none in a mount of one alone.
	Agents []Agent
	// Root is the View of the mount's root, nil in that one.
	Root *View
	// Prices are those of answers without a cost (-o prices). They are set where Root is not.
	Prices report.Prices
	// Statfs returns the numbers of the backing file system. It is set where Root is not.
	Statfs func(out *fuse.StatfsOut) error

	refusals refusals
	crowd    crowd
}

// Archived reports whether v shows the archived sessions.
func (v *View) Archived() bool { return errors.Is(v.Frozen, ErrArchived) }

// whole returns the View of the mount's root.
func (v *View) whole() *View { return cmp.Or(v.Root, v) }

// contextBlobs returns the blobs with which contexts resolve references, or nil.
func (v *View) contextBlobs() document.Blobs {
	if v.BlobRefs {
		return nil
	}
	return v.Blobs
}

// blobsState returns a token that changes when a blob is added or removed, nil if that cannot be told.
func (v *View) blobsState() *storage.Token {
	store, ok := v.Blobs.(interface{ State() (storage.Token, error) })
	if !ok {
		return nil
	}
	state, err := store.State()
	if err != nil && !storage.IsMissing(err) {
		return nil
	}
	return &state
}
