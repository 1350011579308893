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
	"slices"
	"strings"

	"sessionfs/sessioncore/storage"
)

// A bundle is a tar archive of files as they lie in an agent directory, with manifestName as its last: the hash of a file
// is known when it was written.

const manifestName = "manifest.json"

// manifest is what a bundle says of itself.
type manifest struct {
	Format   string        `json:"format"`
	Redacted bool          `json:"redacted,omitempty"`
	Sessions []string      `json:"sessions"` // paths of files
	Files    []bundledFile `json:"files"`
}

type bundledFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

const (
	// bundleFormat names the format of bundles.
	bundleFormat = "sessionfs bundle 1"
	// maxManifest bounds a manifest that is read, in bytes, and maxBundled the files of a bundle: some 200 bytes each.
	maxManifest, maxBundled = 256 << 20, 1 << 20
)

// bundle is a bundle that is read in place, as a storage. It can do nothing but List, Stat and Open.
type bundle struct {
	storage.Storage
	file io.ReaderAt
	at   map[string]bundled        // by path
	dirs map[string][]storage.Item // by path, "" for the root
}

// bundled is where a file is.
type bundled struct {
	off int64
	st  storage.Stat
}

// openBundle reads a bundle, and fails unless each file is what the manifest says.
func openBundle(ctx context.Context, file *os.File) (*bundle, error) {
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	b := &bundle{file: file, at: map[string]bundled{}, dirs: map[string][]storage.Item{"": nil}}
	m, sums, err := b.read(ctx, io.NewSectionReader(file, 0, size))
	switch {
	case err == nil && m == nil:
		err = errors.New("it has no " + manifestName + " at its end: either it is cut short, or sessionfs bundle has not written it")
	case err == nil && m.Format != bundleFormat:
		err = fmt.Errorf("its format is %.40q, and not %q", m.Format, bundleFormat)
	}
	if err != nil {
		return nil, fmt.Errorf("it is no bundle that can be used: %w", err)
	}
	for _, f := range m.Files {
		if sums[f.Path] != f.SHA256 {
			return nil, fmt.Errorf("it is damaged: %.200q is not what %s says", f.Path, manifestName)
		}
		delete(sums, f.Path)
	}
	for name := range sums {
		return nil, fmt.Errorf("it is damaged: %s does not name %.200q", manifestName, name)
	}
	for _, items := range b.dirs {
		slices.SortFunc(items, func(a, b storage.Item) int { return strings.Compare(a.Name, b.Name) })
	}
	return b, nil
}

// read finds the files of the archive, and their hashes. m is nil if there is no manifest.
func (b *bundle) read(ctx context.Context, in *io.SectionReader) (m *manifest, sums map[string]string, err error) {
	archive := tar.NewReader(in)
	for sums = map[string]string{}; ; {
		h, err := archive.Next()
		switch {
		case err == io.EOF:
			return m, sums, nil
		case err != nil:
			return nil, nil, err
		case h.Typeflag != tar.TypeReg || storage.CheckName(h.Name) != nil:
			return nil, nil, fmt.Errorf("%.200q is not a plain file below it", h.Name)
		case m != nil || b.at[h.Name] != bundled{} || len(sums) == maxBundled:
			return nil, nil, fmt.Errorf("%.200q comes twice, or is one file too many", h.Name)
		case h.Name == manifestName:
			text, err := io.ReadAll(io.LimitReader(archive, maxManifest))
			if err == nil {
				m = &manifest{}
				err = json.Unmarshal(text, m)
			}
			if err != nil {
				return nil, nil, fmt.Errorf("%s: %w", manifestName, err)
			}
			continue
		}
		off, err := in.Seek(0, io.SeekCurrent) // tar.Reader reads nothing ahead
		if err != nil {
			return nil, nil, err
		}
		sum := sha256.New()
		// The bytes of the archive, and not those of a sparse file that the header describes.
		if n, err := io.Copy(sum, &interruptible{ctx, io.NewSectionReader(b.file, off, h.Size)}); err != nil || n < h.Size {
			return nil, nil, errors.Join(err, fmt.Errorf("%.200q is cut short", h.Name))
		}
		sums[h.Name] = hex.EncodeToString(sum.Sum(nil))
		st := storage.Stat{Kind: storage.KindFile, Mode: storage.FileMode}
		st.Token = storage.Token{Inode: uint64(off), Size: h.Size, Modified: h.ModTime.UnixNano()}
		if err := b.enter(h.Name, bundled{off, st}); err != nil {
			return nil, nil, err
		}
	}
}

// enter adds a file to the directories.
func (b *bundle) enter(name string, f bundled) error {
	if _, isDir := b.dirs[name]; isDir {
		return fmt.Errorf("%.200q is a file and a directory", name)
	}
	b.at[name] = f
	kind := storage.KindFile
	for name != "" {
		dir := storage.Dir(name)
		_, known := b.dirs[dir]
		b.dirs[dir] = append(b.dirs[dir], storage.Item{Name: path.Base(name), Kind: kind})
		if _, isFile := b.at[dir]; isFile {
			return fmt.Errorf("%.200q is a file and a directory", dir)
		}
		if known {
			return nil
		}
		name, kind = dir, storage.KindDir
	}
	return nil
}

// List implements storage.Storage.
func (b *bundle) List(dir string) ([]storage.Item, error) { return b.dirs[dir], nil }

// Stat implements storage.Storage.
func (b *bundle) Stat(name string) (storage.Stat, error) {
	if _, isDir := b.dirs[name]; isDir {
		return storage.Stat{Kind: storage.KindDir}, nil
	}
	f, ok := b.at[name]
	if !ok {
		return storage.Stat{}, errNotBundled
	}
	return f.st, nil
}

// errNotBundled is the error for what is not in a bundle.
var errNotBundled = fmt.Errorf("%w in the bundle", os.ErrNotExist)

// Open implements storage.Storage.
func (b *bundle) Open(name string) (storage.Object, error) {
	f, ok := b.at[name]
	if !ok {
		return nil, errNotBundled
	}
	return bundledObject{SectionReader: io.NewSectionReader(b.file, f.off, f.st.Size), st: f.st}, nil
}

// bundledObject is an open file of a bundle.
type bundledObject struct {
	storage.UnsupportedObject
	*io.SectionReader
	st storage.Stat
}

// Stat implements storage.Object.
func (o bundledObject) Stat() (storage.Stat, error) { return o.st, nil }

// Close implements storage.Object.
func (o bundledObject) Close() error { return nil }
