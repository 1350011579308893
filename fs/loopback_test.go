package fs_test

import (
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
// a program that appends writes where its kernel believes the end of the file to be.
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
	var server *fuse.Server
	err := json.Unmarshal([]byte(config), &c)
	if err == nil {
		server, err = c.serve()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	if server.Unmount() != nil {
		_ = detach(c.To)
	}
	return 0
}

// serve mounts the file system, and serves it until it is unmounted.
func (c loopbackConfig) serve() (*fuse.Server, error) {
	root, err := fusefs.NewLoopbackRoot(c.From)
	if err != nil {
		return nil, err
	}
	options := &fusefs.Options{MountOptions: fuse.MountOptions{DirectMount: true}}
	if c.How != plainly {
		options.DisabledCapabilities = fuse.CAP_PASSTHROUGH // the kernel would have the files of the directory itself
	}
	hour := time.Hour
	switch c.How {
	case remembers:
		options.AttrTimeout = &hour
	case recorded:
		options.Options = []string{"default_permissions"}
		options.NullPermissions = true
	}
	disk := fusefs.NewNodeFS(root, options)
	switch c.How {
	case remembers:
		disk = remembered{RawFileSystem: disk}
	case slow:
		disk = slowDisk{RawFileSystem: disk, root: c.From}
	case recorded:
		disk, err = newRecorded(disk, c.Record)
	}
	if err != nil {
		return nil, err
	}
	server, err := fuse.NewServer(disk, c.To, &options.MountOptions)
	if err == nil {
		go server.Serve()
		err = server.WaitMount()
	}
	return server, err
}

// remembered has the kernel remember which session is behind a name too: it asks again for nothing.
type remembered struct{ fuse.RawFileSystem }

// Lookup lets the kernel remember the inode of a session file for an hour.
func (d remembered) Lookup(cancel <-chan struct{}, header *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	status := d.RawFileSystem.Lookup(cancel, header, name, out)
	if status.Ok() && strings.HasSuffix(name, ".jsonl") {
		out.SetEntryTimeout(time.Hour)
	}
	return status
}

// slowDisk has files that are read slowly.
type slowDisk struct {
	fuse.RawFileSystem
	root string
}

// Open keeps the kernel from caching the file, so that each read is slow.
func (d slowDisk) Open(cancel <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	status := d.RawFileSystem.Open(cancel, in, out)
	out.OpenFlags = fuse.FOPEN_DIRECT_IO
	return status
}

// Read waits before it reads, unless a file named quick is in the root.
func (d slowDisk) Read(cancel <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	if _, err := os.Stat(filepath.Join(d.root, "quick")); err != nil {
		time.Sleep(100 * time.Millisecond)
	}
	return d.RawFileSystem.Read(cancel, in, buf)
}

// loopback is such a file system. It hangs on request, as one does whose server cannot be reached: its server is stopped.
type loopback struct {
	*companion
	dir string
}

// newLoopback shows a directory.
func newLoopback(t *testing.T, from, how string) *loopback {
	t.Helper()
	return loopbackConfig{From: from, To: t.TempDir(), How: how}.mount(t)
}

// mount starts a process that serves the file system, until the end of the test.
func (c loopbackConfig) mount(t *testing.T) *loopback {
	t.Helper()
	config, err := json.Marshal(c)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), loopbackEnv+"="+string(config))
	cmd.Dir = "/"
	l, said := begin(t, cmd)
	t.Cleanup(l.end)
	if said != "ready\n" {
		missing(t, "FUSE is not usable: %s", said)
	}
	return &loopback{companion: l, dir: c.To}
}

// hangs stops the server, so that no request is answered.
func (l *loopback) hangs() {
	require.NoError(l.t, l.cmd.Process.Signal(syscall.SIGSTOP))
	// On a busy machine some of its threads may go on for a moment.
	require.NoError(l.t, unix.Waitid(unix.P_PID, l.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil))
}

// answers has the server go on after hangs.
func (l *loopback) answers() { _ = l.cmd.Process.Signal(syscall.SIGCONT) }

// detach unmounts what is at a path, as root or as an ordinary user.
func detach(dir string) error {
	if unix.Unmount(dir, unix.MNT_DETACH) == nil {
		return nil
	}
	return exec.Command("fusermount3", "-u", "-z", dir).Run()
}
