package nodes

import (
	"log/slog"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

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
	// ContextSent makes context.json what omp 18 sends to a model (-o context=sent).
	ContextSent bool
	// Memory bounds what is held for open files; nil has no limits.
	Memory *budget.Budget
	// Archive shows the archived sessions; nil where there are none to show.
	Archive *View
	// Live is set in Archive, and shows the sessions that are not archived.
	Live *View
	// Statfs returns the numbers of the backing file system.
	Statfs func(out *fuse.StatfsOut) error

	refusals refusals
	crowd    crowd
}

// Archived reports whether v shows the archived sessions.
func (v *View) Archived() bool { return v.Live != nil }

// family returns the listings in the order in which a parent is looked for.
func (v *View) family() listing.Family {
	if v.Archived() {
		v = v.Live
	}
	if v.Archive == nil {
		return listing.Family{v.Listing}
	}
	return listing.Family{v.Listing, v.Archive.Listing}
}

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
