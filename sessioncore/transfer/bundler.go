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
	"path"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// Bundler writes a bundle.
type Bundler struct {
	Out      *tar.Writer
	Blobs    BlobStores // nil if there are none
	Redacted bool       // files that cannot be masked are left out
	People   bool       // the names of sessions begin with the names of people, which have no place in another agent directory
	// Masked are the numbers of masked secrets, by the rules that found them.
	Masked map[string]int
	// Left is called for each thing that is left out, with the reason.
	Left func(what string, err error)

	manifest manifest        // of the files so far
	written  map[string]bool // also the files that are left out
	unmasked int             // files that are left out because they cannot be masked
}

// Add adds a session of a store with all that belongs to it. After an error that is not of the
// session, the bundle is broken.
func (b *Bundler) Add(ctx context.Context, files storage.Files, name string) error {
	c, err := openContent(ctx, files, name)
	if err != nil {
		return withoutPath(err)
	}
	at := sessions + "/" + name
	if b.written[at] {
		return c.Close()
	}
	_, inPerson, hasPerson := strings.Cut(name, "/")
	withoutPerson := sessions + "/" + inPerson
	if hasPerson && b.People && !b.written[withoutPerson] {
		b.wrote(at) // so that the session is not added again
		at = withoutPerson
	}
	err = checkName(at)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	err = b.session(ctx, at, c)
	if err != nil {
		return err
	}
	beside := strings.TrimSuffix(name, sessioncore.FileEnding)
	besideBundled := strings.TrimSuffix(at, sessioncore.FileEnding)
	return eachArtifact(files, beside, "", func(name, rel string) error {
		return b.artifact(ctx, files, name, path.Join(besideBundled, rel))
	})
}

// artifact adds a file beside a session: a subagent's session as a session, another file as it is.
func (b *Bundler) artifact(ctx context.Context, files storage.Files, name, at string) error {
	mayBeSession := sessioncore.IsSessionName(path.Base(name)) && checkName(at) == nil
	if mayBeSession {
		c, err := openContent(ctx, files, name)
		if err == nil {
			return b.session(ctx, at, c)
		}
	}
	open := func() (storage.Object, error) {
		return files.Open(name)
	}
	return b.other(ctx, at, open)
}

// session adds a session file and the blobs that it refers to, and closes it.
func (b *Bundler) session(ctx context.Context, at string, c *openSession) error {
	defer c.Close()
	err := b.write(ctx, at, c, c.Size+c.torn, c.Modified)
	for kind, n := range MaskedIn(c.Object) {
		b.Masked[kind] += n
	}
	if err != nil || b.Blobs == nil {
		return err
	}
	for _, hash := range c.blobs {
		blobAt := "blobs/" + hash
		if b.written[blobAt] {
			continue // several sessions may refer to it
		}
		open := func() (storage.Object, error) {
			return b.Blobs.Open(hash)
		}
		err = b.other(ctx, blobAt, open)
		if err != nil {
			return err
		}
	}
	return nil
}

// maskedSession is a session file with masked secrets.
type maskedSession interface {
	storage.Object
	// Kinds returns the number of secrets by the rules that found them.
	Kinds() map[string]int
}

// MaskedIn returns the numbers of masked secrets in a session file, by the rules that found them; nil
// if nothing is masked.
func MaskedIn(file storage.Object) map[string]int {
	masked, isMasked := file.(maskedSession)
	if !isMasked {
		return nil
	}
	return masked.Kinds()
}

// other adds a file that is no session. One that has a bad name, cannot be opened or cannot be masked is
// left out; an error means that the bundle is broken. A bundle that masks does not call open.
func (b *Bundler) other(ctx context.Context, at string, open func() (storage.Object, error)) error {
	b.wrote(at)
	err := checkName(at)
	if err != nil {
		b.Left(at, err)
		return nil
	}
	if b.Redacted {
		b.unmasked++
		return nil
	}
	obj, err := open()
	if err != nil {
		b.Left(at, withoutPath(err))
		return nil
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	return b.write(ctx, at, obj, st.Size, st.ModTime())
}

// wrote notes that the bundle has, or leaves out, a file of this path.
func (b *Bundler) wrote(at string) {
	if b.written == nil {
		b.written = map[string]bool{}
	}
	b.written[at] = true
}

// write adds the first size bytes of a file, and its entry in the manifest. The file may have grown since;
// it is an error if it became shorter.
func (b *Bundler) write(ctx context.Context, at string, from io.ReaderAt, size int64, modified time.Time) error {
	b.wrote(at)
	sum := sha256.New()
	in := &interruptible{ctx: ctx, in: io.NewSectionReader(from, 0, size)}
	err := b.Out.WriteHeader(header(at, size, modified))
	if err == nil {
		_, err = io.Copy(io.MultiWriter(b.Out, sum), in)
	}
	if err == nil {
		err = b.Out.Flush() // fails if it became shorter
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	b.manifest.Files = append(b.manifest.Files, bundledFile{
		Path:   at,
		Size:   size,
		SHA256: hex.EncodeToString(sum.Sum(nil)),
	})
	return nil
}

// header returns the header of a file of size bytes in the archive.
func header(at string, size int64, modified time.Time) *tar.Header {
	return &tar.Header{
		Typeflag: tar.TypeReg,
		Name:     at,
		Size:     size,
		Mode:     storage.FileMode,
		ModTime:  modified,
		Format:   tar.FormatPAX, // which has long names and exact times
	}
}

// Close writes the manifest and the end of the archive. A bundle without a manifest is refused by imports.
func (b *Bundler) Close() error {
	if b.unmasked > 0 {
		b.Left(fmt.Sprintf("%d files", b.unmasked), errors.New("they cannot be masked"))
	}
	b.manifest.Format = bundleFormat
	b.manifest.Redacted = b.Redacted
	text, err := json.MarshalIndent(b.manifest, "", " ")
	if err == nil {
		size := int64(len(text))
		err = b.Out.WriteHeader(header(manifestName, size, time.Now()))
	}
	if err == nil {
		_, err = b.Out.Write(text)
	}
	closed := b.Out.Close()
	if err == nil {
		err = closed
	}
	return err
}
