package fs_test

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
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

// recordedDisk is a loopback file system whose changes are recorded.
type recordedDisk struct {
	fuse.RawFileSystem
	mu    sync.Mutex // held during each change, so that the record has them in their order
	out   *json.Encoder
	nodes map[uint64]int // by the id that the kernel has for them now; the root is not among them
	next  int
}

// newRecorded writes the changes of a file system to a file. Its directory must be empty.
func newRecorded(disk fuse.RawFileSystem, record string) (fuse.RawFileSystem, error) {
	out, err := os.Create(record)
	return &recordedDisk{RawFileSystem: disk, out: json.NewEncoder(out), nodes: map[uint64]int{}}, err
}

// add adds a change to the record if it succeeded, and returns the status. Callers hold d.mu. The methods below do a
// change, and add it.
func (d *recordedDisk) add(status fuse.Status, op diskOp) fuse.Status {
	if !status.Ok() {
		return status
	}
	err := d.out.Encode(op)
	if err != nil {
		panic(err)
	}
	return status
}

// made returns the operation that makes a file or directory, and numbers it. out has the id of the kernel for it.
func (d *recordedDisk) made(kind string, dir uint64, name string, out *fuse.EntryOut) diskOp {
	d.next++
	d.nodes[out.NodeId] = d.next
	return diskOp{Kind: kind, Dir: d.nodes[dir], Name: name, Node: d.next}
}

// Forget keeps the ids of nodes, so that a file that the kernel looks up again has the one that it had.
func (d *recordedDisk) Forget(uint64, uint64) {}

func (d *recordedDisk) Mkdir(cancel <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	if text, ok := strings.CutPrefix(name, markPrefix); ok {
		d.add(fuse.OK, diskOp{Kind: "mark", Name: text})
		return fuse.Status(unix.EEXIST)
	}
	status := d.RawFileSystem.Mkdir(cancel, in, name, out)
	return d.add(status, d.made("mkdir", in.NodeId, name, out))
}

func (d *recordedDisk) Create(cancel <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := d.RawFileSystem.Create(cancel, in, name, out)
	return d.add(status, d.made("create", in.NodeId, name, &out.EntryOut))
}

func (d *recordedDisk) Unlink(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.add(d.RawFileSystem.Unlink(cancel, in, name), diskOp{Kind: "unlink", Dir: d.nodes[in.NodeId], Name: name})
}

func (d *recordedDisk) Rmdir(cancel <-chan struct{}, in *fuse.InHeader, name string) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.add(d.RawFileSystem.Rmdir(cancel, in, name), diskOp{Kind: "unlink", Dir: d.nodes[in.NodeId], Name: name})
}

func (d *recordedDisk) Rename(cancel <-chan struct{}, in *fuse.RenameIn, name, newName string) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	op := diskOp{Kind: "rename", Dir: d.nodes[in.NodeId], Name: name, To: d.nodes[in.Newdir], New: newName}
	if in.Flags&unix.RENAME_EXCHANGE != 0 {
		op.Kind = "exchange"
	}
	return d.add(d.RawFileSystem.Rename(cancel, in, name, newName), op)
}

func (d *recordedDisk) Link(cancel <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	op := diskOp{Kind: "link", Dir: d.nodes[in.NodeId], Name: name, Node: d.nodes[in.Oldnodeid]}
	return d.add(d.RawFileSystem.Link(cancel, in, name, out), op)
}

func (d *recordedDisk) SetAttr(cancel <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := d.RawFileSystem.SetAttr(cancel, in, out)
	if size, truncates := in.GetSize(); truncates {
		d.add(status, diskOp{Kind: "truncate", Node: d.nodes[in.NodeId], Size: int64(size)})
	}
	return status
}

func (d *recordedDisk) Writev(cancel <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, status := d.RawFileSystem.Writev(cancel, in, data)
	written := slices.Concat(data...)[:n]
	return n, d.add(status, diskOp{
		Kind: "write",
		Node: d.nodes[in.NodeId],
		Off:  int64(in.Offset),
		Data: written,
	})
}

// Fsync is recorded, and not carried out.
func (d *recordedDisk) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.add(fuse.OK, diskOp{Kind: "sync", Node: d.nodes[in.NodeId]})
}

// FsyncDir is as Fsync.
func (d *recordedDisk) FsyncDir(cancel <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return d.Fsync(cancel, in)
}

func (d *recordedDisk) Fallocate(<-chan struct{}, *fuse.FallocateIn) fuse.Status {
	return fuse.Status(unix.ENOTSUP)
}
