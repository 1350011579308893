package pending

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
)

// CreatePending implements Storage. The file is in memory. It checks, as far as possible, that the file could be
// put on disk: otherwise the file could never be saved, nor its name be looked up.
func (p *Storage) CreatePending(name string, used bool, write func(io.Writer) error) error {
	owner, err := p.checkCreate(name)
	if err != nil {
		return err
	}
	content := waitingContent{p: p, used: used}
	defer content.release()
	if err := write(&content); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.files[name] != nil:
		return fmt.Errorf("%w: %s", fs.ErrExist, name)
	case used && p.ended:
		return storage.ErrNoRoom
	case len(p.files) >= maxPending:
		return fmt.Errorf("%w: %d; sync FILE of a session's append puts it on disk", storage.ErrTooMany, len(p.files))
	}
	if err := p.memory.WriteFile(name, content.text.Bytes()); err != nil {
		return err
	}
	size := int64(content.text.Len())
	p.files[name] = &waitingFile{owner: owner, size: size, used: used}
	p.count(name, 1)
	p.resize(size)
	return nil
}

// waitingContent collects the content of a new file. What must not be lost is counted as it comes: it may be long, and
// many may be made at a time.
type waitingContent struct {
	p        *Storage
	used     bool
	text     bytes.Buffer
	reserved int
}

// Write implements io.Writer. The error is ErrNoRoom if the file has to go to disk.
func (c *waitingContent) Write(b []byte) (int, error) {
	if c.used {
		if err := c.p.reserve(len(b)); err != nil {
			return 0, err
		}
		c.reserved += len(b)
	}
	return c.text.Write(b)
}

// release gives back what was reserved; the file is counted by itself.
func (c *waitingContent) release() { c.p.giveBack(c.reserved) }

// checkCreate returns the state of the directory on disk that a new file of that name would be created in, or of
// its nearest existing parent.
func (p *Storage) checkCreate(name string) (storage.Stat, error) {
	if err := checkLengths(name); err != nil {
		return storage.Stat{}, err
	}
	_, err := p.Storage.Stat(name)
	if err == nil {
		err = fs.ErrExist
	}
	if !storage.IsMissing(err) {
		return storage.Stat{}, fmt.Errorf("%w: %s", err, name)
	}
	dir := storage.Dir(name)
	for {
		st, err := p.Storage.Stat(dir)
		switch {
		case err != nil && (dir == "" || !storage.IsMissing(err)):
			return storage.Stat{}, err
		case err == nil && st.Kind != storage.KindDir:
			return storage.Stat{}, fmt.Errorf("%w: %s", unix.ENOTDIR, dir)
		case err == nil:
			if err := p.Storage.CheckWritable(dir); !errors.Is(err, storage.ErrUnsupported) {
				return st, err
			}
			return st, nil
		}
		dir = storage.Dir(dir)
	}
}

// checkLengths returns an error if an element of name is longer than file systems allow. It checks the name of the
// file's temporary, which is longer than that of the file.
func checkLengths(name string) error {
	for part := range strings.SplitSeq(storage.Dir(name)+"/"+storage.TemporaryName(path.Base(name)), "/") {
		if len(part) > unix.NAME_MAX {
			return fmt.Errorf("%w: a name of %d bytes, at most %d: %.60s…", unix.ENAMETOOLONG, len(part), unix.NAME_MAX, part)
		}
	}
	return nil
}
