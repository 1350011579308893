package kernel

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"sessionfs/nodes"
	"sessionfs/sessioncore/storage"
)

// go-fuse finds the requests that are answered by these interfaces.
var (
	_ fusefs.NodeOpener          = (*fileInode)(nil)
	_ fusefs.NodeFsyncer         = (*fileInode)(nil)
	_ fusefs.NodeOpener          = (*entryInode)(nil)
	_ fusefs.NodeOpener          = (*sourceInode)(nil)
	_ fusefs.FileReader          = (*fileHandle)(nil)
	_ fusefs.FileReleaser        = (*fileHandle)(nil)
	_ fusefs.FileWriter          = (*writeHandle)(nil)
	_ fusefs.FileFlusher         = (*writeHandle)(nil)
	_ fusefs.FilePassthroughFder = (*sourceHandle)(nil)
)

// fileInode is the inode of a file that grows, or that shows each handle a version of its own.
type fileInode struct {
	inode
	file nodes.File
}

func (f *fileInode) node() nodes.Node { return f.file }

// readOnlyFlags are the flags of every handle that is only read: the kernel need not send FLUSH,
// which saves a round trip for each close.
const readOnlyFlags = fuse.FOPEN_NOFLUSH

// openFile opens a file of the inode, and counts the handle; its release must uncount it. flags are as in
// open(2). After ESTALE the kernel looks up the path once more and retries.
func (i *inode) openFile(ctx context.Context, f nodes.File, flags uint32) (nodes.Handle, syscall.Errno) {
	i.door().countRequest()
	h, errno := nodes.OpenFile(ctx, f, i.name(), int(flags))
	if errno == 0 {
		i.door().open.Add(1)
	}
	return h, errno
}

// Open opens the file. The kernel caches only files that stand for one content.
func (f *fileInode) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	h, errno := f.openFile(ctx, f.file, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	handle := fileHandle{inode: &f.inode, handle: h}
	lines, isWritable := h.(nodes.WriteHandle)
	if isWritable {
		opened := &writeHandle{fileHandle: handle, lines: lines}
		return opened, fuse.FOPEN_DIRECT_IO, 0
	}
	if f.file.Stability() == nodes.Growing {
		return &handle, readOnlyFlags | fuse.FOPEN_KEEP_CACHE, 0
	}
	return &handle, readOnlyFlags | fuse.FOPEN_DIRECT_IO, 0
}

// Fsync makes the writes to a control file durable.
func (f *fileInode) Fsync(ctx context.Context, _ fusefs.FileHandle, _ uint32) syscall.Errno {
	c, ok := f.file.(nodes.Control)
	if ok {
		return c.Sync(ctx)
	}
	return syscall.ENOTSUP
}

// entryInode is the inode of an entry, which has one content. The kernel may keep its pages.
type entryInode struct {
	inode
	file   *nodes.EntryFile
	stored atomic.Bool // the content was sent to the kernel
}

func (e *entryInode) node() nodes.Node { return e.file }

// Open opens the entry, and sends its content to the kernel.
func (e *entryInode) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	h, errno := e.openFile(ctx, e.file, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	e.store(ctx, h.(*nodes.EntryHandle))
	opened := &fileHandle{inode: &e.inode, handle: h}
	return opened, readOnlyFlags | fuse.FOPEN_KEEP_CACHE, 0
}

// storeLimit is the largest entry that store sends to the kernel, in bytes: the size of one read.
// Nearly all entries are shorter.
const storeLimit = 128 << 10

// storeBuffers hold entries on their way to the kernel.
var storeBuffers = sync.Pool{New: func() any { return new([storeLimit]byte) }}

// store sends the content of an entry to the kernel's page cache before the first open returns,
// which saves the round trip of the first read. That is correct, as the node stands for one
// content, whose pages are kept between opens anyway.
//
// Unlike other notifications this one can be sent from a handler: the kernel takes only the locks
// of the file's pages for it, and only reads of this file hold these.
func (e *entryInode) store(ctx context.Context, h *nodes.EntryHandle) {
	size := h.Size()
	if size > storeLimit || e.stored.Swap(true) {
		return
	}
	buf := storeBuffers.Get().(*[storeLimit]byte)
	defer storeBuffers.Put(buf)
	_, err := h.ReadAt(ctx, buf[:size], 0)
	if err == nil { // otherwise the read returns the error
		_ = e.WriteCache(0, buf[:size])
	}
}

// sourceInode is the inode of a file of SOURCE. Its content may change.
type sourceInode struct {
	inode
	file *nodes.SourceFile
	// cached is the state of the content that the kernel may have pages of; nil if it has none.
	cached atomic.Pointer[storage.Token]
}

func (s *sourceInode) node() nodes.Node { return s.file }

// Open opens the file. The kernel keeps its pages while it does not change.
func (s *sourceInode) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	h, errno := s.openFile(ctx, s.file, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	source := h.(*nodes.SourceHandle)
	fuseFlags := uint32(readOnlyFlags)
	now := source.Token
	before := s.cached.Swap(&now)
	if before != nil && *before == now {
		fuseFlags |= fuse.FOPEN_KEEP_CACHE
	}
	opened := &sourceHandle{
		fileHandle: fileHandle{inode: &s.inode, handle: h},
		source:     source,
	}
	return opened, fuseFlags, 0
}

// fileHandle is an open file.
type fileHandle struct {
	inode  *inode
	handle nodes.Handle
}

func (h *fileHandle) open() nodes.Handle { return h.handle }

// Read reads a part of the file. It does not splice entries from the session file: for a range that
// is not aligned to pages go-fuse's pipe can return a page too little, which the kernel would take
// for the entry's end.
func (h *fileHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	n, err := h.handle.ReadAt(ctx, dest, off)
	if err != nil && err != io.EOF {
		return nil, nodes.Fail(h.inode.node(), h.inode.name(), "read", err)
	}
	// A vector is sent to the kernel by one writev; for a plain slice go-fuse tries a pipe first,
	// which takes three more system calls.
	return fuse.ReadResultVector([][]byte{dest[:n]}), 0
}

// Release closes the handle.
func (h *fileHandle) Release(context.Context) syscall.Errno {
	h.handle.Close()
	h.inode.door().open.Add(-1)
	return 0
}

// writeHandle is an open control file.
type writeHandle struct {
	fileHandle
	lines nodes.WriteHandle
}

func (h *writeHandle) Write(ctx context.Context, data []byte, off int64) (uint32, syscall.Errno) {
	n, errno := h.lines.Write(ctx, data, off)
	return uint32(n), errno
}

func (h *writeHandle) Flush(ctx context.Context) syscall.Errno { return h.lines.Flush(ctx) }

// sourceHandle is an open file of SOURCE.
type sourceHandle struct {
	fileHandle
	source *nodes.SourceHandle
}

// Read reads the pinned file, if possible by splicing it to the kernel. The kernel's cache reads
// whole pages; for other offsets go-fuse's pipe can return too little.
func (h *sourceHandle) Read(ctx context.Context, dest []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	fd, hasDescriptor := h.source.Descriptor()
	isAligned := off%pageSize == 0
	if hasDescriptor && isAligned {
		return fuse.ReadResultFd(fd, off, len(dest)), 0
	}
	return h.fileHandle.Read(ctx, dest, off)
}

// pageSize is the size of a page of the kernel's cache.
const pageSize = 4096

// PassthroughFd gives the kernel the file, to read it without requests. That needs privilege and
// Linux 6.9, which go-fuse checks. The kernel accepts one file for each node, and a node stands for
// one file: a file that replaces it is another node.
func (h *sourceHandle) PassthroughFd() (int, bool) {
	fd, ok := h.source.Descriptor()
	return int(fd), ok && !isStacked(int(fd))
}

// isStacked reports whether a file is on a stacked file system, which the kernel refuses for
// passthrough, or on an unknown one. After a refusal go-fuse stops using passthrough, and files that are open
// with it could not be opened once more.
func isStacked(fd int) bool {
	var st unix.Statfs_t
	err := unix.Fstatfs(fd, &st)
	if err != nil {
		return true
	}
	const ( // of linux/magic.h
		overlayFS = 0x794c7630
		eCryptFS  = 0xf15f
		fuseFS    = 0x65735546
	)
	switch int64(st.Type) {
	case overlayFS, eCryptFS, fuseFS:
		return true
	}
	return false
}
