package nodes

import (
	"context"
	"path"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/search"
)

// ByFileDir is by-file/, which stands for /: looking up a name in it finds the directory of that file. It lists nothing.
type ByFileDir struct{ aboutSessions }

// NewByFileDir returns by-file/.
func NewByFileDir(view *View) fusefs.InodeEmbedder { return &ByFileDir{newAboutSessions(view, nil)} }

// find finds the directory of a file or directory in /, whether there is one or not.
func (d *ByFileDir) find(_ context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return d.view.fileDir("/", it.name)
}

// FileDir is the directory of a file below by-file/: what was done with it, or with what is below it. To look it up or
// to list it searches nothing.
type FileDir struct {
	HitsDir
	file string
}

// find finds one of the names of a HitsDir, or else the directory of a file below.
func (d *FileDir) find(ctx context.Context, snap *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	if c, err := d.HitsDir.find(ctx, snap, it, out); err == nil {
		return c, nil
	}
	return d.view.fileDir(d.file, it.name)
}

// fileDir is the directory of a file, in dir or its directory's.
func (v *View) fileDir(dir, name string) (child, error) {
	file := path.Join(dir, name)
	touched, err := search.NewTouched(file)
	if err != nil {
		return child{}, syscall.ENOENT
	}
	return child{kind: kindFile, mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
		up := strings.TrimSuffix(strings.Repeat("../", 1+strings.Count(file, "/")), "/")
		return &FileDir{HitsDir{newHits(v, touched, nil, path.Join("..", up))}, file}
	}}, nil
}
