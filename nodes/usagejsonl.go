package nodes

import (
	"bytes"
	"context"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/costs"
	"sessionfs/sessioncore/listing"
)

// CostsFile is usage.jsonl: what all sessions cost, by day, working directory and model (docs/design.md section 5). Both
// its size and its content take reading every session that changed.
type CostsFile struct {
	node
	costs *costs.Costs
}

// NewCostsFile returns usage.jsonl.
func NewCostsFile(view *View, costs *costs.Costs) *CostsFile {
	return &CostsFile{node{view: view}, costs}
}

func (f *CostsFile) fillAttr(ctx context.Context, out *fuse.Attr) error {
	hold := f.view.Memory.Hold()
	text, sessions, err := f.lines(ctx, &hold)
	if err != nil {
		return err
	}
	f.fillPrivate(out, sessions.Stat(), syscall.S_IFREG, int64(len(text)))
	return nil
}

// lines returns the content.
func (f *CostsFile) lines(ctx context.Context, hold *budget.Hold) ([]byte, *listing.Sessions, error) {
	sessions, err := f.view.Listing.Look(ctx)
	if err != nil {
		return nil, nil, err
	}
	text, err := f.costs.Lines(ctx, sessions.All(), hold)
	return text, sessions, err
}

var _ = (fusefs.NodeOpener)((*CostsFile)(nil))

// Open adds up.
func (f *CostsFile) Open(ctx context.Context, flags uint32) (fusefs.FileHandle, uint32, syscall.Errno) {
	if writes(flags) {
		return nil, 0, f.denyWrite("open", f.path())
	}
	hold := f.view.Memory.Hold()
	text, _, err := f.lines(ctx, &hold)
	if err == nil {
		err = hold.Resize(int64(len(text)))
	}
	if err != nil {
		return nil, 0, f.view.fail("open", f.path(), err)
	}
	return &contentHandle{node: &f.node, content: bytes.NewReader(text), release: hold.Close}, forReading | fuse.FOPEN_DIRECT_IO, 0
}
