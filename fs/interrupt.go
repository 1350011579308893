//go:build linux

package fs

import "github.com/hanwen/go-fuse/v2/fuse"

// interruptible passes requests on to a file system and frees callers that are gone (calls.go). The context of a
// request is done when its caller is gone, and only then. What a request acquired whose caller was freed is released
// here, as the kernel does not know of it.
//
// Requests that end at once in any case, such as those for what is refused, are passed on as they are. So is RELEASE, for
// which nobody waits.
type interruptible struct {
	fuse.RawFileSystem
	calls *calls
}

// do runs a request. answered says that its caller was freed.
func (f *interruptible) do(
	interrupted <-chan struct{}, header *fuse.InHeader, changes bool, run func(gone <-chan struct{}) fuse.Status,
) (status fuse.Status, answered bool) {
	c := f.calls.begin(interrupted, header, changes)
	if c == nil {
		f.calls.counts.end(fuse.EBUSY)
		return fuse.EBUSY, false
	}
	status = fuse.EIO // what a panic is answered with
	defer func() {
		f.calls.counts.end(status)
		answered = f.calls.end(c)
	}()
	return run(c.gone), false
}

// read is do for a request that changes nothing and acquires nothing.
func (f *interruptible) read(interrupted <-chan struct{}, header *fuse.InHeader, run func(gone <-chan struct{}) fuse.Status) fuse.Status {
	status, _ := f.do(interrupted, header, false, run)
	return status
}

// change is do for a request that may change something.
func (f *interruptible) change(interrupted <-chan struct{}, header *fuse.InHeader, run func(gone <-chan struct{}) fuse.Status) fuse.Status {
	status, _ := f.do(interrupted, header, true, run)
	return status
}

// Lookup gives back the node of a caller that was freed.
func (f *interruptible) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	status, answered := f.do(cancel, header, false, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Lookup(gone, header, name, out)
	})
	f.forget(status, answered, out)
	return status
}

func (f *interruptible) forget(status fuse.Status, answered bool, out *fuse.EntryOut) {
	if answered && status.Ok() && out.NodeId != 0 {
		f.RawFileSystem.Forget(out.NodeId, 1)
	}
}

// Symlink gives back the node of a caller that was freed.
func (f *interruptible) Symlink(cancel <-chan struct{}, header *fuse.InHeader, target, name string, out *fuse.EntryOut) fuse.Status {
	status, answered := f.do(cancel, header, true, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Symlink(gone, header, target, name, out)
	})
	f.forget(status, answered, out)
	return status
}

// Create gives back the file of a caller that was freed.
func (f *interruptible) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	status, answered := f.do(cancel, &in.InHeader, true, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Create(gone, in, name, out)
	})
	if answered && status.Ok() {
		f.RawFileSystem.Release(nil, &fuse.ReleaseIn{InHeader: headerOf(in.InHeader, out.NodeId), Fh: out.Fh})
	}
	f.forget(status, answered, &out.EntryOut)
	return status
}

// headerOf is the header of a request for a node by the same caller.
func headerOf(h fuse.InHeader, node uint64) fuse.InHeader {
	h.NodeId = node
	return h
}

// Mkdir gives back the node of a caller that was freed.
func (f *interruptible) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	status, answered := f.do(cancel, &in.InHeader, true, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Mkdir(gone, in, name, out)
	})
	f.forget(status, answered, out)
	return status
}

// Open closes the file of a caller that was freed.
func (f *interruptible) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	status, answered := f.do(cancel, &in.InHeader, false, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Open(gone, in, out)
	})
	switch {
	case answered && status.Ok():
		f.RawFileSystem.Release(nil, &fuse.ReleaseIn{InHeader: in.InHeader, Fh: out.Fh})
	case status.Ok():
		f.calls.counts.open.Add(1)
	}
	return status
}

// Release closes a file that Open has counted.
func (f *interruptible) Release(cancel <-chan struct{}, in *fuse.ReleaseIn) {
	f.RawFileSystem.Release(cancel, in)
	f.calls.counts.open.Add(-1)
}

// OpenDir closes the directory of a caller that was freed.
func (f *interruptible) OpenDir(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	status, answered := f.do(cancel, &in.InHeader, false, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.OpenDir(gone, in, out)
	})
	switch {
	case answered && status.Ok():
		f.RawFileSystem.ReleaseDir(&fuse.ReleaseIn{InHeader: in.InHeader, Fh: out.Fh})
	case status.Ok():
		f.calls.counts.open.Add(1)
	}
	return status
}

// ReleaseDir closes a directory that OpenDir has counted.
func (f *interruptible) ReleaseDir(in *fuse.ReleaseIn) {
	f.RawFileSystem.ReleaseDir(in)
	f.calls.counts.open.Add(-1)
}

// Read ends only when the result is with the kernel, if the library reads a file of SOURCE for it.
func (f *interruptible) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (result fuse.ReadResult, status fuse.Status) {
	c := f.calls.begin(cancel, &in.InHeader, false)
	if c == nil {
		f.calls.counts.end(fuse.EBUSY)
		return nil, fuse.EBUSY
	}
	status = fuse.EIO // what a panic is answered with
	goesOn := false
	defer func() {
		f.calls.counts.end(status)
		if !goesOn {
			f.calls.end(c)
		}
	}()
	result, status = f.RawFileSystem.Read(c.gone, in, buf)
	if file, ok := result.(fileResult); ok && status.Ok() {
		goesOn = true
		result = &readCall{file, f.calls, c}
	}
	return result, status
}

// fileResult is a result of a read that the library takes from a descriptor.
type fileResult interface {
	fuse.ReadResult
	Seekable() (fd uintptr, off int64, size int)
}

// readCall is a fileResult whose request ends with it.
type readCall struct {
	fileResult
	calls *calls
	call  *call
}

// Done ends the request.
func (r *readCall) Done() {
	r.fileResult.Done()
	r.calls.end(r.call)
}

// GetAttr implements fuse.RawFileSystem, as do the methods below.
func (f *interruptible) GetAttr(cancel <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.read(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.GetAttr(gone, in, out)
	})
}

// Statx implements fuse.RawFileSystem.
func (f *interruptible) Statx(cancel <-chan struct{}, in *fuse.StatxIn, out *fuse.StatxOut) fuse.Status {
	return f.read(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Statx(gone, in, out)
	})
}

// Readlink implements fuse.RawFileSystem.
func (f *interruptible) Readlink(cancel <-chan struct{}, header *fuse.InHeader) (target []byte, status fuse.Status) {
	status = f.read(cancel, header, func(gone <-chan struct{}) (status fuse.Status) {
		target, status = f.RawFileSystem.Readlink(gone, header)
		return status
	})
	return target, status
}

// ReadDir implements fuse.RawFileSystem.
func (f *interruptible) ReadDir(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.read(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.ReadDir(gone, in, out)
	})
}

// ReadDirPlus implements fuse.RawFileSystem. The nodes in the answer to a caller that was freed stay until the mount
// ends; a directory returns none once its caller is gone.
func (f *interruptible) ReadDirPlus(cancel <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return f.read(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.ReadDirPlus(gone, in, out)
	})
}

// StatFs implements fuse.RawFileSystem.
func (f *interruptible) StatFs(cancel <-chan struct{}, in *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	return f.read(cancel, in, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.StatFs(gone, in, out)
	})
}

// SetAttr implements fuse.RawFileSystem.
func (f *interruptible) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return f.change(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.SetAttr(gone, in, out)
	})
}

// Unlink implements fuse.RawFileSystem.
func (f *interruptible) Unlink(cancel <-chan struct{}, header *fuse.InHeader, name string) fuse.Status {
	return f.change(cancel, header, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Unlink(gone, header, name)
	})
}

// Rename implements fuse.RawFileSystem.
func (f *interruptible) Rename(cancel <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	return f.change(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Rename(gone, in, name, newName)
	})
}

// Write implements fuse.RawFileSystem.
func (f *interruptible) Write(cancel <-chan struct{}, in *fuse.WriteIn, data []byte) (written uint32, status fuse.Status) {
	status = f.change(cancel, &in.InHeader, func(gone <-chan struct{}) (status fuse.Status) {
		written, status = f.RawFileSystem.Write(gone, in, data)
		return status
	})
	return written, status
}

// Writev implements fuse.RawFileSystem.
func (f *interruptible) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (written uint32, status fuse.Status) {
	status = f.change(cancel, &in.InHeader, func(gone <-chan struct{}) (status fuse.Status) {
		written, status = f.RawFileSystem.Writev(gone, in, data)
		return status
	})
	return written, status
}

// Flush implements fuse.RawFileSystem. A line that it ends takes effect even if the caller is gone.
func (f *interruptible) Flush(cancel <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return f.change(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Flush(gone, in)
	})
}

// Fsync implements fuse.RawFileSystem.
func (f *interruptible) Fsync(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return f.change(cancel, &in.InHeader, func(gone <-chan struct{}) fuse.Status {
		return f.RawFileSystem.Fsync(gone, in)
	})
}
