package fs_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// File systems that SOURCE may lie on, each of which shows a directory and does something that disks of a test machine do not.

// Ways to show a directory. The first two are as a server of several machines does it: O_APPEND does not get there, and
// whoever appends writes where its kernel believes the end of the file to be.
const (
	plainly   = ""          // without any caching
	remembers = "remembers" // the kernel remembers what it knows of files for an hour
	slow      = "slow"      // each read takes its time, unless there is a file called quick, and the kernel keeps nothing
	recorded  = "recorded"  // what is done is recorded (lossserve_test.go)
)

// loopbackEnv makes the test binary serve a loopback file system; it holds a loopbackConfig as JSON.
const loopbackEnv = "SESSIONFS_TEST_LOOPBACK"

// loopbackConfig says which directory is shown where, and how; and where to write a record.
type loopbackConfig struct{ From, To, How, Record string }

// runLoopback serves a loopback file system until its stdin is closed.
func runLoopback(config string) int {
	var c loopbackConfig
	options := &fusefs.Options{MountOptions: fuse.MountOptions{DirectMount: true}}
	err := json.Unmarshal([]byte(config), &c)
	var root fusefs.InodeEmbedder
	if err == nil {
		root, err = c.root(options)
	}
	var server *fuse.Server
	if err == nil {
		server, err = fusefs.Mount(c.To, root, options)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if err := server.Unmount(); err != nil {
		_ = unix.Unmount(c.To, unix.MNT_DETACH)
		_ = exec.Command("fusermount3", "-u", "-z", c.To).Run()
	}
	return 0
}

func (c loopbackConfig) root(options *fusefs.Options) (fusefs.InodeEmbedder, error) {
	embedder, err := fusefs.NewLoopbackRoot(c.From)
	if err != nil {
		return nil, err
	}
	root := embedder.(*fusefs.LoopbackNode)
	if c.How != plainly {
		options.DisabledCapabilities = fuse.CAP_PASSTHROUGH // the kernel would have the files of the directory itself
	}
	hour := time.Hour
	switch c.How {
	case remembers:
		options.AttrTimeout = &hour
		return &remembered{root}, nil
	case slow:
		return &slowDisk{root}, nil
	case recorded:
		options.Options, options.NullPermissions = []string{"default_permissions"}, true
		return newRecorded(root, c.Record)
	}
	return root, nil
}

// remembered is a directory in which the kernel remembers which session is behind a name too: it asks again for nothing.
type remembered struct{ *fusefs.LoopbackNode }

var (
	_ = (fusefs.NodeLookuper)((*remembered)(nil))
	_ = (fusefs.NodeWrapChilder)((*remembered)(nil))
)

func (n *remembered) WrapChild(_ context.Context, ops fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &remembered{ops.(*fusefs.LoopbackNode)}
}

func (n *remembered) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	child, errno := n.LoopbackNode.Lookup(ctx, name, out)
	if errno == 0 && strings.HasSuffix(name, ".jsonl") {
		out.SetEntryTimeout(time.Hour)
	}
	return child, errno
}

// slowDisk is a directory whose files are read slowly.
type slowDisk struct{ *fusefs.LoopbackNode }

var (
	_ = (fusefs.NodeOpener)((*slowDisk)(nil))
	_ = (fusefs.NodeWrapChilder)((*slowDisk)(nil))
)

func (n *slowDisk) WrapChild(_ context.Context, ops fusefs.InodeEmbedder) fusefs.InodeEmbedder {
	return &slowDisk{ops.(*fusefs.LoopbackNode)}
}

func (n *slowDisk) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	f, _, errno := n.LoopbackNode.Open(ctx, flags)
	if errno != 0 {
		return nil, 0, errno
	}
	return &slowFile{f.(*fusefs.LoopbackFile), n.RootData.Path}, fuse.FOPEN_DIRECT_IO, 0
}

type slowFile struct {
	*fusefs.LoopbackFile
	root string
}

var _ = (fusefs.FileReader)((*slowFile)(nil))

func (f *slowFile) Read(ctx context.Context, buf []byte, off int64) (fuse.ReadResult, syscall.Errno) {
	if _, err := os.Stat(filepath.Join(f.root, "quick")); err != nil {
		time.Sleep(100 * time.Millisecond)
	}
	return f.LoopbackFile.Read(ctx, buf, off)
}

// loopback is such a file system. It hangs on request, as one does whose server cannot be reached: its server is stopped.
type loopback struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

// newLoopback shows a directory.
func newLoopback(t *testing.T, from, how string) *loopback {
	t.Helper()
	return loopbackConfig{From: from, To: t.TempDir(), How: how}.mount(t)
}

func (c loopbackConfig) mount(t *testing.T) *loopback {
	t.Helper()
	config, err := json.Marshal(c)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	l := &loopback{t, c.To, exec.Command(self)}
	l.cmd.Env = append(os.Environ(), loopbackEnv+"="+string(config))
	l.cmd.Dir, l.cmd.Stderr = "/", os.Stderr
	stdin, err := l.cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := l.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, l.cmd.Start())
	t.Cleanup(func() {
		l.answers()
		_ = stdin.Close()
		_ = l.cmd.Wait()
	})
	said, _ := bufio.NewReader(stdout).ReadString('\n')
	if said != "ready\n" {
		missing(t, "FUSE is not usable: %s", said)
	}
	return l
}

func (l *loopback) hangs() {
	require.NoError(l.t, l.cmd.Process.Signal(syscall.SIGSTOP))
	// On a busy machine some of its threads may go on for a moment.
	require.NoError(l.t, unix.Waitid(unix.P_PID, l.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil))
}

func (l *loopback) answers() { _ = l.cmd.Process.Signal(syscall.SIGCONT) }

// detach unmounts what is at a path, as root or as an ordinary user.
func detach(t *testing.T, dir string) {
	t.Helper()
	if unix.Unmount(dir, unix.MNT_DETACH) != nil {
		run(t, "fusermount3", "-u", "-z", dir)
	}
}
