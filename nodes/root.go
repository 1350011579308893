package nodes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// RootDir is the root of a mount: the visible directories of SOURCE, and generated names.
type RootDir struct {
	Directory
	names  func() fixedNames[*Directory]
	source storage.Files // has the attributes
	// Space returns the numbers of the file system behind the mount; nil if they are unknown.
	Space func() (Space, error)
	// Closed admits only the mounting user and root. A door's own rules may be coarser.
	Closed bool
}

// Space is the room of a file system, in blocks and in files.
type Space struct {
	BlockSize, FragmentSize uint32 // in bytes; blocks are counted in fragments
	Blocks, Free, Available uint64
	Files, FreeFiles        uint64
}

// NewRootDir returns the root of a mount of source, and makes it the root of view. Its names are made when the
// first is looked up.
func NewRootDir(view *View, source storage.Files, names func() []Name) *RootDir {
	view.source = source
	return &RootDir{
		Directory: NewDirectory(view),
		source:    source,
		names: sync.OnceValue(func() fixedNames[*Directory] {
			return slices.SortedFunc(slices.Values(names()), func(a, b Name) int {
				return strings.Compare(a.Name, b.Name)
			})
		}),
	}
}

// With returns another root with one more name and the same Space. It is not Closed.
func (d *RootDir) With(more Name) *RootDir {
	extended := NewRootDir(d.view, d.source, func() []Name {
		return append(slices.Clone(d.names()), more)
	})
	extended.Space = d.Space
	return extended
}

func (d *RootDir) Find(ctx context.Context, _ *sessioncore.Snapshot, it Item) (Child, error) {
	return d.names().find(ctx, &d.Directory, it)
}

func (d *RootDir) List(ctx context.Context, _ *sessioncore.Snapshot) ([]Item, error) {
	return d.names().list(ctx, &d.Directory), nil
}

// Stat returns the attributes of SOURCE, in a closed mount for this user alone.
func (d *RootDir) Stat(context.Context) (Attr, error) {
	st, err := d.source.Stat("")
	if err != nil {
		return Attr{}, err
	}
	a := d.view.dirAttr(st)
	if d.Closed {
		a = a.private()
		a.UID = uint32(os.Geteuid())
		a.GID = uint32(os.Getegid())
	}
	return a, nil
}

// View is the state that all nodes of a mount share. Its exported fields are constant.
type View struct {
	// Log gets the reasons for refusals and the errors of the packages below.
	Log *slog.Logger
	// Blobs are the blobs in SOURCE/blobs.
	Blobs document.Blobs
	// Writer writes to the sessions.
	Writer *writer.Writer
	// Fork makes a session that ends at an entry of another one, with a title unless that is "", and
	// returns its name. It is nil where no session can be made.
	Fork func(ctx context.Context, s *sessioncore.Session, id, title string) (name string, err error)
	// Listing finds sessions.
	Listing *listing.Listing
	// Sessions are the sessions that Searcher searches.
	Sessions *sessioncore.Store
	// Searcher returns the searcher of Sessions, which the first search makes.
	Searcher func() *search.Searcher
	// ReadOnly refuses all writes (-o ro).
	ReadOnly bool
	// Redacted reports that secrets are masked (-o redact).
	Redacted bool
	// BlobRefs keeps blob references in context.json (-o context-blobs=ref).
	BlobRefs bool
	// Memory bounds the memory for open files; nil has no limits.
	Memory *budget.Budget
	// Archive shows the archived sessions; nil if there are none.
	Archive *View
	// Frozen is the reason against all changes (ErrArchived, ErrForeign, ErrForkable); nil if there is none.
	Frozen error
	// Family are the listings that are searched for a parent, in order.
	Family listing.Listings
	// Agents are the agents of a mount of several, each with a directory; none in other mounts.
	Agents []ShownAgent
	// Root is the View of the mount's root; nil in that View itself.
	Root *View
	// Prices are the prices of answers without a cost (-o prices), set in the root's View.
	Prices report.Prices

	source   storage.Files // has the attributes of the root, in the root's View
	refusals refusals
}

// Archived reports whether v shows the archived sessions.
func (v *View) Archived() bool { return errors.Is(v.Frozen, ErrArchived) }

// unchangeable returns the reason against all changes, which may be the option of a read-only mount;
// nil if there is none.
func (v *View) unchangeable() error {
	switch {
	case v.Frozen != nil:
		return v.Frozen
	case v.Redacted:
		return errMasked
	case v.ReadOnly:
		return sessioncore.ErrReadOnly
	}
	return nil
}

// rootView returns the View of the mount's root.
func (v *View) rootView() *View {
	if v.Root != nil {
		return v.Root
	}
	return v
}

// rootStat returns the state of SOURCE.
func (v *View) rootStat() (storage.Stat, error) { return v.rootView().source.Stat("") }

// countedBlobs are blobs with a token that changes with their number.
type countedBlobs interface {
	State() (storage.Token, error)
}

// blobsState returns a token that changes when a blob is added or removed, nil if it is unknown.
func (v *View) blobsState() *storage.Token {
	store, ok := v.Blobs.(countedBlobs)
	if !ok {
		return nil
	}
	state, err := store.State()
	if err != nil && !storage.IsMissing(err) {
		return nil
	}
	return &state
}

// ShownAgent is one of several agents with sessions in a mount.
type ShownAgent struct {
	Name string // of its directory in sessions/
	View *View
	// Files are the files in that directory.
	Files storage.Files
}

// AgentsName is the name sessions/ of a mount of several agents, with one directory for each. all has the
// files of all of them, for the attributes of sessions/.
func AgentsName(all storage.Files, agents ...ShownAgent) Name {
	var dirs fixedNames[*Directory]
	for _, a := range agents {
		dirs = append(dirs, Name{
			Name: a.Name,
			Kind: storage.KindDir,
			Make: func(d *Directory) Node {
				return newSourceDir(d.below(a.Name).inView(a.View), a.Files, a.View.Sessions)
			},
		})
	}
	return Name{
		Name: layout.Sessions,
		Kind: storage.KindDir,
		Make: func(d *Directory) Node {
			return &RootDir{
				Directory: d.below(layout.Sessions),
				names:     func() fixedNames[*Directory] { return dirs },
				source:    all,
			}
		},
	}
}

// viewFor returns the View for a new session of an agent. "" stands for the first agent that sessions can be
// made for. The error is the View's Frozen, ErrForeign if no agent is left, or names the agents if there is none
// of that name.
func (v *View) viewFor(agent string) (*View, error) {
	if agent == "" {
		return v.defaultView()
	}
	var writable []string
	for _, a := range v.Agents {
		if a.Name == agent {
			return a.View, a.View.Frozen
		}
		if a.View.Frozen == nil {
			writable = append(writable, a.Name)
		}
	}
	want := "none, as sessions/ has those of one agent alone"
	if len(v.Agents) > 0 {
		want = "one of: " + strings.Join(writable, ", ")
	}
	return nil, &writer.FieldError{
		Field: "agent",
		Want:  want,
		Got:   fmt.Sprintf("%.80q", agent),
	}
}

// defaultView is viewFor for "".
func (v *View) defaultView() (*View, error) {
	if len(v.Agents) == 0 {
		return v, v.Frozen
	}
	for _, a := range v.Agents {
		if a.View.Frozen == nil {
			return a.View, nil
		}
	}
	return nil, ErrForeign
}

// newSession makes a session for a line of new-session, and returns the path of its directory from the mount's
// root.
func (v *View) newSession(ctx context.Context, line string) (path string, err error) {
	spec, err := writer.ParseNewSession([]byte(line))
	if err != nil {
		return "", err
	}
	owner, err := v.viewFor(spec.Agent)
	if err != nil {
		return "", err
	}
	file, err := owner.Writer.NewSession(ctx, spec)
	if err != nil {
		return "", err
	}
	return owner.Listing.PathOf(file), nil
}
