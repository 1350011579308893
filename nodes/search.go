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

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/blame"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
)

// SearchDir is search/ of the root or of a session: a lookup of a query finds the directory of its
// hits, without a search. It lists nothing.
type SearchDir struct{ aboutSessions }

// SearchName is the directory that searches all sessions.
var SearchName = Name{Name: layout.Search, Kind: storage.KindDir, Make: func(d *Directory) Node {
	return &SearchDir{d.about(layout.Search)}
}}

func (d *SearchDir) Noted() string { return layout.Search }

// Find finds the directory of a query. A name that is no query is EINVAL, with the reason in the
// root's last-error. Names with a leading dot, which programs look up in every directory, get a
// directory without a search.
func (d *SearchDir) Find(_ context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	query, err := search.ParseQuery(slashes.Replace(it.Name))
	if err == nil && d.session != nil && query.Archive() {
		err = fmt.Errorf("%w: in:archive is for the search of all sessions, in the root", search.ErrQuery)
	}
	if err != nil {
		return Child{}, err
	}
	view, err := d.view.Searched(query)
	return Child{Kind: storage.KindDir, Make: func() Node {
		return &HitsDir{hits{aboutSessions{d.below(it.Name).of(view)}, query.Key(), ""}}
	}}, err
}

// slashes decodes the escapes of slashes in names, and of the escape itself.
var slashes = strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%")

// Searched returns the View of the sessions of a query.
func (v *View) Searched(query *search.Query) (*View, error) {
	if !query.Archive() {
		return v, v.Searcher().CheckAgent(query)
	}
	archive := v.Archive
	if archive != nil {
		_, err := archive.Sessions.Storage().Stat("")
		if err == nil {
			return archive, archive.Searcher().CheckAgent(query)
		}
	}
	return nil, fmt.Errorf("%w: there is no archive of sessions here that in:archive could search", search.ErrQuery)
}

// hits is the base of the directory of a query, of any kind. It keeps nothing but the name, as
// doors keep many nodes. The Searcher caches results.
type hits struct {
	aboutSessions
	query   string // "" in by-file/
	touched string // path of the file in by-file/
}

// matcher parses the query.
func (h *hits) matcher() (search.Matcher, error) {
	if h.touched != "" {
		return search.NewTouched(h.touched)
	}
	return search.ParseQuery(h.query)
}

// up leads from entries/ and sessions/ to the directory to which the paths of hits are relative.
func (h *hits) up() string {
	if h.touched == "" {
		return "../../.."
	}
	return path.Join("..", strings.Repeat("../", 1+strings.Count(h.touched, "/")))
}

// part returns hits for a directory in that of the query.
func (h *hits) part(name string) hits { return hits{h.about(name), h.query, h.touched} }

// search searches the sessions.
func (h *hits) search(ctx context.Context) (_ *search.Result, err error) {
	searcher := h.view.Searcher()
	before := searcher.FilesRead()
	defer func() {
		n := searcher.FilesRead() - before
		if n > 0 || err != nil {
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

// last returns the last result, which may be old, or nil.
func (h *hits) last() *search.Result {
	m, err := h.matcher()
	if err != nil {
		return nil
	}
	return h.view.Searcher().Last(m, h.sessionName())
}

// HitsDir is search/<query>/, or the directory of a file below by-file/ for the calls that touched it,
// or files below it: a table of the hits, and links to them. Lookups and listings search nothing.
type HitsDir struct{ hits }

var hitsNames = fixedNames[*HitsDir]{
	{"edits.diff", storage.KindFile, newEdits, (*HitsDir).hasEdits},
	{layout.Entries, storage.KindDir, func(d *HitsDir) Node { return &HitLinksDir{d.part(layout.Entries), true} }, nil},
	{layout.HitsTable, storage.KindFile, func(d *HitsDir) Node {
		return d.result(func(_ context.Context, r *search.Result, _ *budget.Hold) ([]byte, error) { return r.Table(), nil })
	}, nil},
	{layout.HitsSessions, storage.KindDir, func(d *HitsDir) Node {
		return &HitLinksDir{d.part(layout.HitsSessions), false}
	}, nil},
}

// Find finds a fixed name, else in by-file/ the directory of a file below.
func (d *HitsDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	c, err := hitsNames.find(ctx, d, it)
	if err != nil && d.touched != "" {
		return d.fileDir(d.touched, it.Name)
	}
	return c, err
}

func (d *HitsDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	return hitsNames.list(ctx, d), nil
}

func (d *HitsDir) hasEdits(context.Context) Presence { return presentIf(d.touched != "") }

// result returns a file whose text is made of the hits.
func (d *HitsDir) result(text func(context.Context, *search.Result, *budget.Hold) ([]byte, error)) Node {
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		result, err := d.search(ctx)
		if err != nil {
			return content{}, err
		}
		text, err := text(ctx, result, hold)
		if err != nil {
			return content{}, err
		}
		st, err := d.stat(ctx)
		if err != nil {
			return content{}, err
		}
		c := textContent(text, st)
		c.at = time.Unix(0, result.Modified)
		c.private = d.session == nil
		return c, hold.Resize(int64(cap(text)))
	}
	return &ContentFile{node: d.file(), render: render}
}

// newEdits returns edits.diff: the edits of the file by agents as diffs, newest first.
func newEdits(d *HitsDir) Node {
	return d.result(func(ctx context.Context, result *search.Result, hold *budget.Hold) (text []byte, err error) {
		touched, err := search.NewTouched(d.touched)
		if err != nil {
			return nil, err
		}
		edits, err := blame.Edits(ctx, result.Hits, touched, func(h *search.Hit) (*sessioncore.Snapshot, error) {
			return d.view.Sessions.Session(h.File).Acquire(ctx)
		})
		if err != nil {
			return nil, err
		}
		for i, e := range slices.Backward(edits) {
			if i < len(edits)-1 {
				text = append(text, '\n')
			}
			text = append(text, e.Diff(d.touched, e.When())...)
			err := hold.Resize(int64(cap(text)))
			if err != nil {
				return nil, err
			}
		}
		return text, nil
	})
}

// HitLinksDir is entries/ or sessions/ in the directory of a query: links to the hits.
type HitLinksDir struct {
	hits
	entries bool // otherwise sessions
}

func (d *HitLinksDir) name(number int, h *search.Hit) string {
	if d.entries {
		return layout.HitName(number, h)
	}
	return layout.HitSessionName(number, h)
}

// target returns the target of the link to a hit.
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

// Find finds a link. A listed name keeps its target, also if there are newer hits since. The link
// has the owner of the session.
func (d *HitLinksDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	digits, _, _ := strings.Cut(it.Name, "-")
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || n == 0 {
		return Child{}, syscall.ENOENT
	}
	hit := d.at(d.last(), int(n)-1, it.Name)
	if hit == nil {
		result, err := d.search(ctx)
		if err != nil {
			return Child{}, err
		}
		hit = d.at(result, int(n)-1, it.Name)
		if hit == nil {
			return Child{}, syscall.ENOENT
		}
	}
	session := d.view.Sessions.Session(hit.File)
	st, err := session.Probe(ctx)
	if err != nil {
		return Child{}, err
	}
	return d.steadyLink(session, target{d.target(hit), st, hit.Time}), nil
}

// at returns the hit of a number, from 0, if its link has that name; else the only hit with that
// name before newer ones; else nil.
func (d *HitLinksDir) at(r *search.Result, n int, name string) *search.Hit {
	if r == nil {
		return nil
	}
	of := layout.LinkedHits(r.Hits, d.entries)
	isOther := func(h *search.Hit) bool {
		return d.name(n+1, h) != name
	}
	if n < len(of) && !isOther(of[n]) {
		return of[n]
	}
	of = slices.DeleteFunc(of, isOther)
	if len(of) == 1 {
		return of[0]
	}
	return nil
}

// List lists the links without attributes, as each might need another search.
func (d *HitLinksDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	result, err := d.search(ctx)
	if err != nil {
		return nil, err
	}
	of := layout.LinkedHits(result.Hits, d.entries)
	items := make([]Item, len(of))
	for i, h := range of {
		items[i] = Item{
			Name: d.name(i+1, h),
			Kind: storage.KindLink,
			Bare: true,
		}
	}
	return items, nil
}

// ByFileDir is by-file/, for /: a lookup finds the directory of a file. It lists nothing.
type ByFileDir struct{ aboutSessions }

// ByFileName is by-file/ as a name.
var ByFileName = Name{Name: "by-file", Kind: storage.KindDir, Make: func(d *Directory) Node {
	return &ByFileDir{d.about("by-file")}
}}

// Find finds the directory of a path in /, whether it exists or not.
func (d *ByFileDir) Find(_ context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	return d.fileDir("/", it.Name)
}

// fileDir returns the directory in d of a file, whose own directory is dir.
func (d *Directory) fileDir(dir, name string) (Child, error) {
	file := path.Join(dir, name)
	_, err := search.NewTouched(file)
	if err != nil {
		return Child{}, syscall.ENOENT
	}
	return Child{Kind: storage.KindDir, Make: func() Node {
		return &HitsDir{hits{d.about(name), "", file}}
	}}, nil
}
