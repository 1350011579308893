//go:build linux

package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// counted counts the requests that a file system gets. Those that end at once in any case, such as those for what is
// refused, and those for which nobody waits are not counted.
type counted struct {
	fuse.RawFileSystem
	counts *counts
}

// Open counts what is open.
func (f *counted) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	if status = f.RawFileSystem.Open(cancel, in, out); status.Ok() {
		f.counts.open.Add(1)
	}
	return status
}

// OpenDir counts what is open.
func (f *counted) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	if status = f.RawFileSystem.OpenDir(cancel, in, out); status.Ok() {
		f.counts.open.Add(1)
	}
	return status
}

// Release closes a file that Open has counted.
func (f *counted) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	f.RawFileSystem.Release(cancel, in)
	f.counts.open.Add(-1)
}

// ReleaseDir closes a directory that OpenDir has counted.
func (f *counted) ReleaseDir(in *fuse.ReleaseIn) {
	f.RawFileSystem.ReleaseDir(in)
	f.counts.open.Add(-1)
}

// Lookup implements fuse.RawFileSystem, as do the methods below.
func (f *counted) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Lookup(cancel, header, name, out)
}

// GetAttr implements fuse.RawFileSystem.
func (f *counted) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.GetAttr(cancel, in, out)
}

// Statx implements fuse.RawFileSystem.
func (f *counted) Statx(cancel <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Statx(cancel, in, out)
}

// ReadDir implements fuse.RawFileSystem.
func (f *counted) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.ReadDir(cancel, in, out)
}

// ReadDirPlus implements fuse.RawFileSystem.
func (f *counted) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.ReadDirPlus(cancel, in, out)
}

// StatFs implements fuse.RawFileSystem.
func (f *counted) StatFs(cancel <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.StatFs(cancel, in, out)
}

// Symlink implements fuse.RawFileSystem.
func (f *counted) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Symlink(cancel, header, target, name, out)
}

// SetAttr implements fuse.RawFileSystem.
func (f *counted) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.SetAttr(cancel, in, out)
}

// Unlink implements fuse.RawFileSystem.
func (f *counted) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Unlink(cancel, header, name)
}

// Rename implements fuse.RawFileSystem.
func (f *counted) Rename(cancel <-chan struct{}, in *fuse.RenameIn, name, newName string) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Rename(cancel, in, name, newName)
}

// Flush implements fuse.RawFileSystem.
func (f *counted) Flush(cancel <-chan struct{}, in *fuse.FlushIn) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Flush(cancel, in)
}

// Fsync implements fuse.RawFileSystem.
func (f *counted) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) (status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Fsync(cancel, in)
}

// Read implements fuse.RawFileSystem.
func (f *counted) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (result fuse.ReadResult, status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Read(cancel, in, buf)
}

// Readlink implements fuse.RawFileSystem.
func (f *counted) Readlink(cancel <-chan struct{}, header *fuse.InHeader) (target []byte, status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Readlink(cancel, header)
}

// Write implements fuse.RawFileSystem.
func (f *counted) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Write(cancel, in, data)
}

// Writev implements fuse.RawFileSystem.
func (f *counted) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (written uint32, status fuse.Status) {
	defer f.counts.request(&status)()
	return f.RawFileSystem.Writev(cancel, in, data)
}
