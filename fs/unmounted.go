package fs

import (
	"fmt"
	"log/slog"
	"os"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/fs/direct"
	"sessionfs/mountopts"
)

// Unmounted is what a mount would show, used by this process alone. It needs no FUSE.
type Unmounted struct {
	*direct.FS
	tree *tree
	log  *slog.Logger
}

// Open opens o.Source as Mount does, and mounts nothing. Callers must close it.
func Open(o mountopts.Options, log *slog.Logger) (*Unmounted, error) {
	o.ReadOnly = o.ReadOnly || o.Redact
	t, err := openTree(o, log)
	if err != nil {
		return nil, fmt.Errorf("cannot open the agent directory: %w", err)
	}
	owner := fuse.Owner{Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}
	return &Unmounted{direct.New(t.serve(), fuse.Caller{Owner: owner, Pid: uint32(os.Getpid())}, log), t, log}, nil
}

// Close puts on disk the new sessions that are in memory and were written to, as the end of a mount does, and closes
// everything. The error is that of Server.End.
func (u *Unmounted) Close() error {
	defer u.tree.close()
	u.FS.Close()
	return u.tree.end(u.log)
}
