package nfs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/nodes/nfs/nfstest"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// made counts the fake nodes.
var made atomic.Uint64

// fake is the base of nodes of which a test knows all. Each stands for a content of its own.
type fake struct {
	nodes.Directory
	content uint64
}

func newFake() fake {
	return fake{nodes.NewDirectory(&nodes.View{Log: slog.New(slog.DiscardHandler)}), made.Add(1)}
}

func (f *fake) number() uint64 { return f.content }

type items map[string]interface {
	nodes.Node
	number() uint64
}

// fakeDir is a directory whose names a test changes.
type fakeDir struct {
	fake
	items items
	times int // how often it was listed
}

func newFakeDir(items items) *fakeDir { return &fakeDir{fake: newFake(), items: items} }

func (d *fakeDir) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindDir, Mode: 0o750, UID: 1, GID: 2}, nil
}

func (d *fakeDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it nodes.Item) (nodes.Child, error) {
	n, ok := d.items[it.Name]
	if !ok {
		return nodes.Child{}, syscall.ENOENT
	}
	a, err := n.Stat(ctx)
	return nodes.Child{Kind: a.Kind, Content: n.number(), Make: func() nodes.Node { return n }}, err
}

func (d *fakeDir) List(ctx context.Context, _ *sessioncore.Snapshot) (list []nodes.Item, err error) {
	d.times++
	for name, n := range d.items {
		a, _ := n.Stat(ctx)
		list = append(list, nodes.Item{Name: name, Kind: a.Kind})
	}
	return list, nil
}

func (d *fakeDir) Symlink(_ context.Context, target, name string) syscall.Errno {
	if d.items[name] != nil {
		return syscall.EEXIST
	}
	d.items[name] = newFakeLink(target)
	return 0
}

func (d *fakeDir) Remove(_ context.Context, name string) syscall.Errno {
	delete(d.items, name)
	return 0
}

func (d *fakeDir) Rename(ctx context.Context, name, to string, _ uint32) syscall.Errno {
	d.items[to] = d.items[name]
	return d.Remove(ctx, name)
}

// fakeLink is a link.
type fakeLink struct {
	fake
	target string
}

func newFakeLink(target string) *fakeLink { return &fakeLink{newFake(), target} }

func (l *fakeLink) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindLink, Mode: 0o777}, nil
}

func (l *fakeLink) Target(context.Context) (string, error) { return l.target, nil }

// fakeFile is a file that is rendered for each open.
type fakeFile struct {
	fake
	text   string
	opens  int32
	closed atomic.Int32
}

func newFakeFile(text string) *fakeFile { return &fakeFile{fake: newFake(), text: text} }

func (f *fakeFile) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindFile, Mode: 0o640, UID: 1, GID: 2, Size: int64(len(f.text))}, nil
}

func (f *fakeFile) Open(context.Context, int) (nodes.Handle, error) {
	f.opens++
	return &fakeHandle{f, f.text}, nil
}

type fakeHandle struct {
	file *fakeFile
	text string
}

func (h *fakeHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return strings.NewReader(h.text).ReadAt(p, off)
}

func (h *fakeHandle) Close() { h.file.closed.Add(1) }

// fakeControl accepts lines but "bad", and answers each with its number.
type fakeControl struct {
	fakeFile
	shows bool // the last line
	lines []string
	said  []error
}

func newFakeControl() *fakeControl { return &fakeControl{fakeFile: fakeFile{fake: newFake()}} }

func (f *fakeControl) Sync(context.Context) syscall.Errno { return 0 }
func (f *fakeControl) Readable() bool                     { return f.shows }

func (f *fakeControl) Refused(err error) syscall.Errno {
	f.said = append(f.said, err)
	return nodes.Errno(err)
}

func (f *fakeControl) Open(ctx context.Context, flag int) (nodes.Handle, error) {
	if flag == 0 {
		return f.fakeFile.Open(ctx, flag)
	}
	return &fakeWriter{fakeHandle: fakeHandle{file: &f.fakeFile}, control: f}, nil
}

// fakeWriter is an open fakeControl, whose text are the answers.
type fakeWriter struct {
	fakeHandle
	control *fakeControl
	pending string
	refused bool
}

// Write accepts lines up to one that is bad. It refuses that one with EBUSY, as the first of a write, and all behind it.
func (w *fakeWriter) Write(_ context.Context, p []byte, _ int64) (n int, errno syscall.Errno) {
	for part := range strings.Lines(string(p)) {
		text, isWhole := strings.CutSuffix(part, "\n")
		w.pending += text
		isBad := isWhole && w.pending == "bad"
		if isBad {
			w.refused = true
		}
		if w.refused && n == 0 {
			return 0, syscall.EBUSY
		}
		if w.refused {
			return n, 0
		}
		n += len(part)
		if isWhole {
			w.accept()
		}
	}
	return n, 0
}

// accept adds the pending line to those of the file, and an answer.
func (w *fakeWriter) accept() {
	c := w.control
	c.lines = append(c.lines, w.pending)
	w.text += fmt.Sprintln(len(c.lines))
	if c.shows {
		c.text = w.pending + "\n"
	}
	w.pending = ""
}

func (w *fakeWriter) Flush(context.Context) syscall.Errno { return 0 }

// served is a server of a fake tree.
type served struct {
	*testing.T
	door *Door
	at   string // its address
	stop func()
}

var testKey = bytes.Repeat([]byte{7}, 32)

// newDoor returns a door to a tree with a directory d.
func newDoor(dir *fakeDir, log io.Writer) *Door {
	d := nodes.Name{Name: "d", Kind: storage.KindDir, Make: func(*nodes.Directory) nodes.Node { return dir }}
	view := &nodes.View{Log: slog.New(slog.DiscardHandler)}
	root := nodes.NewRootDir(view, memory.New(), func() []nodes.Name { return []nodes.Name{d} })
	return New(root, "test", testKey, slog.New(slog.NewTextHandler(log, nil)))
}

// serve serves a directory, to which a client is connected.
func serve(t *testing.T, dir *fakeDir) (*served, *client) { return serveLogged(t, dir, io.Discard) }

// serveLogged is serve with a log.
func serveLogged(t *testing.T, dir *fakeDir, log io.Writer) (*served, *client) {
	s := &served{T: t, door: newDoor(dir, log)}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	s.at = l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- s.door.Serve(ctx, l) }()
	s.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(s.stop)
	c := &client{T: t}
	c.Client, err = nfstest.Dial(s.at)
	require.NoError(t, err)
	t.Cleanup(c.Client.Close)
	c.UID = s.door.uid
	root, err := c.MountPath(s.door.Export())
	require.NoError(t, err)
	c.dir, err = c.Client.Walk(root, "d")
	require.NoError(t, err)
	return s, c
}

// client is a client whose directory is the served one. The calls of its own succeed.
type client struct {
	*testing.T
	*nfstest.Client
	dir []byte
}

func (c *client) walk(path string) []byte {
	h, err := c.Walk(c.dir, path)
	require.NoError(c, err)
	return h
}

func (c *client) attr(h []byte) nfstest.Attr {
	a, err := c.GetAttr(h)
	require.NoError(c, err)
	return a
}

func (c *client) text(h []byte) string {
	text, err := c.ReadFile(h)
	require.NoError(c, err)
	return string(text)
}

func (c *client) write(h []byte, off int, text string) {
	n, err := c.Write(h, uint64(off), []byte(text))
	require.NoError(c, err)
	require.Equal(c, len(text), n)
}

// fails requires that a call fails with a status.
func (c *client) fails(status nfstest.Status, err error, words ...any) {
	c.Helper()
	require.Equal(c, status, err, words...)
}

// Statuses of RFC 1813.
const (
	exists  = nfstest.Status(17)
	invalid = nfstest.Status(22)
	stale   = nfstest.Status(70)
	denied  = nfstest.Status(nfsAccess)
)

// TestNames: a listing has each name once, in replies of any size, while names come and go;
// READDIRPLUS renders nothing, and tells the kind of each.
func TestNames(t *testing.T) {
	dir := newFakeDir(items{"link": newFakeLink("x"), "dir": newFakeDir(nil)})
	var files []*fakeFile
	for i := range 1000 {
		files = append(files, newFakeFile("text"))
		dir.items[fmt.Sprint("f", i)] = files[i]
	}
	s, c := serve(t, dir)
	all, err := c.List(c.dir)
	require.NoError(t, err)
	require.Len(t, all, 1002)
	require.LessOrEqual(t, dir.times, 2, "the pages share a listing")
	kinds := map[string]uint32{"f": 1, "n": 1, "d": 2, ".": 2, "l": 5}
	for _, size := range []uint32{600, 8 << 10, 1 << 20} {
		names := map[string]int{} // how often each was listed
		cookie := uint64(0)
		isEnd := false
		for !isEnd {
			var part []nfstest.Item
			part, isEnd, err = c.ReadDirPlus(c.dir, cookie, size)
			require.NoError(t, err)
			for _, it := range part {
				names[it.Name]++
				cookie = it.Cookie
				require.True(t, it.Known)
				require.Equal(t, it.FileID, it.Attr.FileID)
				require.Equal(t, kinds[it.Name[:1]], it.Attr.Type, it.Name)
				isQuick := it.Name == "link" || it.Name == "dir" // its attributes take no rendering
				require.Equal(t, isQuick, it.Handle != nil, it.Name)
				if it.Handle != nil {
					require.Equal(t, it.FileID, c.attr(it.Handle).FileID)
				}
			}
			dir.items[fmt.Sprint("new", cookie)] = newFakeFile("") // while it is read
			s.door.versions.Purge()                                // as after a restart
		}
		for i := range 1000 {
			require.Equal(t, 1, names[fmt.Sprint("f", i)])
		}
		require.Equal(t, 1, names["."])
		require.Equal(t, 1, names[".."])
	}
	_, _, err = c.ReadDir(c.dir, 0, 100)
	c.fails(nfsTooSmall, err)
	for _, f := range files {
		require.Zero(t, f.opens)
	}
}

// TestChangedNames: the times of a directory change when it is listed otherwise than before.
func TestChangedNames(t *testing.T) {
	dir := newFakeDir(items{"a": newFakeFile("")})
	_, c := serve(t, dir)
	before := c.attr(c.dir)
	_, err := c.List(c.dir)
	require.NoError(t, err)
	require.Equal(t, before, c.attr(c.dir))
	dir.items["b"] = newFakeFile("")
	time.Sleep(2 * justNow) // a client asks once a second
	after := c.attr(c.dir)
	require.Greater(t, after.CTime, before.CTime)
	require.Greater(t, after.MTime, before.MTime)
}

// TestHandlesOutlive: handles are good with the next server, and when the table has forgotten them,
// but for nodes that are very deep; one of another content is stale.
func TestHandlesOutlive(t *testing.T) {
	file := newFakeFile("deep")
	tree := newFakeDir(items{"file": file})
	var above *fakeDir // of n7/n6/file
	for i := range 8 {
		if i == 6 {
			above = tree
		}
		tree = newFakeDir(items{fmt.Sprint("n", i): tree, "file": newFakeFile(fmt.Sprint(i))})
	}
	first, c := serve(t, tree)
	handles := [][]byte{c.dir}
	for i := range 8 {
		h, err := c.Walk(handles[i], fmt.Sprint("n", 7-i))
		require.NoError(t, err)
		handles = append(handles, h)
	}
	h := c.walk("n7/n6/file")
	first.stop()

	second, c := serve(t, tree)
	require.Equal(t, "5", c.text(h))
	for depth, h := range handles[:8] {
		_, err := c.GetAttr(h)
		require.NoError(t, err, depth)
	}
	_, err := c.GetAttr(handles[8])
	c.fails(stale, err)
	deep := c.walk("n7/n6")
	above.items["file"] = newFakeFile("other")
	second.door.objects.Purge()
	_, err = c.GetAttr(h)
	c.fails(stale, err)
	c.attr(deep)
	for i := range handleSize {
		other := slices.Clone(deep)
		other[i] ^= 1
		_, err = c.GetAttr(other)
		c.fails(nfsBadHandle, err, "byte %d", i)
	}
	_, err = c.GetAttr(deep[:32])
	c.fails(nfsBadHandle, err)
}

// TestOneVersion: a reader gets the version whose size it was told, and the next one the new
// version.
func TestOneVersion(t *testing.T) {
	f := newFakeFile(strings.Repeat("a", 100_000))
	s, c := serve(t, newFakeDir(items{"f": f}))
	h, _, known, err := c.Lookup(c.dir, "f")
	require.NoError(t, err)
	require.False(t, known, "it is not rendered when it is looked up")
	require.Zero(t, f.opens)
	a := c.attr(h)
	first, _, err := c.Read(h, 0, 50_000)
	require.NoError(t, err)
	f.text = strings.Repeat("b", 10)
	time.Sleep(2 * justNow)
	require.Equal(t, a, c.attr(h), "it is being read")
	rest, end, err := c.Read(h, 50_000, 60_000)
	require.NoError(t, err)
	require.True(t, end)
	require.Equal(t, strings.Repeat("a", 100_000), string(first)+string(rest))
	require.Equal(t, strings.Repeat("b", 10), c.text(h))
	s.door.versions.Purge()
	s.door.closing.Wait()
	require.Equal(t, f.opens, f.closed.Load())
}

// TestLines: writes of any cut, in any order, twice, and from the beginning of a page. After a
// restart the first write says how far the client is.
func TestLines(t *testing.T) {
	f := newFakeControl()
	earlier := newFakeControl() // with lines that were written before the server began
	s, c := serve(t, newFakeDir(items{"append": f, "earlier": earlier}))
	h := c.walk("append")
	require.NoError(t, c.Append(h, "one\ntwo\n"))
	require.Equal(t, "1\n2\n", string(s.door.Result()))
	require.Equal(t, "one\ntwo\n", c.text(h))

	var writes sync.WaitGroup
	parts := []string{"th", "ree\nfo", "ur\n"}
	for i, part := range slices.Backward(parts) { // the last one first
		before := strings.Join(parts[:i], "")
		off := len("one\ntwo\n") + len(before)
		writes.Go(func() { c.write(h, off, part) })
		time.Sleep(20 * time.Millisecond) // so that it comes before the next
	}
	writes.Wait()
	c.write(h, 0, "one\ntwo\nthree\nfour\nfive\n")
	_, err := c.Write(h, 0, []byte("one\nTWO\nthree\nfour\nfive\nsix\n"))
	c.fails(invalid, err)
	require.ErrorIs(t, f.said[0], errDiffers)
	require.Equal(t, []string{"one", "two", "three", "four", "five"}, f.lines)

	require.NoError(t, c.Truncate(h, 0))
	c.write(h, 0, "six\n")
	c.fails(denied, c.Append(h, "seven\nbad\neight\n"), "EBUSY, for which a client would wait for ever")
	require.NoError(t, c.Append(h, "nine\n"))
	require.Equal(t, []string{"six", "seven", "nine"}, f.lines[5:])

	h = c.walk("earlier")
	c.write(h, 1000, "one\n")
	require.EqualValues(t, 1004, c.attr(h).Size)
	c.write(h, 1004, "two\n")
	require.Equal(t, []string{"one", "two"}, earlier.lines)
}

// TestReadableLines: a file that shows what was set has that size, and takes what is written behind
// it, or over it.
func TestReadableLines(t *testing.T) {
	f := newFakeControl()
	f.shows, f.text = true, "the old title\n"
	_, c := serve(t, newFakeDir(items{"title": f}))
	h := c.walk("title")
	for _, title := range []string{"a", "a much longer title than the old one", "b"} {
		require.NoError(t, c.Append(h, title+"\n"))
		require.Equal(t, title+"\n", c.text(h))
		require.NoError(t, c.Truncate(h, 0))
		require.Zero(t, c.attr(h).Size, "after >")
		c.write(h, 0, title+"!\n")
		require.Equal(t, title+"!\n", c.text(h))
		c.write(h, 0, title+"!\nmore\n") // a whole page
	}
	require.Equal(t, "more", f.lines[len(f.lines)-1])
	c.attr(h)
	_, err := c.Write(h, 0, []byte("other"+"\nmore\n"))
	c.fails(invalid, err)
}

// TestCallsAreDoneOnce: a call that comes twice, as after a lost answer, is carried out once, also
// while it is carried out.
func TestCallsAreDoneOnce(t *testing.T) {
	_, c := serve(t, newFakeDir(items{}))
	noAttributes := [6]uint32{}
	message := c.Message(nfstest.NFS, nfstest.Symlink, c.dir, "leaf", noAttributes, "entries/a")
	for range 3 {
		r, err := c.Send(message)
		require.NoError(t, err)
		require.Zero(t, r.U32())
	}
	c.fails(exists, c.Symlink(c.dir, "leaf", "entries/a"))
	require.NoError(t, c.Remove(c.dir, "leaf"))
	require.NoError(t, c.Symlink(c.dir, "new", "entries/b"))
	require.NoError(t, c.Rename(c.dir, "new", "leaf"))
	target, err := c.ReadLink(c.walk("leaf"))
	require.NoError(t, err)
	require.Equal(t, "entries/b", target)
}

// TestStrangers: the path is good for one mount, other users are refused, and nobody is told of
// paths.
func TestStrangers(t *testing.T) {
	s, c := serve(t, newFakeDir(nil))
	path := s.door.Export()
	for _, wrong := range []string{"", "/", "/x", path + "x", path[:5]} {
		_, err := c.MountPath(wrong)
		c.fails(denied, err)
	}
	_, err := c.MountPath(path)
	require.NoError(t, err)
	_, err = c.MountPath(path)
	c.fails(denied, err, "twice")
	path = s.door.Export()
	s.door.exported = time.Now().Add(-exportTime - time.Second)
	_, err = c.MountPath(path)
	c.fails(denied, err, "late")
	for _, procedure := range []uint32{2, 5} {
		r, err := c.Send(c.Message(nfstest.Mount, procedure))
		require.NoError(t, err)
		require.Zero(t, r.U32())
	}
	c.UID = s.door.uid + 1
	_, err = c.GetAttr(c.dir)
	require.ErrorContains(t, err, "denied")
	c.UID = 0
	c.attr(c.dir)
	for procedure := range uint32(30) { // arguments that are cut
		for size := range 24 {
			r, err := c.Send(c.Message(nfstest.NFS, procedure, make([]uint32, size)))
			if err == nil && procedure > 0 {
				require.NotZero(t, r.U32(), procedure)
			}
		}
	}
}

// TestStrangerLeaves: a connection over which neither a handle nor the secret comes ends after ten
// seconds, that of a mount does not.
func TestStrangerLeaves(t *testing.T) {
	t.Parallel()
	s, c := serve(t, newFakeDir(nil))
	other, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.SetReadDeadline(time.Now().Add(6*strangerTime)))
	_, err = other.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	c.attr(c.dir)
}

// piped is a client of a door over a pipe, which holds no byte that is not read.
func piped(t *testing.T, door *Door) net.Conn {
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = door.serve(ctx, newConnection(theirs))
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return ours
}

// ask sends a call, and returns when it is taken.
func ask(conn net.Conn, program, procedure uint32, arguments ...any) error {
	var c nfstest.Client
	call := c.Message(program, procedure, arguments...)
	_, err := conn.Write(append([]byte{0x80, 0, 0, byte(len(call))}, call...))
	return err
}

// TestUnreadAnswers: a client that reads no answers keeps nobody waiting. A stranger has one call at
// a time and a second for its answer, a client with a handle so many calls and half a minute.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		door := newDoor(newFakeDir(nil), io.Discard)
		root := door.sign(door.root.handle)
		const getAttr = 1
		for name, c := range map[string]struct {
			calls     int
			limit     time.Duration
			procedure uint32
			arguments []any
		}{
			"stranger": {1, strangerSend, 0, nil},
			"guess":    {1, strangerSend, getAttr, []any{make([]byte, handleSize)}},
			"client":   {maxCalls, sendTime, getAttr, []any{root}},
		} {
			hog := piped(t, door)
			start := time.Now()
			for range c.calls {
				require.NoError(t, ask(hog, nfstest.NFS, c.procedure, c.arguments...), name)
			}
			var taken atomic.Bool
			go func() {
				_ = ask(hog, nfstest.NFS, c.procedure, c.arguments...) // it fails at last
				taken.Store(true)
			}()
			synctest.Wait()
			require.False(t, taken.Load(), name)

			other := nfstest.NewClient(piped(t, door))
			other.UID = door.uid
			for range 2 * maxCalls {
				_, err := other.GetAttr(root)
				require.NoError(t, err, name)
			}
			other.Close()
			require.Equal(t, start, time.Now(), "nobody waited")

			time.Sleep(c.limit - 1)
			synctest.Wait()
			require.False(t, taken.Load(), name)
			time.Sleep(time.Millisecond)
			synctest.Wait()
			_, err := hog.Read(make([]byte, 1))
			require.Equal(t, io.EOF, err, name)
		}
	})
}

// TestRefusedAreLogged: of refused connections a line a minute has the number, and the last line the
// rest.
func TestRefusedAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		refused := refusedConnections{log: slog.New(slog.NewTextHandler(&log, nil))}
		add := func(times int) {
			for range times {
				ours, theirs := net.Pipe()
				refused.close(theirs, denied)
				_, err := ours.Read(make([]byte, 1))
				require.Equal(t, io.EOF, err)
			}
		}
		add(5)
		time.Sleep(logPause)
		add(3)
		refused.end()
		var numbers []string
		for line := range strings.Lines(log.String()) {
			_, number, _ := strings.Cut(strings.TrimSpace(line), "last_line=")
			numbers = append(numbers, number)
		}
		require.Equal(t, []string{"0", "4", "2"}, numbers)
	})
}

// TestFirstCallWaits: the first call of a connection that has a handle is no stranger's: what it
// waits for may come over the same connection.
func TestFirstCallWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeControl()
		door := newDoor(newFakeDir(items{"append": f}), io.Discard)
		connect := func() *nfstest.Client {
			c := nfstest.NewClient(piped(t, door))
			c.UID = door.uid
			return c
		}
		first := connect()
		h, err := first.Walk(door.sign(door.root.handle), "d/append")
		require.NoError(t, err)
		_, err = first.Write(h, 0, []byte("one\n"))
		require.NoError(t, err)
		first.Close()
		again := connect()
		defer again.Close()
		var third error
		go func() { _, third = again.Write(h, 8, []byte("three\n")) }()
		synctest.Wait()
		_, err = again.Write(h, 4, []byte("two\n"))
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, third)
		require.Equal(t, []string{"one", "two", "three"}, f.lines)
		door.versions.Purge()
		door.closing.Wait()
	})
}

// TestManyConnections: of 10,000 connections those beyond a bound are closed, so that they take no
// goroutines, descriptors and memory. The client goes on, and another one gets in afterwards.
func TestManyConnections(t *testing.T) {
	s, c := serve(t, newFakeDir(nil))
	type use struct {
		goroutines, descriptors int
		heap                    uint64
	}
	used := func() use {
		items, err := os.ReadDir("/dev/fd")
		require.NoError(t, err)
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return use{runtime.NumGoroutine(), len(items), m.HeapAlloc}
	}
	runtime.GC()
	before := used()
	const rounds, each = 40, 250 // so that there are descriptors for the ends of the clients
	for range rounds {
		var round []net.Conn
		for range each {
			other, err := net.Dial("tcp", s.at)
			require.NoError(t, err)
			round = append(round, other)
		}
		require.Eventually(t, func() bool {
			now := used()
			return now.goroutines <= before.goroutines+2*maxConnections && now.descriptors <= before.descriptors+each+maxConnections
		}, 10*time.Second, time.Millisecond, "%v, before %v", used(), before)
		c.attr(c.dir)
		for _, other := range round {
			other.Close()
		}
	}
	runtime.GC()
	require.Less(t, used().heap, before.heap+8<<20)
	require.Eventually(t, func() bool {
		other, err := nfstest.Dial(s.at)
		require.NoError(t, err)
		defer other.Close()
		_, err = other.MountPath(s.door.Export())
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return used().goroutines <= before.goroutines+2 }, 10*time.Second, time.Millisecond)
}

// TestRights: rights come of the mode; a file that refuses writes refuses root's too.
func TestRights(t *testing.T) {
	require.EqualValues(t, 1|4|8|16, rights(0o640))
	require.EqualValues(t, 1, rights(0o400))
	require.EqualValues(t, 1|2|4|8|16|32, rights(0o750))
	require.Zero(t, rights(0))
}

// FuzzAnswer: no message makes the server panic, or answer with more than it may.
func FuzzAnswer(f *testing.F) {
	var bugs bytes.Buffer
	door := newDoor(newFakeDir(items{"append": newFakeControl(), "f": newFakeFile("text"), "l": newFakeLink("x")}), &bugs)
	handle := door.sign(door.root.handle)
	var c nfstest.Client
	for procedure := range uint32(len(programs[nfsProgram])) {
		f.Add(c.Message(nfstest.NFS, procedure, handle, "d"))
	}
	f.Add(c.Message(nfstest.Mount, 1, door.Export()))
	pipe, _ := net.Pipe()
	from := newConnection(pipe)
	f.Fuzz(func(t *testing.T, message []byte) {
		if len(message) >= 24 { // the program is most often one that is there
			message[12], message[13] = 0, 1
		}
		reply := door.answer(t.Context(), from, message)
		require.LessOrEqual(t, len(reply), maxRead+4096)
		require.Empty(t, bugs.String())
	})
}

// FuzzRecord: fragments of any size come together, and nothing beyond the bound is taken.
func FuzzRecord(f *testing.F) {
	f.Add([]byte{0x80, 0, 0, 4, 1, 2, 3, 4})
	f.Add([]byte{0, 0, 0, 1, 1, 0x80, 0, 0, 1, 2})
	f.Fuzz(func(t *testing.T, stream []byte) {
		message, _ := readRecord(bytes.NewReader(stream))
		require.LessOrEqual(t, len(message), min(len(stream), maxRecord))
	})
}
