package fs

import (
	"log/slog"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/mountopts"
	"sessionfs/nodes"
)

// MountRoot is Mount with another root directory: for tests of what a storage does to a mount.
func MountRoot(root *nodes.RootDir, o mountopts.Options, log *slog.Logger) (*Server, error) {
	raw := fusefs.NewNodeFS(root, &fusefs.Options{RootStableAttr: &fusefs.StableAttr{Ino: fuse.FUSE_ROOT_ID}})
	server, err := fuse.NewServer(raw, o.Mountpoint, kernelOptions(o, log))
	if err != nil {
		return nil, err
	}
	go server.Serve()
	t, err := openTree(o, log) // to be closed with the server
	if err != nil {
		return nil, err
	}
	return &Server{fuse: server, tree: t, gone: make(chan struct{})}, nil
}

// MountFew is Mount that gives nodes back to the kernel when there are more than that.
func MountFew(limit int) func(mountopts.Options, *slog.Logger) (*Server, error) {
	return func(o mountopts.Options, log *slog.Logger) (*Server, error) {
		t, err := openTree(o, log)
		if err != nil {
			return nil, err
		}
		t.root.KeepNodes(limit)
		return mountTree(t, o, log)
	}
}
