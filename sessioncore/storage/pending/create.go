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
	var content bytes.Buffer
	if err := write(&content); err != nil {
		return err
	}
	data := content.Bytes()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch size := int64(len(data)); {
	case p.files[name] != nil:
		return fmt.Errorf("%w: %s", fs.ErrExist, name)
	case used && (p.ended || p.bytes+size > MaxPendingBytes):
		return storage.ErrNoRoom
	case len(p.files) >= maxPending:
		return fmt.Errorf("%w: %d; sync FILE of a session's append puts it on disk", storage.ErrTooMany, len(p.files))
	}
	if err := p.memory.WriteFile(name, data); err != nil {
		return err
	}
	p.files[name] = &waitingFile{owner: owner, size: int64(len(data)), used: used}
	p.bytes += int64(len(data))
	return nil
}

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
