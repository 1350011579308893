//go:build linux

package main

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/nodes/nfs/nfstest"
)

// nfsServer is a running `sessionfs nfs`.
type nfsServer struct {
	*testing.T
	cmd                 *exec.Cmd
	log                 string // a file
	lines               *bufio.Scanner
	options, port, path string // of the last command that it printed
}

// serveNFS starts the command for a store.
func (s *store) serveNFS(args ...string) *nfsServer {
	limited := s.command(program, append([]string{"nfs"}, args...)...)
	cmd := exec.Command(limited.Path, limited.Args[1:]...) // it serves for longer than others take
	cmd.Env, cmd.Dir = limited.Env, limited.Dir
	cmd.SysProcAttr = limited.SysProcAttr
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	log, err := os.Create(filepath.Join(s.dir, "nfs.log"))
	require.NoError(s.t, err)
	defer log.Close()
	cmd.Stderr = log
	require.NoError(s.t, cmd.Start())
	n := &nfsServer{T: s.t, cmd: cmd, log: log.Name(), lines: bufio.NewScanner(out)}
	s.t.Cleanup(n.kill)
	n.readCommand()
	return n
}

func (n *nfsServer) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

var mountLine = regexp.MustCompile(`^sudo mount -t nfs -o (\S+,port=(\d+),mountport=(\d+)) 127\.0\.0\.1:(/\w+) MOUNTPOINT$`)

// readCommand reads the command that mounts.
func (n *nfsServer) readCommand() {
	require.True(n, n.lines.Scan())
	m := mountLine.FindStringSubmatch(n.lines.Text())
	require.NotNil(n, m, n.lines.Text())
	require.Equal(n, m[2], m[3])
	n.options = m[1]
	n.port = m[2]
	n.path = m[4]
}

// next has the server print another command.
func (n *nfsServer) next() {
	require.NoError(n, n.cmd.Process.Signal(unix.SIGUSR1))
	n.readCommand()
}

// TestNFS: the command prints how to mount, again after SIGUSR1, and ends with a signal. libnfs
// lists and reads.
func TestNFS(t *testing.T) {
	t.Parallel()
	s := newStore(t, user{"user", os.Geteuid()})
	n := s.serveNFS(s.source)
	first := *n
	n.next()
	require.Equal(t, first.port, n.port)
	require.NotEqual(t, first.path, n.path)
	if ls, err := exec.LookPath("nfs-ls"); err == nil || os.Getenv(requireEnv) != "" {
		url := func(file string) string {
			return fmt.Sprintf("nfs://127.0.0.1%s%s?version=3&nfsport=%s&mountport=%[3]s", n.path, file, n.port)
		}
		require.Contains(t, s.exec(ls, url("")).ok(t).stdout, " sessions\n")
		n.next()
		r := s.exec("nfs-cat", url("/"+sessionPath))
		require.Equal(t, sessionText, r.stdout, r.stderr)
		require.NotZero(t, s.exec(ls, url("")).code, "the path is good for one mount")
	}
	requireStatus(t, exitFailure, s.run("nfs", "--port", n.port, s.source), "address already in use")
	require.NoError(t, n.cmd.Process.Signal(unix.SIGTERM))
	err := n.cmd.Wait()
	require.True(t, n.cmd.ProcessState.Success() || n.cmd.ProcessState.Sys().(unix.WaitStatus).Signal() == unix.SIGTERM, "%v", err)
	require.Equal(t, exitSource, s.run("nfs", s.dir+"/nothing").code)
	require.Equal(t, exitUsage, s.run("nfs", "-o", "nothing", s.source).code)
}

// TestNFSOfOthers: a process of another user that knows the path, and claims to be the owner, gets no answer, and uses up no path.
// One of root and one of the server's user are answered.
func TestNFSOfOthers(t *testing.T) {
	needsRoot(t, "needs several users")
	needsTools(t, "bash", "timeout")
	const stranger = 2001
	for _, owner := range []user{{"root", 0}, {"user", nobody}} {
		t.Run(owner.name, func(t *testing.T) {
			s := newStore(t, owner)
			n := s.serveNFS(s.source)
			answered := func(uid int) bool {
				call := (&nfstest.Client{UID: uint32(owner.uid)}).Message(nfstest.Mount, 1, n.path)
				cmd := command(t, user{"client", uid}, "bash", "-c",
					`exec 3<>/dev/tcp/127.0.0.1/$1 && cat >&3; timeout 30 head -c 4 <&3 | wc -c`, "bash", n.port)
				cmd.Stdin = bytes.NewReader(append([]byte{0x80, 0, 0, byte(len(call))}, call...))
				out, err := cmd.Output()
				require.NoError(t, err)
				return strings.TrimSpace(string(out)) == "4"
			}
			for _, uid := range []int{0, owner.uid} {
				require.False(t, answered(stranger))
				require.True(t, answered(uid), string(readFile(t, n.log)))
				require.False(t, answered(stranger))
				n.next()
			}
			n.kill()
			require.Contains(t, string(readFile(t, n.log)), "user 2001")
		})
	}
}

// inGuest runs a script of testdata/guest in a guest, for which the server printed how to mount, and calls hear with each line
// that the script prints.
func (n *nfsServer) inGuest(script string, hear func(line string)) {
	text := fmt.Sprintf("options=%s path=%s\n%s%s", n.options, n.path, readFile(n.T, "testdata/guest/walk.sh"), readFile(n.T, "testdata/guest/"+script))
	file := filepath.Join(n.TempDir(), "script")
	require.NoError(n, os.WriteFile(file, []byte(text), 0o600))
	cmd := exec.Command("../../scripts/nfsguest", file)
	out, err := cmd.StdoutPipe()
	require.NoError(n, err)
	cmd.Stderr = os.Stderr
	require.NoError(n, cmd.Start())
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, strings.TrimSpace(lines.Text()))
		hear(said[len(said)-1])
	}
	require.NoError(n, cmd.Wait(), strings.Join(said, "\n"))
}

// newGuestStore makes a store for a guest. It skips the test where no guest runs.
func newGuestStore(t *testing.T) *store {
	if !fullSize {
		t.Skip("SESSIONFS_TEST_FULL=1 runs it")
	}
	needsTools(t, "qemu-system-x86_64", "busybox", "cpio", "apt-get")
	if os.Geteuid() != 0 {
		skip(t, "the guest needs root")
	}
	return newMountable(t, user{"root", 0})
}

// addSession adds a session of entries of a size in bytes, and returns its file.
func (s *store) addSession(id string, entries, size int) (file string) {
	text := fmt.Appendln(nil, `{"type":"session","version":3,"id":"`+id+`","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/guest"}`)
	for i := range entries {
		text = fmt.Appendf(text, `{"type":"message","id":"%s%03d","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z",`+
			`"message":{"role":"user","content":"%[2]d %s"}}`+"\n", id, i, strings.Repeat("words ", size/6))
	}
	file = filepath.Join(s.source, "sessions/--guest--/2026-02-16T10-20-30-000Z_"+id+".jsonl")
	require.NoError(s.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(s.t, os.WriteFile(file, text, 0o600))
	return file
}

// TestNFSGuest: the NFS client of a real kernel sees what a FUSE mount shows, and writes.
func TestNFSGuest(t *testing.T) {
	s := newGuestStore(t)
	session := s.addSession("guest", 100, 0)
	s.addSession("many", 20_000, 0)
	big := md5.Sum(readFile(t, s.addSession("big", 250, 1<<20)))
	walk, err := filepath.Abs("testdata/guest/walk.sh")
	require.NoError(t, err)
	s.mount()
	want := map[string]bool{}
	for line := range strings.Lines(s.exec("sh", "-c", `. "$1" && cd "$2" && walk`, "sh", walk, s.mountpoint).stdout) {
		want[strings.TrimSpace(line)] = true
	}
	s.unmount()
	n := s.serveNFS(s.source)
	var said []string
	n.inGuest("write.sh", func(line string) {
		if said = append(said, line); line == "KILL" {
			time.Sleep(time.Second)
			n.kill()
			n = s.serveNFS("--port", n.port, s.source)
		}
	})
	text := strings.Join(said, "\n")
	require.Greater(t, len(want), 200)
	for line := range want {
		require.True(t, slices.Contains(said, line), "%s is missing in\n%s", line, text)
	}
	for _, line := range said {
		if path, ok := strings.CutPrefix(line, "path "); ok && path != "./last-result" {
			require.True(t, want[line], line)
		}
		if acked, ok := strings.CutPrefix(line, "acked "); ok {
			require.Contains(t, string(readFile(t, session)), `"`+acked+`"`)
		}
		require.False(t, strings.HasPrefix(line, "failed ") || strings.HasPrefix(line, "twice "), line)
	}
	for _, line := range []string{"junk 1", "leaf entries/guest001.json", "new 1", "open file read", "A title", "many 20000", fmt.Sprintf("big %x", big)} {
		require.Contains(t, said, line)
	}
	require.Contains(t, text, "append: line 1: not a valid entry")
	raw := string(readFile(t, session))
	for i := range 1000 {
		require.Equal(t, 1, strings.Count(raw, fmt.Sprintf(`"append %d."`, i)))
	}
	for i := range 300 {
		require.Equal(t, 1, strings.Count(raw, fmt.Sprintf(`"writer %d line %d."`, i/100+1, i%100)))
	}
}

// TestNFSGuestFinds: find over 700 sessions in a mount of a real kernel renders nothing. Sizes are
// exact afterwards, and a listing cuts no reader off.
func TestNFSGuestFinds(t *testing.T) {
	s := newGuestStore(t)
	const sessions = 700
	for i := range sessions {
		s.addSession(fmt.Sprint("find", i), 1, 120_000)
	}
	n := s.serveNFS("-o", "loglevel=debug", s.source)
	said := map[string]int{}
	n.inGuest("find.sh", func(line string) {
		var name string
		var number int
		if _, err := fmt.Sscan(line, &name, &number); err == nil {
			said[name] = number
		}
		said[line]++
	})
	found, later, ok := strings.Cut(string(readFile(t, n.log)), "msg=opened name=README")
	require.True(t, ok)
	require.NotContains(t, found, "msg=opened")
	require.Zero(t, said["failed"])
	require.Greater(t, said["found"], 20*sessions)
	require.Greater(t, said["files"], 10*sessions)
	require.GreaterOrEqual(t, said["links"], sessions)
	require.Greater(t, said["size"], 100_000)
	require.Greater(t, said["busybox"], 10)
	require.Greater(t, strings.Count(later, "msg=opened"), said["busybox"]/2)
}
