package fs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
// part, or as zeros. One promise more is taken, that of file systems with a journal: a rename between two directories is
// on the disk in both of them or in neither, and an fsync of one is one of what both had by then.

// diskOp is one change, or an fsync. Inodes are numbered anew: the file system below may give a number again.
type diskOp struct {
	Kind string // create, mkdir, write, truncate, link, symlink, unlink, rename, exchange, sync, mark
	Dir  int    `json:",omitempty"` // the directory of Name; 0 is the root
	Name string `json:",omitempty"` // or the text of a mark
	To   int    `json:",omitempty"` // the directory of New
	New  string `json:",omitempty"`
	Node int    `json:",omitempty"` // what is created, written, linked, or synced; 0 is the root
	Off  int64  `json:",omitempty"`
	Size int64  `json:",omitempty"`
	Data []byte `json:",omitempty"`
	pair int    // of the two changes of a rename between directories, in the cache of a disk
}

// markPrefix begins the name of a directory that is not made: mkdir of it adds a mark to the record.
const markPrefix = ".mark:"

// markLoss adds a mark to the record of the file system that is mounted at a path.
func markLoss(at, text string) error {
	err := os.Mkdir(filepath.Join(at, markPrefix+text), 0o700)
	if os.IsExist(err) {
		return nil
	}
	return err
}

// lossRecord is the record of a mounted file system.
type lossRecord struct {
	mu    sync.Mutex // held during each change, so that the record has them in their order
	kill  killing
	out   *json.Encoder
	nodes map[uint64]int // by the number that the file system below has for them now
	next  int
}

// killing is what is to be killed, and when.
type killing struct{ pid, changes int }

// killPrefix begins a mark that makes the next changes but so many, and all after them, kill a process instead.
const killPrefix = "kill "

// killAfter kills a process when it has made so many changes to the file system that is mounted at a path: the next one
// does not happen. Process 0 ends that.
func killAfter(at string, pid, changes int) error {
	return markLoss(at, fmt.Sprint(killPrefix, pid, " ", changes))
}

// fatal is called before each change; it returns an error if that kills the process. Callers must hold r.mu.
func (r *lossRecord) fatal() syscall.Errno {
	if r.kill.pid == 0 {
		return 0
	}
	if r.kill.changes--; r.kill.changes >= 0 {
		return 0
	}
	_ = syscall.Kill(r.kill.pid, syscall.SIGKILL)
	return syscall.EIO
}

// serveLossy serves the directory dir at a mount point, and writes the record to out. What is in dir counts as durable.
func serveLossy(dir, at string, out io.Writer) (*fuse.Server, error) {
	r := &lossRecord{out: json.NewEncoder(out), nodes: map[uint64]int{}}
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return nil, err
	}
	if err := r.existing(dir, 0); err != nil {
		return nil, err
	}
	data := &fusefs.LoopbackRoot{Path: dir, Dev: uint64(st.Dev)}
	root := &node{fusefs.LoopbackNode{RootData: data}, r}
	data.RootNode = root
	return fusefs.Mount(at, root, &fusefs.Options{
		MountOptions:    fuse.MountOptions{DirectMount: true, FsName: dir, Name: "losstest", Options: []string{"default_permissions"}},
		NullPermissions: true,
	})
}

// existing records what is in a directory from the start.
func (r *lossRecord) existing(dir string, node int) error {
	items, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, item := range items {
		info, err := item.Info()
		if err != nil {
			return err
		}
		path, kind := filepath.Join(dir, item.Name()), "create"
		if item.IsDir() {
			kind = "mkdir"
		}
		child := r.made(kind, node, item.Name(), info.Sys().(*syscall.Stat_t).Ino)
		if item.IsDir() {
			err = r.existing(path, child)
		} else {
			var data []byte
			data, err = os.ReadFile(path)
			r.add(diskOp{Kind: "write", Node: child, Data: data})
			r.add(diskOp{Kind: "sync", Node: child})
		}
		if err != nil {
			return err
		}
	}
	r.add(diskOp{Kind: "sync", Node: node})
	return nil
}

func (r *lossRecord) add(op diskOp) {
	if err := r.out.Encode(op); err != nil {
		panic(err)
	}
}

// made records a new file or directory and returns its number.
func (r *lossRecord) made(kind string, dir int, name string, ino uint64) int {
	r.next++
	r.nodes[ino] = r.next
	r.add(diskOp{Kind: kind, Dir: dir, Name: name, Node: r.next})
	return r.next
}

// readRecord reads a record.
func readRecord(in io.Reader) (ops []diskOp, err error) {
	for lines := json.NewDecoder(in); ; {
		var op diskOp
		if err := lines.Decode(&op); err == io.EOF {
			return ops, nil
		} else if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
}

// node is a file or directory; its changes are recorded.
type node struct {
	fusefs.LoopbackNode
	record *lossRecord
}

// WrapChild makes the nodes of the loopback below this one ours.
func (n *node) WrapChild(context.Context, fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &node{fusefs.LoopbackNode{RootData: n.RootData}, n.record}
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
	errno := n.record.fatal()
	if errno == 0 {
		errno = call()
	}
	if errno == 0 {
		n.record.add(op())
	}
	return errno
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (child *fusefs.Inode, errno syscall.Errno) {
	n.record.mu.Lock()
	defer n.record.mu.Unlock()
	if text, ok := strings.CutPrefix(name, markPrefix); ok {
		if kill, ok := strings.CutPrefix(text, killPrefix); ok {
			_, _ = fmt.Sscan(kill, &n.record.kill.pid, &n.record.kill.changes)
		}
		n.record.add(diskOp{Kind: "mark", Name: text})
		return nil, syscall.EEXIST
	}
	if errno = n.record.fatal(); errno != 0 {
		return nil, errno
	}
	if child, errno = n.LoopbackNode.Mkdir(ctx, name, mode, out); errno == 0 {
		n.record.made("mkdir", n.number(), name, out.Ino)
	}
	return child, errno
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (child *fusefs.Inode, f fusefs.FileHandle, _ uint32, errno syscall.Errno) {
	n.record.mu.Lock()
	defer n.record.mu.Unlock()
	if errno = n.record.fatal(); errno != 0 {
		return nil, nil, 0, errno
	}
	if child, f, _, errno = n.LoopbackNode.Create(ctx, name, flags, mode, out); errno != 0 {
		return nil, nil, 0, errno
	}
	n.record.made("create", n.number(), name, out.Ino)
	made := child.Operations().(*node)
	return child, &handle{f.(*fusefs.LoopbackFile), made}, 0, 0
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
	return n.change(func() syscall.Errno { return n.LoopbackNode.Rename(ctx, name, &target.LoopbackNode, newName, flags) }, func() diskOp {
		return diskOp{Kind: kind, Dir: n.number(), Name: name, To: target.number(), New: newName}
	})
}

func (n *node) Link(ctx context.Context, target fusefs.InodeEmbedder, name string, out *fuse.EntryOut) (child *fusefs.Inode, errno syscall.Errno) {
	linked := target.(*node)
	errno = n.change(func() syscall.Errno {
		child, errno = n.LoopbackNode.Link(ctx, &linked.LoopbackNode, name, out)
		return errno
	}, func() diskOp {
		return diskOp{Kind: "link", Dir: n.number(), Name: name, Node: linked.number()}
	})
	return child, errno
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (child *fusefs.Inode, errno syscall.Errno) {
	errno = n.change(func() syscall.Errno { child, errno = n.LoopbackNode.Symlink(ctx, target, name, out); return errno }, func() diskOp {
		n.record.next++
		n.record.nodes[out.Ino] = n.record.next
		return diskOp{Kind: "symlink", Dir: n.number(), Name: name, Node: n.record.next, Data: []byte(target)}
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

// PassthroughFd keeps the kernel from writing past us.
func (h *handle) PassthroughFd() (int, bool) { return -1, false }

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
