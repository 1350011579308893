package nfstest

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
)

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	UID  uint32 // of the credential
	conn net.Conn
	xid  atomic.Uint32

	mu      sync.Mutex // guards waiting
	waiting map[uint32]chan []byte
}

// Dial connects to a server.
func Dial(address string) (*Client, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return NewClient(conn), nil
}

// NewClient returns the client of a connection.
func NewClient(conn net.Conn) *Client {
	c := &Client{conn: conn, waiting: map[uint32]chan []byte{}}
	go c.receive()
	return c
}

// Close closes the connection.
func (c *Client) Close() { c.conn.Close() }

// lastFragment is the bit of the last fragment in the mark of a record.
const lastFragment = 1 << 31

// receive hands the replies to the callers that wait for them, until the connection ends. Then it ends all calls.
func (c *Client) receive() {
	for {
		message, err := c.readMessage()
		if err != nil {
			break
		}
		xid := binary.BigEndian.Uint32(message)
		c.mu.Lock()
		reply := c.waiting[xid]
		delete(c.waiting, xid)
		c.mu.Unlock()
		if reply != nil {
			reply <- message
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, reply := range c.waiting {
		close(reply)
	}
	c.waiting = nil
}

// readMessage reads a message, which the server sends as one fragment.
func (c *Client) readMessage() ([]byte, error) {
	var mark [4]byte
	_, err := io.ReadFull(c.conn, mark[:])
	if err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(mark[:]) &^ lastFragment
	message := make([]byte, length)
	_, err = io.ReadFull(c.conn, message)
	return message, err
}

// Programs.
const (
	NFS   = 100003
	Mount = 100005
)

// Procedures of NFS, by RFC 1813.
const (
	getAttr     = 1
	setAttr     = 2
	lookup      = 3
	readLink    = 5
	read        = 6
	write       = 7
	Symlink     = 10
	remove      = 12
	rename      = 14
	readDir     = 16
	readDirPlus = 17
)

// mnt is the procedure of Mount that mounts.
const mnt = 1

// Message returns a call by RFC 5531, without the mark of a record. Its first word is its number.
func (c *Client) Message(program, procedure uint32, arguments ...any) []byte {
	const (
		call           = 0
		rpcVersion     = 2
		programVersion = 3
		authSys        = 1
	)
	header := []uint32{c.xid.Add(1), call, rpcVersion, program, programVersion, procedure}
	credential := encode([]uint32{0, 0, c.UID, 0, 0}) // stamp, no machine, user, group, no groups
	noVerifier := [2]uint32{}
	m := encode(header, uint32(authSys), credential, noVerifier)
	return append(m, encode(arguments...)...)
}

// Send sends a message and returns the reply behind its header. The error is io.ErrUnexpectedEOF if the connection
// ends before.
func (c *Client) Send(message []byte) (*Reader, error) {
	reply := make(chan []byte, 1)
	xid := binary.BigEndian.Uint32(message)
	mark := encode(uint32(len(message)) | lastFragment)
	c.mu.Lock()
	if c.waiting == nil {
		c.mu.Unlock()
		return nil, io.ErrUnexpectedEOF
	}
	c.waiting[xid] = reply
	_, err := c.conn.Write(append(mark, message...))
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	answer, isOpen := <-reply
	if !isOpen {
		return nil, io.ErrUnexpectedEOF
	}
	r := &Reader{answer}
	return r, r.header()
}

// header reads the header of a reply. The error tells that the call was denied or not accepted.
func (r *Reader) header() error {
	const isReply, isAccepted, isSuccess = 1, 0, 0
	r.U32() // the number
	messageType := r.U32()
	state := r.U32()
	if messageType != isReply || state != isAccepted {
		return fmt.Errorf("the call was denied: %d", r.U32())
	}
	r.U32()    // flavor of the verifier
	r.Opaque() // the verifier
	status := r.U32()
	if status != isSuccess {
		return fmt.Errorf("the call was not accepted: %d", status)
	}
	return nil
}

// Call calls a procedure of NFS and returns the reply behind its status, which is an error if it is
// not 0.
func (c *Client) Call(procedure uint32, arguments ...any) (*Reader, error) {
	return c.call(NFS, procedure, arguments...)
}

func (c *Client) call(program, procedure uint32, arguments ...any) (*Reader, error) {
	r, err := c.Send(c.Message(program, procedure, arguments...))
	if err != nil {
		return nil, err
	}
	s := Status(r.U32())
	if s != 0 {
		return r, s
	}
	return r, nil
}

// Status is an nfsstat3 that is no success.
type Status uint32

func (s Status) Error() string { return fmt.Sprintf("NFS status %d", uint32(s)) }

// MountPath mounts an exported path and returns the handle of the root.
func (c *Client) MountPath(path string) ([]byte, error) {
	r, err := c.call(Mount, mnt, path)
	if err != nil {
		return nil, err
	}
	return r.Opaque(), nil
}

// Attr are the attributes of a node.
type Attr struct {
	Type, Mode   uint32 // 1 file, 2 directory, 5 link
	Size, FileID uint64
	MTime, CTime uint64 // in nanoseconds
	UID, GID     uint32
}

// GetAttr asks for attributes.
func (c *Client) GetAttr(handle []byte) (Attr, error) {
	r, err := c.Call(getAttr, handle)
	if err != nil {
		return Attr{}, err
	}
	return r.attr(), nil
}

// Lookup looks a name up; known is false if the reply has no attributes.
func (c *Client) Lookup(dir []byte, name string) (handle []byte, a Attr, known bool, err error) {
	r, err := c.Call(lookup, dir, name)
	if err != nil {
		return nil, a, false, err
	}
	handle = r.Opaque()
	a, known = r.postAttr()
	return handle, a, known, nil
}

// Walk looks up a path below a directory.
func (c *Client) Walk(dir []byte, path string) (handle []byte, err error) {
	handle = dir
	for name := range strings.SplitSeq(path, "/") {
		handle, _, _, err = c.Lookup(handle, name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return handle, nil
}

// ReadLink reads a link.
func (c *Client) ReadLink(handle []byte) (string, error) {
	r, err := c.Call(readLink, handle)
	if err != nil {
		return "", err
	}
	r.postAttr()
	return string(r.Opaque()), nil
}

// Read reads a part of a file.
func (c *Client) Read(handle []byte, off uint64, count uint32) (data []byte, end bool, err error) {
	r, err := c.Call(read, handle, off, count)
	if err != nil {
		return nil, false, err
	}
	r.postAttr()
	r.U32()
	end = r.U32() != 0
	return r.Opaque(), end, nil
}

// ReadFile reads a file as clients do: so many bytes as it has by its attributes.
func (c *Client) ReadFile(handle []byte) ([]byte, error) {
	a, err := c.GetAttr(handle)
	if err != nil {
		return nil, err
	}
	const readSize = 32 << 10
	var all []byte
	isEnd := a.Size == 0
	for !isEnd {
		var part []byte
		part, isEnd, err = c.Read(handle, uint64(len(all)), readSize)
		if err != nil {
			return all, err
		}
		all = append(all, part...)
	}
	if uint64(len(all)) != a.Size {
		return all, fmt.Errorf("%d bytes were read of %d", len(all), a.Size)
	}
	return all, nil
}

// Write writes at an offset; it returns how many bytes were taken.
func (c *Client) Write(handle []byte, off uint64, data []byte) (int, error) {
	const fileSync = uint32(2)
	r, err := c.Call(write, handle, off, uint32(len(data)), fileSync, data)
	if err != nil {
		return 0, err
	}
	r.U32()
	r.postAttr()
	return int(r.U32()), nil
}

// Append writes behind the end, as the attributes tell it, until all is written or a write fails.
func (c *Client) Append(handle []byte, text string) error {
	a, err := c.GetAttr(handle)
	if err != nil {
		return err
	}
	end := a.Size
	for text != "" {
		n, err := c.Write(handle, end, []byte(text))
		if err != nil {
			return err
		}
		text = text[n:]
		end += uint64(n)
	}
	return nil
}

// Truncate sets a size.
func (c *Client) Truncate(handle []byte, size uint64) error {
	_, err := c.Call(setAttr, handle, [4]uint32{3: 1}, size, [3]uint32{})
	return err
}

// Symlink makes a link.
func (c *Client) Symlink(dir []byte, name, target string) error {
	_, err := c.Call(Symlink, dir, name, [6]uint32{}, target)
	return err
}

// Remove removes a name.
func (c *Client) Remove(dir []byte, name string) error {
	_, err := c.Call(remove, dir, name)
	return err
}

// Rename renames in a directory.
func (c *Client) Rename(dir []byte, from, to string) error {
	_, err := c.Call(rename, dir, from, dir, to)
	return err
}

// Item is a listed name.
type Item struct {
	FileID uint64
	Name   string
	Cookie uint64
	Attr   Attr
	Known  bool // it came with attributes
	Handle []byte
}

// ReadDirPlus reads the names behind a cookie, in a reply of at most so many bytes.
func (c *Client) ReadDirPlus(dir []byte, cookie uint64, size uint32) (items []Item, end bool, err error) {
	return c.readDir(readDirPlus, dir, cookie, size, size)
}

// ReadDir is ReadDirPlus without attributes and handles.
func (c *Client) ReadDir(dir []byte, cookie uint64, size uint32) (items []Item, end bool, err error) {
	return c.readDir(readDir, dir, cookie, size)
}

func (c *Client) readDir(procedure uint32, dir []byte, cookie uint64, sizes ...uint32) (items []Item, end bool, err error) {
	const verifier = uint64(0)
	r, err := c.Call(procedure, dir, cookie, verifier, sizes)
	if err != nil {
		return nil, false, err
	}
	r.postAttr()
	r.U64()
	for r.U32() != 0 {
		it := Item{
			FileID: r.U64(),
			Name:   string(r.Opaque()),
			Cookie: r.U64(),
		}
		if procedure == readDirPlus {
			it.Attr, it.Known = r.postAttr()
			if r.U32() != 0 {
				it.Handle = r.Opaque()
			}
		}
		items = append(items, it)
	}
	return items, r.U32() != 0, nil
}

// List reads all names of a directory, without "." and "..".
func (c *Client) List(dir []byte) (all []Item, err error) {
	const replySize = 8 << 10
	cookie := uint64(0)
	isEnd := false
	for !isEnd {
		var items []Item
		items, isEnd, err = c.ReadDirPlus(dir, cookie, replySize)
		if err != nil {
			return nil, err
		}
		for _, it := range items {
			cookie = it.Cookie
			if it.Name != "." && it.Name != ".." {
				all = append(all, it)
			}
		}
	}
	return all, nil
}

// Reader reads XDR. It panics where a reply is cut.
type Reader struct{ B []byte }

// U32 reads a word.
func (r *Reader) U32() uint32 {
	v := binary.BigEndian.Uint32(r.B)
	r.B = r.B[4:]
	return v
}

// U64 reads two words.
func (r *Reader) U64() uint64 {
	high := uint64(r.U32())
	low := uint64(r.U32())
	return high<<32 | low
}

// Opaque reads bytes behind their length.
func (r *Reader) Opaque() []byte {
	n := int(r.U32())
	v := r.B[:n]
	padded := (n + 3) &^ 3 // to a multiple of four
	r.B = r.B[padded:]
	return v
}

// postAttr reads attributes that may be left out.
func (r *Reader) postAttr() (a Attr, known bool) {
	known = r.U32() != 0
	if known {
		a = r.attr()
	}
	return a, known
}

// attr reads a fattr3.
func (r *Reader) attr() (a Attr) {
	a.Type = r.U32()
	a.Mode = r.U32()
	r.U32() // the number of links
	a.UID = r.U32()
	a.GID = r.U32()
	a.Size = r.U64()
	for range 3 {
		r.U64() // the room that it takes, its device, the file system
	}
	a.FileID = r.U64()
	r.U64() // atime
	a.MTime = r.time()
	a.CTime = r.time()
	return a
}

// time reads a time in seconds and nanoseconds, and returns it in nanoseconds.
func (r *Reader) time() uint64 {
	const second = 1e9
	seconds := uint64(r.U32())
	nanoseconds := uint64(r.U32())
	return seconds*second + nanoseconds
}

// encode encodes numbers of fixed sizes, and lists of them, as they are, and texts and bytes behind their length.
func encode(values ...any) (b []byte) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			b = append(b, encode([]byte(v))...)
		case []byte:
			b = append(b, encode(uint32(len(v)))...)
			b = append(b, v...)
			b = append(b, make([]byte, -len(v)&3)...)
		default:
			b, _ = binary.Append(b, binary.BigEndian, v)
		}
	}
	return b
}
