//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/sessioncore/storage"
)

// A daemon tells what it has done, and puts new sessions on disk, through a socket, so that who asks never touches the mount,
// which may hang. The socket
// has an abstract name, made of the user and the number of the connection: there is no file that a kill could leave
// behind, and none that needs a directory. As anybody may connect to such a name, or take it, both ends ask the kernel who
// the other one is.

// socketName is the name of the socket of the mount that a user made with a device number.
func socketName(uid int, minor uint32) *net.UnixAddr {
	return &net.UnixAddr{Name: fmt.Sprintf("@sessionfs/%d/%d", uid, minor), Net: "unix"}
}

// saveRequest is the line that asks a daemon to put new sessions on disk before it tells what it has done; any other line
// asks for that alone.
const saveRequest = "save"

// told is what a daemon answers, as one JSON object.
type told struct {
	Version string `json:"version"`
	Unsaved string `json:"unsaved,omitempty"` // why new sessions cannot be put on disk, if that was asked for
	fs.Counters
}

// socketLimit is how long either end waits. The answer fits into the socket's buffer, so a daemon waits for nobody.
const socketLimit = 5 * time.Second

const (
	// maxRequest is how long a request may be.
	maxRequest = 64
	// acceptPause is how long nobody is listened to when there are no descriptors, and how long it takes to the next try to
	// have the socket.
	acceptPause = 100 * time.Millisecond
	// quietTries is how many of them may fail before the log says so.
	quietTries = 64
)

// serveStatus answers who connects to the socket of a mount, until the returned function is called. Another daemon may
// have the socket still whose mount is gone and had the same number.
func (a *attendant) serveStatus() (stop func()) {
	ctx, stop := context.WithCancel(context.Background())
	listener, err := net.ListenUnix("unix", socketName(os.Geteuid(), a.minor))
	go storage.Guarded(func() {
		const cannot = "'sessionfs status' cannot tell what this mount does"
		for tries := 1; errors.Is(err, unix.EADDRINUSE) && ctx.Err() == nil; tries++ {
			if tries == quietTries {
				a.log.Warn(cannot, "err", err)
			}
			time.Sleep(acceptPause)
			listener, err = net.ListenUnix("unix", socketName(os.Geteuid(), a.minor))
		}
		if err == nil {
			a.answerStatus(ctx, listener)
		} else if ctx.Err() == nil {
			a.log.Warn(cannot, "err", err)
		}
	})()
	return stop
}

func (a *attendant) answerStatus(ctx context.Context, listener *net.UnixListener) {
	defer context.AfterFunc(ctx, func() { listener.Close() })()
	for {
		conn, err := listener.AcceptUnix()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil:
			time.Sleep(acceptPause)
		default:
			go storage.Guarded(func() {
				defer conn.Close()
				a.tell(conn)
			})()
		}
	}
}

// tell answers the user of the mount, and root.
func (a *attendant) tell(conn *net.UnixConn) {
	peer, err := peerOf(conn)
	if err != nil || int(peer.Uid) != os.Geteuid() && peer.Uid != 0 {
		return
	}
	_ = conn.SetDeadline(time.Now().Add(socketLimit))
	request, _ := bufio.NewReader(io.LimitReader(conn, maxRequest)).ReadString('\n')
	answer := told{Version: version()}
	if request == saveRequest+"\n" {
		ctx, cancel := context.WithTimeout(context.Background(), saveLimit)
		defer cancel()
		if err := a.server.Save(ctx); err != nil {
			answer.Unsaved = err.Error()
		}
		_ = conn.SetDeadline(time.Now().Add(socketLimit))
	}
	answer.Counters = a.server.Counters()
	_ = json.NewEncoder(conn).Encode(answer) // who asked may be gone
}

// errNotTheirs means that somebody else answers in the name of a mount.
var errNotTheirs = errors.New("the socket is another user's")

// askDaemon makes a request of the daemon of a mount, and waits so long. The pid is known also if it does not answer.
func askDaemon(e mountEntry, request string, limit time.Duration) (pid int, said told, err error) {
	conn, err := net.DialUnix("unix", nil, socketName(e.uid, e.minor))
	if err != nil {
		return 0, said, err
	}
	defer conn.Close()
	peer, err := peerOf(conn)
	if err == nil && int(peer.Uid) != e.uid {
		err = errNotTheirs
	}
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(limit))
	}
	if err != nil {
		return 0, said, err
	}
	_, _ = io.WriteString(conn, request+"\n") // one of an earlier version answers unasked
	err = json.NewDecoder(conn).Decode(&said)
	return int(peer.Pid), said, err
}

// peerOf returns who is at the other end of a connection.
func peerOf(conn *net.UnixConn) (peer *unix.Ucred, err error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	controlErr := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	return peer, errors.Join(controlErr, err)
}
