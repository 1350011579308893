package nfs

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"syscall"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// A handle has 64 bytes, so that a restarted server finds the node again in the listings of its
// ancestors:
//
//	 0  1  kind of the node
//	 1  1  depth below the root
//	 2 16  id: a hash of the parent's id and the name
//	18  8  content of the child, as in nodes.Child
//	26 22  the first bytes of the ids of the ancestors below the root, prefixSize each, the first ancestor first
//	48 16  MAC of all before
const (
	handleSize   = 64
	idAt         = 2
	contentAt    = 18
	prefixesAt   = 26
	macAt        = 48
	prefixSize   = 3
	maxAncestors = 7 // a deeper node is found in the table alone
)

// nodeID identifies a path of the mount.
type nodeID [contentAt - idAt]byte

// child returns the id of a name in the directory.
func (id nodeID) child(name string) (c nodeID) {
	h := sha256.New()
	h.Write(id[:])
	h.Write([]byte(name))
	copy(c[:], h.Sum(nil))
	return c
}

// number is the fileid of the node, and the cookie of its name in a listing. Clients take cookies
// for signed numbers.
func (id nodeID) number() uint64 { return max(binary.BigEndian.Uint64(id[:])>>1, firstCookie) }

// key is the identity of an object.
type key struct {
	kind    storage.Kind
	id      nodeID
	content uint64
}

// keyOf returns the key in a handle.
func keyOf(handle []byte) key {
	return key{storage.Kind(handle[0]), nodeID(handle[idAt:contentAt]), binary.BigEndian.Uint64(handle[contentAt:])}
}

// object is a node that clients have a handle of.
type object struct {
	key
	name   string
	parent *object
	depth  int

	sum     atomic.Uint64         // of the names of the directory when it was listed; 0 if it was not
	changed atomic.Int64          // when another sum was seen, in nanoseconds since 1970
	lines   atomic.Pointer[lines] // of a file that accepts lines; nil until it is needed

	mu   sync.Mutex // guards node
	node nodes.Node // nil until it is needed
}

// makeNode makes the node of the object unless it has one, and returns it.
func (o *object) makeNode(c *nodes.Child) nodes.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.node == nil && c != nil {
		o.node = c.Make()
	}
	return o.node
}

// mac returns the MAC of the beginning of a handle.
func (d *Door) mac(b []byte) []byte {
	h := hmac.New(sha256.New, d.secret)
	h.Write(b)
	return h.Sum(nil)[:handleSize-macAt]
}

// handle returns the handle of an object.
func (d *Door) handle(o *object) []byte {
	b := make([]byte, macAt, handleSize)
	b[0], b[1] = byte(o.kind), byte(min(o.depth, 255))
	copy(b[idAt:], o.id[:])
	binary.BigEndian.PutUint64(b[contentAt:], o.content)
	for p := o.parent; p.depth > 0; p = p.parent {
		if p.depth <= maxAncestors {
			copy(b[prefixesAt+prefixSize*(p.depth-1):], p.id[:prefixSize])
		}
	}
	return append(b, d.mac(b)...)
}

// object decodes a handle.
func (r *request) object() (*object, nodes.Node) {
	handle := r.in.opaque(handleSize)
	if len(handle) != handleSize || !hmac.Equal(handle[macAt:], r.mac(handle[:macAt])) {
		panic(r.failed(nfsBadHandle))
	}
	r.from.trust()
	r.resolving = true
	defer func() { r.resolving = false }()
	o := r.root
	if want := keyOf(handle); want != o.key {
		var known bool
		if o, known = r.objects.Get(want); !known {
			o = r.resolve(r.root, handle)
		}
	}
	if o == nil {
		r.check(syscall.ESTALE)
	}
	return o, r.node(o)
}

// resolve finds the object of a handle that an earlier server has made, or that the table has
// forgotten, in the listings of its ancestors, of which dir is one. It returns nil if there is
// none.
func (r *request) resolve(dir *object, handle []byte) *object {
	depth, prefix := int(handle[1]), handle[idAt:contentAt]
	if depth == 0 || depth > maxAncestors+1 {
		return nil
	}
	isLast := dir.depth+1 == depth
	if !isLast {
		prefix = handle[prefixesAt+prefixSize*dir.depth:][:prefixSize]
	}
	list, errno := r.list(dir, r.dir(dir), fresh)
	r.check(errno)
	defer list.Done()
	look := r.look(dir)
	defer look.Close()
	for _, n := range list.value[search(list.value, prefix):] {
		if !bytes.HasPrefix(n.id[:], prefix) {
			break
		}
		found, _ := r.find(&look, dir, n.item.Name)
		if !isLast && found.kind == storage.KindDir {
			found = r.resolve(found, handle)
		}
		if found != nil && found.key == keyOf(handle) {
			return found
		}
	}
	return nil
}

// node returns the node of an object. It looks the name up where the node is not made yet.
func (r *request) node(o *object) nodes.Node {
	if n := o.makeNode(nil); n != nil {
		return n
	}
	look := r.look(o.parent)
	defer look.Close()
	child, errno := look.Find(r.ctx, nodes.Named(o.name))
	if errno == 0 && (child.Content != o.content || child.Kind != o.kind) {
		errno = syscall.ESTALE
	}
	r.check(errno)
	return o.makeNode(&child)
}

// dir returns the node of a directory.
func (r *request) dir(o *object) nodes.Dir {
	in, ok := r.node(o).(nodes.Dir)
	if !ok {
		r.check(syscall.ENOTDIR)
	}
	return in
}

// look returns the state of a directory now. The caller must close it.
func (r *request) look(dir *object) nodes.Look {
	in := r.dir(dir)
	look, err := nodes.NewLook(r.ctx, in)
	r.check(nodes.Fail(in, "", "lookup", err))
	return look
}

// find finds a name in a look at a directory.
func (r *request) find(look *nodes.Look, dir *object, name string) (*object, *nodes.Child) {
	child, errno := look.Find(r.ctx, nodes.Named(name))
	r.check(errno)
	return r.child(dir, name, &child), &child
}

// child returns the object of a child that was found in a directory.
func (d *Door) child(dir *object, name string, c *nodes.Child) *object {
	k := key{c.Kind, dir.id.child(name), c.Content}
	if o, ok := d.objects.Get(k); ok {
		return o
	}
	o := &object{key: k, name: name, parent: dir, depth: dir.depth + 1}
	if other, ok, _ := d.objects.PeekOrAdd(k, o); ok { // found by another request at the same time
		return other
	}
	return o
}
