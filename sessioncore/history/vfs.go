package history

import (
	"bytes"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// copiedVFS is the file system that SQLite sees: only the copied files. Nothing in it can be written, created, locked
// or shared.
type copiedVFS struct{ *copied }

var _ vfs.VFS = copiedVFS{}

// Open implements vfs.VFS.
func (v copiedVFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	content, ok := v.content[name]
	kind := flags & (vfs.OPEN_MAIN_DB | vfs.OPEN_MAIN_JOURNAL | vfs.OPEN_WAL)
	if kind == 0 || !ok && kind != vfs.OPEN_WAL { // no temporary files
		return nil, 0, sqlite3.CANTOPEN
	}
	// A missing log is an empty one: SQLite wants to create it for a database in WAL mode.
	return copiedFile{bytes.NewReader(content)}, kind | vfs.OPEN_READONLY, nil
}

// Delete implements vfs.VFS.
func (v copiedVFS) Delete(string, bool) error { return sqlite3.IOERR_DELETE }

// Access implements vfs.VFS.
func (v copiedVFS) Access(name string, _ vfs.AccessFlag) (bool, error) {
	return v.content[name] != nil, nil
}

// FullPathname implements vfs.VFS.
func (v copiedVFS) FullPathname(name string) (string, error) { return name, nil }

// copiedFile is a copied file as SQLite sees it.
type copiedFile struct{ *bytes.Reader }

var _ vfs.File = copiedFile{}

// Size implements vfs.File.
func (f copiedFile) Size() (int64, error) { return f.Reader.Size(), nil }

// The other methods of vfs.File. Locks are granted, since nobody else sees these files.

func (f copiedFile) Close() error                                    { return nil }
func (f copiedFile) WriteAt([]byte, int64) (int, error)              { return 0, sqlite3.READONLY }
func (f copiedFile) Truncate(int64) error                            { return sqlite3.READONLY }
func (f copiedFile) Sync(vfs.SyncFlag) error                         { return nil }
func (f copiedFile) Lock(vfs.LockLevel) error                        { return nil }
func (f copiedFile) Unlock(vfs.LockLevel) error                      { return nil }
func (f copiedFile) CheckReservedLock() (bool, error)                { return false, nil }
func (f copiedFile) SectorSize() int                                 { return 0 }
func (f copiedFile) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
