package nodes

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"

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
	Directory
	names  fixedNames[*Directory]
	source storage.Files
	// Space returns the numbers of the file system behind the mount; nil if they are not known.
	Space func() (Space, error)
	// Closed lets nobody in but the user who mounts, and root. A door may know only everybody (-o allow_root).
	Closed bool
}

// Space says how much room a file system has, in blocks and in files.
type Space struct {
	BlockSize, FragmentSize uint32 // in bytes; blocks are counted in fragments
	Blocks, Free, Available uint64
	Files, FreeFiles        uint64
}

// NewRootDir returns the root of a mount of source with those names, in order.
func NewRootDir(view *View, source storage.Files, names ...Name) *RootDir {
	return &RootDir{Directory: NewDirectory(view), names: names, source: source}
}

// With returns a root that has one more name.
func (d *RootDir) With(more Name) *RootDir {
	to := NewRootDir(d.view, d.source, append(slices.Clone(d.names), more)...)
	slices.SortFunc(to.names, func(a, b Name) int { return strings.Compare(a.Name, b.Name) })
	to.Space = d.Space
	return to
}

// Find finds a fixed name.
func (d *RootDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	return d.names.find(ctx, &d.Directory, it)
}

// List lists the fixed names.
func (d *RootDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	return d.names.list(ctx, &d.Directory), nil
}

// Stat returns the attributes of SOURCE.
func (d *RootDir) Stat(context.Context) (Attr, error) {
	st, err := d.source.Stat("")
	if err != nil {
		return Attr{}, err
	}
	a := d.view.dirAttr(st)
	if d.Closed {
		a = a.private()
		a.UID, a.GID = uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return a, nil
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

	refusals refusals
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
