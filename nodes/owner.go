package nodes

import (
	"context"
	"encoding/json"

	fusefs "github.com/hanwen/go-fuse/v2/fs"

	"sessionfs/sessioncore/budget"
)

// makeOwner makes …/<session>/owner: one line that says what is known of the client that has the session open, or nothing.
// It is made anew for each open and each stat, since the client may have come or gone. That takes a search of /proc, so
// the file is not listed: a crawler would cause one for each session.
func makeOwner(d *SessionDir) fusefs.InodeEmbedder {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		st, err := d.session.Probe(ctx)
		if err != nil {
			return content{}, err
		}
		owner, err := d.view.Writer.Owner(ctx, d.session)
		if err != nil {
			return content{}, err
		}
		var text []byte
		if owner != nil {
			if text, err = json.Marshal(owner); err != nil {
				return content{}, err
			}
			text = append(text, '\n')
		}
		c := textContent(text, st)
		c.private = true
		return c, nil
	}
	return &ContentFile{node: node{view: d.view}, render: render}
}

// hasOwner reports whether there is an owner, unlisted. Who is working now is not what somebody shares who masks secrets,
// and no client works on an archived session.
func (d *SessionDir) hasOwner(context.Context) Presence {
	if d.view.Redacted || d.view.Archived() {
		return Absent
	}
	return Hidden
}
