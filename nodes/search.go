package nodes

import (
	"context"
	"fmt"
	"path"
	"slices"
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

// SearchDir is search/, and that of a session: looking up a query finds the directory of its hits, and reads nothing. It
// lists nothing.
type SearchDir struct{ aboutSessions }

// SearchName is the directory that searches all sessions.
var SearchName = Name{layout.Search, syscall.S_IFDIR, func(view *View) fusefs.InodeEmbedder { return &SearchDir{newAboutSessions(view, nil)} }, nil}

func (d *SearchDir) noted() string { return layout.Search }

// find finds the directory of a query. A name that is none is EINVAL, with the reason in the root's last-error. Programs look for
// names with a leading dot in every directory; they get a directory that nobody has searched for.
func (d *SearchDir) find(_ context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	query, view, err := d.parse(it.name)
	return child{mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
		return &HitsDir{hits{newAboutSessions(view, d.session), query.Key(), ""}}
	}}, err
}

// slashes undoes how a name has a slash, and what that looks like.
var slashes = strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%")

// parse returns the query of a name, and the view of what it is about.
func (d *SearchDir) parse(name string) (*search.Query, *View, error) {
	query, err := search.ParseQuery(slashes.Replace(name))
	if err != nil {
		return nil, nil, err
	}
	if d.session != nil {
		if query.Archive() {
			return nil, nil, fmt.Errorf("%w: in:archive is for the search of all sessions, in the root", search.ErrQuery)
		}
		return query, d.view, d.view.Search.CheckAgent(query)
	}
	view, err := d.view.Searched(query)
	return query, view, err
}

// Searched returns the view of the sessions that a query is about.
func (v *View) Searched(query *search.Query) (*View, error) {
	if !query.Archive() {
		return v, v.Search.CheckAgent(query)
	}
	if archive := v.Archive; archive != nil {
		if _, err := archive.Sessions.Storage().Stat(""); err == nil {
			return archive, archive.Search.CheckAgent(query)
		}
	}
	return nil, fmt.Errorf("%w: there is no archive of sessions here that in:archive could search", search.ErrQuery)
}

// hits finds what the directory of a query shows, whatever the query is about. Nothing is kept here but what is in the
// name: the kernel remembers many. The Searcher remembers what was found.
type hits struct {
	aboutSessions
	query string // in by-file/ it is empty
	file  string // path
}

// matcher returns the query.
func (h *hits) matcher() (search.Matcher, error) {
	if h.file != "" {
		return search.NewTouched(h.file)
	}
	return search.ParseQuery(h.query)
}

// up leads from entries/ and sessions/ to where the paths of hits begin.
func (h *hits) up() string {
	if h.file == "" {
		return "../../.."
	}
	return path.Join("..", strings.Repeat("../", 1+strings.Count(h.file, "/")))
}

// another returns hits for another node of the same query.
func (h *hits) another() hits { return hits{h.alike(), h.query, h.file} }

// search searches the sessions.
func (h *hits) search(ctx context.Context) (_ *search.Result, err error) {
	searcher := h.view.Search
	before := searcher.FilesRead()
	defer func() {
		if n := searcher.FilesRead() - before; n > 0 || err != nil {
			h.view.Log.Debug("searched", "files", n)
		}
	}()
	m, err := h.matcher()
	if err != nil {
		return nil, err
	}
	if h.session == nil {
		return searcher.Search(ctx, m)
	}
	return searcher.SearchIn(ctx, m, h.session.Name())
}

// last returns what was found last, which may be old, nil if that is not known.
func (h *hits) last() *search.Result {
	m, err := h.matcher()
	if err != nil {
		return nil
	}
	in := ""
	if h.session != nil {
		in = h.session.Name()
	}
	return h.view.Search.Last(m, in)
}

// HitsDir is search/<query>/: a table of the hits, and links to them and to their sessions. To list it searches nothing.
type HitsDir struct{ hits }

var hitsNames = fixedNames[*HitsDir]{
	{layout.Entries, syscall.S_IFDIR, func(d *HitsDir) fusefs.InodeEmbedder { return &HitLinksDir{d.another(), true} }, nil},
	{layout.HitsTable, syscall.S_IFREG, newHitsTable, nil},
	{layout.HitsSessions, syscall.S_IFDIR, func(d *HitsDir) fusefs.InodeEmbedder { return &HitLinksDir{d.another(), false} }, nil},
}

func (d *HitsDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return hitsNames.find(ctx, d, it)
}

func (d *HitsDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	return hitsNames.list(ctx, d, &d.node), nil
}

// newHitsTable returns results.tsv: a line for each hit.
func newHitsTable(d *HitsDir) fusefs.InodeEmbedder {
	of := d.another()
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		result, err := of.search(ctx)
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
	entries bool // else sessions
}

func (d *HitLinksDir) name(number int, h *search.Hit) string {
	if d.entries {
		return layout.HitName(number, h)
	}
	return layout.HitSessionName(number, h)
}

// target returns where the link to a hit leads.
func (d *HitLinksDir) target(h *search.Hit) string {
	to := d.up()
	if d.session == nil {
		to = path.Join(to, h.Directory())
	}
	if d.entries {
		to = path.Join(to, h.Below())
	}
	return to
}

// find finds a link. A name that was listed leads to where it did then, also if there are newer hits since. The link has
// the owner of the session.
func (d *HitLinksDir) find(ctx context.Context, _ *sessioncore.Snapshot, it item, out *fuse.Attr) (child, error) {
	digits, _, _ := strings.Cut(it.name, "-")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 {
		return child{}, syscall.ENOENT
	}
	hit := d.at(d.last(), int(n)-1, it.name)
	if hit == nil {
		result, err := d.search(ctx)
		if err != nil {
			return child{}, err
		}
		if hit = d.at(result, int(n)-1, it.name); hit == nil {
			return child{}, syscall.ENOENT
		}
	}
	session := d.view.Sessions.Session(hit.File)
	st, err := session.Probe(ctx)
	if err != nil {
		return child{}, err
	}
	return d.fixedLink(session, target{d.target(hit), st, hit.Time}, out), nil
}

// at returns the hit of a number, from 0, if its link has that name, or the only one that had it before others came; else nil.
func (d *HitLinksDir) at(r *search.Result, n int, name string) *search.Hit {
	if r == nil {
		return nil
	}
	of, isOther := layout.LinkedHits(r.Hits, d.entries), func(h *search.Hit) bool { return d.name(n+1, h) != name }
	if n < len(of) && !isOther(of[n]) {
		return of[n]
	}
	if of = slices.DeleteFunc(of, isOther); len(of) == 1 {
		return of[0]
	}
	return nil
}

// list lists the links without what they are: where others search meanwhile, each might have to be searched for.
func (d *HitLinksDir) list(ctx context.Context, _ *sessioncore.Snapshot) ([]item, error) {
	result, err := d.search(ctx)
	if err != nil {
		return nil, err
	}
	of := layout.LinkedHits(result.Hits, d.entries)
	items := make([]item, len(of))
	for i, h := range of {
		items[i] = d.newItem(d.name(i+1, h), syscall.S_IFLNK)
		items[i].bare = true
	}
	return items, nil
}

// ByFileDir is by-file/, which stands for /: looking up a name in it finds the directory of that file. It lists nothing.
type ByFileDir struct{ aboutSessions }

// ByFileName is by-file/.
var ByFileName = Name{"by-file", syscall.S_IFDIR, func(view *View) fusefs.InodeEmbedder { return &ByFileDir{newAboutSessions(view, nil)} }, nil}

// find finds the directory of a file or directory in /, whether there is one or not.
func (d *ByFileDir) find(_ context.Context, _ *sessioncore.Snapshot, it item, _ *fuse.Attr) (child, error) {
	return d.view.fileDir("/", it.name)
}

// FileDir is the directory of a file below by-file/: what was done with it, or with what is below it. To look it up or
// to list it searches nothing.
type FileDir struct{ HitsDir }

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
	if _, err := search.NewTouched(file); err != nil {
		return child{}, syscall.ENOENT
	}
	return child{mode: syscall.S_IFDIR, make: func() fusefs.InodeEmbedder {
		return &FileDir{HitsDir{hits{newAboutSessions(v, nil), "", file}}}
	}}, nil
}
