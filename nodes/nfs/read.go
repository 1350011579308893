package nfs

import (
	"bytes"
	"encoding/binary"
	"io"
	"iter"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

const (
	justNow     = 100 * time.Millisecond // how old a version may be: to open a file takes two requests
	fresh       = time.Second            // the same for a listing in which a client goes on
	maxReader   = time.Minute            // how long a reader keeps its version
	idleTime    = 3 * time.Second        // how long one is kept without use
	maxVersions = 128                    // that are kept
	maxRead     = 128 << 10              // the most that a READ or a listing returns, in bytes
	firstCookie = 3                      // the smallest cookie of a name; "." and ".." have 1 and 2
)

// fileVersion is a version of a file, or a listing of a directory. A client of NFS opens nothing: it
// asks for the attributes, and then reads so many bytes, or one page of names after the other. One
// version answers all of these.
type fileVersion struct {
	sync.RWMutex // held for reading by each user, and for ever once it is closed
	made         time.Time
	close        func()
	idle         *time.Timer // drops it

	handle nodes.Handle // of a file
	attr   nodes.Attr
	read   atomic.Int64 // how far the file was read
	readAt atomic.Int64 // when, in nanoseconds since 1970
	names  []listedName // of a directory
}

// listedName is a name of a listing, which is in the order of ids. A cookie is made of an id, so a
// client goes on behind the same name, however the directory changes, and after a restart of the
// server.
type listedName struct {
	id   nodeID
	item nodes.Item
}

// use locks a kept version for reading, and keeps it for another idleTime. It returns false, and locks nothing,
// if the version is closed.
func (v *fileVersion) use() bool {
	if !v.TryRLock() {
		return false
	}
	v.idle.Reset(idleTime)
	return true
}

// keep keeps a new version of an object, in place of the one before, until it was not used for idleTime. It locks
// the version for reading. The caller must call RUnlock.
func (d *Door) keep(o *handledNode, v *fileVersion) {
	v.RLock()
	v.idle = time.AfterFunc(idleTime, func() {
		kept, _ := d.versions.Peek(o)
		if kept == v { // otherwise another one is in its place already
			d.versions.Remove(o)
		}
	})
	d.replacing.Lock()
	defer d.replacing.Unlock()
	d.versions.Remove(o) // Add alone would not close the version before
	d.versions.Add(o, v)
}

// open returns the kept version of a file, or opens the file. With now the version is the name's content of now,
// unless a reader is in the middle of the kept one. A failure ends the request. The caller must call RUnlock.
func (r *request) open(o *handledNode, now bool) *fileVersion {
	kept, isKept := r.versions.Get(o)
	if isKept {
		isGood := !now || r.isCurrent(kept)
		if isGood && kept.use() {
			return kept
		}
	}
	v, errno := r.openVersion(o)
	r.check(errno)
	r.keep(o, v)
	return v
}

// isCurrent reports whether a version of a file may be taken for the name's content of now: it was just made, and
// no client has changed something since, or a reader is in the middle of it.
func (r *request) isCurrent(v *fileVersion) bool {
	age := time.Since(v.made)
	isUnchanged := v.made.UnixNano() > r.changed.Load()
	if age < justNow && isUnchanged {
		return true
	}
	return age < maxReader && v.isInUse()
}

// openVersion opens a file as a version that is not kept yet.
func (r *request) openVersion(o *handledNode) (*fileVersion, syscall.Errno) {
	r.log.Debug("opened", "name", o.name)
	made := time.Now() // before the content, so that a change meanwhile counts
	file := o.node.(nodes.File)
	handle, errno := nodes.OpenFile(r.ctx, file, o.name, os.O_RDONLY)
	if errno != 0 {
		return nil, errno
	}
	attr, err := nodes.StatVersion(r.ctx, file, handle)
	if err != nil {
		handle.Close()
		return nil, nodes.Stale(file, o.name, "stat", err)
	}
	v := &fileVersion{
		made:   made,
		close:  handle.Close,
		handle: handle,
		attr:   attr,
	}
	return v, 0
}

// isInUse reports whether a reader is in the middle of the version: it has read a part, not long ago.
func (v *fileVersion) isInUse() bool {
	read := v.read.Load()
	if read <= 0 || read >= v.attr.Size {
		return false
	}
	last := time.Unix(0, v.readAt.Load())
	return time.Since(last) < fresh
}

// read answers READ. It reads the kept version, as the client has the size of that one.
func (r *request) read() {
	const maxOffset = 1<<62 - 1 // so that no sum of an offset and a count overflows
	o := r.object()
	off := int64(r.in.u64() & maxOffset)
	count := min(r.in.u32(), maxRead)
	_, isFile := o.node.(nodes.File)
	r.require(isFile, syscall.EINVAL)
	buf := make([]byte, count)
	n := 0
	size := int64(0)
	if o.lines != nil && !o.lines.file.Readable() {
		n, size = o.lines.readTail(buf, off)
	} else {
		n, size = r.readFile(o, buf, off)
	}
	isEnd := n < len(buf) || off+int64(n) >= size
	r.out.noAttributes() // a later version may have other ones
	r.out.put32(uint32(n))
	r.out.putBool(isEnd)
	r.out.putOpaque(buf[:n])
}

// readFile reads a file that shows content into buf. It returns the number of bytes, and the size of the version
// that it reads, which counts as in use then. A failure ends the request.
func (r *request) readFile(o *handledNode, buf []byte, off int64) (n int, size int64) {
	v := r.open(o, false)
	defer v.RUnlock()
	n, err := v.handle.ReadAt(r.ctx, buf, off)
	if err != io.EOF {
		r.check(nodes.Fail(o.node, o.name, "read", err))
	}
	v.read.Store(off + int64(n))
	v.readAt.Store(time.Now().UnixNano())
	return n, v.attr.Size
}

// list lists a directory, or returns a kept listing that is younger than age. The caller must call
// RUnlock, unless there is an errno.
func (r *request) list(dir *handledNode, age time.Duration) (*fileVersion, syscall.Errno) {
	kept, isKept := r.versions.Get(dir)
	if isKept && time.Since(kept.made) < age && kept.use() {
		return kept, 0
	}
	v, errno := r.listVersion(dir)
	if errno != 0 {
		return nil, errno
	}
	r.keep(dir, v)
	return v, 0
}

// listVersion lists a directory, in the order of ids, as a version that is not kept yet. If the names have
// changed since the last listing, it sets dir.changed.
func (r *request) listVersion(dir *handledNode) (*fileVersion, syscall.Errno) {
	made := time.Now()
	node := r.dir(dir)
	errno := nodes.OpenDir(r.ctx, node)
	if errno != 0 {
		return nil, errno
	}
	held, errno := nodes.ListDir(r.ctx, node)
	if errno != 0 {
		return nil, errno
	}
	names := make([]listedName, len(held.Items))
	sum := uint64(1) // not 0, which means that the directory was not listed
	for i, it := range held.Items {
		id := dir.ID.child(it.Name)
		names[i] = listedName{id: id, item: it}
		sum += id.number() + uint64(it.Kind)
	}
	slices.SortFunc(names, func(a, b listedName) int {
		return bytes.Compare(a.id[:], b.id[:])
	})
	before := dir.sum.Swap(sum)
	if before != 0 && before != sum {
		dir.changed.Store(made.UnixNano()) // clients keep a listing until the times of the directory change
	}
	return &fileVersion{made: made, close: held.Close, names: names}, 0
}

// startingAt returns the names of a listing from the first one on that has an id not below prefix.
func (v *fileVersion) startingAt(prefix []byte) []listedName {
	first, _ := slices.BinarySearchFunc(v.names, prefix, func(n listedName, prefix []byte) int {
		return bytes.Compare(n.id[:len(prefix)], prefix)
	})
	return v.names[first:]
}

// readDir answers READDIR, and with plus READDIRPLUS.
func (r *request) readDir(plus bool) {
	const otherBytes = 128 // of the reply, beside the names
	dir := r.object()
	cookie := r.in.u64()
	r.in.u64() // the verifier: cookies stay good
	if plus {
		r.in.u32() // how much of the reply may be names
	}
	limit := int(min(r.in.u32(), maxRead)) - otherBytes
	state := r.dirState(dir)
	defer state.Close()
	age := justNow
	if cookie != 0 {
		age = fresh
	}
	list, errno := r.list(dir, age)
	r.check(errno)
	defer list.RUnlock()
	like := r.knownAttr(dir)
	r.putKnown(dir, like)
	r.out.put64(0) // the verifier
	start := len(r.out)
	isFull := false
	for name, ownCookie := range list.namesBehind(cookie, dir) {
		before := len(r.out)
		r.out.putBool(true) // an entry follows
		r.out.put64(name.id.number())
		r.out.putOpaque([]byte(name.item.Name))
		r.out.put64(ownCookie)
		if plus {
			r.putListed(dir, &state, name, like)
		}
		isFull = len(r.out)-start > limit
		if isFull {
			r.out = r.out[:before] // without the last entry
			break
		}
	}
	if isFull && len(r.out) == start {
		panic(r.failed(nfsTooSmall))
	}
	r.out.putBool(false)   // no entry follows
	r.out.putBool(!isFull) // the end of the directory
}

// namesBehind yields the names of a listing of dir behind a cookie, with their own cookies: "." and ".."
// first. Cookie 0 is the beginning.
func (v *fileVersion) namesBehind(cookie uint64, dir *handledNode) iter.Seq2[listedName, uint64] {
	const itself = 1
	const parent = 2
	return func(yield func(listedName, uint64) bool) {
		if cookie < itself && !yield(dirName(".", dir.ID), itself) {
			return
		}
		if cookie < parent && !yield(dirName("..", dir.parent.ID), parent) {
			return
		}
		// The cookie of a name is the number of its id, which is the id's first word without its last bit.
		leastID := binary.BigEndian.AppendUint64(nil, (cookie+1)<<1)
		for _, n := range v.startingAt(leastID) {
			own := n.id.number()
			isBehind := own > cookie // a number is at least firstCookie, so the first ids may share one
			if isBehind && !yield(n, own) {
				return
			}
		}
	}
}

// dirName returns a directory's name in a listing.
func dirName(name string, id nodeID) listedName {
	item := nodes.Item{Name: name, Kind: storage.KindDir, Bare: true}
	return listedName{id: id, item: item}
}

// putListed encodes the attributes and the handle of a listed name. If its attributes may take long, it
// has no handle, and a kind beside the attributes of the directory: find needs no more, and a client
// without a handle keeps no attributes, so that it asks for a size before it uses one.
func (r *request) putListed(dir *handledNode, state *nodes.DirState, n listedName, like nodes.Attr) {
	if !n.item.Bare && r.ctx.Err() == nil {
		o, a, _ := r.find(state, dir, n.item)
		if a.Kind != storage.KindOther {
			r.putKnown(o, a)
			r.out.putBool(true)
			r.out.putOpaque(r.sign(o.handle))
			return
		}
	}
	const readable = 0o444
	like.Kind = n.item.Kind
	like.Mode &= readable
	r.putKnown(&handledNode{handle: handle{ID: n.id}}, like)
	r.out.putBool(false) // no handle
}
