package nodes

import (
	"context"
	"fmt"
	"syscall"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore"
)

// recentCount is how many sessions recent/ holds (docs/design.md section 5).
const recentCount = 20

// RecentDir is recent/: links to the sessions that were modified last, called by their place and what the
// client's short lists call them.
type RecentDir struct{ directory }

// NewRecentDir returns recent/.
func NewRecentDir(view *View) *RecentDir { return &RecentDir{directory{node{view: view}}} }

func (d *RecentDir) fillAttr(out *fuse.Attr) error {
	st, err := d.view.Listing.Stat()
	if err != nil {
		return err
	}
	d.fillPrivate(out, st, syscall.S_IFDIR, 0)
	return nil
}

// recentSession is a session in recent/.
type recentSession struct {
	name string
	info *sessioncore.SessionInfo
}

func (d *RecentDir) recent() ([]recentSession, error) {
	sessions, err := d.view.Listing.Look()
	if err != nil {
		return nil, err
	}
	var recent []recentSession
	for _, info := range sessions.All() {
		if len(recent) == recentCount {
			break
		}
		if d.view.Listing.HasDirectory(info) {
			name := sessioncore.FileName(fmt.Sprintf("%02d-%s", len(recent)+1, info.DisplayName()))
			recent = append(recent, recentSession{name, info})
		}
	}
	return recent, nil
}

var _ = (fusefs.NodeLookuper)((*RecentDir)(nil))

// Lookup finds a link by its name.
func (d *RecentDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.enterSessionLink(ctx, name, func() (target, error) {
		info, err := d.find(name)
		if err != nil {
			return target{}, err
		}
		return target{path: linkTarget(info.DirName(), 1), st: info.Stat}, nil
	}, out)
}

// find returns the session that a link leads to.
func (d *RecentDir) find(name string) (*sessioncore.SessionInfo, error) {
	recent, err := d.recent()
	if err != nil {
		return nil, err
	}
	for _, r := range recent {
		if r.name == name {
			return r.info, nil
		}
	}
	return nil, fmt.Errorf("%w: not among the recent ones", sessioncore.ErrNotFound)
}

func (d *RecentDir) follow(parts []string) ([]string, error) {
	return followLink(parts, func(name string) (string, error) {
		info, err := d.find(name)
		if err != nil {
			return "", err
		}
		return info.DirName(), nil
	})
}

func (d *RecentDir) list() ([]item, error) {
	recent, err := d.recent()
	if err != nil {
		return nil, err
	}
	items := make([]item, 0, len(recent))
	for _, r := range recent {
		items = append(items, d.sessionLinkItem(r.name))
	}
	return items, nil
}

func (d *RecentDir) lookupItem(context.Context, item, *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return noLookup()
}
