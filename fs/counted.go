//go:build linux

package fs

import (
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

// counted counts what programs have open, and notes when one looked for something: whatever else they ask for comes behind
// a look-up, or concerns what is open.
type counted struct {
	fuse.RawFileSystem
	counts *counts
}

// Lookup implements fuse.RawFileSystem.
func (f *counted) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.counts.last.Store(time.Now().UnixNano())
	return f.RawFileSystem.Lookup(cancel, header, name, out)
}

// Open counts what is open.
func (f *counted) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.counts.opened(f.RawFileSystem.Open(cancel, in, out))
}

// OpenDir counts what is open.
func (f *counted) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return f.counts.opened(f.RawFileSystem.OpenDir(cancel, in, out))
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
