package nfs

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sessionfs/nodes/nfs/nfstest"
)

const nobody = 65534

// rawSocket is a socket that belongs to the user in whose name the thread made it.
type rawSocket struct {
	fd    int
	close func()
}

// dialRaw connects a socket to a port of this machine; with mapped it is one of IPv6.
func dialRaw(port int, mapped bool) (s rawSocket, err error) {
	domain := unix.AF_INET
	address := loopback(port)
	if mapped {
		domain = unix.AF_INET6
		mappedAddress := [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
		address = &unix.SockaddrInet6{Port: port, Addr: mappedAddress}
	}
	s.fd, err = unix.Socket(domain, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s, err
	}
	s.close = sync.OnceFunc(func() { unix.Close(s.fd) })
	return s, unix.Connect(s.fd, address)
}

// loopback returns the address of a port of this machine.
func loopback(port int) unix.Sockaddr {
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

// reset ends the connection without a farewell, so that its address is free at once.
func (s rawSocket) reset() {
	_ = unix.SetsockoptLinger(s.fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{Onoff: 1})
	s.close()
}

// asUser calls a function in a thread whose sockets are a user's.
func asUser(uid int, do func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // it ends with the goroutine
		if uid != os.Geteuid() {
			_, _ = unix.SetfsuidRetUid(uid)
		}
		done <- do()
	}()
	return <-done
}

// needsRoot skips a test that needs a socket of another user.
func needsRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root makes sockets of others")
	}
}

// peers is a listener, and the owners of the sockets that connect to it.
type peers struct {
	*testing.T
	*net.TCPListener
	owners *socketOwners
}

// forEachTable runs a test with the answers of netlink, and with the tables.
func forEachTable(t *testing.T, test func(p *peers)) {
	for _, name := range []string{"netlink", "tables"} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp4", "127.0.0.1:0")
			require.NoError(t, err)
			t.Cleanup(func() { l.Close() })
			owners := openSocketOwners(l.Addr())
			t.Cleanup(owners.close)
			require.NotEqual(t, -1, owners.netlink, "the kernel answers by netlink")
			if name == "tables" {
				owners.close()
			}
			test(&peers{t, l.(*net.TCPListener), owners})
		})
	}
}

func (p *peers) port() int { return p.Addr().(*net.TCPAddr).Port }

// dial connects a socket of a user.
func (p *peers) dial(uid int, mapped bool) (s rawSocket) {
	require.NoError(p, asUser(uid, func() (err error) {
		s, err = dialRaw(p.port(), mapped)
		return err
	}))
	p.Cleanup(s.close)
	return s
}

// check accepts a connection and checks it.
func (p *peers) check() error {
	c, err := p.Accept()
	require.NoError(p, err)
	p.Cleanup(func() { c.Close() })
	return checkOne(p.owners, c, uint32(os.Geteuid()))
}

// checkOne checks one connection.
func checkOne(o *socketOwners, c net.Conn, user uint32) error {
	refused := o.check([]net.Conn{c}, user)
	return refused[0]
}

// TestOwnerIsKnown: connections of this user and of root are accepted, with a mapped address too.
func TestOwnerIsKnown(t *testing.T) {
	forEachTable(t, func(p *peers) {
		for _, mapped := range []bool{false, true} {
			p.dial(os.Geteuid(), mapped)
			require.NoError(t, p.check())
		}
		if os.Geteuid() == 0 {
			p.dial(0, false)
			c, err := p.Accept()
			require.NoError(t, err)
			defer c.Close()
			require.NoError(t, checkOne(p.owners, c, nobody), "root's, where the server is another user's")
		}
	})
}

// TestOtherUserIsKnown: connections of another user are refused, also those that are closed or half
// closed when they are accepted, for which the kernel may tell root.
func TestOtherUserIsKnown(t *testing.T) {
	needsRoot(t)
	forEachTable(t, func(p *peers) {
		for _, mapped := range []bool{false, true} {
			p.dial(nobody, mapped)
			require.ErrorContains(t, p.check(), "user 65534")
			for _, end := range []func(rawSocket){
				func(s rawSocket) { s.close() },
				func(s rawSocket) { _ = unix.Shutdown(s.fd, unix.SHUT_WR) },
				func(s rawSocket) { _ = unix.Shutdown(s.fd, unix.SHUT_RDWR) },
				rawSocket.reset,
			} {
				s := p.dial(nobody, mapped)
				_, err := unix.Write(s.fd, []byte("words of a stranger"))
				require.NoError(t, err)
				end(s)
				require.Error(t, p.check())
			}
		}
	})
}

// TestOwnersOfMany: connections that are looked up together have each its owner.
func TestOwnersOfMany(t *testing.T) {
	needsRoot(t)
	forEachTable(t, func(p *peers) {
		var connections []net.Conn
		for i, uid := range []int{0, nobody, 0, 1000, 0} {
			s := p.dial(uid, i%2 == 0)
			if i == 2 {
				s.close()
			}
			c, err := p.Accept()
			require.NoError(t, err)
			defer c.Close()
			connections = append(connections, c)
		}
		refused := p.owners.check(connections, 0)
		require.NoError(t, refused[0])
		require.ErrorContains(t, refused[1], "user 65534")
		require.ErrorIs(t, refused[2], errNotOpen)
		require.ErrorContains(t, refused[3], "user 1000")
		require.NoError(t, refused[4])
	})
}

// TestClosedSockets: a connection that is closed or half closed when it is accepted is refused,
// whoever made it.
func TestClosedSockets(t *testing.T) {
	forEachTable(t, func(p *peers) {
		for _, end := range []func(rawSocket){
			func(s rawSocket) { s.close() },
			func(s rawSocket) { _ = unix.Shutdown(s.fd, unix.SHUT_WR) },
		} {
			s := p.dial(os.Geteuid(), false)
			_, err := unix.Write(s.fd, []byte("words"))
			require.NoError(t, err)
			end(s)
			require.ErrorIs(t, p.check(), errNotOpen)
		}
	})
}

// TestAddressOfAnother: after a connection was reset, a socket of root with its address does not
// vouch for what had come over it.
func TestAddressOfAnother(t *testing.T) {
	needsRoot(t)
	forEachTable(t, func(p *peers) {
		later := -1
		for tries := 0; later < 0; tries++ { // a connection of another test may have taken the address meanwhile
			require.Less(t, tries, 1000, "the reset socket's address is free")
			later = bindAfterReset(t, p)
		}
		defer unix.Close(later)
		require.NoError(t, unix.Connect(later, loopback(p.port())))
		require.ErrorIs(t, p.check(), errNotOpen)
		require.NoError(t, p.check(), "the later one")
	})
}

// bindAfterReset resets a connection of another user, behind bytes that it sent, and returns a socket of
// root with its address, or -1 if that is not free.
func bindAfterReset(t *testing.T, p *peers) int {
	s := p.dial(nobody, false)
	at, err := unix.Getsockname(s.fd)
	require.NoError(t, err)
	_, err = unix.Write(s.fd, []byte("words of a stranger"))
	require.NoError(t, err)
	s.reset()
	later, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	require.NoError(t, unix.SetsockoptInt(later, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	if unix.Bind(later, at) == nil {
		return later
	}
	require.Error(t, p.check()) // takes the connection
	require.NoError(t, unix.Close(later))
	return -1
}

// TestTables: exactly one line with the addresses must be there, in a table that can be read.
func TestTables(t *testing.T) {
	const (
		heading = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
		rest    = " 00000000:00000000 00:00000000 00000000 %s        0 %s 1 0000000000000000 20 4 30 10 -1\n"
		v4      = "   1: 0100007F:9C40 0100007F:0801 01"
		mapped  = "   7: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:0801 01"
	)
	if binaryIsBig() {
		t.Skip("the addresses are those of a little-endian machine")
	}
	line := func(begin, uid, inode string) string { return begin + fmt.Sprintf(rest, uid, inode) }
	// The other way round, another port, and an address that only ends alike.
	others := line("   2: 0100007F:0801 0100007F:9C40 01", "0", "9") + line("   3: 0100007F:9C41 0100007F:0801 01", "0", "9") +
		line("   4: 0200007F:9C40 0100007F:0801 01", "0", "9")
	mine := socket{established, 1000, 77}
	for name, c := range map[string]struct {
		tcp, tcp6 string
		want      []socket
		wantErr   bool
	}{
		"IPv4":        {heading + others + line(v4, "1000", "77"), heading, []socket{mine}, false},
		"mapped":      {heading + others, heading + line(mapped, "1000", "77"), []socket{mine}, false},
		"no IPv6":     {heading + line(v4, "1000", "77"), "", []socket{mine}, false},
		"none":        {heading + others, heading, nil, false},
		"two":         {heading + line(v4, "0", "1") + line(v4, "1000", "77"), heading, []socket{{established, 0, 1}, mine}, false},
		"one in each": {heading + line(v4, "0", "1"), heading + line(mapped, "1000", "77"), []socket{{established, 0, 1}, mine}, false},
		"closed":      {heading + line(strings.TrimSuffix(v4, "01")+"06", "0", "0"), heading, []socket{{6, 0, 0}}, false},
		"missing":     {"", heading + line(mapped, "1000", "77"), nil, true},
		"cut":         {heading + v4 + " 00000000:00000000\n", heading, nil, true},
		"a number":    {heading + line(v4, "-1", "77"), heading, nil, true},
		"a long line": {heading + strings.Repeat("x", 1<<20) + "\n", heading, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			o := &socketOwners{netlink: -1, tables: []string{filepath.Join(dir, "tcp"), filepath.Join(dir, "tcp6")}}
			for i, text := range []string{c.tcp, c.tcp6} {
				if text != "" {
					require.NoError(t, os.WriteFile(o.tables[i], []byte(text), 0o600))
				}
			}
			e := ends{netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("127.0.0.1:2049")}
			found, err := o.find([]ends{{e.local, e.local}, e})
			require.Equal(t, c.wantErr, err != nil, err)
			if err == nil {
				require.Equal(t, c.want, found[e])
			}
		})
	}
}

func binaryIsBig() bool {
	return tableColumn(netip.MustParseAddrPort("127.0.0.1:0")) != "0100007F:0000"
}

// TestUnsureOwners: a connection is refused where the tables have none or two sockets of it, one
// that is closed, or cannot be read.
func TestUnsureOwners(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	s, err := dialRaw(l.Addr().(*net.TCPAddr).Port, false)
	require.NoError(t, err)
	defer s.close()
	c, err := l.Accept()
	require.NoError(t, err)
	defer c.Close()
	table := filepath.Join(t.TempDir(), "tcp")
	o := &socketOwners{netlink: -1, tables: []string{table}}
	us := uint32(os.Geteuid())
	require.Error(t, checkOne(o, c, us), "no table")
	remote, local := addressOf(c.RemoteAddr()), addressOf(c.LocalAddr())
	line := func(state, uid, inode int) string {
		return "   1: " + tableColumn(remote) + " " + tableColumn(local) + fmt.Sprintf(" %02X 0:0 0:0 0 %d 0 %d\n", state, uid, inode)
	}
	uid := int(us)
	for why, text := range map[string]string{
		"none":              "",
		"two":               line(1, uid, 1) + line(1, uid, 1),
		"another user's":    line(1, uid+1, 1),
		"root's, not open":  line(1, 0, 0),
		"ours, not open":    line(1, uid, 0),
		"ours, half closed": line(4, uid, 1),
		"root's, closing":   line(5, 0, 1),
	} {
		require.NoError(t, os.WriteFile(table, []byte(text), 0o600))
		require.Error(t, checkOne(o, c, us), why)
	}
	for _, owner := range []uint32{0, us, nobody} {
		require.NoError(t, os.WriteFile(table, []byte(line(1, int(owner), 1)), 0o600))
		require.NoError(t, checkOne(o, c, owner))
	}
}

// TestTablesInstead: where netlink knows no listener, or fails later, the tables are read.
func TestTablesInstead(t *testing.T) {
	none := openSocketOwners(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 0})
	defer none.close()
	require.Equal(t, -1, none.netlink)
	forEachTable(t, func(p *peers) {
		pipe := []int{0, 0}
		require.NoError(t, unix.Pipe(pipe))
		defer unix.Close(pipe[1])
		p.owners.close()
		p.owners.netlink = pipe[0]
		p.dial(os.Geteuid(), false)
		require.NoError(t, p.check())
		p.owners.tables = nil
		p.dial(os.Geteuid(), false)
		require.Error(t, p.check())
	})
}

// TestLateReply: an answer to an earlier question is none to the last one.
func TestLateReply(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	o := openSocketOwners(l.Addr())
	defer o.close()
	here := ends{addressOf(l.Addr()), netip.MustParseAddrPort("0.0.0.0:0")}
	require.NoError(t, o.send(here))
	found, err := o.ask(ends{here.remote, here.local})
	require.NoError(t, err)
	require.Empty(t, found)
	found, err = o.ask(here)
	require.NoError(t, err)
	require.Len(t, found, 1)
}

// TestReplies: an answer of netlink that is cut, or another error than that there is none, is no
// answer.
func TestReplies(t *testing.T) {
	header := func(kind uint16, behind ...byte) []byte {
		m := make([]byte, unix.SizeofNlMsghdr)
		m[4], m[5] = byte(kind), byte(kind>>8)
		if binaryIsBig() {
			m[4], m[5] = m[5], m[4]
		}
		return append(m, behind...)
	}
	withoutErrno := header(unix.NLMSG_ERROR)
	cut := header(unix.SOCK_DIAG_BY_FAMILY, 2, 1)
	ofOtherType := header(99, make([]byte, 200)...)
	for _, m := range [][]byte{withoutErrno, cut, ofOtherType} {
		_, err := parseReply(m)
		require.ErrorIs(t, err, errNoAnswer)
	}
	for errno, isKnown := range map[syscall.Errno]bool{unix.ENOENT: true, unix.EPERM: false} {
		_, err := parseReply(header(unix.NLMSG_ERROR, []byte{byte(-errno), 255, 255, 255}...))
		if !binaryIsBig() {
			require.Equal(t, isKnown, err == nil, err)
		}
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// TestConnectionsOfAnotherUser: of 10,000 connections of another user, who knows the secret and
// claims to be the owner, each is closed without an answer, and none takes a place. The log has a line
// a minute with their number. The owner is answered meanwhile, and mounts the same path afterwards.
func TestConnectionsOfAnotherUser(t *testing.T) {
	needsRoot(t)
	var log lockedBuffer
	s, c := serveLogged(t, newFakeDir(nil), &log)
	_, port, err := net.SplitHostPort(s.at)
	require.NoError(t, err)
	to, err := strconv.Atoi(port)
	require.NoError(t, err)
	path := s.door.Export()
	call := c.Message(nfstest.Mount, 1, path)
	call = append([]byte{0x80, 0, 0, byte(len(call))}, call...)
	before := runtime.NumGoroutine()
	const connections, threads = 10_000, 4
	var over atomic.Int32
	stranger := func() error {
		defer over.Add(1)
		for range connections / threads {
			if err := tryCall(to, call); err != nil {
				return err
			}
		}
		return nil
	}
	var all errgroup.Group
	for range threads {
		all.Go(func() error { return asUser(nobody, stranger) })
	}
	answers := 0
	for ; over.Load() < threads; answers++ {
		c.attr(c.dir)
		other, err := nfstest.Dial(s.at)
		require.NoError(t, err)
		_, err = other.Send(other.Message(nfstest.NFS, 0))
		require.NoError(t, err)
		other.Close()
	}
	require.NoError(t, all.Wait())
	require.Greater(t, answers, 100)
	require.Less(t, runtime.NumGoroutine(), before+20)
	_, err = c.MountPath(path)
	require.NoError(t, err)
	s.stop()
	counted := 0
	for _, m := range regexp.MustCompile(`refused_since_the_last_line=(\d+)`).FindAllStringSubmatch(log.String(), -1) {
		n, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		counted += n
	}
	lines := strings.Count(log.String(), "\n")
	require.Equal(t, connections, counted+strings.Count(log.String(), "from="), log.String())
	require.LessOrEqual(t, lines, 4, "at most one a minute, and one at the end")
	require.Contains(t, log.String(), "user 65534")
}

// tryCall sends a call, and returns an error unless the connection is closed without an answer.
func tryCall(port int, call []byte) error {
	s, err := dialRaw(port, false)
	if err != nil {
		return err
	}
	defer s.reset()
	err = unix.SetsockoptTimeval(s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
	if err != nil {
		return err
	}
	_, _ = unix.SendmsgN(s.fd, call, nil, nil, unix.MSG_NOSIGNAL) // it may be closed
	n, err := unix.Read(s.fd, make([]byte, 100))
	if n > 0 || errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("a stranger read %d bytes: %w", n, err)
	}
	return nil
}
