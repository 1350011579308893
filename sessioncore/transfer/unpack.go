package transfer

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
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

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// This file unpacks tar archives: bundles, and backups of an agent's directory that a person made. A
// bundle has a manifest, and is refused as a whole where it is not as sessionfs bundle writes it.

// archiveUnpacker writes the files of an archive to a directory.
type archiveUnpacker struct {
	root *os.Root
	sums map[string]string // the hashes of the files, by name
	// fault is the first thing that no bundle has. A backup may have it.
	fault error
	left  []leftMember // of a backup
}

// leftMember is a member of an archive that is left out.
type leftMember struct {
	name string
	err  error
}

// unpack writes the files of an archive to a directory. As no file may be sparse, they are not larger than
// the archive, and room on the disk is left to others. left are the files of a backup that have odd names.
func unpack(ctx context.Context, in io.Reader, to string) (left []leftMember, err error) {
	root, err := os.OpenRoot(to)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	in, err = unzipped(in)
	if err != nil {
		return nil, err
	}
	end := &endReader{in: in}
	archive := tar.NewReader(end)
	u := &archiveUnpacker{root: root, sums: map[string]string{}}
	for {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = u.member(ctx, h, archive)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case u.sums[manifestName] != "":
		return nil, u.checkBundle()
	case end.zeros < tarBlock:
		return nil, errors.New("it is cut short: the end of a tar archive is missing")
	case len(u.sums)+len(u.left) == 0:
		return nil, errors.New("no file is in it")
	}
	return u.left, nil
}

// tarBlock is the size of a block of an archive, which ends with two blocks of zeros.
const tarBlock = 512

// member unpacks a member of an archive, or leaves it out. The error refuses the whole archive: the member
// could fill the disk, or its name leads elsewhere.
func (u *archiveUnpacker) member(ctx context.Context, h *tar.Header, in io.Reader) error {
	isSparse := h.Typeflag == tar.TypeGNUSparse
	for key := range h.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse.") {
			isSparse = true
		}
	}
	name := path.Clean(h.Name)
	if h.Name != name {
		u.noBundle(h.Name, checkName(h.Name))
	}
	switch {
	case isSparse:
		return fmt.Errorf("%.200q is sparse, and could fill the disk", h.Name)
	case h.Typeflag == tar.TypeXGlobalHeader, name == ".":
		u.noBundle(h.Name, errNoFile)
		return nil
	case storage.CheckName(name) != nil:
		return fmt.Errorf("%.200q: %w", h.Name, checkName(name))
	}
	err := checkName(name)
	if err != nil {
		u.noBundle(h.Name, err)
		u.left = append(u.left, leftMember{name: name, err: err})
		return nil
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.file(ctx, h, name, in)
	case tar.TypeLink:
		u.hardLink(name, path.Clean(h.Linkname))
	}
	u.noBundle(h.Name, errNoFile)
	return nil
}

var errNoFile = errors.New("it is not a plain file")

// noBundle notes that a bundle does not have such a member.
func (u *archiveUnpacker) noBundle(name string, err error) {
	if u.fault == nil && err != nil {
		u.fault = fmt.Errorf("%.200q: %w", name, err)
	}
}

// hardLink makes a file that is another one of the archive, such as an image with two names. A link to a
// file that is not in the archive is left out, and so is one that cannot be made.
func (u *archiveUnpacker) hardLink(name, to string) {
	isUnpacked := u.sums[to] != ""
	isTaken := u.sums[name] != ""
	if !isUnpacked || isTaken {
		return
	}
	err := u.root.MkdirAll(path.Dir(name), storage.DirMode)
	if err != nil {
		return
	}
	err = u.root.Link(to, name)
	if err == nil {
		u.sums[name] = u.sums[to]
	}
}

// file unpacks a file, and notes its hash. Of several files of a name in a backup the last one counts.
func (u *archiveUnpacker) file(ctx context.Context, h *tar.Header, name string, in io.Reader) error {
	if u.sums[name] != "" {
		u.noBundle(name, errors.New("it is there twice"))
		err := u.root.Remove(name)
		if err != nil {
			return err
		}
	}
	err := u.root.MkdirAll(path.Dir(name), storage.DirMode)
	if err != nil {
		return err
	}
	f, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, storage.FileMode)
	if err != nil {
		return err
	}
	sum := sha256.New()
	out, err := budget.NamedFile(f, u.root.Name())
	if err == nil {
		_, err = io.Copy(io.MultiWriter(out, sum), &interruptible{ctx: ctx, in: in})
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = u.root.Chtimes(name, h.ModTime, h.ModTime)
	}
	u.sums[name] = hex.EncodeToString(sum.Sum(nil))
	return err
}

// checkBundle returns an error unless each file is as the manifest says, and removes that.
func (u *archiveUnpacker) checkBundle() error {
	if u.fault != nil {
		return u.fault
	}
	f, err := u.root.Open(manifestName)
	if err != nil {
		return err
	}
	defer f.Close()
	var m manifest
	err = json.NewDecoder(io.LimitReader(f, maxManifest)).Decode(&m)
	if err != nil || m.Format != bundleFormat {
		return fmt.Errorf("%s is not that of a bundle in a known format", manifestName)
	}
	delete(u.sums, manifestName)
	for _, file := range m.Files {
		if u.sums[file.Path] != file.SHA256 {
			return fmt.Errorf("%.200q is not what %s says", file.Path, manifestName)
		}
		delete(u.sums, file.Path)
	}
	for name := range u.sums {
		return fmt.Errorf("%s does not name %.200q", manifestName, name)
	}
	return u.root.Remove(manifestName)
}

// unzipped returns the content of a gzip archive, and other content as it is.
func unzipped(in io.Reader) (io.Reader, error) {
	packed := &countingReader{in: in}
	buffered := bufio.NewReader(packed)
	begin, _ := buffered.Peek(len(gzipMagic))
	if string(begin) != gzipMagic {
		return buffered, nil
	}
	content, err := gzip.NewReader(buffered)
	if err != nil {
		return nil, err
	}
	bounded := &boundedReader{
		countingReader: countingReader{in: content},
		packed:         packed,
	}
	return bounded, nil
}

// gzipMagic is the beginning of a gzip archive.
const gzipMagic = "\x1f\x8b"

// countingReader counts the bytes that were read.
type countingReader struct {
	in   io.Reader
	size int64
}

// Read implements io.Reader.
func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.size += int64(n)
	return n, err
}

// boundedReader reads the content of a compressed file within the bounds of total.
type boundedReader struct {
	countingReader
	packed *countingReader
}

// Read implements io.Reader.
func (r *boundedReader) Read(p []byte) (int, error) {
	n, err := r.countingReader.Read(p)
	if r.size > max(freeTotal, maxTotal*r.packed.size) {
		return n, errBomb
	}
	return n, err
}

// endReader counts the zeros at the end of the bytes that were read.
type endReader struct {
	in    io.Reader
	zeros int
}

// Read implements io.Reader.
func (r *endReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	for _, c := range p[:n] {
		r.zeros++
		if c != 0 {
			r.zeros = 0
		}
	}
	return n, err
}
