package nodes

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// ContentFile is a file that is made as a whole when it is opened: index.jsonl, usage.jsonl,
// lost.tsv, results.tsv, prompts, last-error and owner. All reads of one open file see one version.
type ContentFile struct {
	node
	// render makes the content and accounts for it in hold; after an error hold is undefined.
	render func(ctx context.Context, hold *budget.Hold) (content, error)
	// measure is render for a stat, which needs no text; nil means render.
	measure func(ctx context.Context, hold *budget.Hold) (content, error)
}

// content is the content of a ContentFile.
type content struct {
	text io.ReaderAt
	size int64        // in bytes
	stat storage.Stat // of the file or directory behind it
	at   time.Time    // of the last change; zero if stat has it
	// private reports that it shows parts of all sessions, or typed text; see Attr.private.
	private bool
}

// textContent returns the content that is text.
func textContent(text []byte, st storage.Stat) content {
	return content{text: bytes.NewReader(text), size: int64(len(text)), stat: st}
}

// privateText returns the content that is text, for the owner alone.
func privateText(text []byte, st storage.Stat) content {
	c := textContent(text, st)
	c.private = true
	return c
}

// Stat returns the attributes of the content that an open would make, which it makes or measures for that.
func (f *ContentFile) Stat(ctx context.Context) (Attr, error) {
	hold := f.view().Memory.Hold()
	defer hold.Close()
	measure := f.render
	if f.measure != nil {
		measure = f.measure
	}
	c, err := measure(ctx, &hold)
	return c.attr(), err
}

// attr returns the attributes of a file with the content.
func (c *content) attr() Attr {
	a := fileAttr(c.stat, c.size)
	if c.private {
		a = a.private()
	}
	if !c.at.IsZero() {
		a = a.withTimes(c.at, c.at)
	}
	return a
}

// Open makes the content. Its memory counts until the handle is closed.
func (f *ContentFile) Open(ctx context.Context, _ int) (Handle, error) {
	hold := f.view().Memory.Hold()
	c, err := f.render(ctx, &hold)
	if err != nil {
		hold.Close()
		return nil, err
	}
	return &contentHandle{content: c, hold: hold}, nil
}

// contentHandle is an open ContentFile.
type contentHandle struct {
	content
	hold budget.Hold
}

func (h *contentHandle) Stat(context.Context) (Attr, error) { return h.attr(), nil }

func (h *contentHandle) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return h.text.ReadAt(p, off)
}

func (h *contentHandle) Close() { h.hold.Close() }

// IndexName is index.jsonl: one line for each session, newest first (docs/design.md section 5). Its
// size requires reading the beginning of every session, so it is not listed.
var IndexName = Name{
	Name: "index.jsonl", Kind: storage.KindFile, Make: newIndexFile, Is: hidden[*Directory](),
}

// newIndexFile returns index.jsonl. A stat computes its size without the text.
func newIndexFile(d *Directory) Node {
	measure := func(ctx context.Context, _ *budget.Hold) (content, error) {
		sessions, err := d.view.Listing.Sessions(ctx)
		if err != nil {
			return content{}, err
		}
		return content{size: sessions.IndexSize(), stat: sessions.Stat(), private: true}, nil
	}
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		sessions, err := d.view.Listing.Sessions(ctx)
		if err == nil {
			err = hold.Resize(sessions.IndexSize())
		}
		if err != nil {
			return content{}, err
		}
		return privateText(sessions.Index(), sessions.Stat()), nil
	}
	return &ContentFile{node: d.file(), render: render, measure: measure}
}

// OverAllName is a file about all sessions, such as usage.jsonl (docs/design.md section 5), with the text that
// makeText returns. makeText counts the memory that it needs meanwhile on the hold. The size and the content
// require reading every changed session, so the file is not listed.
func OverAllName(name string, makeText func(context.Context, []*listing.Info, *budget.Hold) ([]byte, error)) Name {
	makeNode := func(d *Directory) Node {
		render := func(ctx context.Context, hold *budget.Hold) (content, error) {
			sessions, err := d.view.Listing.Sessions(ctx)
			if err != nil {
				return content{}, err
			}
			text, err := makeText(ctx, sessions.All(), hold)
			if err != nil {
				return content{}, err
			}
			return privateText(text, sessions.Stat()), hold.Resize(int64(len(text)))
		}
		return &ContentFile{node: d.file(), render: render}
	}
	return Name{
		Name: name,
		Kind: storage.KindFile,
		Make: makeNode,
		Is:   hidden[*Directory](),
	}
}

//go:embed readme.txt
var readme []byte

// ReadmeName is README: how to begin.
var ReadmeName = Name{
	Name: "README",
	Kind: storage.KindFile,
	Make: func(d *Directory) Node {
		render := func(context.Context, *budget.Hold) (content, error) {
			st, err := d.view.rootStat()
			return textContent(readme, st), err
		}
		return &ContentFile{node: d.file(), render: render}
	},
}

// LastErrorName is last-error of a mount's root: the last refusal of a write or lookup outside of sessions.
var LastErrorName = Name{Name: "last-error", Kind: storage.KindFile, Make: newLastErrorFile}

// newLastErrorFile returns last-error of a session or the root: the reason and the time of the last refusal, and
// a hint. It is empty after the next write that succeeds.
func newLastErrorFile(d *Directory) Node {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		st, err := d.view.rootStat()
		if d.session != nil {
			st, err = d.session.Probe(ctx)
		} else if d.view.Memory.Full() == "" {
			d.view.clearLookup(memoryFull) // there is memory again
		}
		name := d.sessionName()
		text, at := d.view.refusalsOf(name).get(name)
		c := textContent([]byte(text), st)
		c.at = at
		c.private = name == outside
		return c, err
	}
	return &ContentFile{node: d.file(), render: render}
}

// makeOwner makes …/<session>/owner: one line about the client that has the session open, or
// nothing. Each open and each stat searches /proc, as clients come and go. So the file is not
// listed: a crawler would cause a search for each session.
func makeOwner(d *SessionDir) Node {
	render := func(ctx context.Context, _ *budget.Hold) (content, error) {
		st, err := d.session.Probe(ctx)
		if err != nil {
			return content{}, err
		}
		owner, err := d.view.Writer.Owner(ctx, d.session)
		if err != nil || owner == nil {
			return privateText(nil, st), err
		}
		text, err := json.Marshal(owner)
		return privateText(append(text, '\n'), st), err
	}
	return &ContentFile{node: d.file(), render: render}
}

// hasOwner reports whether there is an owner, unlisted. A redacted mount does not show its clients,
// and archived sessions have none.
func (d *SessionDir) hasOwner(context.Context) Presence {
	if d.view.Redacted || d.view.Archived() {
		return Absent
	}
	return Hidden
}

// LastResultName is last-result: the answers to the last written lines, for doors through which an
// open file is not read back.
func LastResultName(last func() []byte) Name {
	return Name{
		Name: "last-result",
		Kind: storage.KindFile,
		Make: func(d *Directory) Node {
			render := func(context.Context, *budget.Hold) (content, error) {
				st, err := d.view.rootStat()
				return privateText(last(), st), err
			}
			return &ContentFile{node: d.file(), render: render}
		},
	}
}

// HistoryDir is history/: the client's prompt history. Without one it is an empty directory with
// the attributes of SOURCE.
type HistoryDir struct {
	Directory
	prompts history.History
}

// HistoryName is the directory of the prompt history.
func HistoryName(prompts func() history.History) Name {
	return Name{
		Name: "history",
		Kind: storage.KindDir,
		Make: func(d *Directory) Node {
			return &HistoryDir{Directory: d.below("history"), prompts: prompts()}
		},
	}
}

var historyNames = fixedNames[*HistoryDir]{
	{
		Name: "prompts.jsonl",
		Kind: storage.KindFile,
		Make: func(d *HistoryDir) Node {
			return newPromptsFile(&d.Directory, d.prompts, "")
		},
	},
	{
		Name: "search",
		Kind: storage.KindDir,
		Make: func(d *HistoryDir) Node {
			return &HistorySearchDir{Directory: d.below("search"), prompts: d.prompts}
		},
	},
}

func (d *HistoryDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	return historyNames.find(ctx, d, it)
}

// List lists the fixed names, none if there is no history.
func (d *HistoryDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	_, err := d.prompts.State()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return historyNames.list(ctx, d), nil
}

// Stat returns the attributes of the history, or of SOURCE if there is none.
func (d *HistoryDir) Stat(context.Context) (Attr, error) {
	state, err := d.prompts.State()
	st := state.Stat()
	if errors.Is(err, fs.ErrNotExist) {
		st, err = d.view.rootStat()
	}
	return d.view.dirAttr(st).private(), err
}

// HistorySearchDir is history/search/: a lookup of a query finds the file of the matching prompts.
type HistorySearchDir struct {
	Directory
	prompts history.History
}

func (d *HistorySearchDir) Stat(context.Context) (Attr, error) {
	state, err := d.prompts.State()
	return d.view.dirAttr(state.Stat()).private(), err
}

func (d *HistorySearchDir) Noted() string { return "history/search" }

// Find makes the file of a query. Its size takes a run of the query. A name that is not a query is
// EINVAL, with the reason in the root's last-error. A name with a leading dot, which programs look
// up in every directory (.git, .gitignore), is ENOENT.
func (d *HistorySearchDir) Find(_ context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	if strings.HasPrefix(it.Name, ".") {
		return Child{}, syscall.ENOENT
	}
	return Child{Kind: storage.KindFile, Make: func() Node {
		return newPromptsFile(&d.Directory, d.prompts, it.Name)
	}}, nil
}

// newPromptsFile returns history/prompts.jsonl, or history/search/<query> for the query match:
// prompts as JSON lines, newest first. The handle holds the content; the node keeps only its size, for a stat
// in the same state of the history.
func newPromptsFile(dir *Directory, prompts history.History, match string) *ContentFile {
	type knownSize struct {
		state history.State
		size  int64
	}
	var last atomic.Pointer[knownSize]
	render := func(ctx context.Context, hold *budget.Hold) (content, error) {
		rendered, err := prompts.Render(ctx, match, hold)
		if err != nil {
			return content{}, err
		}
		c := privateText(rendered.Text, rendered.State.Stat())
		if rendered.Settled { // otherwise the history may change without another state
			last.Store(&knownSize{state: rendered.State, size: c.size})
		}
		return c, nil
	}
	measure := func(ctx context.Context, hold *budget.Hold) (content, error) {
		state, err := prompts.State()
		if err != nil {
			return content{}, err
		}
		known := last.Load()
		if known != nil && known.state == state {
			return content{size: known.size, stat: state.Stat(), private: true}, nil
		}
		return render(ctx, hold)
	}
	return &ContentFile{node: dir.file(), render: render, measure: measure}
}
