package fs

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/nfs"
)

// NFS serves o.Source to clients of NFS on this machine.
type NFS struct {
	*nfs.Door
	tree     *tree
	listener net.Listener
}

// OpenNFS opens o.Source as Mount does, and listens at a port of the loopback interface; 0 is any.
// Callers must call Serve.
func OpenNFS(o mountopts.Options, port int, log *slog.Logger) (*NFS, error) {
	key, err := handleKey()
	if err != nil {
		return nil, err
	}
	var config net.ListenConfig
	config.SetMultipathTCP(false) // a connection of several has no one socket at its other end
	listener, err := config.Listen(context.Background(), "tcp4", fmt.Sprint("127.0.0.1:", port))
	if err != nil {
		return nil, err
	}
	t, err := openTree(o, log)
	if err != nil {
		listener.Close()
		return nil, err
	}
	n := &NFS{tree: t, listener: listener}
	root := t.root.With(nodes.LastResultName(func() []byte { return n.Result() }))
	n.Door = nfs.New(root, o.TableSource(), key, log)
	return n, nil
}

func (n *NFS) Port() int { return n.listener.Addr().(*net.TCPAddr).Port }

// Serve answers clients until ctx is done.
func (n *NFS) Serve(ctx context.Context) error {
	defer n.tree.close()
	return n.Door.Serve(ctx, n.listener)
}

// handleKey returns the key of the handles. It is kept in a file of this user's state, so that a
// mount continues with the next server.
func handleKey() ([]byte, error) {
	state, err := userDir("XDG_STATE_HOME", ".local/state")
	if err == nil {
		err = os.MkdirAll(state, 0o700)
	}
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(state, "nfs.key"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	_ = unix.Flock(int(f.Fd()), unix.LOCK_EX) // another server may be making it
	key, err := io.ReadAll(f)
	if err == nil && len(key) < 32 { // it is new, or was cut short by a loss of power
		key = []byte(rand.Text() + rand.Text())
		_, err = f.WriteAt(key, 0)
	}
	return key, err
}
