package nfs

import (
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"sessionfs/nodes"
)

const (
	justNow   = 100 * time.Millisecond // how old a version may be: to open a file takes two requests
	maxReader = time.Minute            // how long a reader keeps its version
	maxRead   = 128 << 10              // the most that a READ or a listing returns, in bytes
)

// openFile is an open file. A client of NFS opens nothing: it asks for the attributes, and then
// reads so many bytes. One version answers all of these.
type openFile struct {
	handle nodes.Handle
	attr   nodes.Attr   // of the version
	read   atomic.Int64 // how far it was read
}

// open opens a file, or returns it if it is open. With now it shows what the name shows now, unless
// a reader is in the middle of it. The caller must call Done.
func (r *request) open(o *object, file nodes.File, now bool) *cached[*openFile] {
	good := func(f *cached[*openFile]) bool {
		read := f.value.read.Load()
		reads := read > 0 && read < f.value.attr.Size && time.Since(f.used) < fresh && time.Since(f.made) < maxReader
		return !now || reads || time.Since(f.made) < justNow && f.made.UnixNano() > r.changed.Load()
	}
	if open := r.files.take(o, good); open != nil {
		return open
	}
	r.log.Debug("opened", "name", o.name)
	made := time.Now()
	h, errno := nodes.OpenFile(r.ctx, file, o.name, os.O_RDONLY)
	r.check(errno)
	stat := file.Stat
	switch h := h.(type) {
	case nodes.VersionHandle:
		stat = h.Stat
	case nodes.AttrHandle:
		stat = h.Attr
	}
	a, err := stat(r.ctx)
	if err != nil {
		h.Close()
		r.check(nodes.Stale(file, o.name, "stat", err))
	}
	return r.files.put(o, &cached[*openFile]{value: &openFile{handle: h, attr: a}, made: made, close: h.Close})
}

// read answers READ.
func (r *request) read() {
	o, n := r.object()
	off, count := int64(r.in.u64()&(1<<62-1)), min(r.in.u32(), maxRead)
	file, ok := n.(nodes.File)
	if !ok {
		r.check(syscall.EINVAL)
	}
	buf, read, size := make([]byte, count), 0, int64(0)
	if control, ok := n.(nodes.Control); ok && !control.Readable() {
		read, size = o.linesOf(control).readTail(buf, off)
	} else {
		open := r.open(o, file, false)
		defer open.Done()
		var err error
		if read, err = open.value.handle.ReadAt(r.ctx, buf, off); err != io.EOF {
			r.check(nodes.Fail(n, o.name, "read", err))
		}
		size = open.value.attr.Size
		open.value.read.Store(off + int64(read))
	}
	r.out.put(0) // no attributes: they may be those of a later version
	r.out.put(uint32(read))
	r.out.putBool(read < len(buf) || off+int64(read) >= size)
	r.out.putOpaque(buf[:read])
}
