package fs_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// A loopback file system that records what is done to it, and makes of the record the
// states in which a loss of power could leave the disk: what was synced is there, and of the rest any part that a disk
// could have.
//
// The model is that of POSIX, without what single file systems promise beyond it: fsync of a file makes its content
// durable and not its name, fsync of a directory makes the names in it durable and not their files' content. Changes of
// names in one directory reach the disk in order, as do writes to one file; a write that was not synced may be there in
// part, or as zeros.

// diskOp is one change, or an fsync. Inodes are numbered anew: the file system below may give a number again.
type diskOp struct {
	Kind string // create, mkdir, write, truncate, link, unlink, rename, exchange, sync, mark
	Dir  int    `json:",omitempty"` // the directory of Name; 0 is the root
	Name string `json:",omitempty"` // or the text of a mark
	To   int    `json:",omitempty"` // the directory of New
	New  string `json:",omitempty"`
	Node int    `json:",omitempty"` // what is created, written, linked, or synced; 0 is the root
	Off  int64  `json:",omitempty"`
	Size int64  `json:",omitempty"`
	Data []byte `json:",omitempty"`
}

// markPrefix begins the name of a directory that is not made: mkdir of it, which fails, adds a mark to the record.
const markPrefix = ".mark:"

// lossRecord is the record of a mounted file system.
type lossRecord struct {
	mu    sync.Mutex // held during each change, so that the record has them in their order
	out   *json.Encoder
	nodes map[uint64]int // by the number that the file system below has for them now
	next  int
}

// newRecorded returns a root whose changes are written to a file. The directory must be empty.
func newRecorded(root *fusefs.LoopbackNode, record string) (fusefs.InodeEmbedder, error) {
	out, err := os.Create(record)
	return &node{root, &lossRecord{out: json.NewEncoder(out), nodes: map[uint64]int{}}}, err
}

func (r *lossRecord) add(op diskOp) {
	if err := r.out.Encode(op); err != nil {
		panic(err)
	}
}

// made records a new file, link or directory.
func (r *lossRecord) made(op diskOp, ino uint64) diskOp {
	r.next++
	r.nodes[ino] = r.next
	op.Node = r.next
	return op
}

// node is a file or directory; its changes are recorded.
type node struct {
	*fusefs.LoopbackNode
	record *lossRecord
}

// WrapChild makes the nodes of the loopback below this one ours.
func (n *node) WrapChild(_ context.Context, ops fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &node{ops.(*fusefs.LoopbackNode), n.record}
}

func (n *node) number() int {
	if n.IsRoot() {
		return 0
	}
	return n.record.nodes[n.StableAttr().Ino]
}

func (n *node) change(call func() syscall.Errno, op func() diskOp) syscall.Errno {
	n.record.mu.Lock()
	defer n.record.mu.Unlock()
	errno := call()
	if errno == 0 {
		n.record.add(op())
	}
	return errno
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (child *fusefs.Inode, errno syscall.Errno) {
	if text, ok := strings.CutPrefix(name, markPrefix); ok {
		_ = n.change(func() syscall.Errno { return 0 }, func() diskOp { return diskOp{Kind: "mark", Name: text} })
		return nil, syscall.EEXIST
	}
	errno = n.change(func() syscall.Errno { child, errno = n.LoopbackNode.Mkdir(ctx, name, mode, out); return errno }, func() diskOp {
		return n.record.made(diskOp{Kind: "mkdir", Dir: n.number(), Name: name}, out.Ino)
	})
	return child, errno
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (
	child *fusefs.Inode, f fusefs.FileHandle, _ uint32, errno syscall.Errno,
) {
	errno = n.change(func() syscall.Errno {
		child, f, _, errno = n.LoopbackNode.Create(ctx, name, flags, mode, out)
		return errno
	}, func() diskOp {
		return n.record.made(diskOp{Kind: "create", Dir: n.number(), Name: name}, out.Ino)
	})
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return child, &handle{f.(*fusefs.LoopbackFile), child.Operations().(*node)}, 0, 0
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.change(func() syscall.Errno { return n.LoopbackNode.Unlink(ctx, name) }, func() diskOp {
		return diskOp{Kind: "unlink", Dir: n.number(), Name: name}
	})
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.change(func() syscall.Errno { return n.LoopbackNode.Rmdir(ctx, name) }, func() diskOp {
		return diskOp{Kind: "unlink", Dir: n.number(), Name: name}
	})
}

func (n *node) Rename(ctx context.Context, name string, to fusefs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	const exchange = 2 // RENAME_EXCHANGE
	kind := "rename"
	if flags&exchange != 0 {
		kind = "exchange"
	}
	target := to.(*node)
	return n.change(func() syscall.Errno { return n.LoopbackNode.Rename(ctx, name, target.LoopbackNode, newName, flags) }, func() diskOp {
		return diskOp{Kind: kind, Dir: n.number(), Name: name, To: target.number(), New: newName}
	})
}

func (n *node) Link(ctx context.Context, target fusefs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fusefs.Inode, errno syscall.Errno) {
	linked := target.(*node)
	errno = n.change(func() syscall.Errno {
		child, errno = n.LoopbackNode.Link(ctx, linked.LoopbackNode, name, out)
		return errno
	}, func() diskOp {
		return diskOp{Kind: "link", Dir: n.number(), Name: name, Node: linked.number()}
	})
	return child, errno
}

func (n *node) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	f, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &handle{f.(*fusefs.LoopbackFile), n}, 0, 0
}

func (n *node) Setattr(ctx context.Context, f fusefs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	size, truncates := in.GetSize()
	if !truncates {
		return n.LoopbackNode.Setattr(ctx, f, in, out)
	}
	return n.change(func() syscall.Errno { return n.LoopbackNode.Setattr(ctx, f, in, out) }, func() diskOp {
		return diskOp{Kind: "truncate", Node: n.number(), Size: int64(size)}
	})
}

// Fsync is that of directories too.
func (n *node) Fsync(context.Context, fusefs.FileHandle, uint32) syscall.Errno {
	return n.change(func() syscall.Errno { return 0 }, func() diskOp { return diskOp{Kind: "sync", Node: n.number()} })
}

// OpendirHandle returns one without an fsync of its own.
func (n *node) OpendirHandle(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	f, _, errno := n.LoopbackNode.OpendirHandle(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return dirHandle{f.(reader)}, 0, 0
}

type reader interface {
	fusefs.FileReaddirenter
	fusefs.FileSeekdirer
	fusefs.FileReleasedirer
}

type dirHandle struct{ reader }

// handle is an open file.
type handle struct {
	*fusefs.LoopbackFile
	node *node
}

func (h *handle) Write(ctx context.Context, data []byte, off int64) (done uint32, errno syscall.Errno) {
	errno = h.node.change(func() syscall.Errno { done, errno = h.LoopbackFile.Write(ctx, data, off); return errno }, func() diskOp {
		return diskOp{Kind: "write", Node: h.node.number(), Off: off, Data: data[:done]}
	})
	return done, errno
}

func (h *handle) Writev(ctx context.Context, data [][]byte, off int64) (uint32, syscall.Errno) {
	return h.Write(ctx, slices.Concat(data...), off)
}

func (h *handle) Fsync(ctx context.Context, flags uint32) syscall.Errno {
	return h.node.Fsync(ctx, h, flags)
}

func (h *handle) Allocate(context.Context, uint64, uint64, uint32) syscall.Errno {
	return syscall.ENOTSUP
}
