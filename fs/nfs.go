package fs

import (
	"context"
	"fmt"
	"log/slog"
	"net"

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
	key, err := handleKey(log)
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
	root := t.root.With(nodes.LastResultName(func() []byte {
		return n.Result()
	}))
	n.Door = nfs.New(root, o.TableSource(), key, log)
	return n, nil
}

// Port returns the port of the server.
func (n *NFS) Port() int { return n.listener.Addr().(*net.TCPAddr).Port }

// Serve answers clients until ctx is done, and then closes SOURCE.
func (n *NFS) Serve(ctx context.Context) error {
	defer n.tree.close()
	return n.Door.Serve(ctx, n.listener)
}
