package nodes

import (
	"log/slog"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/blobfs"
	"sessionfs/sessioncore"
)

// View is what all nodes of a mount share. It does not change after the mount.
type View struct {
	// Log takes the reasons of refusals and what went wrong below.
	Log *slog.Logger
	// Blobs are those of SOURCE/blobs.
	Blobs *blobfs.Store
	// Writer writes to the sessions.
	Writer *sessioncore.Writer
	// Listing finds sessions; nil in a mount that only shows files.
	Listing *sessioncore.Listing
	// ReadOnly says that nothing can be written (-o ro).
	ReadOnly bool
	// BlobRefs leaves blob references in context.json as they are (-o context-blobs=ref).
	BlobRefs bool
	// Statfs tells about the backing file system.
	Statfs func(out *fuse.StatfsOut) error

	refusals refusals
	crowd    crowd
}

// contextBlobs returns the blobs that contexts resolve references with, nil for none.
func (v *View) contextBlobs() sessioncore.Blobs {
	if v.BlobRefs || v.Blobs == nil {
		return nil
	}
	return v.Blobs
}
