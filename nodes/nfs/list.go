package nfs

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"syscall"
	"time"

	"sessionfs/nodes"
)

// firstCookie is the smallest cookie of a name; 1 and 2 are those of "." and "..".
const firstCookie = 3

// listing is a directory's names in the order of their ids. A cookie is made of an id, so a client goes on behind the same
// name, however the directory changes and wherever the server was restarted meanwhile.
type listing struct {
	names []listed
	held  nodes.NameList
	at    time.Time
	sum   uint64 // of the names
	users int    // guarded by listings.mu
	gone  bool
}

type listed struct {
	id   nodeID
	item nodes.Item
}

// search returns the first name whose id begins with prefix, or follows it.
func (l *listing) search(prefix []byte) int {
	i, _ := slices.BinarySearchFunc(l.names, prefix, func(n listed, prefix []byte) int {
		return bytes.Compare(n.id[:len(prefix)], prefix)
	})
	return i
}

// behind returns the first name behind a cookie.
func (l *listing) behind(cookie uint64) int {
	i, found := slices.BinarySearchFunc(l.names, cookie, func(n listed, cookie uint64) int { return cmp.Compare(n.id.number(), cookie) })
	for found && i < len(l.names) && l.names[i].id.number() == cookie {
		i++
	}
	return i
}

const (
	maxListings = 16               // that are kept
	listingAge  = 10 * time.Second // how long an answer may use a listing that is being read
	fresh       = time.Second      // how old a first answer may be
)

// listings are the listings that clients read.
type listings struct {
	seed maphash.Seed
	mu   sync.Mutex
	of   map[*object]*listing
}

// take returns a listing that is young enough.
func (l *listings) take(dir *object, age time.Duration) *listing {
	l.mu.Lock()
	defer l.mu.Unlock()
	if list := l.of[dir]; list != nil && time.Since(list.at) < age {
		list.users++
		return list
	}
	return nil
}

// release ends the use of a listing.
func (l *listings) release(list *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list.users--
	list.closeUnused()
}

func (l *listing) closeUnused() {
	if l.gone && l.users == 0 {
		l.held.Close()
	}
}

// put keeps a listing in the place of the directory's earlier one, or of the oldest one.
func (l *listings) put(dir *object, list *listing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drop(dir)
	if len(l.of) >= maxListings {
		oldest := dir
		for o, other := range l.of {
			if l.of[oldest] == nil || other.at.Before(l.of[oldest].at) {
				oldest = o
			}
		}
		l.drop(oldest)
	}
	l.of[dir], list.users = list, 1
}

func (l *listings) drop(dir *object) {
	if old := l.of[dir]; old != nil {
		old.gone = true
		old.closeUnused()
		delete(l.of, dir)
	}
}

// expire drops listings that nobody has read for long; all, if all is set.
func (l *listings) expire(all bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for dir, list := range l.of {
		if all || time.Since(list.at) > listingAge {
			l.drop(dir)
		}
	}
}

// list lists a directory. With goesOn the listing may be older: the client is in the middle of it. The caller must release
// it.
func (d *Door) list(ctx context.Context, dir *object, goesOn bool) (*listing, syscall.Errno) {
	age := fresh
	if goesOn {
		age = listingAge
	}
	if list := d.lists.take(dir, age); list != nil {
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
	held, errno := nodes.ListDir(ctx, in)
	if errno != 0 {
		return nil, errno
	}
	list := &listing{held: held, at: time.Now(), names: make([]listed, len(held.Items))}
	for i, it := range held.Items {
		list.names[i] = listed{dir.id.child(it.Name), it}
		list.sum += maphash.String(d.lists.seed, it.Name) + uint64(it.Kind)
	}
	slices.SortFunc(list.names, func(a, b listed) int { return bytes.Compare(a.id[:], b.id[:]) })
	dir.note(list)
	d.lists.put(dir, list)
	return list, 0
}

// note notes when another listing of the directory is seen than before. Clients keep a listing until the directory's times
// change, which those of generated directories do not.
func (o *object) note(list *listing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.listed && o.sum != list.sum {
		o.changed = list.at
	}
	o.listed, o.sum = true, list.sum
}

// readDir answers READDIR, and with plus READDIRPLUS.
func (r *request) readDir(plus bool) status {
	dir, n, st := r.object()
	cookie := r.in.u64()
	r.in.fixed(8) // the verifier: cookies stay good
	if plus {
		r.in.u32() // dircount
	}
	limit := int(min(r.in.u32(), maxRead))
	if st != nfsOK || r.in.bad {
		return st
	}
	list, errno := r.door.list(r.ctx, dir, cookie != 0)
	if errno != 0 {
		return statusOf(errno)
	}
	defer r.door.lists.release(list)
	r.postAttr(dir, n)
	r.out.u64(0) // the verifier
	look, errno := r.door.look(r.ctx, dir)
	if errno != 0 {
		return statusOf(errno)
	}
	defer look.Close()
	start, full := len(r.out.b), false
	put := func(o listed, cookie uint64) {
		before := len(r.out.b)
		r.out.bool(true)
		r.out.u64(o.id.number())
		r.out.text(o.item.Name)
		r.out.u64(cookie)
		if plus {
			r.plus(dir, &look, o.item, cookie)
		}
		const besides = 128 // of the reply
		if full = len(r.out.b)-start+besides > limit; full {
			r.out.b = r.out.b[:before]
		}
	}
	if cookie < 1 {
		put(listed{dir.id, nodes.Named(".")}, 1)
	}
	if cookie < 2 && !full {
		put(listed{dir.above().id, nodes.Named("..")}, 2)
	}
	for i := list.behind(cookie); i < len(list.names) && !full; i++ {
		put(list.names[i], list.names[i].id.number())
	}
	if full && len(r.out.b) == start {
		return nfsTooSmall
	}
	r.out.bool(false)
	r.out.bool(!full)
	return nfsOK
}

// plus writes the attributes and the handle of a listed name. A name whose attributes may take long has neither: a client
// that needs them looks it up.
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
