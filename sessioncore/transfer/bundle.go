package transfer

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore/budget"
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

type bundledFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
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

// unpack writes the files of a bundle to a directory, and fails unless each matches the manifest.
// As no file may be sparse, they are not larger than the archive, and room on the disk is
// left to others.
func unpack(ctx context.Context, in io.Reader, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	sums := map[string]string{}
	archive := tar.NewReader(in)
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			sums[h.Name], err = unpackFile(ctx, root, h, archive)
		}
		if err != nil {
			return err
		}
	}
	f, err := root.Open(manifestName)
	if err != nil {
		return errors.New("it has no " + manifestName + " at its end: either it is cut short, " +
			"or sessionfs bundle has not written it")
	}
	defer f.Close()
	var m manifest
	if err := json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(&m); err != nil || m.Format != bundleFormat {
		return fmt.Errorf("%s is not that of a bundle in a known format", manifestName)
	}
	delete(sums, manifestName)
	for _, f := range m.Files {
		if sums[f.Path] != f.SHA256 {
			return fmt.Errorf("%.200q is not what %s says", f.Path, manifestName)
		}
		delete(sums, f.Path)
	}
	for name := range sums {
		return fmt.Errorf("%s does not name %.200q", manifestName, name)
	}
	return root.Remove(manifestName)
}

// unpackFile writes a file and returns its hash.
func unpackFile(ctx context.Context, root *os.Root, h *tar.Header, in io.Reader) (string, error) {
	isSparse := h.Typeflag == tar.TypeGNUSparse
	for key := range h.PAXRecords {
		isSparse = isSparse || strings.HasPrefix(key, "GNU.sparse.")
	}
	err := checkName(h.Name)
	switch {
	case err != nil:
		return "", fmt.Errorf("%.200q: %w", h.Name, err)
	case isSparse:
		return "", fmt.Errorf("%.200q is sparse, and could fill the disk", h.Name)
	case h.Typeflag != tar.TypeReg:
		return "", fmt.Errorf("%.200q is not a plain file", h.Name)
	}
	if err := root.MkdirAll(path.Dir(h.Name), storage.DirMode); err != nil {
		return "", err
	}
	f, err := root.OpenFile(h.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, storage.FileMode)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	out, err := budget.NamedFile(f, root.Name())
	if err == nil {
		_, err = io.Copy(io.MultiWriter(out, sum), &interruptible{ctx: ctx, in: in})
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = root.Chtimes(h.Name, h.ModTime, h.ModTime)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// interruptible reads until its context ends.
type interruptible struct {
	ctx context.Context
	in  io.Reader
	at  io.ReaderAt
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

// ReadAt implements io.ReaderAt.
func (r *interruptible) ReadAt(p []byte, off int64) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.at.ReadAt(p, off)
}
