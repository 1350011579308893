package nfs

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"syscall"
	"time"

	"sessionfs/nodes"
)

// firstCookie is the smallest cookie of a name; 1 and 2 are those of "." and "..".
const firstCookie = 3

// listing is a directory's names in the order of their ids. A cookie is made of an id, so a client
// goes on behind the same name, however the directory changes, and after a restart of the server.
type listing struct{ names []listedName }

type listedName struct {
	id   nodeID
	item nodes.Item
}

// search returns the number of the first name whose id begins with prefix, or follows it.
func (l *listing) search(prefix []byte) int {
	i, _ := slices.BinarySearchFunc(l.names, prefix, func(n listedName, prefix []byte) int {
		return bytes.Compare(n.id[:len(prefix)], prefix)
	})
	return i
}

// behind returns the number of the first name behind a cookie.
func (l *listing) behind(cookie uint64) int {
	i, _ := slices.BinarySearchFunc(l.names, cookie+1, func(n listedName, cookie uint64) int {
		return cmp.Compare(n.id.number(), cookie)
	})
	return i
}

const (
	fresh      = time.Second      // how old the first part of a listing may be
	listingAge = 10 * time.Second // how old the listing may be when a client goes on in it
)

// list lists a directory. goesOn says that the client is in the middle of it. The caller must
// release it.
func (d *Door) list(ctx context.Context, dir *object, goesOn bool) (*cached[*listing], syscall.Errno) {
	young := func(l *cached[*listing]) bool {
		return time.Since(l.made) < fresh || goesOn && time.Since(l.made) < listingAge
	}
	if list := d.lists.take(dir, young); list != nil {
		return list, 0
	}
	n, errno := d.node(ctx, dir)
	if errno != 0 {
		return nil, errno
	}
	in, ok := n.(nodes.Dir)
	if !ok {
		return nil, syscall.ENOTDIR
	}
	if errno := nodes.OpenDir(ctx, in); errno != 0 {
		return nil, errno
	}
	made := time.Now()
	held, errno := nodes.ListDir(ctx, in)
	if errno != 0 {
		return nil, errno
	}
	list, sum := &listing{make([]listedName, len(held.Items))}, uint64(0)
	for i, it := range held.Items {
		list.names[i] = listedName{dir.id.child(it.Name), it}
		sum += maphash.String(d.seed, it.Name) + uint64(it.Kind)
	}
	slices.SortFunc(list.names, func(a, b listedName) int { return bytes.Compare(a.id[:], b.id[:]) })
	dir.note(sum, made)
	return d.lists.put(dir, list, made, held.Close), 0
}

// note notes when the directory has other names than before. Clients keep a listing until the
// directory's times change, which those of generated directories do not.
func (o *object) note(sum uint64, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listed && o.sum != sum {
		o.changed = at
	}
	o.listed, o.sum = true, sum
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
	r.checkArguments()
	list, errno := r.door.list(r.ctx, dir, cookie != 0)
	r.check(errno)
	defer r.door.lists.release(list)
	look, errno := r.door.look(r.ctx, dir)
	r.check(errno)
	defer look.Close()
	r.postAttr(dir, n)
	r.out.u64(0) // the verifier
	start, full := len(r.out.b), false
	put := func(o listedName, at uint64) {
		if at <= cookie || full {
			return
		}
		before := len(r.out.b)
		r.out.bool(true)
		r.out.u64(o.id.number())
		r.out.text(o.item.Name)
		r.out.u64(at)
		if plus {
			r.plus(dir, &look, o.item, at)
		}
		if full = len(r.out.b)-start > limit; full {
			r.out.b = r.out.b[:before]
		}
	}
	put(listedName{dir.id, nodes.Named(".")}, 1)
	put(listedName{dir.above().id, nodes.Named("..")}, 2)
	for _, o := range list.value.names[list.value.behind(cookie):] {
		if put(o, o.id.number()); full {
			break
		}
	}
	if full && len(r.out.b) == start {
		panic(nfsTooSmall)
	}
	r.out.bool(false)
	r.out.bool(!full)
}

// plus writes the attributes and the handle of a listed name. A name whose attributes may take long
// has neither: a client that needs them looks it up.
func (r *request) plus(dir *object, look *nodes.Look, it nodes.Item, cookie uint64) {
	if cookie >= firstCookie && !it.Bare && r.ctx.Err() == nil {
		if child, errno := look.Find(r.ctx, it); errno == 0 {
			o := r.door.objects.child(dir, it.Name, &child)
			r.childAttr(look, o, &child)
			r.out.bool(true)
			r.out.opaque(r.door.objects.handle(o))
			return
		}
	}
	r.out.u32(0, 0)
}
