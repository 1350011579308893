package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/writer"
)

// BlobStores are where blobs are kept.
type BlobStores interface {
	// Size returns the size of a blob, or an error that wraps fs.ErrNotExist.
	Size(hash string) (int64, error)
	Open(hash string) (storage.Object, error)
	// Copy stores a blob, unless the content has another hash.
	Copy(hash string, from io.ReaderAt, size int64) error
}

// openSession is an open session file, with the facts of its first reading.
type openSession struct {
	storage.Object
	writer.Copy
	header rawjson.Value
	// headerAt is the offset of the header in the file, -1 if it is not known.
	headerAt int64
	torn     int64    // bytes at its end that Copy leaves out
	blobs    []string // the blobs that its entries refer to

	// The fields below belong to a session that is made of another agent's.
	made  *dir.Storage // a temporary directory with it and its blobs
	base  string       // the name that its file is to have
	notes []string     // remarks about it for people
}

// Close closes it.
func (c *openSession) Close() error {
	err := c.Object.Close()
	if c.made != nil {
		err = errors.Join(err, os.RemoveAll(c.made.Path()))
	}
	return err
}

// openTries bounds the attempts at reading a file that changes meanwhile, or is not as large as its
// archive says.
const openTries = 3

// errNoSession means that a file is no session of a known agent.
var errNoSession error = noSessionError{}

// noSessionError is the type of errNoSession, whose text names all agents: these register themselves later.
type noSessionError struct{}

// Error implements error.
func (noSessionError) Error() string {
	return "it does not begin with the header of a session of omp, xcsh, pi or operator, and has no records of " + agents.Titles()
}

// openContent opens a session file and reads it once. Callers must close it. The error is errNoSession if
// the file is no session in the form of omp and its kin.
func openContent(ctx context.Context, files storage.Files, name string) (c *openSession, err error) {
	for range openTries {
		c, err = readContent(ctx, files, name)
		if !errors.Is(err, storage.ErrStale) {
			break
		}
	}
	if errors.Is(err, sessioncore.ErrNotSession) {
		err = errNoSession
	}
	return c, err
}

// readContent is one attempt of openContent. The error wraps sessioncore.ErrNotSession if the file is no session.
func readContent(ctx context.Context, files storage.Files, name string) (_ *openSession, err error) {
	header, err := sessioncore.ReadHeaderOf(ctx, files, name)
	if err == nil && header == nil {
		err = sessioncore.ErrNotSession
	}
	if err != nil {
		return nil, err
	}
	obj, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	c := &openSession{
		Object:   obj,
		header:   header,
		headerAt: -1,
	}
	err = c.read(ctx)
	if err != nil {
		_ = obj.Close()
		return nil, err
	}
	return c, nil
}

// read sets Copy, and finds the place of the header and the blobs. Copy lacks a torn last line.
func (c *openSession) read(ctx context.Context) error {
	st, err := c.Object.Stat()
	if err != nil {
		return err
	}
	c.Copy = writer.Copy{
		ReaderAt: &interruptible{ctx: ctx, at: c.Object},
		Size:     st.Size,
		Modified: st.ModTime(),
	}
	hashes := map[string]bool{}
	last := jsonl.ObjectUnit
	readUnit := func(u *jsonl.Unit) error {
		last = u.Kind
		isSought := c.header != nil && c.headerAt < 0
		if isSought && bytes.Equal(u.Text, c.header) {
			c.headerAt = u.Off
		}
		for _, reference := range blob.FindAllSubmatch(u.Text, -1) {
			hash := string(reference[1])
			hashes[hash] = true
		}
		return nil
	}
	_, err = jsonl.Load(ctx, c.Object, jsonl.Position{}, st.Size, readUnit)
	if err == nil && last == jsonl.SkippedUnit {
		err = c.leaveOutTorn()
	}
	c.blobs = slices.Sorted(maps.Keys(hashes))
	return err
}

// blob is a reference to a blob that is a string of its own in a JSON text.
var blob = regexp.MustCompile(`"blob:sha256:([0-9a-f]{64})"`)

// leaveOutTorn ends Copy at the last newline, which it searches from the end of the file, in chunks. The
// error is sessioncore.ErrNotSession if there is no newline.
func (c *openSession) leaveOutTorn() error {
	buf := make([]byte, jsonl.ChunkSize)
	size := c.Size
	start := size // of the last chunk
	for start > 0 {
		n := min(start, int64(len(buf)))
		chunk := buf[:n]
		start -= n
		err := storage.ReadFull(c.Copy, chunk, start)
		if err != nil {
			return err
		}
		newline := bytes.LastIndexByte(chunk, '\n')
		if newline >= 0 {
			c.Size = start + int64(newline) + 1
			c.torn = size - c.Size
			return nil
		}
	}
	return sessioncore.ErrNotSession
}

// id returns the session's id, "" if it has none, and its working directory.
func (c *openSession) id() (id, cwd string) {
	id, _ = c.header.Member("id").Text()
	cwd, _ = c.header.Member("cwd").Text()
	return id, cwd
}

// eachArtifact calls f for each file below the directory at, with its path and its path from the first
// directory; below is the path of at from there. It stops at the first error. In the directory of a
// session in a mount, only the files below artifacts/ count: the others are generated.
func eachArtifact(files storage.Files, at, below string, f func(file, rel string) error) error {
	if isShown(files, at) {
		at += "/artifacts"
	}
	items, err := storage.List(files, at)
	if err != nil && !storage.IsMissing(err) {
		return err
	}
	for _, item := range items {
		rel := path.Join(below, item.Name)
		switch {
		case item.Kind == storage.KindDir:
			err = eachArtifact(files, at+"/"+item.Name, rel, f)
		case !isClients(item.Name):
			err = f(path.Join(at, item.Name), rel)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
