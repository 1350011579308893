package nodes

import (
	"context"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
)

// makeLastError makes last-error: why the last write to the session was refused, in words, with its time, and what to do
// instead. It is empty again after the next one that succeeds.
func makeLastError(d *SessionDir) fusefs.InodeEmbedder {
	return newLastErrorFile(d.view, d.session.Name(), d.session.Probe)
}

// NewLastErrorFile returns last-error of the root of a mount of source: why the last write or look-up was refused that
// concerns no session.
func NewLastErrorFile(view *View, source storage.Files) *ContentFile {
	return newLastErrorFile(view, outside, func(context.Context) (storage.Stat, error) { return source.Stat("") })
}

func newLastErrorFile(view *View, of string, stat func(context.Context) (storage.Stat, error)) *ContentFile {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		st, err := stat(ctx)
		if err != nil {
			return content{}, err
		}
		last, _ := view.refusals.get(of)
		c := textContent([]byte(last.line()), st)
		c.at, c.private = last.at, of == outside
		return c, nil
	}
	return &ContentFile{node: node{view: view}, render: render}
}
