package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// IsWorkingDirectory reports whether a text is the absolute path of a directory, also of Windows.
func IsWorkingDirectory(dir string) bool {
	_, _, ok := names.AbsPath(dir)
	return ok
}

// noPlaceError returns the reason why a session with this working directory has no place.
func noPlaceError(cwd string) error {
	if cwd == "" {
		return errors.New("it names no working directory, so it has no place here; name one with --to DIR")
	}
	const shown = 80
	return fmt.Errorf("its working directory, %q, does not begin with / or a drive such as C:\\, so it has no place here; name one with --to DIR",
		names.FirstWords(cwd, shown))
}

// CleanDirectory returns a working directory without needless parts. A directory of Windows keeps its
// form, as the agent wrote it.
func CleanDirectory(dir string) string {
	if path.IsAbs(dir) {
		return path.Clean(dir)
	}
	short := strings.TrimRight(dir, `/\`)
	if strings.HasSuffix(short, ":") { // a drive's root
		return dir
	}
	return short
}

// setDirectory gives a copy the working directory that the session has in the store, else the one for
// all sessions.
func (im *Importer) setDirectory(ctx context.Context, c *openSession, name string) error {
	to := im.Directory
	_, err := im.Files.Stat(name)
	if err == nil {
		to = im.storedDirectory(ctx, name)
	}
	_, cwd := c.id()
	switch {
	case to == "" || to == cwd:
		return nil
	case c.headerAt < 0:
		return fmt.Errorf("%w: its header changed while it was read", storage.ErrStale)
	}
	moved := rawjson.Field{Key: "cwd", JSON: string(rawjson.AppendQuoted(nil, to))}
	c.setHeader(ctx, rawjson.SetMembers(c.header, []rawjson.Field{moved}))
	return nil
}

// storedDirectory returns the working directory of a session in the store, "" if it cannot be read.
func (im *Importer) storedDirectory(ctx context.Context, name string) string {
	header, err := sessioncore.ReadHeaderOf(ctx, im.Files, name)
	if err != nil || header == nil {
		return ""
	}
	cwd, _ := header.Member("cwd").Text()
	return cwd
}

// setHeader replaces the header of a copy, in memory: the file itself does not change.
func (c *openSession) setHeader(ctx context.Context, header rawjson.Value) {
	withHeader := &edited{
		Object: c.Object,
		at:     c.headerAt,
		old:    int64(len(c.header)),
		text:   header,
	}
	c.Size += int64(len(header)) - withHeader.old
	c.Object = withHeader
	c.ReaderAt = &interruptible{ctx: ctx, at: withHeader}
	c.header = header
}

// edited is a file with another text in the place of old bytes at an offset.
type edited struct {
	storage.Object
	at, old int64
	text    []byte
}

// Stat implements storage.Object.
func (o *edited) Stat() (storage.Stat, error) {
	st, err := o.Object.Stat()
	st.Size += int64(len(o.text)) - o.old
	return st, err
}

// ReadAt implements storage.Object.
func (o *edited) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) && err == nil {
		var more int
		more, err = o.readSome(p[n:], off+int64(n))
		n += more
	}
	return n, err
}

// readSome reads from before the text, from it, or from behind it.
func (o *edited) readSome(p []byte, off int64) (int, error) {
	end := o.at + int64(len(o.text))
	switch {
	case off < o.at:
		before := min(int64(len(p)), o.at-off)
		return o.Object.ReadAt(p[:before], off)
	case off < end:
		return copy(p, o.text[off-o.at:]), nil
	}
	oldEnd := o.at + o.old
	n, err := o.Object.ReadAt(p, oldEnd+off-end)
	isStuck := n == 0 && err == nil && len(p) > 0 // ReadAt would call it forever
	if isStuck {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
