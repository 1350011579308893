package nfs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// A handle has 64 bytes, so that a restarted server finds the node again in the listings of its
// ancestors:
//
//	 0  1  version
//	 1  1  depth below the root
//	 2 16  id: a hash of the parent's id and the name
//	18  8  content of the child, as in nodes.Child
//	26 22  the first bytes of the ids of the ancestors below the root, prefixSize each, the first ancestor first
//	48 16  MAC of all before
const (
	handleSize    = 64
	handleVersion = 1
	idAt          = 2
	contentAt     = 18
	prefixesAt    = 26
	macAt         = 48
	prefixSize    = 3
	maxAncestors  = 7 // a deeper node is found in the table alone
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
	id      nodeID
	content uint64
}

// object is a node that clients have a handle of.
type object struct {
	key
	kind   storage.Kind
	name   string
	parent *object // nil for the root
	depth  int

	mu      sync.Mutex // guards the rest
	node    nodes.Node // nil until it is needed
	listed  bool       // the names of the directory were listed, with sum
	sum     uint64
	changed time.Time // when another sum was seen
	lines   *lines    // of a file that accepts lines; nil until it is needed
}

// above returns the parent, of the root itself.
func (o *object) above() *object {
	if o.parent == nil {
		return o
	}
	return o.parent
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

// table holds the objects that were used last.
type table struct {
	secret []byte
	root   *object
	mu     sync.Mutex // guards lru
	lru    *simplelru.LRU[key, *object]
}

// maxObjects bounds the table; a quarter of the memory of the process is enough for it.
const maxObjects = 1 << 16

func newTable(secret []byte, source string, root *nodes.RootDir) *table {
	t := &table{secret: secret, root: &object{kind: storage.KindDir, node: root}}
	copy(t.root.id[:], t.mac([]byte(source)))
	limit := min(maxObjects, root.View().Memory.Size()>>12)
	t.lru, _ = simplelru.NewLRU[key, *object](int(limit), nil) // the limit is positive
	return t
}

func (t *table) mac(b []byte) []byte {
	h := hmac.New(sha256.New, t.secret)
	h.Write(b)
	return h.Sum(nil)[:handleSize-macAt]
}

// handle returns the handle of an object.
func (t *table) handle(o *object) []byte {
	b := make([]byte, macAt, handleSize)
	b[0], b[1] = handleVersion, byte(min(o.depth, 255))
	copy(b[idAt:], o.id[:])
	binary.BigEndian.PutUint64(b[contentAt:], o.content)
	for p := o.parent; p != nil && p.depth > 0; p = p.parent {
		if p.depth <= maxAncestors {
			copy(b[prefixesAt+prefixSize*(p.depth-1):], p.id[:prefixSize])
		}
	}
	return append(b, t.mac(b)...)
}

// isOurs reports whether the MAC of a handle is right.
func (t *table) isOurs(handle []byte) bool {
	return len(handle) == handleSize && handle[0] == handleVersion && hmac.Equal(handle[macAt:], t.mac(handle[:macAt]))
}

// keyOf returns the key in a handle.
func keyOf(handle []byte) key {
	return key{nodeID(handle[idAt:contentAt]), binary.BigEndian.Uint64(handle[contentAt:])}
}

// get returns an object of the table, nil if it is not there.
func (t *table) get(k key) *object {
	if k == t.root.key {
		return t.root
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	o, _ := t.lru.Get(k)
	return o
}

// child returns the object of a child that was found in a directory.
func (t *table) child(dir *object, name string, c *nodes.Child) *object {
	k := key{dir.id.child(name), c.Content}
	t.mu.Lock()
	defer t.mu.Unlock()
	if o, ok := t.lru.Get(k); ok && o.kind == c.Kind {
		return o
	}
	o := &object{key: k, kind: c.Kind, name: name, parent: dir, depth: dir.depth + 1}
	t.lru.Add(k, o)
	return o
}
