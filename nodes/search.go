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
	if err != nil {
		return Child{}, err
	}
	isOfSession := d.session != nil
	if isOfSession && query.Archive() {
		return Child{}, fmt.Errorf("%w: in:archive is for the search of all sessions, in the root", search.ErrQuery)
	}
	view, err := d.view.Searched(query)
	if err != nil {
		return Child{}, err
	}
	makeNode := func() Node {
		directory := d.below(it.Name).inView(view)
		return &HitsDir{hits{
			aboutSessions: aboutSessions{directory},
			query:         query.Key(),
		}}
	}
	return Child{Kind: storage.KindDir, Make: makeNode}, nil
}

// slashes decodes the escapes of slashes in names, and of the escape itself.
var slashes = strings.NewReplacer("%2F", "/", "%2f", "/", "%25", "%")

// Searched returns the View of the sessions that a query searches: the archive's with in:archive, else v. The
// error wraps search.ErrQuery if there is no archive, or no agent of the query's name.
func (v *View) Searched(query *search.Query) (*View, error) {
	if !query.Archive() {
		return v, v.Searcher().CheckAgent(query)
	}
	if !v.hasArchive() {
		return nil, fmt.Errorf("%w: there is no archive of sessions here that in:archive could search", search.ErrQuery)
	}
	return v.Archive, v.Archive.Searcher().CheckAgent(query)
}

// hasArchive reports whether there is a directory of archived sessions.
func (v *View) hasArchive() bool {
	if v.Archive == nil {
		return false
	}
	_, err := v.Archive.Sessions.Storage().Stat("")
	return err == nil
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

// pathToRoot leads from entries/ and sessions/ to the directory where the paths of hits begin: from
// search/QUERY/sessions/ it is "../../..", and from by-file/a/b.go/sessions/ "../../../..".
func (h *hits) pathToRoot() string {
	if h.touched == "" {
		return "../../.."
	}
	return path.Join("..", strings.Repeat("../", 1+strings.Count(h.touched, "/")))
}

// part returns the hits of the same query for a directory in its own.
func (h *hits) part(name string) hits {
	return hits{
		aboutSessions: h.about(name),
		query:         h.query,
		touched:       h.touched,
	}
}

// search searches the sessions: all, or the one of the directory. It logs how many files it read, if any.
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

// last returns the last result of the query, which may be old, or nil if the Searcher has none.
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
	{
		Name: "edits.diff",
		Kind: storage.KindFile,
		Make: newEdits,
		Is:   (*HitsDir).hasEdits,
	},
	{
		Name: layout.Entries,
		Kind: storage.KindDir,
		Make: func(d *HitsDir) Node {
			return &HitLinksDir{hits: d.part(layout.Entries), entries: true}
		},
	},
	{
		Name: layout.HitsTable,
		Kind: storage.KindFile,
		Make: func(d *HitsDir) Node {
			return d.result(func(_ context.Context, r *search.Result, _ *budget.Hold) ([]byte, error) {
				return r.Table(), nil
			})
		},
	},
	{
		Name: layout.HitsSessions,
		Kind: storage.KindDir,
		Make: func(d *HitsDir) Node {
			return &HitLinksDir{hits: d.part(layout.HitsSessions)}
		},
	},
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

// result returns a file of the directory of hits. Each open and each stat searches. makeText makes the text of
// the hits, and counts the memory that it needs meanwhile on hold.
func (d *HitsDir) result(makeText func(context.Context, *search.Result, *budget.Hold) ([]byte, error)) Node {
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		result, err := d.search(ctx)
		if err != nil {
			return content{}, err
		}
		text, err := makeText(ctx, result, hold)
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
	return d.result(d.editsText)
}

// editsText returns the text of edits.diff: the diffs of the hits' edits with an empty line between them. hold
// counts the memory of the text.
func (d *HitsDir) editsText(ctx context.Context, result *search.Result, hold *budget.Hold) ([]byte, error) {
	touched, err := search.NewTouched(d.touched)
	if err != nil {
		return nil, err
	}
	open := func(h *search.Hit) (*sessioncore.Snapshot, error) {
		return d.view.Sessions.Session(h.File).Acquire(ctx)
	}
	edits, err := blame.Edits(ctx, result.Hits, touched, open)
	if err != nil {
		return nil, err
	}
	var text []byte
	for i, e := range slices.Backward(edits) {
		isFirst := i == len(edits)-1
		if !isFirst {
			text = append(text, '\n')
		}
		text = append(text, e.Diff(d.touched, e.When())...)
		err := hold.Resize(int64(cap(text)))
		if err != nil {
			return nil, err
		}
	}
	return text, nil
}

// HitLinksDir is entries/ or sessions/ in the directory of a query: links to the hits.
type HitLinksDir struct {
	hits
	entries bool // otherwise sessions
}

// name returns the name of the link to a hit. number counts from 1.
func (d *HitLinksDir) name(number int, h *search.Hit) string {
	if d.entries {
		return layout.HitName(number, h)
	}
	return layout.HitSessionName(number, h)
}

// target returns the target of the link to a hit.
func (d *HitLinksDir) target(h *search.Hit) string {
	to := d.pathToRoot()
	if d.session == nil {
		to = path.Join(to, h.Directory())
	}
	if d.entries {
		to = path.Join(to, h.Below())
	}
	return to
}

// Find finds a link. The number before the name's first hyphen tells the hit. A listed name keeps its target,
// also if there are newer hits since: the last result is used before a new search. The link has the owner of
// the session and the time of the hit.
func (d *HitLinksDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	digits, _, _ := strings.Cut(it.Name, "-")
	number, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || number == 0 {
		return Child{}, syscall.ENOENT
	}
	index := int(number) - 1
	hit := d.hitNamed(d.last(), index, it.Name)
	if hit == nil { // it was not listed, or is no hit of the last search
		result, err := d.search(ctx)
		if err != nil {
			return Child{}, err
		}
		hit = d.hitNamed(result, index, it.Name)
	}
	if hit == nil {
		return Child{}, syscall.ENOENT
	}
	session := d.view.Sessions.Session(hit.File)
	st, err := session.Probe(ctx)
	if err != nil {
		return Child{}, err
	}
	to := target{
		path: d.target(hit),
		st:   st,
		time: hit.Time,
	}
	return d.steadyLink(session, to), nil
}

// hitNamed returns the hit of a link's name in a result, nil for none. index is the hit's place when the name was
// listed. If newer hits have moved it since, it is the only hit that would have the name at that place.
func (d *HitLinksDir) hitNamed(r *search.Result, index int, name string) *search.Hit {
	if r == nil {
		return nil
	}
	linked := layout.LinkedHits(r.Hits, d.entries)
	isOther := func(h *search.Hit) bool {
		return d.name(index+1, h) != name
	}
	if index < len(linked) && !isOther(linked[index]) {
		return linked[index]
	}
	candidates := slices.DeleteFunc(linked, isOther)
	if len(candidates) == 1 {
		return candidates[0]
	}
	return nil
}

// List lists the links without attributes, as each might need another search.
func (d *HitLinksDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	result, err := d.search(ctx)
	if err != nil {
		return nil, err
	}
	linked := layout.LinkedHits(result.Hits, d.entries)
	items := make([]Item, len(linked))
	for i, h := range linked {
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

// fileDir returns the child called name of d, with the hits of the file of that name in the directory dir of /.
// The error is ENOENT for a path that no search accepts.
func (d *Directory) fileDir(dir, name string) (Child, error) {
	file := path.Join(dir, name)
	_, err := search.NewTouched(file)
	if err != nil {
		return Child{}, syscall.ENOENT
	}
	c := Child{
		Kind: storage.KindDir,
		Make: func() Node {
			return &HitsDir{hits{aboutSessions: d.about(name), touched: file}}
		},
	}
	return c, nil
}
