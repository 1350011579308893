package nodes

import (
	"context"
	"encoding/json"
	"strings"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// OwnerFile is …/<session>/owner: one line that says what is known of the client that has the session open, or nothing.
// It is made anew for each open and each stat, since the client may have come or gone. That takes a search of /proc, so
// the file is not listed: a crawler would cause one for each session.
type OwnerFile struct {
	node
	session *sessioncore.Session
}

func makeOwner(d *snapshotDir) fusefs.InodeEmbedder {
	return &OwnerFile{node: node{view: d.view}, session: d.session}
}

// showsOwner reports whether there is an owner. Who is working now is not what somebody shares who masks secrets, and
// no client works on an archived session.
func (d *SessionDir) showsOwner(context.Context) (bool, error) {
	return !d.view.Redacted && !d.view.Archived(), nil
}

// line returns what the file says now.
func (f *OwnerFile) line(ctx context.Context) (string, error) {
	owner, err := f.view.Writer.Owner(ctx, f.session)
	if err != nil || owner == nil {
		return "", err
	}
	text, err := json.Marshal(owner)
	return string(text) + "\n", err
}

func (f *OwnerFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	st, err := f.session.Probe(ctx)
	if err != nil {
		return err
	}
	line, err := f.line(ctx)
	if err != nil {
		return err
	}
	f.fillPrivate(out, st, syscall.S_IFREG, int64(len(line)))
	return nil
}

var _ = (fusefs.NodeOpener)((*OwnerFile)(nil))

// Open returns a handle with what is known now.
func (f *OwnerFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open", f.path())
	}
	line, err := f.line(ctx)
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	return &contentHandle{node: &f.node, content: strings.NewReader(line)}, fuse.FOPEN_DIRECT_IO | forReading, 0
}
