package sqlite

import (
	"bytes"
	"errors"
	"io"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"

	"sessionfs/sessioncore/storage"
)

// fileSystem is SQLite's file system. It has only the open files of one database and is read-only,
// without locks.
type fileSystem struct{ openFiles }

var _ vfs.VFS = fileSystem{}

// Open implements vfs.VFS. It opens no temporary files.
func (f fileSystem) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	kind := flags & (vfs.OPEN_MAIN_DB | vfs.OPEN_WAL)
	if kind == 0 {
		return nil, 0, sqlite3.CANTOPEN
	}
	opened := kind | vfs.OPEN_READONLY
	obj := f.openFiles[name]
	if obj == nil && kind == vfs.OPEN_WAL { // SQLite wants to create the log of a database in WAL mode
		return readOnly{size: noSize, ReaderAt: bytes.NewReader(nil)}, opened, nil
	}
	if obj == nil {
		return nil, 0, sqlite3.CANTOPEN
	}
	size := func() (int64, error) {
		st, err := obj.Stat()
		return st.Size, err
	}
	return readOnly{size: size, ReaderAt: staleAsEnd{obj}}, opened, nil
}

func noSize() (int64, error) { return 0, nil }

// staleAsEnd reads a file that may become shorter. The check behind the transaction tells that it did.
type staleAsEnd struct{ storage.Object }

// ReadAt implements io.ReaderAt.
func (s staleAsEnd) ReadAt(p []byte, off int64) (int, error) {
	n, err := s.Object.ReadAt(p, off)
	if errors.Is(err, storage.ErrStale) {
		err = io.EOF
	}
	return n, err
}

// The other methods of vfs.VFS.

func (fileSystem) Delete(string, bool) error { return sqlite3.IOERR_DELETE }
func (f fileSystem) Access(name string, _ vfs.AccessFlag) (bool, error) {
	return f.openFiles[name] != nil, nil
}
func (fileSystem) FullPathname(name string) (string, error) { return name, nil }

// readOnly is an open file for SQLite.
type readOnly struct {
	io.ReaderAt
	size func() (int64, error)
}

var _ vfs.File = readOnly{}

// The other methods of vfs.File. Locks are granted: the check behind each transaction is in their place.

func (f readOnly) Size() (int64, error)                          { return f.size() }
func (readOnly) Close() error                                    { return nil }
func (readOnly) WriteAt([]byte, int64) (int, error)              { return 0, sqlite3.READONLY }
func (readOnly) Truncate(int64) error                            { return sqlite3.READONLY }
func (readOnly) Sync(vfs.SyncFlag) error                         { return nil }
func (readOnly) Lock(vfs.LockLevel) error                        { return nil }
func (readOnly) Unlock(vfs.LockLevel) error                      { return nil }
func (readOnly) CheckReservedLock() (bool, error)                { return false, nil }
func (readOnly) SectorSize() int                                 { return 0 }
func (readOnly) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
