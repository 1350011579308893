package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// A bundle is a tar archive of files as they lie in an agent directory, with manifestName as its
// last: the hash of a file is known when it was written.

const manifestName = "manifest.json"

// manifest describes the files of a bundle.
type manifest struct {
	Format   string        `json:"format"`
	Redacted bool          `json:"redacted,omitempty"`
	Files    []bundledFile `json:"files"`
}

// bundledFile describes a file of a bundle.
type bundledFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`   // in bytes
	SHA256 string `json:"sha256"` // in lower-case hex
}

const (
	bundleFormat = "sessionfs bundle 1"
	// maxManifest bounds a manifest that is read, in bytes: some 200 for a file.
	maxManifest = 256 << 20
)

// maxDepth and maxPath bound the names that a bundle or a directory makes in SOURCE: parts, and
// bytes. Those of nested subagents have ten parts at most.
const maxDepth, maxPath = 32, 2048

// checkName returns an error for a name that could hurt a terminal, or programs that walk through a
// tree. No client makes one.
func checkName(name string) error {
	switch {
	case storage.CheckName(name) != nil:
		return errors.New("its name leads elsewhere")
	case len(name) > maxPath || strings.Count(name, "/") >= maxDepth:
		return fmt.Errorf("its name has more than %d parts or %d bytes", maxDepth, maxPath)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, names.IsControl):
		return errors.New("its name has a control character: rename it")
	}
	return nil
}

// interruptible reads until its context ends. Only one of its sources is set, for the interface that is
// used.
type interruptible struct {
	ctx context.Context
	in  io.Reader
	at  io.ReaderAt
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	err := r.ctx.Err()
	if err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// ReadAt implements io.ReaderAt.
func (r *interruptible) ReadAt(p []byte, off int64) (int, error) {
	err := r.ctx.Err()
	if err != nil {
		return 0, err
	}
	return r.at.ReadAt(p, off)
}
