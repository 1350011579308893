package nodes

import (
	"cmp"
	"context"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// directory is the base of all directories: look-ups, listings (listing.go) and refusals (base.go).
type directory struct {
	node
	lookups atomic.Uint32 // how many names were looked up one by one; see sparing
}

func newDirectory(view *View) directory { return directory{node: node{view: view}} }

func (d *directory) cache() cacheRule { return cacheSecond }

// dirNode is every directory: what it has to say of itself; the rest is done by its base.
type dirNode interface {
	attributer
	// acquire returns the state of a session in which the names are found, nil if they are not found in one. The caller
	// must release it.
	acquire(ctx context.Context) (*sessioncore.Snapshot, error)
	// list returns what is in the directory now.
	list(ctx context.Context, snap *sessioncore.Snapshot) ([]item, error)
	// find finds what a name stands for. The item is one of list, of this snapshot or an older one, or is unnumbered. If the
	// attributes are known already, it sets them.
	find(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error)
	// noted is what last-error calls a look-up that fails; "" for a directory whose names nobody makes up.
	noted() string
}

func (d *directory) acquire(context.Context) (*sessioncore.Snapshot, error) { return nil, nil }

// list lists nothing: names can be looked up only.
func (d *directory) list(context.Context, *sessioncore.Snapshot) ([]item, error) { return nil, nil }

func (d *directory) noted() string { return "" }

// child is what a name in a directory stands for.
type child struct {
	kind kind
	mode uint32 // file type bits
	// content identifies the content of a node that stands for one only; else it is 0.
	content uint64
	// make makes the node, if the kernel does not know it.
	make func() fusefs.InodeEmbedder
}

var _ = (fusefs.NodeLookuper)((*directory)(nil))

// Lookup finds a name.
func (d *directory) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	dir := d.Operations().(dirNode)
	d.lookups.Add(1)
	snap, err := dir.acquire(ctx)
	if err != nil {
		return nil, d.noName(dir, name, err)
	}
	if snap != nil {
		defer snap.Release()
	}
	return d.enter(ctx, dir, snap, item{name: name, number: unnumbered}, out)
}

// enter answers the look-up of a name with a child and its attributes.
func (d *directory) enter(ctx context.Context, dir dirNode, snap *sessioncore.Snapshot, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	found, err := dir.find(ctx, snap, it, &out.Attr)
	if err != nil {
		return nil, d.noName(dir, it.name, err)
	}
	inode := d.inodeOf(ctx, it.name, found)
	a := inode.Operations().(attributer)
	if out.Attr.Mode == 0 {
		if err := a.fillAttr(ctx, &out.Attr); err != nil {
			return nil, d.noName(dir, it.name, err)
		}
	}
	if what := dir.noted(); what != "" {
		d.view.found(what)
	}
	out.SetEntryTimeout(a.cache().entry)
	out.SetAttrTimeout(a.cache().attr)
	return inode, 0
}

// noName returns the errno of a look-up that failed. Programs look for .git and the like in every directory; that is not
// noted.
func (d *directory) noName(dir dirNode, name string, err error) syscall.Errno {
	if what := dir.noted(); what != "" && name[0] != '.' {
		return d.view.refuseLookup(what, name, d.path(name), err)
	}
	return d.fail("lookup", err, name)
}

// follower is a node whose open handles may share a version; see line.
type follower interface {
	// follows reports whether its handles share one.
	follows() bool
	// standsFor reports whether the node shows what its name does now; content is that of child.
	standsFor(ctx context.Context, content uint64) bool
}

// successors counts followers, to give each its own identity.
var successors atomic.Uint64

// inodeOf returns the inode of a child: the one that the kernel knows already, or a new one. If the open handles of a
// follower show something else than the name does now, the name is given to a new node, which is another file to the
// kernel. The handles may hold the only reference to the old node, so a new node never has the identity of an earlier one.
func (d *directory) inodeOf(ctx context.Context, name string, c child) *fusefs.Inode {
	id := stableAttr(d.StableAttr(), c.kind, name, c.mode)
	id.Gen ^= c.content
	if known := d.GetChild(name); known != nil && known.StableAttr().Ino == id.Ino {
		if f, ok := known.Operations().(follower); ok && f.follows() {
			if f.standsFor(ctx, c.content) {
				return known
			}
		} else if known.StableAttr() == id {
			return known
		}
	}
	made := c.make()
	if f, ok := made.(follower); ok && f.follows() {
		id.Gen ^= successors.Add(1) << 20
	}
	return d.NewInode(ctx, made, id)
}

// NameIn is a fixed name in a directory that is made from a D.
type NameIn[D any] struct {
	Name string
	Mode uint32 // file type bits
	Make func(D) fusefs.InodeEmbedder
	// Is reports whether the name is there; nil means that it is listed.
	Is func(D, context.Context) Presence
}

// Name is a fixed name outside of the sessions.
type Name = NameIn[*View]

// Presence says whether there is a name in a directory.
type Presence int

const (
	// Absent names are not found.
	Absent Presence = iota
	// Hidden names are found, but not listed: what is there may be so much work that no crawler may start it.
	Hidden
	// Listed names are found and listed.
	Listed
)

// presentIf returns Listed for what is there.
func presentIf(there bool) Presence {
	if there {
		return Listed
	}
	return Absent
}

// Never is the Is of a name that is only found.
func Never(*View, context.Context) Presence { return Hidden }

// fixedNames are names of a directory, in order: the one list that drives look-ups and listings.
type fixedNames[D any] []NameIn[D]

func (n *NameIn[D]) is(ctx context.Context, d D) Presence {
	if n.Is == nil {
		return Listed
	}
	return n.Is(d, ctx)
}

// find finds a name. What was listed is not looked for again.
func (f fixedNames[D]) find(ctx context.Context, d D, it item) (child, error) {
	for i := range f {
		n := &f[i]
		if n.Name != it.name {
			continue
		}
		if it.number == unnumbered && n.is(ctx, d) == Absent {
			return child{}, cmp.Or(ctx.Err(), error(syscall.ENOENT))
		}
		return child{kind: kindStatic, mode: n.Mode, make: func() fusefs.InodeEmbedder { return n.Make(d) }}, nil
	}
	return child{}, syscall.ENOENT
}

// list lists the names in a directory.
func (f fixedNames[D]) list(ctx context.Context, d D, in *node) []item {
	items := make([]item, 0, len(f))
	for i := range f {
		if n := &f[i]; n.is(ctx, d) == Listed {
			it := in.newItem(kindStatic, n.Name, n.Mode)
			it.bare = slowFiles[n.Name]
			items = append(items, it)
		}
	}
	return items
}

// slowFiles are generated files whose size may take reading much of the session, or looking at all sessions. A listing
// leaves out their attributes; the kernel then looks up those that are needed.
var slowFiles = map[string]bool{"context.json": true, "index.jsonl": true, "results.tsv": true, "transcript.md": true, "usage.json": true}
