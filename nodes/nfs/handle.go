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

// A handle has 64 bytes, so that a restarted server finds the node again in the listings of its ancestors:
//
//	 0  1  version
//	 1  1  depth below the root
//	 2 16  id: a hash of the parent's id and the name
//	18  8  content of the child, as in nodes.Child
//	26 21  the first bytes of the ids of the ancestors below the root, three each; the first ancestor first
//	47  1  zero
//	48 16  MAC of all before
const (
	handleSize    = 64
	handleVersion = 1
	macAt         = 48
	prefixSize    = 3
	maxAncestors  = 7 // a deeper node is found in the table only
)

// nodeID identifies a path of the mount.
type nodeID [16]byte

// child returns the id of a name in the directory.
func (id nodeID) child(name string) (c nodeID) {
	h := sha256.New()
	h.Write(id[:])
	h.Write([]byte(name))
	copy(c[:], h.Sum(nil))
	return c
}

// number is the fileid of the node, and the cookie behind its name in a listing. 0 to 2 are reserved, and clients take
// cookies for signed numbers.
func (id nodeID) number() uint64 { return max(binary.BigEndian.Uint64(id[:])>>1, firstCookie) }

// object is a node that clients have a handle of.
type object struct {
	id      nodeID
	content uint64
	kind    storage.Kind
	name    string
	parent  *object    // nil for the root
	opening sync.Mutex // held while the file is opened

	mu      sync.Mutex // guards what follows
	node    nodes.Node // nil until it is needed
	listed  bool       // a listing of the directory was seen, with sum
	sum     uint64
	changed time.Time // when another listing was seen
	lines   *lines    // of a file that accepts lines; nil until it is needed
}

// above returns the parent, of the root itself.
func (o *object) above() *object {
	if o.parent == nil {
		return o
	}
	return o.parent
}

// key is the identity of an object in the table.
type key struct {
	id      nodeID
	content uint64
}

// maxObjects bounds the table.
const maxObjects = 1 << 16

// table holds the objects that were used last.
type table struct {
	key  []byte // of the MACs
	mu   sync.Mutex
	root *object
	lru  *simplelru.LRU[key, *object]
}

func newTable(secret []byte, source string, limit int) *table {
	t := &table{key: secret, root: &object{kind: storage.KindDir}}
	copy(t.root.id[:], t.mac([]byte(source)))
	t.lru, _ = simplelru.NewLRU[key, *object](limit, nil) // the limit is positive
	return t
}

func (t *table) mac(b []byte) []byte {
	h := hmac.New(sha256.New, t.key)
	h.Write(b)
	return h.Sum(nil)[:handleSize-macAt]
}

// handle returns the handle of an object.
func (t *table) handle(o *object) []byte {
	b := make([]byte, macAt, handleSize)
	b[0] = handleVersion
	copy(b[2:], o.id[:])
	binary.BigEndian.PutUint64(b[18:], o.content)
	var above []*object
	for p := o.parent; p != nil; p = p.parent {
		above = append(above, p)
	}
	b[1] = byte(min(len(above), 255))
	if len(above)-1 <= maxAncestors {
		for i := len(above) - 2; i >= 0; i-- { // the last one is the root
			copy(b[26+prefixSize*(len(above)-2-i):], above[i].id[:prefixSize])
		}
	}
	return append(b, t.mac(b)...)
}

// claim is a handle of which the MAC is right.
type claim struct {
	key
	depth    int
	prefixes []byte // prefixSize bytes for each ancestor below the root
}

// check checks the MAC of a handle.
func (t *table) check(b []byte) (c claim, ok bool) {
	if len(b) != handleSize || b[0] != handleVersion || !hmac.Equal(b[macAt:], t.mac(b[:macAt])) {
		return c, false
	}
	copy(c.id[:], b[2:])
	c.content, c.depth = binary.BigEndian.Uint64(b[18:]), int(b[1])
	c.prefixes = b[26 : macAt-1]
	return c, true
}

// get returns an object of the table, nil if it is not there.
func (t *table) get(k key) *object {
	if k.id == t.root.id {
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
	o := &object{id: k.id, content: k.content, kind: c.Kind, name: name, parent: dir}
	t.lru.Add(k, o)
	return o
}

// setNode sets the node of an object unless it has one, and returns the one that it has.
func (o *object) setNode(c *nodes.Child) nodes.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.node == nil {
		o.node = c.Make()
	}
	return o.node
}

// known returns the node of an object, nil if it is not made yet.
func (o *object) known() nodes.Node {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.node
}
