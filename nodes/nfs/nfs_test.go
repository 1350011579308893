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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/nodes"
	"sessionfs/nodes/nfs/nfstest"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// fakeDir is a directory whose names a test changes.
type fakeDir struct {
	nodes.Directory
	mu    sync.Mutex
	items map[string]nodes.Node
	links map[string]string
	times int // how often it was listed
}

func newFakeDir(items map[string]nodes.Node) *fakeDir {
	view := &nodes.View{Log: slog.New(slog.DiscardHandler)}
	return &fakeDir{Directory: nodes.NewDirectory(view), items: items, links: map[string]string{}}
}

func (d *fakeDir) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindDir, Mode: 0o750, UID: 1, GID: 2}, nil
}

func kindOf(n nodes.Node) storage.Kind {
	switch n.(type) {
	case nodes.Dir:
		return storage.KindDir
	case nodes.Link:
		return storage.KindLink
	}
	return storage.KindFile
}

func (d *fakeDir) Find(_ context.Context, _ *sessioncore.Snapshot, it nodes.Item) (nodes.Child, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, ok := d.items[it.Name]
	if target, isLink := d.links[it.Name]; isLink {
		n, ok = &fakeLink{Directory: d.Directory, target: target}, true
	}
	if !ok {
		return nodes.Child{}, syscall.ENOENT
	}
	c := nodes.Child{Kind: kindOf(n), Make: func() nodes.Node { return n }}
	switch n := n.(type) {
	case *fakeFile:
		c.Content = n.content
	case *fakeLink:
		c.Content = uint64(n.target[len(n.target)-1])
	}
	return c, nil
}

func (d *fakeDir) List(context.Context, *sessioncore.Snapshot) (list []nodes.Item, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.times++
	for name, n := range d.items {
		list = append(list, nodes.Item{Name: name, Kind: kindOf(n)})
	}
	for name := range d.links {
		list = append(list, nodes.Item{Name: name, Kind: storage.KindLink})
	}
	return list, nil
}

func (d *fakeDir) set(name string, n nodes.Node) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.items[name] = n; n == nil {
		delete(d.items, name)
	}
}

func (d *fakeDir) Symlink(_ context.Context, target, name string) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.links[name]; ok {
		return syscall.EEXIST
	}
	d.links[name] = target
	return 0
}

func (d *fakeDir) Remove(_ context.Context, name string) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.links[name]; !ok {
		return syscall.ENOENT
	}
	delete(d.links, name)
	return 0
}

func (d *fakeDir) Rename(_ context.Context, name, to string, _ uint32) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.links[to] = d.links[name]
	delete(d.links, name)
	return 0
}

// fakeLink is a link.
type fakeLink struct {
	nodes.Directory
	target string
}

func (l *fakeLink) Stat(context.Context) (nodes.Attr, error) {
	return nodes.Attr{Kind: storage.KindLink, Mode: 0o777}, nil
}

func (l *fakeLink) Target(context.Context) (string, error) { return l.target, nil }

// fakeFile is a file that is rendered for each open.
type fakeFile struct {
	nodes.Directory
	content uint64
	mu      sync.Mutex
	text    string
	opens   int
	closed  int
}

func newFakeFile(text string) *fakeFile {
	return &fakeFile{Directory: nodes.NewDirectory(&nodes.View{Log: slog.New(slog.DiscardHandler)}), text: text}
}

func (f *fakeFile) Stat(context.Context) (nodes.Attr, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return nodes.Attr{Kind: storage.KindFile, Mode: 0o640, UID: 1, GID: 2, Size: int64(len(f.text))}, nil
}

func (f *fakeFile) Open(context.Context, int) (nodes.Handle, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opens++
	return &fakeHandle{f, strings.NewReader(f.text)}, nil
}

func (f *fakeFile) change(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.text = text
}

type fakeHandle struct {
	file *fakeFile
	text *strings.Reader
}

func (h *fakeHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return h.text.ReadAt(p, off)
}

func (h *fakeHandle) Close() {
	h.file.mu.Lock()
	defer h.file.mu.Unlock()
	h.file.closed++
}

// fakeControl accepts lines but "bad", and answers each with its number.
type fakeControl struct {
	fakeFile
	shows bool // the last line
	lines []string
	said  []error
}

func newFakeControl() *fakeControl { return &fakeControl{fakeFile: *newFakeFile("")} }

func (f *fakeControl) Sync(context.Context) syscall.Errno { return 0 }
func (f *fakeControl) Readable() bool                     { return f.shows }

func (f *fakeControl) Refused(err error) syscall.Errno {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, err)
	return nodes.Errno(err)
}

func (f *fakeControl) Open(ctx context.Context, flag int) (nodes.Handle, error) {
	if flag == 0 {
		return f.fakeFile.Open(ctx, flag)
	}
	return &fakeWriter{file: f}, nil
}

type fakeWriter struct {
	file    *fakeControl
	pending []byte
	answers string
	refused bool
}

func (w *fakeWriter) Write(_ context.Context, p []byte, _ int64) (n int, errno syscall.Errno) {
	w.file.mu.Lock()
	defer w.file.mu.Unlock()
	for n < len(p) {
		end := bytes.IndexByte(p[n:], '\n')
		if end < 0 {
			w.pending = append(w.pending, p[n:]...)
			return len(p), 0
		}
		line := string(append(w.pending, p[n:n+end]...))
		if line == "bad" || w.refused {
			if w.refused = true; n > 0 {
				return n, 0
			}
			return 0, syscall.EBUSY
		}
		w.pending = nil
		w.file.lines = append(w.file.lines, line)
		w.answers += fmt.Sprintln(len(w.file.lines))
		if w.file.shows {
			w.file.text = line + "\n"
		}
		n += end + 1
	}
	return n, 0
}

func (w *fakeWriter) Flush(context.Context) syscall.Errno { return 0 }
func (w *fakeWriter) Close()                              {}

func (w *fakeWriter) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return strings.NewReader(w.answers).ReadAt(p, off)
}

// served is a server of a fake tree.
type served struct {
	*testing.T
	door *Door
	dir  *fakeDir
	at   string // its address
	stop func()
}

var testKey = bytes.Repeat([]byte{7}, 32)

func serve(t *testing.T, dir *fakeDir) *served {
	names := []nodes.Name{{Name: "d", Kind: storage.KindDir, Make: func(*nodes.Directory) nodes.Node { return dir }}}
	view := &nodes.View{Log: slog.New(slog.DiscardHandler)}
	root := nodes.NewRootDir(view, memory.New(), func() []nodes.Name { return names })
	s := &served{T: t, door: New(root, "test", testKey, slog.New(slog.DiscardHandler)), dir: dir}
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
	return s
}

// client connects and mounts; dir is the handle of the fake directory.
func (s *served) client() (c *nfstest.Client, dir []byte) {
	c, err := nfstest.Dial(s.at)
	require.NoError(s, err)
	s.Cleanup(c.Close)
	c.UID = s.door.uid
	root, err := c.MountPath(s.door.Export())
	require.NoError(s, err)
	dir, err = c.Walk(root, "d")
	require.NoError(s, err)
	return c, dir
}

// TestNames: a listing has each name once, in replies of any size, while names come and go;
// READDIRPLUS renders nothing, and tells the kind of each.
func TestNames(t *testing.T) {
	items := map[string]nodes.Node{"link": &fakeLink{target: "x"}, "dir": newFakeDir(nil)}
	var files []*fakeFile
	for i := range 1000 {
		f := newFakeFile("text")
		files = append(files, f)
		items[fmt.Sprint("f", i)] = f
	}
	s := serve(t, newFakeDir(items))
	c, dir := s.client()
	kinds := map[string]uint32{"f": 1, "n": 1, "d": 2, ".": 2, "l": 5}
	for _, size := range []uint32{600, 8 << 10, 1 << 20} {
		names := map[string]int{}
		for cookie, end := uint64(0), false; !end; {
			var got []nfstest.Item
			var err error
			got, end, err = c.ReadDirPlus(dir, cookie, size)
			require.NoError(t, err)
			for _, it := range got {
				names[it.Name]++
				cookie = it.Cookie
				require.True(t, it.Known)
				require.Equal(t, it.FileID, it.Attr.FileID)
				require.Equal(t, kinds[it.Name[:1]], it.Attr.Type, it.Name)
				require.Equal(t, it.Name == "link" || it.Name == "dir", it.Handle != nil, it.Name)
				if it.Handle != nil {
					a, err := c.GetAttr(it.Handle)
					require.NoError(t, err)
					require.Equal(t, it.FileID, a.FileID)
				}
			}
			s.dir.set(fmt.Sprint("new", cookie), newFakeFile("")) // while it is read
			s.door.versions.Purge()                               // as after a restart
		}
		for i := range 1000 {
			require.Equal(t, 1, names[fmt.Sprint("f", i)])
		}
		require.Equal(t, 1, names["."])
		require.Equal(t, 1, names[".."])
	}
	_, _, err := c.ReadDir(dir, 0, 100)
	require.Equal(t, nfstest.Status(nfsTooSmall), err)
	for _, f := range files {
		require.Zero(t, f.opens)
	}
}

// TestPagesShareAListing: the pages of a listing do not list the directory each.
func TestPagesShareAListing(t *testing.T) {
	items := map[string]nodes.Node{}
	for i := range 1000 {
		items[fmt.Sprint("f", i)] = newFakeFile("")
	}
	s := serve(t, newFakeDir(items))
	c, dir := s.client()
	all, err := c.List(dir)
	require.NoError(t, err)
	require.Len(t, all, 1000)
	require.LessOrEqual(t, s.dir.times, 2)
}

// TestChangedNames: the times of a directory change when it is listed otherwise than before.
func TestChangedNames(t *testing.T) {
	s := serve(t, newFakeDir(map[string]nodes.Node{"a": newFakeFile("")}))
	c, dir := s.client()
	before, err := c.GetAttr(dir)
	require.NoError(t, err)
	_, err = c.List(dir)
	require.NoError(t, err)
	same, err := c.GetAttr(dir)
	require.NoError(t, err)
	require.Equal(t, before, same)
	s.dir.set("b", newFakeFile(""))
	time.Sleep(2 * justNow) // a client asks once a second
	after, err := c.GetAttr(dir)
	require.NoError(t, err)
	require.Greater(t, after.CTime, before.CTime)
	require.Greater(t, after.MTime, before.MTime)
}

// TestHandlesOutlive: handles are good with the next server, and when the table has forgotten them,
// but for nodes that are very deep; one of another content is stale.
func TestHandlesOutlive(t *testing.T) {
	tree := newFakeDir(map[string]nodes.Node{"file": newFakeFile("deep")})
	for i := range 8 {
		tree = newFakeDir(map[string]nodes.Node{fmt.Sprint("n", i): tree, "file": newFakeFile(fmt.Sprint(i))})
	}
	first := serve(t, tree)
	c, dir := first.client()
	handles := map[int][]byte{0: dir}
	for i := range 8 {
		var err error
		handles[i+1], _, _, err = c.Lookup(handles[i], fmt.Sprint("n", 7-i))
		require.NoError(t, err)
	}
	file, err := c.Walk(dir, "n7/n6/file")
	require.NoError(t, err)
	first.stop()

	second := serve(t, tree)
	c, _ = second.client()
	text, err := c.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "5", string(text))
	for depth, h := range handles {
		_, err := c.GetAttr(h)
		if depth <= 7 {
			require.NoError(t, err, depth)
		} else {
			require.Equal(t, nfstest.Status(70), err, depth)
		}
	}
	deep, err := c.Walk(dir, "n7/n6")
	require.NoError(t, err)
	other := newFakeFile("other")
	other.content = 9
	tree.items["n7"].(*fakeDir).items["n6"].(*fakeDir).set("file", other)
	second.door.objects.Purge()
	_, err = c.GetAttr(file)
	require.Equal(t, nfstest.Status(70), err)
	_, err = c.GetAttr(deep)
	require.NoError(t, err)
	for i := range handleSize {
		h := slices.Clone(deep)
		h[i] ^= 1
		_, err = c.GetAttr(h)
		require.Equal(t, nfstest.Status(nfsBadHandle), err, "byte %d", i)
	}
	_, err = c.GetAttr(deep[:32])
	require.Equal(t, nfstest.Status(nfsBadHandle), err)
}

// TestOneVersion: a reader gets the version whose size it was told, and the next one the new
// version.
func TestOneVersion(t *testing.T) {
	f := newFakeFile(strings.Repeat("a", 100_000))
	s := serve(t, newFakeDir(map[string]nodes.Node{"f": f}))
	c, dir := s.client()
	h, _, known, err := c.Lookup(dir, "f")
	require.NoError(t, err)
	require.False(t, known, "it is not rendered when it is looked up")
	require.Zero(t, f.opens)
	a, err := c.GetAttr(h)
	require.NoError(t, err)
	first, _, err := c.Read(h, 0, 50_000)
	require.NoError(t, err)
	f.change(strings.Repeat("b", 10))
	time.Sleep(2 * justNow)
	still, err := c.GetAttr(h)
	require.NoError(t, err)
	require.Equal(t, a, still, "it is being read")
	rest, end, err := c.Read(h, 50_000, 60_000)
	require.NoError(t, err)
	require.True(t, end)
	require.Equal(t, strings.Repeat("a", 100_000), string(first)+string(rest))
	text, err := c.ReadFile(h)
	require.NoError(t, err)
	require.Equal(t, strings.Repeat("b", 10), string(text))
	s.door.versions.Purge()
	s.door.closing.Wait()
	require.Equal(t, f.opens, f.closed)
}

// TestLines: writes of any cut, in any order, twice, and from the beginning of a page.
func TestLines(t *testing.T) {
	f := newFakeControl()
	s := serve(t, newFakeDir(map[string]nodes.Node{"append": f}))
	c, dir := s.client()
	h, err := c.Walk(dir, "append")
	require.NoError(t, err)
	require.NoError(t, c.Append(h, "one\ntwo\n"))
	require.Equal(t, "1\n2\n", string(s.door.Result()))
	text, err := c.ReadFile(h)
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\n", string(text))

	var out sync.WaitGroup
	parts := []string{"th", "ree\nfo", "ur\n"}
	for i := len(parts) - 1; i >= 0; i-- { // the last one first
		out.Go(func() {
			n, err := c.Write(h, uint64(8+len(strings.Join(parts[:i], ""))), []byte(parts[i]))
			require.NoError(t, err)
			require.Equal(t, len(parts[i]), n)
		})
		time.Sleep(20 * time.Millisecond)
	}
	out.Wait()
	_, err = c.Write(h, 0, []byte("one\ntwo\nthree\nfour\nfive\n"))
	require.NoError(t, err)
	_, err = c.Write(h, 0, []byte("one\nTWO\nthree\nfour\nfive\nsix\n"))
	require.Equal(t, nfstest.Status(22), err)
	require.ErrorIs(t, f.said[0], errDiffers)
	require.Equal(t, []string{"one", "two", "three", "four", "five"}, f.lines)

	require.NoError(t, c.Truncate(h, 0))
	_, err = c.Write(h, 0, []byte("six\n"))
	require.NoError(t, err)
	err = c.Append(h, "seven\nbad\neight\n")
	require.Equal(t, nfstest.Status(13), err, "EBUSY, for which a client would wait for ever")
	require.NoError(t, c.Append(h, "nine\n"))
	require.Equal(t, []string{"six", "seven", "nine"}, f.lines[5:])
}

// TestLinesAfterRestart: the first write says how far the client is.
func TestLinesAfterRestart(t *testing.T) {
	f := newFakeControl()
	s := serve(t, newFakeDir(map[string]nodes.Node{"append": f}))
	c, dir := s.client()
	h, err := c.Walk(dir, "append")
	require.NoError(t, err)
	_, err = c.Write(h, 1000, []byte("one\n"))
	require.NoError(t, err)
	a, err := c.GetAttr(h)
	require.NoError(t, err)
	require.EqualValues(t, 1004, a.Size)
	_, err = c.Write(h, 1004, []byte("two\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"one", "two"}, f.lines)
}

// TestReadableLines: a file that shows what was set has that size, and takes what is written behind
// it, or over it.
func TestReadableLines(t *testing.T) {
	f := newFakeControl()
	f.shows, f.text = true, "the old title\n"
	s := serve(t, newFakeDir(map[string]nodes.Node{"title": f}))
	c, dir := s.client()
	h, err := c.Walk(dir, "title")
	require.NoError(t, err)
	for _, title := range []string{"a", "a much longer title than the old one", "b"} {
		require.NoError(t, c.Append(h, title+"\n"))
		text, err := c.ReadFile(h)
		require.NoError(t, err)
		require.Equal(t, title+"\n", string(text))
		require.NoError(t, c.Truncate(h, 0))
		a, err := c.GetAttr(h)
		require.NoError(t, err)
		require.Zero(t, a.Size, "after >")
		_, err = c.Write(h, 0, []byte(title+"!\n"))
		require.NoError(t, err)
		text, err = c.ReadFile(h)
		require.NoError(t, err)
		require.Equal(t, title+"!\n", string(text))
		_, err = c.Write(h, 0, []byte(title+"!\nmore\n")) // a whole page
		require.NoError(t, err)
	}
	require.Equal(t, "more", f.lines[len(f.lines)-1])
	_, err = c.GetAttr(h)
	require.NoError(t, err)
	_, err = c.Write(h, 0, []byte("other"+"\nmore\n"))
	require.Equal(t, nfstest.Status(22), err)
}

// TestCallsAreDoneOnce: a call that comes twice, as after a lost answer, is carried out once, also
// while it is carried out.
func TestCallsAreDoneOnce(t *testing.T) {
	s := serve(t, newFakeDir(map[string]nodes.Node{}))
	c, dir := s.client()
	message := c.Message(nfstest.NFS, 10, slices.Concat(nfstest.Opaque(dir), nfstest.Opaque([]byte("leaf")),
		nfstest.Words(0, 0, 0, 0, 0, 0), nfstest.Opaque([]byte("entries/a"))))
	for range 3 {
		r, err := c.Send(message)
		require.NoError(t, err)
		require.Zero(t, r.U32())
	}
	require.Equal(t, nfstest.Status(17), c.Symlink(dir, "leaf", "entries/a"))
	require.NoError(t, c.Remove(dir, "leaf"))
	require.NoError(t, c.Symlink(dir, "new", "entries/b"))
	require.NoError(t, c.Rename(dir, "new", "leaf"))
	h, err := c.Walk(dir, "leaf")
	require.NoError(t, err)
	target, err := c.ReadLink(h)
	require.NoError(t, err)
	require.Equal(t, "entries/b", target)
}

// TestStrangers: the path is good for one mount, other users are refused, and nobody is told of
// paths.
func TestStrangers(t *testing.T) {
	s := serve(t, newFakeDir(nil))
	c, dir := s.client()
	path := s.door.Export()
	for _, wrong := range []string{"", "/", "/x", path + "x", path[:5]} {
		_, err := c.MountPath(wrong)
		require.Equal(t, nfstest.Status(13), err)
	}
	_, err := c.MountPath(path)
	require.NoError(t, err)
	_, err = c.MountPath(path)
	require.Equal(t, nfstest.Status(13), err, "twice")
	s.door.Export()
	s.door.exported = time.Now().Add(-exportTime - time.Second)
	_, err = c.MountPath(s.door.path)
	require.Equal(t, nfstest.Status(13), err, "late")
	for _, procedure := range []uint32{2, 5} {
		r, err := c.Send(c.Message(nfstest.Mount, procedure, nil))
		require.NoError(t, err)
		require.Zero(t, r.U32())
	}
	c.UID = s.door.uid + 1
	_, err = c.GetAttr(dir)
	require.ErrorContains(t, err, "denied")
	c.UID = 0
	_, err = c.GetAttr(dir)
	require.NoError(t, err)
	for procedure := range uint32(30) { // arguments that are cut
		for size := range 24 {
			r, err := c.Send(c.Message(nfstest.NFS, procedure, make([]byte, 4*size)))
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
	s := serve(t, newFakeDir(nil))
	c, dir := s.client()
	other, err := net.Dial("tcp", s.at)
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.SetReadDeadline(time.Now().Add(6*strangerTime)))
	_, err = other.Read(make([]byte, 1))
	require.Equal(t, io.EOF, err)
	_, err = c.GetAttr(dir)
	require.NoError(t, err)
}

// TestManyConnections: of 10,000 connections those beyond a bound are closed, so that they take no
// goroutines, descriptors and memory. The client goes on, and another one gets in afterwards.
func TestManyConnections(t *testing.T) {
	s := serve(t, newFakeDir(nil))
	c, dir := s.client()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	descriptors := func() int {
		items, err := os.ReadDir("/dev/fd")
		require.NoError(t, err)
		return len(items)
	}
	goroutines, open, held := runtime.NumGoroutine(), descriptors(), heap()
	const rounds, each = 40, 250 // so that there are descriptors for the ends of the clients
	for range rounds {
		var round []net.Conn
		for range each {
			other, err := net.Dial("tcp", s.at)
			require.NoError(t, err)
			round = append(round, other)
		}
		require.Eventually(t, func() bool {
			return runtime.NumGoroutine() <= goroutines+2*maxConnections && descriptors() <= open+each+maxConnections
		}, 10*time.Second, time.Millisecond, "%d goroutines, %d descriptors", runtime.NumGoroutine(), descriptors())
		_, err := c.GetAttr(dir)
		require.NoError(t, err)
		for _, other := range round {
			other.Close()
		}
	}
	require.Less(t, heap(), held+8<<20)
	require.Eventually(t, func() bool {
		other, err := nfstest.Dial(s.at)
		require.NoError(t, err)
		defer other.Close()
		_, err = other.MountPath(s.door.Export())
		return err == nil
	}, 10*time.Second, 10*time.Millisecond)
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= goroutines+2 }, 10*time.Second, time.Millisecond)
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
	control := newFakeControl()
	dir := newFakeDir(map[string]nodes.Node{"append": control, "f": newFakeFile("text"), "l": &fakeLink{target: "x"}})
	names := []nodes.Name{{Name: "d", Kind: storage.KindDir, Make: func(*nodes.Directory) nodes.Node { return dir }}}
	view := &nodes.View{Log: slog.New(slog.DiscardHandler)}
	root := nodes.NewRootDir(view, memory.New(), func() []nodes.Name { return names })
	var bugs bytes.Buffer
	door := New(root, "test", testKey, slog.New(slog.NewTextHandler(&bugs, nil)))
	handle := door.sign(door.root.handle)
	var c nfstest.Client
	for procedure := range uint32(len(programs[nfsProgram])) {
		f.Add(c.Message(nfstest.NFS, procedure, append(nfstest.Opaque(handle), nfstest.Opaque([]byte("d"))...)))
	}
	f.Add(c.Message(nfstest.Mount, 1, nfstest.Opaque([]byte(door.Export()))))
	pipe, _ := net.Pipe()
	from := &connection{Conn: pipe}
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
