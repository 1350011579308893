package nfs

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"sync/atomic"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// handle identifies a node. A client has its 48 bytes and their MAC, so that a restarted server
// finds the node again in the listings of its ancestors.
type handle struct {
	Kind    storage.Kind
	Depth   uint8 // below the root; maxDepth is any deeper one too
	ID      nodeID
	Content uint64 // as in nodes.Child
	// Ancestors are the first bytes of the ids of those below the root, the highest first. A node
	// with more of them is found in the table alone.
	Ancestors [7][3]byte
	_         byte
}

const (
	handleSize = 64 // of a handle and its MAC, in bytes
	macSize    = 16
	maxDepth   = 255
)

// nodeID identifies a path of the mount: it is a hash of the directory's id and the name.
type nodeID [16]byte

// child returns the id of a name in the directory.
func (id nodeID) child(name string) nodeID {
	sum := sha256.Sum256(append(id[:], name...))
	return nodeID(sum[:])
}

// number is the fileid of the node, and the cookie of its name in a listing. Clients take cookies
// for signed numbers, so it has 63 bits.
func (id nodeID) number() uint64 { return max(binary.BigEndian.Uint64(id[:])>>1, firstCookie) }

// handledNode is a node that clients have a handle of.
type handledNode struct {
	handle
	name   string
	parent *handledNode
	node   nodes.Node
	lines  *acceptedLines // of a file that accepts lines, else nil

	sum     atomic.Uint64 // of the names of the directory when it was listed; 0 if it was not
	changed atomic.Int64  // when another sum was seen, in nanoseconds since 1970
}

// child returns the object of a child that was found in a directory: the known one of the same handle, or a new
// one, which the table keeps.
func (d *Door) child(dir *handledNode, name string, c *nodes.Child) *handledNode {
	h := handle{
		Kind:      c.Kind,
		Depth:     min(dir.Depth, maxDepth-1) + 1,
		ID:        dir.ID.child(name),
		Content:   c.Content,
		Ancestors: dir.Ancestors,
	}
	above := int(dir.Depth)
	if above > 0 && above <= len(h.Ancestors) {
		h.Ancestors[above-1] = [3]byte(dir.ID[:])
	}
	known, isKnown := d.objects.Get(h)
	if isKnown {
		return known
	}
	o := &handledNode{
		handle: h,
		name:   name,
		parent: dir,
		node:   c.Make(),
	}
	control, isControl := o.node.(nodes.Control)
	if isControl {
		o.lines = newLines(control, name)
	}
	other, hasOther, _ := d.objects.PeekOrAdd(h, o)
	if hasOther { // another request has found the child at the same time
		return other
	}
	return o
}

// mac returns the MAC of bytes under the door's secret, cut to macSize.
func (d *Door) mac(b []byte) []byte {
	h := hmac.New(sha256.New, d.secret)
	h.Write(b)
	return h.Sum(nil)[:macSize]
}

// sign returns a handle as clients have it.
func (d *Door) sign(h handle) []byte {
	b, _ := binary.Append(make([]byte, 0, handleSize), binary.BigEndian, h) // it has a fixed size
	return append(b, d.mac(b)...)
}

// object decodes a handle and returns its object. The connection is trusted then. A handle without our MAC, or
// of a node that is gone, ends the request.
func (r *request) object() *handledNode {
	signed := r.in.opaque(handleSize)
	var h handle
	n, _ := binary.Decode(signed, binary.BigEndian, &h)
	if len(signed) != handleSize || !hmac.Equal(signed[n:], r.mac(signed[:n])) {
		panic(r.failed(nfsBadHandle))
	}
	r.from.trust()
	if h == r.root.handle { // the table has not the root
		return r.root
	}
	o, isKnown := r.objects.Get(h)
	if isKnown {
		return o
	}
	r.resolving = true
	o = r.resolve(r.root, h)
	r.resolving = false
	r.require(o != nil, syscall.ESTALE)
	return o
}

// resolve finds the object of a handle that an earlier server has made, or that the table has
// forgotten, in the listings of its ancestors, of which dir is one. It returns nil if there is
// none.
func (r *request) resolve(dir *handledNode, h handle) *handledNode {
	if h.Depth == 0 || int(h.Depth) > len(h.Ancestors)+1 {
		return nil
	}
	isLast := dir.Depth+1 == h.Depth
	prefix := h.ID[:]
	if !isLast {
		prefix = h.Ancestors[dir.Depth][:]
	}
	list, errno := r.list(dir, fresh)
	r.check(errno)
	defer list.RUnlock()
	state := r.dirState(dir)
	defer state.Close()
	for _, n := range list.startingAt(prefix) {
		if !bytes.HasPrefix(n.id[:], prefix) {
			break // the listing is in the order of ids
		}
		found, _, errno := r.find(&state, dir, n.item)
		r.check(errno)
		if !isLast && found.Kind == storage.KindDir {
			found = r.resolve(found, h)
		}
		if found != nil && found.handle == h {
			return found
		}
	}
	return nil
}

// dir returns the node of a directory.
func (r *request) dir(o *handledNode) nodes.Dir {
	in, ok := o.node.(nodes.Dir)
	r.require(ok, syscall.ENOTDIR)
	return in
}

// dirState returns the state of a directory now. The caller must close it.
func (r *request) dirState(dir *handledNode) nodes.DirState {
	state, err := nodes.NewDirState(r.ctx, r.dir(dir))
	r.check(nodes.Fail(dir.node, "", "lookup", err))
	return state
}

// find finds the object of a name in the state of a directory, and its attributes if they take no
// rendering and are not refused; otherwise they have the kind KindOther.
func (r *request) find(state *nodes.DirState, dir *handledNode, it nodes.Item) (o *handledNode, a nodes.Attr, errno syscall.Errno) {
	child, errno := state.Find(r.ctx, it)
	if errno != 0 {
		return nil, a, errno
	}
	o = r.child(dir, it.Name, &child)
	if !nodes.IsRendered(o.node) {
		a, _ = state.Attr(r.ctx, it.Name, &child, o.node) // a client that needs them gets the error
	}
	return o, a, 0
}

// lookIn finds a name in a directory.
func (r *request) lookIn(dir *handledNode, name string) (*handledNode, nodes.Attr) {
	state := r.dirState(dir)
	defer state.Close()
	o, a, errno := r.find(&state, dir, nodes.Named(name))
	r.check(errno)
	return o, a
}

// types are the numbers of RFC 1813, ftype3.
var types = map[storage.Kind]int{storage.KindFile: 1, storage.KindDir: 2, storage.KindLink: 5}

// knownAttr returns the attributes of an object now if they take no rendering, else attributes of KindOther.
func (r *request) knownAttr(o *handledNode) (a nodes.Attr) {
	if !nodes.IsRendered(o.node) {
		a, _ = o.node.Stat(r.ctx) // a client that needs them gets the error
	}
	return a
}

// attr returns the attributes of an object now. For a generated file it renders the content.
func (r *request) attr(o *handledNode) nodes.Attr {
	if o.sum.Load() != 0 { // so that o.changed is right
		list, errno := r.list(o, justNow)
		if errno == 0 {
			list.RUnlock()
		}
	}
	if !nodes.IsRendered(o.node) {
		a, err := o.node.Stat(r.ctx)
		r.check(nodes.Stale(o.node, o.name, "stat", err))
		return a
	}
	v := r.open(o, true)
	defer v.RUnlock()
	a := v.attr
	if o.lines != nil { // a client writes behind the size that it is told
		tail := make([]byte, min(a.Size, tailSize))
		_, err := v.handle.ReadAt(r.ctx, tail, a.Size-int64(len(tail)))
		if err == nil || len(tail) == 0 {
			o.lines.show(a.Size, tail)
		}
	}
	return a
}

// putAttr encodes a fattr3, with the names of RFC 1813. A file that accepts lines has the size that clients wrote.
func (r *request) putAttr(o *handledNode, a nodes.Attr) {
	if o.lines != nil {
		a.Size = o.lines.writtenSize()
	}
	const links = 1
	size := uint64(a.Size)
	r.out.put32(uint32(types[a.Kind]))
	r.out.put32(a.Mode)
	r.out.put32(links)
	r.out.put32(a.UID)
	r.out.put32(a.GID)
	r.out.put64(size)
	r.out.put64(size)               // used
	r.out.put64(0)                  // rdev
	r.out.put64(r.root.ID.number()) // fsid
	r.out.put64(o.ID.number())      // fileid
	r.putTime(o, a.Modified)        // atime
	r.putTime(o, a.Modified)        // mtime
	r.putTime(o, a.Changed)         // ctime
}

// putTime encodes a nfstime3: a time of an object, not before the last change of its names, nor before 1970.
func (r *request) putTime(o *handledNode, t time.Time) {
	const second = int64(time.Second)
	ns := max(t.UnixNano(), o.changed.Load(), 0)
	r.out.put32(uint32(ns / second))
	r.out.put32(uint32(ns % second))
}

// putKnown encodes attributes, or leaves out attributes of no kind.
func (r *request) putKnown(o *handledNode, a nodes.Attr) {
	known := a.Kind != storage.KindOther
	r.out.putBool(known)
	if known {
		r.putAttr(o, a)
	}
}
