package nodes

import (
	"context"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	fusefs "github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/search"
)

// hits finds what the directory of a query shows, whatever the query is about. Nothing is kept here: the Searcher
// remembers.
type hits struct {
	aboutSessions
	searcher *search.Searcher
	matcher  search.Matcher
	// up leads from entries/ and sessions/ to where the paths of hits begin.
	up string
}

// HitsDir is search/<query>/: a table of the hits, and links to them and to their sessions. To list it searches nothing.
type HitsDir struct{ hits }

// newHitsDir returns the directory of what m finds; up leads from it to where the paths of hits begin.
func newHitsDir(view *View, m search.Matcher, session *sessioncore.Session, up string) *HitsDir {
	return &HitsDir{hits{aboutSessions{directory{node{view: view}}, session}, view.Search, m, path.Join("..", up)}}
}

// find searches the sessions.
func (h *hits) find(ctx context.Context) (_ *search.Result, err error) {
	before := h.searcher.FilesRead()
	defer func() {
		if n := h.searcher.FilesRead() - before; n > 0 || err != nil {
			h.view.Log.Debug("searched", "files", n)
		}
	}()
	if h.session == nil {
		return h.searcher.Search(ctx, h.matcher)
	}
	return h.searcher.SearchIn(ctx, h.matcher, h.session.Name())
}

// last returns what was found last, which may be old, nil if that is not known.
func (h *hits) last() *search.Result {
	if h.session == nil {
		return h.searcher.Last(h.matcher, "")
	}
	return h.searcher.Last(h.matcher, h.session.Name())
}

func (d *HitsDir) names() []Name {
	return []Name{
		{Name: layout.Entries, Mode: syscall.S_IFDIR, Make: func() fusefs.InodeEmbedder { return &HitLinksDir{d.another(), entryLinks} }},
		{Name: layout.HitsTable, Mode: syscall.S_IFREG, Make: func() fusefs.InodeEmbedder { of := d.another(); return newHitsTable(&of) }},
		{Name: layout.HitsSessions, Mode: syscall.S_IFDIR, Make: func() fusefs.InodeEmbedder { return &HitLinksDir{d.another(), sessionLinks} }},
	}
}

// another returns hits for another node of the same query.
func (h *hits) another() hits {
	return hits{aboutSessions{directory{node{view: h.view}}, h.session}, h.searcher, h.matcher, h.up}
}

var _ = (fusefs.NodeLookuper)((*HitsDir)(nil))

// Lookup finds one of the three names.
func (d *HitsDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	for _, n := range d.names() {
		if n.Name == name {
			return d.enterName(ctx, n, out)
		}
	}
	return nil, syscall.ENOENT
}

func (d *HitsDir) list(context.Context) ([]item, error) {
	names := d.names()
	items := make([]item, len(names))
	for i, n := range names {
		items[i] = d.newItem(kindStatic, n.Name, n.Mode)
	}
	return items, nil
}

// lookupItem leaves the table out: its size takes the search. The kernel then looks it up itself.
func (d *HitsDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	if it.name == layout.HitsTable {
		return nil, syscall.ENOENT
	}
	return d.Lookup(ctx, it.name, out)
}

// newHitsTable returns results.tsv: a line for each hit.
func newHitsTable(of *hits) *ContentFile {
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		result, err := of.find(ctx)
		if err != nil {
			return content{}, err
		}
		st, err := of.stat(ctx)
		if err != nil {
			return content{}, err
		}
		c := textContent(result.Table(), st)
		c.at = time.Unix(0, result.Modified)
		return c, hold.Resize(c.size)
	}
	return &ContentFile{node: node{view: of.view}, render: render}
}

// HitLinksDir is entries/ or sessions/ in the directory of a query: links to what was found.
type HitLinksDir struct {
	hits
	kind hitLinkKind
}

// hitLinkKind is what a HitLinksDir has.
type hitLinkKind struct {
	// of returns the hits that have a link, in the order of their numbers.
	of func(*search.Result) []*search.Hit
	// name returns the name of a link, and the others the path to which it leads, in the mount or in the session.
	name      func(number int, h *search.Hit) string
	inMount   func(h *search.Hit) string
	inSession func(h *search.Hit) string
}

var entryLinks = hitLinkKind{
	func(r *search.Result) []*search.Hit {
		all := make([]*search.Hit, len(r.Hits))
		for i := range r.Hits {
			all[i] = &r.Hits[i]
		}
		return all
	},
	layout.HitName, (*search.Hit).Path, (*search.Hit).Below,
}

var sessionLinks = hitLinkKind{
	func(r *search.Result) []*search.Hit { return layout.HitSessions(r.Hits) },
	layout.HitSessionName, (*search.Hit).Directory, func(*search.Hit) string { return "" },
}

// hitLink is a link to a hit, or to its session.
type hitLink struct {
	name, target string
	hit          *search.Hit
}

func (d *HitLinksDir) link(n int, h *search.Hit) hitLink {
	to := d.kind.inMount(h)
	if d.session != nil {
		to = d.kind.inSession(h)
	}
	return hitLink{d.kind.name(n+1, h), path.Join(d.up, to), h}
}

var _ = (fusefs.NodeLookuper)((*HitLinksDir)(nil))

// Lookup finds a link. A name that was listed leads to where it did then, also if there are newer hits since.
func (d *HitLinksDir) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	digits, _, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 {
		return nil, syscall.ENOENT
	}
	link, ok := d.at(d.last(), int(n)-1, name)
	if !ok {
		result, err := d.find(ctx)
		if err != nil {
			return nil, d.view.fail("lookup", d.path()+"/"+name, err)
		}
		if link, ok = d.at(result, int(n)-1, name); !ok {
			return nil, syscall.ENOENT
		}
	}
	return d.enterLink(ctx, link, out)
}

// at returns the link of a number, from 0, if it has that name.
func (d *HitLinksDir) at(r *search.Result, n int, name string) (hitLink, bool) {
	if r == nil {
		return hitLink{}, false
	}
	of := d.kind.of(r)
	if n >= len(of) {
		return hitLink{}, false
	}
	link := d.link(n, of[n])
	return link, link.name == name
}

func (d *HitLinksDir) enterLink(ctx context.Context, link hitLink, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	session := d.view.Sessions.Session(link.hit.File)
	st, err := session.Probe(ctx)
	if err != nil {
		return nil, d.view.fail("lookup", d.path()+"/"+link.name, err)
	}
	id := stableAttr(d.StableAttr(), kindPathLink, link.name, syscall.S_IFLNK)
	return d.enterFixedLink(ctx, session, id, link.name, target{link.target, st, link.hit.Time}, out)
}

func (d *HitLinksDir) list(ctx context.Context) ([]item, error) {
	result, err := d.find(ctx)
	if err != nil {
		return nil, err
	}
	of := d.kind.of(result)
	items := make([]item, len(of))
	for i, h := range of {
		items[i] = d.newItem(kindPathLink, d.kind.name(i+1, h), syscall.S_IFLNK)
	}
	return items, nil
}

func (d *HitLinksDir) lookupItem(ctx context.Context, it item, out *fuse.EntryOut) (*fusefs.Inode, syscall.Errno) {
	return d.Lookup(ctx, it.name, out)
}
