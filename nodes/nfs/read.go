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

// version returns the version of an object that is kept, if it is good, else a new one that fill
// makes. The caller must call RUnlock.
func (d *Door) version(o *handledNode, good func(*fileVersion) bool, fill func(*fileVersion) syscall.Errno) (*fileVersion, syscall.Errno) {
	kept, isKept := d.versions.Get(o)
	if isKept && good(kept) && kept.TryRLock() {
		kept.idle.Reset(idleTime)
		return kept, 0
	}
	v := &fileVersion{made: time.Now()}
	errno := fill(v)
	if errno != 0 {
		return nil, errno
	}
	v.RLock()
	v.idle = time.AfterFunc(idleTime, func() {
		kept, _ := d.versions.Peek(o)
		if kept == v {
			d.versions.Remove(o)
		}
	})
	d.replacing.Lock()
	defer d.replacing.Unlock()
	d.versions.Remove(o)
	d.versions.Add(o, v)
	return v, 0
}

// open opens a file, or returns it if it is open. With now it shows the name's content of now, unless
// a reader is in the middle of it. The caller must call RUnlock.
func (r *request) open(o *handledNode, now bool) *fileVersion {
	good := func(v *fileVersion) bool {
		if !now {
			return true
		}
		age := time.Since(v.made)
		if age < justNow && v.made.UnixNano() > r.changed.Load() {
			return true
		}
		return age < maxReader && v.isInUse()
	}
	v, errno := r.version(o, good, func(v *fileVersion) (errno syscall.Errno) {
		r.log.Debug("opened", "name", o.name)
		file := o.node.(nodes.File)
		v.handle, errno = nodes.OpenFile(r.ctx, file, o.name, os.O_RDONLY)
		if errno != 0 {
			return errno
		}
		var err error
		v.attr, err = nodes.StatVersion(r.ctx, file, v.handle)
		if err != nil {
			v.handle.Close()
		}
		v.close = v.handle.Close
		return nodes.Stale(file, o.name, "stat", err)
	})
	r.check(errno)
	return v
}

// isInUse reports whether a reader is in the middle of the version.
func (v *fileVersion) isInUse() bool {
	read := v.read.Load()
	if read <= 0 || read >= v.attr.Size {
		return false
	}
	last := time.Unix(0, v.readAt.Load())
	return time.Since(last) < fresh
}

// read answers READ.
func (r *request) read() {
	o := r.object()
	off := int64(r.in.u64() & (1<<62 - 1))
	count := min(r.in.u32(), maxRead)
	_, ok := o.node.(nodes.File)
	r.require(ok, syscall.EINVAL)
	buf := make([]byte, count)
	n := 0
	size := int64(0)
	if o.lines != nil && !o.lines.file.Readable() {
		n, size = o.lines.readTail(buf, off)
	} else {
		v := r.open(o, false)
		defer v.RUnlock()
		var err error
		n, err = v.handle.ReadAt(r.ctx, buf, off)
		if err != io.EOF {
			r.check(nodes.Fail(o.node, o.name, "read", err))
		}
		size = v.attr.Size
		v.read.Store(off + int64(n))
		v.readAt.Store(time.Now().UnixNano())
	}
	isEnd := n < len(buf) || off+int64(n) >= size
	r.out.noAttributes() // a later version may have other ones
	r.out.put32(uint32(n))
	r.out.putBool(isEnd)
	r.out.putOpaque(buf[:n])
}

// list lists a directory, or returns a listing that is not older than age. The caller must call
// RUnlock.
func (r *request) list(dir *handledNode, age time.Duration) (*fileVersion, syscall.Errno) {
	good := func(v *fileVersion) bool {
		return time.Since(v.made) < age
	}
	return r.version(dir, good, func(v *fileVersion) syscall.Errno {
		return r.fillListing(dir, v)
	})
}

// fillListing lists a directory in a version, in the order of ids, and notes a change of the names.
func (r *request) fillListing(dir *handledNode, v *fileVersion) syscall.Errno {
	in := r.dir(dir)
	errno := nodes.OpenDir(r.ctx, in)
	if errno != 0 {
		return errno
	}
	held, errno := nodes.ListDir(r.ctx, in)
	if errno != 0 {
		return errno
	}
	v.names = make([]listedName, len(held.Items))
	v.close = held.Close
	sum := uint64(1)
	for i, it := range held.Items {
		id := dir.ID.child(it.Name)
		v.names[i] = listedName{id: id, item: it}
		sum += id.number() + uint64(it.Kind)
	}
	slices.SortFunc(v.names, func(a, b listedName) int {
		return bytes.Compare(a.id[:], b.id[:])
	})
	before := dir.sum.Swap(sum)
	if before != 0 && before != sum {
		dir.changed.Store(v.made.UnixNano()) // clients keep a listing until the times of the directory change
	}
	return 0
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
	dir := r.object()
	cookie := r.in.u64()
	r.in.u64() // the verifier: cookies stay good
	if plus {
		r.in.u32() // how much of the reply may be names
	}
	limit := int(min(r.in.u32(), maxRead)) - 128 // of it is for the rest of the reply
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
	for n, at := range list.namesBehind(cookie, dir) {
		before := len(r.out)
		r.out.putBool(true) // an entry follows
		r.out.put64(n.id.number())
		r.out.putOpaque([]byte(n.item.Name))
		r.out.put64(at)
		if plus {
			r.putListed(dir, &state, n, like)
		}
		isFull = len(r.out)-start > limit
		if isFull {
			r.out = r.out[:before]
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
			if own > cookie && !yield(n, own) {
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
	like.Mode = like.Mode & readable
	r.putKnown(&handledNode{handle: handle{ID: n.id}}, like)
	r.out.putBool(false) // no handle
}
