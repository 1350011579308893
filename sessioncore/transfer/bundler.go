package transfer

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
	Blobs    Blobs // nil if there are none
	Redacted bool  // what cannot be masked is left out
	// Left is told what is left out, and why.
	Left func(what string, err error)

	out     *tar.Writer
	written map[string]bool
	m       manifest
	masked  [2]int // artifacts and blobs that were left out because they cannot be masked
}

// NewBundler returns a Bundler that writes to out.
func NewBundler(out io.Writer, b Bundler) *Bundler {
	b.out, b.written = tar.NewWriter(out), map[string]bool{}
	b.m = manifest{Format: bundleFormat, Redacted: b.Redacted, Sessions: []string{}, Files: []bundledFile{}}
	return &b
}

// Add adds a session of a store with all that belongs to it. After an error that is not of the session, the bundle is
// broken.
func (b *Bundler) Add(ctx context.Context, files storage.Files, name string) error {
	c, err := openContent(ctx, files, name)
	if err != nil {
		return withoutPath(err)
	}
	defer c.Close()
	at := sessions + "/" + name
	if b.written[at] {
		return nil
	}
	b.m.Sessions = append(b.m.Sessions, at)
	if err := b.addContent(ctx, at, c); err != nil {
		return err
	}
	beside := storage.BesideOf(files, name, sessioncore.FileEnding)
	return eachArtifact(files, beside, "", func(rel string) error {
		return b.addArtifact(ctx, files, beside+"/"+rel, path.Join(strings.TrimSuffix(at, sessioncore.FileEnding), rel))
	})
}

// addContent adds a session file and the blobs to which it refers.
func (b *Bundler) addContent(ctx context.Context, at string, c *content) error {
	if err := b.write(ctx, at, c.ReaderAt, c.Size+c.torn, c.Modified); err != nil {
		return err
	}
	for _, hash := range c.blobs {
		at := "blobs/" + hash
		switch {
		case b.written[at]:
			continue
		case b.Redacted:
			b.masked[1]++
			b.written[at] = true
			continue
		}
		if err := b.addBlob(ctx, at, hash); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bundler) addBlob(ctx context.Context, at, hash string) error {
	if b.Blobs == nil {
		return nil
	}
	obj, err := b.Blobs.Open(hash)
	if err != nil {
		b.Left(at, withoutPath(err))
		b.written[at] = true
		return nil
	}
	defer obj.Close()
	return b.addFile(ctx, at, obj)
}

func (b *Bundler) addArtifact(ctx context.Context, files storage.Files, name, at string) error {
	if sessioncore.IsSessionName(path.Base(name)) {
		if c, err := openContent(ctx, files, name); err == nil {
			defer c.Close()
			return b.addContent(ctx, at, c)
		}
	}
	if b.Redacted {
		b.masked[0]++
		return nil
	}
	obj, err := files.Open(name)
	if err != nil {
		b.Left(at, withoutPath(err))
		return nil
	}
	defer obj.Close()
	return b.addFile(ctx, at, obj)
}

func (b *Bundler) addFile(ctx context.Context, at string, obj storage.Object) error {
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	return b.write(ctx, at, obj, st.Size, st.ModTime())
}

// write adds a file of a size. What it has grown by since is left out.
func (b *Bundler) write(ctx context.Context, at string, from io.ReaderAt, size int64, modified time.Time) error {
	if err := b.header(at, size, modified); err != nil {
		return err
	}
	sum := sha256.New()
	in := &interruptible{ctx: ctx, in: io.NewSectionReader(from, 0, size)}
	n, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(b.out, sum)}, in, make([]byte, copySize))
	if err == nil && n < size {
		err = fmt.Errorf("%w: it became shorter", storage.ErrStale)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	b.written[at] = true
	b.m.Files = append(b.m.Files, bundledFile{at, size, hex.EncodeToString(sum.Sum(nil))})
	return nil
}

const copySize = 128 << 10

func (b *Bundler) header(at string, size int64, modified time.Time) error {
	return b.out.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: at, Size: size, Mode: storage.FileMode, ModTime: modified, Format: tar.FormatPAX,
	})
}

// Close writes the manifest. Without it nobody takes the bundle.
func (b *Bundler) Close() error {
	if b.masked != [2]int{} {
		b.Left(fmt.Sprintf("%d artifacts and %d blobs", b.masked[0], b.masked[1]), fmt.Errorf("it cannot be masked"))
	}
	text, err := json.MarshalIndent(b.m, "", " ")
	if err != nil {
		return err
	}
	if err := b.header(manifestName, int64(len(text)), time.Now()); err != nil {
		return err
	}
	if _, err := b.out.Write(text); err != nil {
		return err
	}
	return b.out.Close()
}
