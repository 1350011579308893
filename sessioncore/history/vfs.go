package history

import (
	"io"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// pinnedVFS is the file system that SQLite sees: only the pinned files. Nothing in it can be written, created, locked
// or shared.
type pinnedVFS struct{ *pinned }

var _ vfs.VFS = pinnedVFS{}

// Open implements vfs.VFS.
func (v pinnedVFS) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f := v.file(name)
	kind := flags & (vfs.OPEN_MAIN_DB | vfs.OPEN_MAIN_JOURNAL | vfs.OPEN_WAL)
	if kind == 0 || f == nil && kind != vfs.OPEN_WAL { // no temporary files
		return nil, 0, sqlite3.CANTOPEN
	}
	// A missing log is an empty one: SQLite wants to create it for a database in WAL mode.
	return readOnlyFile{f}, kind | vfs.OPEN_READONLY, nil
}

func (v pinnedVFS) file(name string) *pinnedFile {
	switch name {
	case databaseName:
		return v.database
	case walName:
		return v.wal
	case journalName:
		return v.journal
	}
	return nil
}

// Delete implements vfs.VFS.
func (v pinnedVFS) Delete(string, bool) error { return sqlite3.IOERR_DELETE }

// Access implements vfs.VFS.
func (v pinnedVFS) Access(name string, _ vfs.AccessFlag) (bool, error) {
	return v.file(name) != nil, nil
}

// FullPathname implements vfs.VFS.
func (v pinnedVFS) FullPathname(name string) (string, error) { return name, nil }

// readOnlyFile is a pinned file as SQLite sees it; if it is nil, an empty file.
type readOnlyFile struct{ *pinnedFile }

var _ vfs.File = readOnlyFile{}

// ReadAt implements vfs.File.
func (f readOnlyFile) ReadAt(p []byte, off int64) (int, error) {
	if f.pinnedFile == nil {
		return 0, io.EOF
	}
	return f.pinnedFile.ReadAt(p, off)
}

// Size implements vfs.File.
func (f readOnlyFile) Size() (int64, error) {
	if f.pinnedFile == nil {
		return 0, nil
	}
	return f.stat.Size, nil
}

// The other methods of vfs.File. Locks are granted, since nobody else sees these files.

func (f readOnlyFile) Close() error                                    { return nil } // pinned.close does it
func (f readOnlyFile) WriteAt([]byte, int64) (int, error)              { return 0, sqlite3.READONLY }
func (f readOnlyFile) Truncate(int64) error                            { return sqlite3.READONLY }
func (f readOnlyFile) Sync(vfs.SyncFlag) error                         { return nil }
func (f readOnlyFile) Lock(vfs.LockLevel) error                        { return nil }
func (f readOnlyFile) Unlock(vfs.LockLevel) error                      { return nil }
func (f readOnlyFile) CheckReservedLock() (bool, error)                { return false, nil }
func (f readOnlyFile) SectorSize() int                                 { return 0 }
func (f readOnlyFile) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
