//go:build linux

package main

import (
	"bufio"
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
)

// nfsServer is a running `sessionfs nfs`.
type nfsServer struct {
	*testing.T
	cmd   *exec.Cmd
	log   string // a file
	lines *bufio.Scanner
}

// serveNFS starts the command for a store.
func (s *store) serveNFS(args ...string) *nfsServer {
	s.t.Helper()
	limited := s.command(program, append([]string{"nfs"}, args...)...)
	cmd := exec.Command(limited.Path, limited.Args[1:]...) // it serves for longer than others take
	cmd.Env, cmd.Dir = limited.Env, limited.Dir
	out, err := cmd.StdoutPipe()
	require.NoError(s.t, err)
	log, err := os.Create(filepath.Join(s.dir, "nfs.log"))
	require.NoError(s.t, err)
	defer log.Close()
	cmd.Stderr = log
	require.NoError(s.t, cmd.Start())
	n := &nfsServer{s.t, cmd, log.Name(), bufio.NewScanner(out)}
	s.t.Cleanup(n.kill)
	return n
}

func (n *nfsServer) kill() {
	_ = n.cmd.Process.Kill()
	_ = n.cmd.Wait()
}

var mountLine = regexp.MustCompile(`^sudo mount -t nfs -o (\S+,port=(\d+),mountport=(\d+)) 127\.0\.0\.1:(/\w+) MOUNTPOINT$`)

// mountLine reads the command that mounts: its options, port and path.
func (n *nfsServer) mountLine() (options, port, path string) {
	n.Helper()
	require.True(n, n.lines.Scan())
	m := mountLine.FindStringSubmatch(n.lines.Text())
	require.NotNil(n, m, n.lines.Text())
	require.Equal(n, m[2], m[3])
	return m[1], m[2], m[4]
}

// TestNFS: the command prints how to mount, again after SIGUSR1, and ends with a signal. libnfs
// lists and reads.
func TestNFS(t *testing.T) {
	t.Parallel()
	s := newStore(t, user{"user", os.Geteuid()})
	n := s.serveNFS(s.source)
	_, port, path := n.mountLine()
	require.NoError(t, n.cmd.Process.Signal(unix.SIGUSR1))
	_, again, next := n.mountLine()
	require.Equal(t, port, again)
	require.NotEqual(t, path, next)
	if ls, err := exec.LookPath("nfs-ls"); err == nil || os.Getenv(requireEnv) != "" {
		url := func(path string) string {
			return fmt.Sprintf("nfs://127.0.0.1%s?version=3&nfsport=%s&mountport=%[2]s", path, port)
		}
		r := s.exec(ls, url(next))
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, " sessions\n")
		require.NoError(t, n.cmd.Process.Signal(unix.SIGUSR1))
		_, _, next = n.mountLine()
		r = s.exec("nfs-cat", url(next+"/"+sessionPath))
		require.Equal(t, sessionText, r.stdout, r.stderr)
		require.NotZero(t, s.exec(ls, url(next)).code, "the path is good for one mount")
	}
	other := s.run("nfs", "--port", port, s.source)
	require.Equal(t, exitFailure, other.code)
	require.Contains(t, other.stderr, "address already in use")
	require.NoError(t, n.cmd.Process.Signal(unix.SIGTERM))
	err := n.cmd.Wait()
	require.True(t, n.cmd.ProcessState.Success() || n.cmd.ProcessState.Sys().(unix.WaitStatus).Signal() == unix.SIGTERM, "%v", err)
	require.Equal(t, exitSource, s.run("nfs", s.dir+"/nothing").code)
	require.Equal(t, exitUsage, s.run("nfs", "-o", "nothing", s.source).code)
}

// guestWalk prints a checksum of each file, and each path, but of the sessions that are large.
const guestWalk = `
find . \( -name '*_many' -o -name '*_big*' -o -name '*_many.jsonl' \) -prune -o -type f ! -name last-result ! -name last-error -print | sort |
	while read -r f; do md5sum "$f"; done
find . \( -name '*_many' -o -name '*_big*' -o -name '*_many.jsonl' \) -prune -o -print | sed 's/^/path /' | sort
`

// guestScript is run in a guest whose kernel is the client. It ends its first part with KILL: then
// the server is killed and started again at the same port.
const guestScript = `
echo
mount -i -t nfs -o addr=10.0.2.2,%s 10.0.2.2:%s /mnt || exit 1
cd /mnt
%star cf - by-id sessions/--work-- sessions/--guest--/*_guest >/dev/null || exit 1
cp -a by-date /tmp/copy || exit 1
cd "$(echo sessions/*/*_guest)" || exit 1
say() { echo '{"type":"message","message":{"role":"user","content":"'"$1"'"}}' >>append; }
ls entries | wc -l | sed 's/^/entries /'
(i=0; while [ $i -lt 200 ]; do say "grow $i." || echo failed grow $i; i=$((i+1)); done) &
ls ../*_many/entries entries | sort | uniq -d | sed 's/^/twice /'
wait
i=0; while [ $i -lt 1000 ]; do say "append $i." || echo failed $i; i=$((i+1)); done
w() { j=0; while [ $j -lt 100 ]; do say "writer $1 line $j." || echo failed $1 $j; j=$((j+1)); done; }
w 1 & w 2 & w 3 & wait
echo junk >>append; echo "junk $?"
cat last-error
echo A title >title || echo failed title
cat title
ln -sfn entries/guest001.json leaf || echo failed leaf
echo "leaf $(readlink leaf)"
touch new; echo "new $?"
set -- ../*_guest.jsonl
exec 3<"$1"
echo KILL
i=0; while [ $i -lt 100 ]; do say "kill $i." && echo "acked kill $i."; i=$((i+1)); sleep 0.05; done
md5sum <&3 >/dev/null && echo open file read
cat title
ls ../*_many/entries | wc -l | sed 's/^/many /'
md5sum ../*_big.jsonl | cut -c1-32 | sed 's/^/big /'
`

// inGuest runs a script in a guest, and calls hear with each line that the script prints.
func inGuest(t *testing.T, script string, hear func(line string)) {
	file := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(file, []byte(script), 0o600))
	cmd := exec.Command("../../scripts/nfsguest", file)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	var said []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said = append(said, strings.TrimSpace(lines.Text()))
		hear(said[len(said)-1])
	}
	require.NoError(t, cmd.Wait(), strings.Join(said, "\n"))
}

// needGuest skips a test where no guest runs.
func needGuest(t *testing.T) {
	if os.Getenv("SESSIONFS_TEST_FULL") != "1" {
		t.Skip("SESSIONFS_TEST_FULL=1 runs it")
	}
	missing := ""
	for _, tool := range []string{"qemu-system-x86_64", "busybox", "cpio", "apt-get"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing = tool
		}
	}
	if os.Geteuid() != 0 {
		missing = "root"
	}
	if missing != "" && os.Getenv(requireEnv) != "" {
		t.Fatalf("%s is set, but there is no %s", requireEnv, missing)
	} else if missing != "" {
		t.Skip("there is no " + missing)
	}
}

// TestNFSGuest: the NFS client of a real kernel sees what a FUSE mount shows, and writes.
func TestNFSGuest(t *testing.T) {
	needGuest(t)
	s := newMountable(t, user{"root", 0})
	dir := filepath.Join(s.source, "sessions/--guest--")
	require.NoError(t, os.Mkdir(dir, 0o700))
	made := func(id string, entries, size int) (file string) {
		text := []byte(fmt.Sprintf(`{"type":"session","version":3,"id":"%s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/guest"}`, id) + "\n")
		for i := range entries {
			text = fmt.Appendf(text, `{"type":"message","id":"%s%03d","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z",`+
				`"message":{"role":"user","content":"%[2]d %s"}}`+"\n", id, i, strings.Repeat("x", size))
		}
		file = filepath.Join(dir, "2026-02-16T10-20-30-000Z_"+id+".jsonl")
		require.NoError(t, os.WriteFile(file, text, 0o600))
		return file
	}
	session := made("guest", 100, 0)
	made("many", 20_000, 0)
	big := md5.Sum(readFile(t, made("big", 250, 1<<20)))
	s.mount()
	want := map[string]bool{}
	for line := range strings.Lines(s.exec("sh", "-c", "cd "+s.mountpoint+"\n"+guestWalk).stdout) {
		want[strings.TrimSpace(line)] = true
	}
	s.unmount()
	n := s.serveNFS(s.source)
	options, port, path := n.mountLine()
	var said []string
	inGuest(t, fmt.Sprintf(guestScript, options, path, guestWalk), func(line string) {
		if said = append(said, line); line == "KILL" {
			time.Sleep(time.Second)
			n.kill()
			n = s.serveNFS("--port", port, s.source)
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

// findScript is run in a guest. GNU find asks for the attributes of directories alone, that of
// busybox for those of each file. README is the first file that is read.
const findScript = `
echo
mount -i -t nfs -o addr=10.0.2.2,%s 10.0.2.2:%s /mnt || exit 1
cd /mnt/sessions/--find--
find . | wc -l | sed 's/^/found /'
find . -type f | wc -l | sed 's/^/files /'
find ../../by-id -type l | wc -l | sed 's/^/links /'
cat ../../README >/tmp/readme
cd ./*_find0
ls -l transcript.md | awk '{ print "size " $5 }'
cat transcript.md >/tmp/all
(i=0; while [ $i -lt 50 ]; do find . -name 'x*'; i=$((i+1)); done) &
i=0; while [ $i -lt 100 ]; do cmp transcript.md /tmp/all || echo failed; i=$((i+1)); done
wait
cd ../*_find1
busybox find . -type f | wc -l | sed 's/^/busybox /'
`

// TestNFSGuestFinds: find over 700 sessions in a mount of a real kernel renders nothing. Sizes are
// exact afterwards, and a listing cuts no reader off.
func TestNFSGuestFinds(t *testing.T) {
	needGuest(t)
	s := newMountable(t, user{"root", 0})
	dir := filepath.Join(s.source, "sessions/--find--")
	require.NoError(t, os.Mkdir(dir, 0o700))
	const sessions = 700
	for i := range sessions {
		id := fmt.Sprint("find", i)
		text := fmt.Sprintf(`{"type":"session","version":3,"id":"%s","timestamp":"2026-02-16T10:20:30.000Z","cwd":"/find"}
{"type":"message","id":"a","parentId":null,"timestamp":"2026-02-16T10:20:31.000Z","message":{"role":"user","content":"%s"}}
`, id, strings.Repeat("words ", 20_000))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "2026-02-16T10-20-30-000Z_"+id+".jsonl"), []byte(text), 0o600))
	}
	n := s.serveNFS("-o", "loglevel=debug", s.source)
	options, _, path := n.mountLine()
	said := map[string]int{}
	inGuest(t, fmt.Sprintf(findScript, options, path), func(line string) {
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
