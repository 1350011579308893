package fs_test

import (
	"bytes"
	"context"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes/nfs/nfstest"
)

// nfsMount is a client of a server of NFS.
type nfsMount struct {
	*nfstest.Client
	t    *testing.T
	root []byte
	port int
	stop func()
}

// serveNFS serves a directory by NFS, at a port, or 0 for any. Its key is in a new directory, unless the port is named.
func serveNFS(t *testing.T, source string, port int) *nfsMount {
	if port == 0 {
		t.Setenv("XDG_STATE_HOME", t.TempDir())
	}
	return serveNFSWith(t, mountopts.Options{Source: source}, port, slog.DiscardHandler)
}

// serveNFSWith is serveNFS with the options of a mount, a log, and the key that is there.
func serveNFSWith(t *testing.T, o mountopts.Options, port int, log slog.Handler) *nfsMount {
	server, err := fs.OpenNFS(o, port, slog.New(log))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	m := &nfsMount{t: t, port: server.Port()}
	m.stop = sync.OnceFunc(func() {
		cancel()
		require.NoError(t, <-done)
	})
	t.Cleanup(m.stop)
	m.Client, err = nfstest.Dial(fmt.Sprint("127.0.0.1:", m.port))
	require.NoError(t, err)
	t.Cleanup(m.Client.Close)
	m.UID = uint32(os.Geteuid())
	m.root, err = m.MountPath(server.Export())
	require.NoError(t, err)
	return m
}

// at returns the handle of a path.
func (m *nfsMount) at(path string) []byte {
	h, err := m.Walk(m.root, path)
	require.NoError(m.t, err, path)
	return h
}

// read returns the content of a file.
func (m *nfsMount) read(path string) string {
	text, err := m.ReadFile(m.at(path))
	require.NoError(m.t, err, path)
	return string(text)
}

// walk calls see with all that is below a directory.
func (m *nfsMount) walk(dir []byte, at string, see func(path string, h []byte, a nfstest.Attr)) {
	items, err := m.List(dir)
	require.NoError(m.t, err, at)
	for _, it := range items {
		name := path.Join(at, it.Name)
		h, _, _, err := m.Lookup(dir, it.Name)
		require.NoError(m.t, err, name)
		a, err := m.GetAttr(h)
		require.NoError(m.t, err, name)
		require.Equal(m.t, it.FileID, a.FileID, name)
		require.Equal(m.t, it.Attr.Type, a.Type, name)
		if it.Handle != nil {
			require.Equal(m.t, it.Attr, a, name)
		}
		if see(name, h, a); a.Type == 2 {
			m.walk(h, name, see)
		}
	}
}

// TestNFSShowsTheMount: by NFS there is all that a mount has, with the same attributes and
// contents.
func TestNFSShowsTheMount(t *testing.T) {
	onceIsEnough(t)
	notUnderRace(t)
	source := demo(t)
	n := serveNFS(t, source, 0)
	m := mountForTest(t, source)
	seen := map[string]bool{"last-result": true}
	check := func(name string, h []byte, a nfstest.Attr) {
		seen[name] = true
		if name == "last-result" {
			return
		}
		info, err := os.Lstat(m.path(name))
		require.NoError(t, err, name)
		kind := map[uint32]iofs.FileMode{1: 0, 2: iofs.ModeDir, 5: iofs.ModeSymlink}[a.Type]
		require.Equal(t, info.Mode(), kind|iofs.FileMode(a.Mode), name)
		require.EqualValues(t, info.ModTime().UnixNano(), a.MTime, name)
		switch kind {
		case iofs.ModeSymlink:
			target, err := n.ReadLink(h)
			require.NoError(t, err)
			require.Equal(t, readLink(t, m.path(name)), target, name)
			require.EqualValues(t, info.Size(), a.Size, name)
		case 0:
			want, err := os.ReadFile(m.path(name))
			require.NoError(t, err, name)
			got, err := n.ReadFile(h)
			require.NoError(t, err, name)
			require.True(t, bytes.Equal(want, got), name)
			require.EqualValues(t, info.Size(), a.Size, name)
		}
	}
	n.walk(n.root, "", check)
	for line := range strings.Lines(run(t, "find", m.dir, "-mindepth", "1", "-printf", `%P\n`)) {
		require.True(t, seen[strings.TrimSuffix(line, "\n")], line)
	}
	for _, hidden := range []string{"search/the", "by-id/019d3d", "by-file/home/dev", "history/search/tides"} {
		h := n.at(hidden)
		a, err := n.GetAttr(h)
		require.NoError(t, err)
		if check(hidden, h, a); a.Type == 2 {
			n.walk(h, hidden, check)
		}
	}
	_, _, _, err := n.Lookup(n.root, "nothing")
	require.Equal(t, nfstest.Status(2), err)
}

// TestNFSWrites: lines take effect or are refused with a reason, leaf moves, and answers are in
// last-result. A client's handles and offsets are good with the next server.
func TestNFSWrites(t *testing.T) {
	a := newAgent(t)
	a.write("s", header("s"), strings.Join(writtenEntries, ""))
	m := serveNFS(t, a.dir, 0)
	const dir = "sessions/p/s"
	session := m.at(dir)
	appendTo := m.at(dir + "/append")
	require.NoError(t, m.Append(appendTo, message("by NFS")+"\n"))
	require.Contains(t, a.raw("s"), `"by NFS"`)
	id := strings.TrimSpace(m.read("last-result"))
	require.Equal(t, "entries/"+id+".json", m.leaf(session))
	require.Contains(t, m.read(dir+"/entries/"+id+".json"), `"by NFS"`)

	require.Equal(t, nfstest.Status(22), m.Append(appendTo, "junk\n"))
	require.Contains(t, m.read(dir+"/last-error"), "append: line 1: not a valid entry")
	require.NoError(t, m.Append(m.at(dir+"/labels"), "e1 first\n"))
	require.NoError(t, m.Append(m.at(dir+"/labels"), "e2 second\n"))
	require.Equal(t, "e1\tfirst\ne2\tsecond\n", m.read(dir+"/labels"))
	require.Equal(t, nfstest.Status(2), m.Append(m.at(dir+"/labels"), "nobody x\n"))
	for _, title := range []string{"One", "Another one"} {
		h := m.at(dir + "/title")
		require.NoError(t, m.Truncate(h, 0))
		_, err := m.Write(h, 0, []byte(title+"\n"))
		require.NoError(t, err)
		require.Equal(t, title+"\n", m.read(dir+"/title"))
	}
	require.NoError(t, m.Append(m.at(dir+"/fork"), "e1\n"))
	require.Contains(t, m.read(strings.TrimSpace(m.read("last-result"))+"/entries/e1.json"), `"id":"e1"`)

	// As busybox and coreutils replace a link.
	require.NoError(t, m.Remove(session, "leaf"))
	require.NoError(t, m.Symlink(session, "leaf", "entries/e1.json"))
	require.Equal(t, "entries/e1.json", m.leaf(session))
	require.NoError(t, m.Symlink(session, "CuAbCdEf", "entries/e2.json"))
	require.NoError(t, m.Rename(session, "CuAbCdEf", "leaf"))
	require.Equal(t, "entries/e2.json", m.leaf(session))
	require.NoError(t, m.Symlink(session, "wrong", "entries/nobody.json"))
	require.Equal(t, nfstest.Status(2), m.Rename(session, "wrong", "leaf"))
	require.Equal(t, nfstest.Status(1), m.Remove(session, "title"))
	require.Equal(t, nfstest.Status(1), m.Symlink(m.root, "x", "y"))
	_, err := m.Write(m.at(dir+"/header.json"), 0, []byte("x"))
	require.Equal(t, nfstest.Status(1), err)
	for _, procedure := range []uint32{8, 9, 11, 13} {
		_, err := m.Call(procedure, session, "new")
		require.Equal(t, nfstest.Status(1), err, procedure)
	}

	checkNextServer(t, m, a)
}

// checkNextServer stops a server of the agent directory a, starts another one at its port, and requires that handles and
// offsets are good with that.
func checkNextServer(t *testing.T, m *nfsMount, a agent) {
	const dir = "sessions/p/s"
	appendTo := m.at(dir + "/append")
	attr, err := m.GetAttr(appendTo)
	require.NoError(t, err)
	held := map[string][]byte{}
	for _, name := range []string{"", "/append", "/entries", "/entries/e1.json", "/transcript.md", "/branches.tsv"} {
		held[name] = m.at(dir + name)
	}
	m.stop()
	m = serveNFS(t, a.dir, m.port)
	for name, h := range held {
		_, err := m.GetAttr(h)
		require.NoError(t, err, name)
	}
	_, err = m.Write(appendTo, attr.Size, []byte(message("after")+"\n"))
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(a.raw("s"), `"after"`))
	key, err := os.Stat(filepath.Join(os.Getenv("XDG_STATE_HOME"), "sessionfs/nfs.key"))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, key.Mode())
}

// TestNFSReadOnly: where a mount is read-only, each procedure that changes something answers NFS3ERR_ROFS in each directory, with
// the reason, and changes nothing.
func TestNFSReadOnly(t *testing.T) {
	for reason, o := range map[string]mountopts.Options{
		"mount without -o ro":     {ReadOnly: true},
		"mount without -o redact": {Redact: true},
	} {
		t.Run(reason, func(t *testing.T) {
			checkNFSReadOnly(t, o, reason)
		})
	}
}

// checkNFSReadOnly is TestNFSReadOnly for options of a mount, and the remedy that the reason has.
func checkNFSReadOnly(t *testing.T, o mountopts.Options, remedy string) {
	const dir = "sessions/p/s"
	const readOnly = nfstest.Status(30)
	a := newAgent(t)
	a.write("s", header("s"), strings.Join(writtenEntries, ""))
	before := a.raw("s")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	o.Source = a.dir
	m := serveNFSWith(t, o, 0, slog.DiscardHandler)
	session := m.at(dir)
	leaf := m.leaf(session)
	refused := func(lastError string, err error, what ...any) {
		t.Helper()
		require.Equal(t, readOnly, err, what...)
		require.Contains(t, m.read(lastError), remedy, what...)
		require.Contains(t, m.read(lastError), "read-only", what...)
	}
	for path, lastError := range map[string]string{
		dir:              dir + "/last-error",
		dir + "/entries": dir + "/last-error",
		"":               "last-error",
		"search":         "last-error",
		"sessions/p":     "last-error",
	} {
		in := m.root
		if path != "" {
			in = m.at(path)
		}
		for _, name := range []string{"leaf", "title", "other"} {
			refused(lastError, m.Remove(in, name), path, name)
			refused(lastError, m.Symlink(in, name, "entries/e1.json"), path, name)
			refused(lastError, m.Rename(in, name, "leaf"), path, name)
			for _, procedure := range []uint32{8, 9, 11, 13} {
				_, err := m.Call(procedure, in, name)
				refused(lastError, err, path, name, procedure)
			}
			_, err := m.Call(15, m.at(dir+"/append"), in, name)
			refused(lastError, err, path, name)
		}
		_, err := m.Call(2, in, [8]uint32{0: 1})
		refused(lastError, err, path)
	}
	require.Equal(t, leaf, m.leaf(session), "it was not hidden")
	checkNFSFilesReadOnly(m, refused)
	require.Equal(t, before, a.raw("s"))
}

// checkNFSFilesReadOnly requires that each change of a file by NFS is refused. refused checks the error of a call, and
// the reason in a file last-error.
func checkNFSFilesReadOnly(m *nfsMount, refused func(lastError string, err error, what ...any)) {
	const dir = "sessions/p/s"
	for path, lastError := range map[string]string{
		"new-session":        "last-error",
		dir + "/append":      dir + "/last-error",
		dir + "/title":       dir + "/last-error",
		dir + "/labels":      dir + "/last-error",
		dir + "/fork":        dir + "/last-error",
		dir + "/header.json": dir + "/last-error",
		dir + "/leaf":        dir + "/last-error",
	} {
		h := m.at(path)
		for _, text := range []string{"", "x\n", "e1 x\n"} {
			for _, off := range []uint64{0, 1000} {
				_, err := m.Write(h, off, []byte(text))
				refused(lastError, err, path, text, off)
			}
		}
		refused(lastError, m.Truncate(h, 0), path)
		_, err := m.Call(2, h, [2]uint32{1, 0o777}, [5]uint32{})
		refused(lastError, err, path)
	}
}

// keyed is a directory of a state, with the key of handles in it.
type keyed struct {
	*testing.T
	source, dir, key string
}

// newKeyed makes a key, and returns a handle that it made.
func newKeyed(t *testing.T) (k keyed, handle []byte) {
	state := t.TempDir()
	t.Setenv("XDG_STATE_HOME", state)
	k = keyed{T: t, source: newAgent(t).dir, dir: filepath.Join(state, "sessionfs")}
	k.key = filepath.Join(k.dir, "nfs.key")
	handle, log := k.serve(nil)
	require.Empty(t, log, "the first one")
	return k, handle
}

// serve serves, and requires that a handle is good, or not. It returns one that is good with this server, and the log.
func (k keyed) serve(handle []byte) (root []byte, log string) {
	var text bytes.Buffer
	m := serveNFSWith(k.T, mountopts.Options{Source: k.source}, 0, slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelWarn}))
	defer m.stop()
	if handle != nil {
		_, err := m.GetAttr(handle)
		require.Equal(k, nfstest.Status(10001), err, "a handle of the earlier key")
	}
	return m.root, text.String()
}

// elsewhere returns a path outside of the directory of the key, where spoiledKeys may put it.
func (k keyed) elsewhere() string { return filepath.Join(filepath.Dir(k.dir), "elsewhere") }

// spoiledKeys returns functions that make the key one that is not safe, by the reason that the log has then, without the
// blanks at its end.
func spoiledKeys() map[string]func(k keyed) {
	onlyRoot := func(uid int) func(k keyed) {
		return func(k keyed) {
			if os.Geteuid() != 0 {
				k.Skip("only root makes files of others")
			}
			require.NoError(k, os.Chown(k.key, uid, -1))
		}
	}
	mode := func(mode os.FileMode) func(k keyed) {
		return func(k keyed) { require.NoError(k, os.Chmod(k.key, mode)) }
	}
	modeOfDir := func(mode os.FileMode) func(k keyed) {
		return func(k keyed) { require.NoError(k, os.Chmod(k.dir, mode)) }
	}
	return map[string]func(k keyed){
		"it is a link": func(k keyed) {
			require.NoError(k, os.Rename(k.key, k.elsewhere()))
			require.NoError(k, os.Symlink(k.elsewhere(), k.key))
		},
		"it is a link ": func(k keyed) { // to nothing
			require.NoError(k, os.Remove(k.key))
			require.NoError(k, os.Symlink(k.elsewhere()+"/nothing", k.key))
		},
		"it is no regular file": func(k keyed) {
			require.NoError(k, os.Remove(k.key))
			require.NoError(k, unix.Mkfifo(k.key, 0o600))
		},
		"it belongs to user 65534":     onlyRoot(65534),
		"it has mode 0666":             mode(0o666),
		"it has mode 0640":             mode(0o640),
		"it has mode 0601":             mode(0o601),
		"it has mode 0400":             mode(0o400),
		"it has mode 04600":            mode(0o600 | os.ModeSetuid),
		"it has 31 bytes":              func(k keyed) { require.NoError(k, os.Truncate(k.key, 31)) },
		"it has 1073741824 bytes":      func(k keyed) { require.NoError(k, os.Truncate(k.key, 1<<30)) },
		"its directory had mode 0770":  modeOfDir(0o770),
		"its directory had mode 0702":  modeOfDir(0o702),
		"its directory had mode 01777": modeOfDir(0o777 | os.ModeSticky),
		"its directory had mode 0770 ": func(k keyed) { // and a link in it
			modeOfDir(0o770)(k)
			require.NoError(k, os.Rename(k.key, k.elsewhere()))
			require.NoError(k, os.Symlink(k.elsewhere(), k.key))
		},
	}
}

// TestUnsafeKey: a key that another user may know or have made is made anew, without touching what was there, and the log says why.
// That ends the handles of earlier servers; with the new key they are good again.
func TestUnsafeKey(t *testing.T) {
	for why, spoil := range spoiledKeys() {
		t.Run(why, func(t *testing.T) {
			k, handle := newKeyed(t)
			before, err := os.ReadFile(k.key)
			require.NoError(t, err)
			spoil(k)
			handle, log := k.serve(handle)
			require.Contains(t, log, "is made anew")
			require.Contains(t, log, strings.TrimSpace(why))
			require.Equal(t, 1, strings.Count(log, "\n"))
			info, err := os.Lstat(k.key)
			require.NoError(t, err)
			require.Equal(t, os.FileMode(0o600), info.Mode())
			key, err := os.ReadFile(k.key)
			require.NoError(t, err)
			require.NotEqual(t, before, key)
			dir, err := os.Stat(k.dir)
			require.NoError(t, err)
			require.Zero(t, dir.Mode()&0o022)
			if kept, err := os.ReadFile(k.elsewhere()); err == nil {
				require.Equal(t, before, kept)
			}
			again, log := k.serve(nil)
			require.Equal(t, handle, again)
			require.Empty(t, log)
			names, err := filepath.Glob(k.dir + "/*")
			require.NoError(t, err)
			require.Equal(t, []string{k.key}, names)
		})
	}
	const good = "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk" // 52 characters
	t.Run("good", func(t *testing.T) {
		k, handle := newKeyed(t)
		require.NoError(t, os.WriteFile(k.key, []byte(good), 0o600))
		require.NoError(t, os.Chmod(k.dir, 0o755))
		handle, log := k.serve(handle)
		require.Empty(t, log)
		again, log := k.serve(nil)
		require.Equal(t, handle, again)
		require.Empty(t, log)
		require.Equal(t, good, string(read(t, k.key)))
	})
}

// TestUnsafeKeyDirectory: no key is kept in, or read from, a directory that is a link or another user's.
func TestUnsafeKeyDirectory(t *testing.T) {
	for why, spoil := range map[string]func(k keyed){
		"its directory is a link": func(k keyed) {
			require.NoError(k, os.Rename(k.dir, k.dir+"2"))
			require.NoError(k, os.Symlink(k.dir+"2", k.dir))
		},
		"its directory belongs to user 65534": func(k keyed) {
			if os.Geteuid() != 0 {
				k.Skip("only root makes directories of others")
			}
			require.NoError(k, os.Chown(k.dir, 65534, -1))
		},
	} {
		t.Run(why, func(t *testing.T) {
			k, handle := newKeyed(t)
			before := string(read(t, k.key))
			spoil(k)
			for range 2 {
				next, log := k.serve(handle)
				require.Contains(t, log, "is not kept")
				require.Contains(t, log, why)
				require.NotEqual(t, handle, next)
				handle = next
			}
			require.Equal(t, before, string(read(t, k.key)))
		})
	}
}

// TestKeyIsMadeOnce: servers that start at the same time have the same key.
func TestKeyIsMadeOnce(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	const servers = 8
	keys := make([]string, servers)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() { keys[i] = fs.HandleKey() })
	}
	all.Wait()
	for _, key := range keys {
		require.Equal(t, keys[0], key)
		require.NotEmpty(t, key)
	}
}

// leaf returns the target of the link leaf in the directory of a session.
func (m *nfsMount) leaf(session []byte) string {
	h, _, _, err := m.Lookup(session, "leaf")
	require.NoError(m.t, err)
	target, err := m.ReadLink(h)
	require.NoError(m.t, err)
	return target
}

// TestNFSLooksUpWithoutRendering: a client that finds all names of 700 sessions, and looks them up,
// has each session read for its index alone. Asking for the size of a transcript reads it again.
func TestNFSLooksUpWithoutRendering(t *testing.T) {
	onceIsEnough(t)
	notUnderRace(t)
	a := newAgent(t)
	const sessions, size = 700, 100_000
	for i := range sessions {
		id := fmt.Sprint("s", i)
		a.write(id, header(id), entry(1, "first", "", strings.Repeat("x", size)))
	}
	m := serveNFS(t, a.dir, 0)
	read := func() (n int) {
		text, err := os.ReadFile("/proc/self/io") // the server is in this process
		require.NoError(t, err)
		_, err = fmt.Sscanf(string(text), "rchar: %d", &n)
		require.NoError(t, err)
		return n
	}
	var transcripts [][]byte
	var find func(dir []byte) int
	find = func(dir []byte) (found int) {
		items, err := m.List(dir)
		require.NoError(t, err)
		for _, it := range items {
			h, a, known, err := m.Lookup(dir, it.Name)
			require.NoError(t, err, it.Name)
			if found++; it.Name == "transcript.md" {
				require.False(t, known)
				transcripts = append(transcripts, h)
			}
			if known && a.Type == 2 {
				found += find(h)
			}
		}
		return found
	}
	before := read()
	require.Greater(t, find(m.at("sessions")), 20*sessions)
	require.Len(t, transcripts, sessions)
	require.Less(t, read()-before, 2*sessions*size)
	before = read()
	for _, h := range transcripts {
		_, err := m.GetAttr(h)
		require.NoError(t, err)
	}
	require.Greater(t, read()-before, 2*sessions*size)
}
