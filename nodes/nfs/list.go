package nfs

import (
	"bytes"
	"encoding/binary"
	"slices"
	"syscall"
	"time"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

const (
	firstCookie = 3           // is the smallest of a name; 1 and 2 are those of "." and ".."
	fresh       = time.Second // how old a listing may be in which a client goes on
)

// listedName is a name of a listing, which is in the order of ids. A cookie is made of an id, so a
// client goes on behind the same name, however the directory changes, and after a restart of the
// server.
type listedName struct {
	id   nodeID
	item nodes.Item
}

// search returns the number of the first name whose id begins with prefix, or follows it.
func search(names []listedName, prefix []byte) int {
	i, _ := slices.BinarySearchFunc(names, prefix, func(n listedName, prefix []byte) int {
		return bytes.Compare(n.id[:len(prefix)], prefix)
	})
	return i
}

// list lists a directory, or returns a listing that is not older than age. The caller must call
// Done.
func (r *request) list(dir *object, in nodes.Dir, age time.Duration) (*cached[[]listedName], syscall.Errno) {
	list := r.lists.take(dir, func(l *cached[[]listedName]) bool { return time.Since(l.made) < age })
	if list != nil {
		return list, 0
	}
	made := time.Now()
	if errno := nodes.OpenDir(r.ctx, in); errno != 0 {
		return nil, errno
	}
	held, errno := nodes.ListDir(r.ctx, in)
	if errno != 0 {
		return nil, errno
	}
	names, sum := make([]listedName, len(held.Items)), uint64(1)
	for i, it := range held.Items {
		names[i] = listedName{dir.id.child(it.Name), it}
		sum += names[i].id.number() + uint64(it.Kind)
	}
	slices.SortFunc(names, func(a, b listedName) int { return bytes.Compare(a.id[:], b.id[:]) })
	if before := dir.sum.Swap(sum); before != 0 && before != sum {
		dir.changed.Store(made.UnixNano()) // clients keep a listing until the times of the directory change
	}
	return r.lists.put(dir, &cached[[]listedName]{value: names, made: made, close: held.Close}), 0
}

// readDir answers READDIR, and with plus READDIRPLUS.
func (r *request) readDir(plus bool) {
	dir, n := r.object()
	cookie := r.in.u64()
	r.in.u64() // the verifier: cookies stay good
	if plus {
		r.in.u32() // how much of the reply may be names
	}
	limit := int(min(r.in.u32(), maxRead)) - 128 // of it is for the rest of the reply
	look := r.look(dir)
	defer look.Close()
	age := justNow
	if cookie != 0 {
		age = fresh
	}
	list, errno := r.list(dir, n.(nodes.Dir), age)
	r.check(errno)
	defer list.Done()
	like, err := n.Stat(r.ctx)
	r.check(nodes.Stale(n, dir.name, "stat", err))
	r.putOptional(dir, like, true)
	r.out.putLong(0) // the verifier
	start, full := len(r.out), false
	put := func(o listedName, at uint64) {
		if at <= cookie || full {
			return
		}
		before := len(r.out)
		r.out.put(1)
		r.out.putLong(o.id.number())
		r.out.putOpaque([]byte(o.item.Name))
		r.out.putLong(at)
		if plus {
			r.putListed(dir, &look, o, like)
		}
		if full = len(r.out)-start > limit; full {
			r.out = r.out[:before]
		}
	}
	put(listedName{dir.id, nodes.Item{Name: ".", Kind: storage.KindDir, Bare: true}}, 1)
	put(listedName{dir.parent.id, nodes.Item{Name: "..", Kind: storage.KindDir, Bare: true}}, 2)
	next := binary.BigEndian.AppendUint64(nil, (cookie+1)<<1) // the least id with such a number
	for _, o := range list.value[search(list.value, next):] {
		if put(o, o.id.number()); full {
			break
		}
	}
	if full && len(r.out) == start {
		panic(r.failed(nfsTooSmall))
	}
	r.out.put(0)
	r.out.putBool(!full)
}

// putListed encodes the attributes and the handle of a listed name. One whose attributes may take
// long has no handle, and a kind beside the attributes of the directory: find needs no more, and a
// client that has no handle keeps no attributes, so that it asks for a size before it uses one.
func (r *request) putListed(dir *object, look *nodes.Look, n listedName, like nodes.Attr) {
	if !n.item.Bare && r.ctx.Err() == nil {
		if child, errno := look.Find(r.ctx, n.item); errno == 0 {
			o := r.child(dir, n.item.Name, &child)
			if a := r.childAttr(look, o, &child); a.Kind != storage.KindOther {
				r.putOptional(o, a, true)
				r.out.put(1)
				r.out.putOpaque(r.handle(o))
				return
			}
		}
	}
	const readable = 0o444
	like.Kind, like.Mode = n.item.Kind, like.Mode&readable
	r.putOptional(&object{key: key{id: n.id}}, like, true)
	r.out.put(0)
}
