package nfs

import (
	"context"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

const (
	maxOpen   = 64              // files that are kept open
	openIdle  = 3 * time.Second // how long one is kept without a request
	maxReader = time.Minute     // how long a reader keeps its version
	justNow   = fresh / 10      // how old a version may be: a program that opens a file asks for its attributes twice
)

// openFile is an open file. A client of NFS opens nothing: it asks for the attributes and then reads so many bytes. All these
// are answered from one version.
type openFile struct {
	handle nodes.Handle
	attr   nodes.Attr // of the version

	// openFiles.mu guards what follows.
	opened, used time.Time
	read         int64 // how far it was read
	users        int
	gone         bool
}

// openFiles are the files that clients read now.
type openFiles struct {
	mu sync.Mutex
	of map[*object]*openFile
	// changed is when a client changed something last. It must see that in all that it asks for afterwards.
	changed time.Time
}

// change notes that a client changes something.
func (f *openFiles) change() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.changed = time.Now()
}

// take returns the open file of an object, nil if there is none. With now it shows what the name does, within a second: a
// reader in the middle of the file keeps its version.
func (f *openFiles) take(o *object, now bool) *openFile {
	f.mu.Lock()
	defer f.mu.Unlock()
	open := f.of[o]
	if open == nil {
		return nil
	}
	reads := open.read > 0 && open.read < open.attr.Size && time.Since(open.used) < fresh && time.Since(open.opened) < maxReader
	if now && !reads && (time.Since(open.opened) > justNow || open.opened.Before(f.changed)) {
		return nil
	}
	open.users++
	open.used = time.Now()
	return open
}

// release ends the use of an open file.
func (f *openFiles) release(open *openFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	open.users--
	open.closeUnused()
}

func (f *openFile) closeUnused() {
	if f.gone && f.users == 0 {
		f.handle.Close()
	}
}

// open opens a file, or returns it if it is open; see take. The caller must release it.
func (f *openFiles) open(ctx context.Context, o *object, file nodes.File, now bool) (*openFile, syscall.Errno) {
	if open := f.take(o, now); open != nil {
		return open, 0
	}
	if err := storage.LockUntil(ctx, &o.opening); err != nil {
		return nil, nodes.Errno(err)
	}
	defer o.opening.Unlock()
	if open := f.take(o, now); open != nil {
		return open, 0
	}
	h, errno := nodes.OpenFile(ctx, file, o.name, os.O_RDONLY)
	if errno != 0 {
		return nil, errno
	}
	stat := file.Stat
	if version, ok := h.(nodes.VersionHandle); ok {
		stat = version.Stat
	}
	a, err := stat(ctx)
	if err != nil {
		h.Close()
		return nil, nodes.Stale(file, o.name, "stat", err)
	}
	at := time.Now()
	open := &openFile{handle: h, attr: a, opened: at, used: at, users: 1}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drop(o)
	if len(f.of) >= maxOpen {
		f.drop(f.oldest())
	}
	f.of[o] = open
	return open, 0
}

func (f *openFiles) oldest() (oldest *object) {
	for o, open := range f.of {
		if oldest == nil || open.used.Before(f.of[oldest].used) {
			oldest = o
		}
	}
	return oldest
}

// drop closes the open file of an object when its last user is done.
func (f *openFiles) drop(o *object) {
	if open := f.of[o]; open != nil {
		open.gone = true
		open.closeUnused()
		delete(f.of, o)
	}
}

// expire closes the files that nobody has used for a while; all, if all is set.
func (f *openFiles) expire(all bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for o, open := range f.of {
		if all || time.Since(open.used) > openIdle {
			f.drop(o)
		}
	}
}

// maxRead is the most that a READ or a listing returns, in bytes.
const maxRead = 128 << 10

// readFile answers READ.
func (r *request) readFile() status {
	o, n, st := r.object()
	off, count := r.in.u64(), min(r.in.u32(), maxRead)
	if st != nfsOK || r.in.bad {
		return st
	}
	file, ok := n.(nodes.File)
	if !ok || off > 1<<62 {
		return nfsInvalid
	}
	buf := make([]byte, count)
	var read int
	var size int64
	control, lines := n.(nodes.Control)
	if lines && !control.Readable() {
		read, size = o.linesOf(control).readTail(buf, int64(off))
	} else {
		open, errno := r.door.files.open(r.ctx, o, file, false)
		if errno != 0 {
			return statusOf(errno)
		}
		defer r.door.files.release(open)
		var err error
		if read, err = open.handle.ReadAt(r.ctx, buf, int64(off)); err != nil && err != io.EOF {
			return statusOf(nodes.Fail(n, o.name, "read", err))
		}
		size = open.attr.Size
		r.door.files.readTo(open, int64(off)+int64(read))
	}
	r.out.bool(false) // no attributes: they may be those of a later version
	r.out.u32(uint32(read))
	r.out.bool(read < len(buf) || int64(off)+int64(read) >= size)
	r.out.opaque(buf[:read])
	return nfsOK
}

// readTo notes how far a file was read.
func (f *openFiles) readTo(open *openFile, off int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	open.read = off
}
