//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sessionfs/fs"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const (
	// patience is how long a child process may take. A hung mount is to fail a test, not to hang it.
	patience = time.Minute
	// poll is how often something awaited is looked at.
	poll = 5 * time.Millisecond
	// nobody is the ordinary user that root's tests use.
	nobody = 65534
)

// The files of FUSE.
const (
	fuseDevice  = "/dev/fuse"
	connections = "/sys/fs/fuse/connections"
)

// mayMount reports whether this process has CAP_SYS_ADMIN.
func mayMount() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&header, &data[0])
	return err == nil && data[0].Effective&(1<<unix.CAP_SYS_ADMIN) != 0
}

// detach detaches a mount of any kind.
func detach(path string) error {
	err := unix.Unmount(path, unix.MNT_DETACH)
	if errors.Is(err, unix.EPERM) {
		err = exec.Command("fusermount3", "-u", "-z", path).Run()
	}
	return err
}

// user is who runs the program in a test.
type user struct {
	name string
	uid  int
}

// forEachUser runs a test as root and as an ordinary user where the tests run as root, else as who we are.
func forEachUser(t *testing.T, test func(t *testing.T, s *store)) {
	t.Helper()
	users := []user{{"user", os.Geteuid()}}
	if os.Geteuid() == 0 {
		users = []user{{"root", 0}, {"user", nobody}}
	}
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			requireFuse(t, u)
			test(t, newStore(t, u))
		})
	}
}

// requireFuse skips a test, or fails it in CI, where this user cannot mount.
func requireFuse(t *testing.T, u user) {
	t.Helper()
	out, err := command(t, u, "sh", "-c", "exec 3<>"+fuseDevice).CombinedOutput()
	switch {
	case err != nil:
		skip(t, "FUSE cannot be used by "+u.name+": "+string(out))
	case u.uid != 0:
		needsTools(t, "fusermount3")
	case !mayMount():
		skip(t, "root has no CAP_SYS_ADMIN here")
	}
}

// needsRoot skips a test that only root can do.
func needsRoot(t *testing.T, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip(why)
	}
}

// needsMounts skips a test that mounts, or takes something away in a mount namespace.
func needsMounts(t *testing.T, why string) {
	t.Helper()
	needsRoot(t, why)
	if !mayMount() {
		t.Skip(why)
	}
}

// newMountable is newStore where the user can mount.
func newMountable(t *testing.T, u user) *store {
	t.Helper()
	s := newStore(t, u)
	requireFuse(t, u)
	return s
}

// glob is filepath.Glob.
func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	require.NoError(t, err)
	return found
}

// readFile is os.ReadFile.
func readFile(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

// skip skips, or fails where everything must be there.
func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv(requireEnv) != "" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// fullSize reports whether the tests at full size run.
var fullSize = os.Getenv("SESSIONFS_TEST_FULL") == "1"

// needsTools skips a test where a program is not installed, or fails where everything must be there.
func needsTools(t *testing.T, names ...string) {
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			skip(t, err.Error())
		}
	}
}

// command prepares a child process of a user.
func command(t *testing.T, u user, name string, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second // a background process that keeps stderr open is an error
	if u.uid != os.Geteuid() {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(u.uid), Gid: uint32(u.uid)}}
	}
	return cmd
}

// daemons lists the processes of the program under test that were started for the store in dir, which is
// their HOME; with an empty dir, all of them.
func daemons(dir string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		exe, err := os.Readlink(link)
		exe = strings.TrimSuffix(exe, " (deleted)")
		isOurs := exe == program || exe == typedProgram
		if err != nil || !isOurs {
			continue
		}
		process := filepath.Dir(link)
		env, _ := os.ReadFile(filepath.Join(process, "environ"))
		isOfStore := dir == "" || strings.Contains(string(env), "HOME="+dir+"\x00")
		pid, err := strconv.Atoi(filepath.Base(process))
		if err == nil && isOfStore {
			pids = append(pids, pid)
		}
	}
	return pids
}

// stop stops a process. On a busy machine some of its threads may go on for a moment after kill has returned.
func stop(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, unix.Kill(pid, unix.SIGSTOP))
	require.True(t, eventually(func() bool {
		tasks := glob(t, fmt.Sprintf("/proc/%d/task/*/status", pid))
		for _, task := range tasks {
			if text, err := os.ReadFile(task); err == nil && !strings.Contains(string(text), "\nState:\tT") {
				return false
			}
		}
		return len(tasks) > 0
	}), "process %d does not stop", pid)
}

// eventually waits for a condition, and reports whether it came true within patience.
func eventually(ok func() bool) bool {
	deadline := time.Now().Add(patience)
	for time.Now().Before(deadline) {
		if ok() {
			return true
		}
		time.Sleep(poll)
	}
	return false
}

// requireStatus checks an exit status and that the message names all that it should.
func requireStatus(t *testing.T, want int, r result, names ...string) {
	t.Helper()
	require.Equal(t, want, r.code, r.stderr)
	require.True(t, strings.HasPrefix(r.stderr, "sessionfs: ") || strings.Contains(r.stderr, "\nsessionfs: "), r.stderr)
	for _, name := range names {
		require.Contains(t, r.stderr, name)
	}
}

// ok requires that the program ended well.
func (r result) ok(t *testing.T) result {
	t.Helper()
	require.Zero(t, r.code, r)
	return r
}

// String makes a result readable in a failure.
func (r result) String() string {
	return fmt.Sprintf("status %d, stdout %q, stderr %q", r.code, r.stdout, r.stderr)
}

// store is an agent directory with one session, a mount point, and who mounts.
type store struct {
	t          *testing.T
	user       user
	dir        string // holds the others
	source     string
	mountpoint string
}

// sessionPath is the one session in a store, from its source or from a mount.
const sessionPath = "sessions/--work--/2026-02-16T10-20-30-000Z_1f9d2a6b9c0d1234.jsonl"

const sessionText = `{"type":"session","version":3,"id":"1f9d2a6b9c0d1234","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/work"}
{"type":"message","id":"aaaaaaaa","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z","message":{"role":"user","content":"hello","timestamp":1771237231000}}
`

// newStore makes a store that belongs to the user. Mounts and processes on it are gone after the test.
func newStore(t *testing.T, u user) *store {
	t.Helper()
	// Not t.TempDir: its parent is closed to other users.
	dir, err := os.MkdirTemp(testRoot, "store-")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	require.NoError(t, os.Chmod(dir, 0o755))
	dir, err = filepath.EvalSymlinks(dir)
	require.NoError(t, err)
	s := &store{
		t:          t,
		user:       u,
		dir:        dir,
		source:     filepath.Join(dir, "agent"),
		mountpoint: filepath.Join(dir, "mnt"),
	}
	session := filepath.Join(s.source, sessionPath)
	require.NoError(t, os.MkdirAll(filepath.Dir(session), 0o700))
	require.NoError(t, os.WriteFile(session, []byte(sessionText), 0o600))
	require.NoError(t, os.Mkdir(s.mountpoint, 0o700))
	s.chown()
	t.Cleanup(s.tearDown)
	return s
}

// chown gives everything in the store to its user.
func (s *store) chown() {
	s.t.Helper()
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, s.user.uid, s.user.uid)
	}))
}

// tearDown unmounts what a failed test left and waits until the processes are gone.
func (s *store) tearDown() {
	for _, e := range fs.AllMounts() {
		if strings.HasPrefix(e.Mountpoint, s.dir+"/") {
			_ = detach(e.Mountpoint)
		}
	}
	if !eventually(func() bool { return len(daemons(s.dir)) == 0 }) {
		s.t.Errorf("processes outlive their mount: %v", daemons(s.dir))
	}
}

// mkdir makes a directory of the user's in the store.
func (s *store) mkdir(name string) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(path, 0o700))
	s.chown()
	return path
}

// result is how a child process ended.
type result struct {
	code           int
	stdout, stderr string
}

// run runs the program under test to its end.
func (s *store) run(args ...string) result {
	s.t.Helper()
	return s.exec(program, args...)
}

// exec runs any program to its end, as the user, in the store's directory.
func (s *store) exec(name string, args ...string) result {
	s.t.Helper()
	return s.finish(s.command(name, args...))
}

// finish runs a command to its end.
func (s *store) finish(cmd *exec.Cmd) result {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("%s: %v\n%s", cmd, err, stderr.String())
	}
	return result{
		code:   cmd.ProcessState.ExitCode(),
		stdout: stdout.String(),
		stderr: stderr.String(),
	}
}

// command prepares a child process of the store's user, in the store's directory, which is its HOME.
func (s *store) command(name string, args ...string) *exec.Cmd {
	s.t.Helper()
	cmd := command(s.t, s.user, name, args...)
	cmd.Dir = s.dir
	// mount.fuse3 finds the program by PATH, under its plain name.
	cmd.Env = append(os.Environ(), "HOME="+s.dir, "PI_CODING_AGENT_DIR=", "XDG_STATE_HOME=", "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"))
	return cmd
}

// mount mounts the store in the background and returns the pid that serves it.
func (s *store) mount(args ...string) int {
	s.t.Helper()
	r := s.run(append(args, s.source, s.mountpoint)...)
	require.Zero(s.t, r.code, r.stderr)
	require.Empty(s.t, r.stderr)
	return s.pid()
}

// pid is the one process that serves the store.
func (s *store) pid() int {
	s.t.Helper()
	pids := daemons(s.dir)
	require.Len(s.t, pids, 1)
	return pids[0]
}

// requireMounted checks by a child process that the mount shows the store.
func (s *store) requireMounted() {
	s.t.Helper()
	r := s.exec("cat", filepath.Join(s.mountpoint, sessionPath))
	require.Zero(s.t, r.code, r.stderr)
	require.Equal(s.t, sessionText, r.stdout)
}

// requireUnmounted waits until nothing is mounted and nothing runs.
func (s *store) requireUnmounted() {
	s.t.Helper()
	require.True(s.t, eventually(func() bool { return len(daemons(s.dir)) == 0 }), "still running")
	_, mounted := fs.MountAt(s.mountpoint)
	require.False(s.t, mounted, "still mounted")
}

// unmount ends the mount with the program under test.
func (s *store) unmount() {
	s.t.Helper()
	s.run("-u", s.mountpoint).ok(s.t)
	s.requireUnmounted()
}

// kill kills the process that serves the store, which leaves a dead mount.
func (s *store) kill() {
	s.t.Helper()
	require.NoError(s.t, unix.Kill(s.pid(), unix.SIGKILL))
	require.True(s.t, eventually(func() bool { return len(daemons(s.dir)) == 0 }))
	r := s.exec("ls", s.mountpoint+"/sessions")
	require.NotZero(s.t, r.code)
}

// hold keeps a file of the mount open until the test ends or the returned function is called.
func (s *store) hold() (release func()) {
	s.t.Helper()
	cmd := s.command("sh", "-c", `exec 3<"$1"; echo open; exec sleep 60`, "sh", filepath.Join(s.mountpoint, sessionPath))
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	require.NoError(s.t, cmd.Start())
	release = sync.OnceFunc(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.t.Cleanup(release)
	_, err = out.Read(make([]byte, 8))
	require.NoError(s.t, err)
	return release
}
