//go:build linux

package fs

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/storage"
)

// A daemon reports its counters through a socket, so that clients never touch the mount, which may
// hang. The socket has an abstract name, made of the user, the number of the connection, and the
// moment: there is no file that a kill could leave behind, and none that needs a directory. As
// anybody may take and connect to such names, nobody can predict the daemon's name, a client tries
// each name that exists, and both ends ask the kernel for the user of the other end.

// socketName is how the names of sockets begin of the mount that a user made with a device number.
func socketName(uid int, minor uint32) string { return fmt.Sprintf("@sessionfs/%d/%d", uid, minor) }

// listening is the flag in the kernel's table of a socket that can be connected to
// (__SO_ACCEPTCON).
const listening = "00010000"

// Sockets returns the names of all sockets, of any user, that may belong to a mount, the newest
// first. Earlier versions have a name without the moment. An error may come with some of the names.
func (e MountEntry) Sockets() (names []string, err error) {
	own := socketName(e.User, e.minor)
	table, err := os.ReadFile("/proc/self/net/unix")
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line) // Num RefCount Protocol Flags Type St Inode Path
		if len(fields) != 8 || fields[3] != listening {
			continue
		}
		name := fields[7]
		if name == own || strings.HasPrefix(name, own+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names, err
}

// statusReply is the answer of a daemon, as one JSON object.
type statusReply struct {
	Version string `json:"version"`
	// Options are the mount's: a command shows the same as it (docs/design.md section 8,
	// Commands without a mount).
	Options mountopts.Options `json:"options"`
	Counters
	// Unsaved is the number of new sessions that a daemon of an earlier version has in memory
	// alone; nil of later ones.
	Unsaved *int `json:"new,omitempty"`
}

// AnswerLimit is how long either end waits.
const AnswerLimit = 5 * time.Second

// errNotTheirs means that there is no socket of the mount's user.
var errNotTheirs = errors.New("no socket of its user's")

// ask requests the version, options and counters of a mount's daemon. It waits for a first sign of
// life, and then for the answer. The pid is known also if the daemon does not answer; it is 0 if there is none.
func (e MountEntry) ask(first, limit time.Duration) (pid int, reply statusReply, err error) {
	conn, pid, err := e.dial()
	if err != nil {
		return 0, reply, err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(first))
	_, _ = io.WriteString(conn, "\n") // one of an earlier version waits for it, or answers unasked
	in := bufio.NewReader(conn)
	_, err = in.Peek(1)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(limit))
		err = json.NewDecoder(in).Decode(&reply)
	}
	return pid, reply, err
}

// dial connects to the daemon of a mount, past the sockets of others with such a name. Callers must close conn. The
// error wraps errNotTheirs if there is no such daemon.
func (e MountEntry) dial() (conn *net.UnixConn, pid int, err error) {
	names, err := e.Sockets()
	for _, name := range names {
		address := &net.UnixAddr{Name: name, Net: "unix"}
		conn, err = net.DialUnix("unix", nil, address)
		if err != nil {
			continue
		}
		peer, err := peerOf(conn)
		if err == nil && int(peer.Uid) == e.User {
			return conn, int(peer.Pid), nil
		}
		conn.Close()
	}
	return nil, 0, errors.Join(errNotTheirs, err)
}

// peerOf returns the process at the other end of a connection.
func peerOf(conn *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) {
		peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	return peer, errors.Join(controlErr, err)
}

const (
	// maxRequest is how long a request may be.
	maxRequest = 64
	// acceptPause is how long nobody is listened to when there are no descriptors.
	acceptPause = 100 * time.Millisecond
)

// ServeStatus answers clients of a mount's socket with the version and the options of the mount,
// until the returned function is called.
func (s *Server) ServeStatus(version string) (stop func()) {
	e, ok := MountAt(s.options.Mountpoint)
	if !ok { // it is unmounted already
		return func() {}
	}
	s.minor = e.minor
	return s.serveStatus(version)
}

// serveStatus serves at a name of its own: another daemon may still have a socket, after its mount with the same
// number is gone.
func (s *Server) serveStatus(version string) (stop func()) {
	own := socketName(os.Geteuid(), s.minor)
	name := fmt.Sprintf("%s/%016x", own, time.Now().UnixNano())
	address := &net.UnixAddr{Name: name, Net: "unix"}
	listener, err := net.ListenUnix("unix", address)
	if err != nil {
		s.log.Warn("'sessionfs status' cannot tell what this mount does", "err", err)
		return func() {}
	}
	ctx, stop := context.WithCancel(context.Background())
	serve := storage.Guarded(func() {
		s.answerStatus(ctx, listener, version)
	})
	go serve()
	return stop
}

// answerStatus answers requests for the status, each in a goroutine, until ctx is done.
func (s *Server) answerStatus(ctx context.Context, listener *net.UnixListener, version string) {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	in, out, _ := os.Pipe() // spares two descriptors for an answer while files have all others
	for {
		conn, err := listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			answer := storage.Guarded(func() {
				s.answer(conn, version)
			})
			go answer()
			continue
		}
		in.Close() // this process has no descriptor left but these
		out.Close()
		s.answerOne(listener, version)
		in, out, _ = os.Pipe()
	}
}

// answerOne answers one request. It pauses if there is no descriptor for it.
func (s *Server) answerOne(listener *net.UnixListener, version string) {
	conn, err := listener.AcceptUnix()
	if err != nil {
		time.Sleep(acceptPause)
		return
	}
	s.answer(conn, version)
}

// answer sends the status to the user of the mount, or to root, and closes the connection. Others get nothing.
func (s *Server) answer(conn *net.UnixConn, version string) {
	defer conn.Close()
	peer, err := peerOf(conn)
	if err != nil {
		return
	}
	isOwner := int(peer.Uid) == os.Geteuid()
	isRoot := peer.Uid == 0
	if !isOwner && !isRoot {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(AnswerLimit))
	// Read a line, which earlier versions take for a request. Unread bytes would end the connection
	// before the answer.
	request := bufio.NewReader(io.LimitReader(conn, maxRequest))
	_, _ = request.ReadString('\n')
	_, _ = io.WriteString(conn, "\n") // a sign of life: the counters may take their time
	reply := statusReply{
		Version:  version,
		Options:  s.options,
		Counters: s.Counters(),
	}
	_ = json.NewEncoder(conn).Encode(reply) // the client may be gone
}
