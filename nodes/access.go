package nodes

import (
	"context"
	"fmt"
	"path"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/sessioncore/access"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/storage"
)

// Access decides what other users may do, where they are let in (-o allow_other; docs/design.md section 8). The kernel
// checks the modes that the mount shows. That is not enough: it does not see the directories above SOURCE and the
// access control lists, and not what a file was made from. So each request of another user is checked once more here,
// by the files behind it.
type Access struct {
	// User runs the daemon. Like root he is not checked: the daemon reads nothing that he may not read.
	User uint32
	// Source is SOURCE, and the others are directories of it. Dir and the fields of that name are their absolute paths
	// without links.
	Source      storage.Storage
	SourceDir   string
	Sessions    storage.Storage
	SessionsDir string
	BlobsDir    string
	// File returns the name of the file behind a session file of Sessions; nil if that is the same.
	File func(name string) string

	mu   sync.Mutex // guards told
	told tellsAll
}

// tellsAll is whether the shown modes tell everything about a path, as it was at a time.
type tellsAll struct {
	path  string
	at    time.Time
	modes bool
}

// caller returns the user for whom a request is answered; nil if he needs no check.
func (a *Access) caller(ctx context.Context) *access.Caller {
	if a == nil {
		return nil
	}
	if c, ok := access.From(ctx); ok {
		return c
	}
	who, ok := fuse.FromContext(ctx)
	if !ok || who.Uid == 0 || who.Uid == a.User {
		return nil
	}
	return access.OfProcess(who.Uid, who.Gid, who.Pid)
}

// forCaller returns the context for what is done for the caller of a request.
func (a *Access) forCaller(ctx context.Context) context.Context {
	if a == nil {
		return ctx
	}
	return access.With(ctx, a.caller(ctx))
}

// Guard is the sessioncore.Guard of the mount.
func (a *Access) Guard(ctx context.Context, name string, st storage.Stat) error {
	c := a.caller(ctx)
	if c == nil {
		return nil
	}
	return a.maySession(c, name, &st, access.Read)
}

// maySession asks whether a user has rights to a session file; st is the file that is meant, or nil.
func (a *Access) maySession(c *access.Caller, name string, st *storage.Stat, want access.Rights) error {
	return mayFile(c, a.Sessions, a.SessionsDir, a.file(name), st, want)
}

func (a *Access) file(name string) string {
	if a.File == nil {
		return name
	}
	return a.File(name)
}

// mayFile asks whether a user has rights to a file in a storage whose root is dir; st is the file that is meant, or nil.
func mayFile(c *access.Caller, s storage.Storage, dir, name string, st *storage.Stat, want access.Rights) error {
	file := path.Join(dir, name)
	id, err := c.May(file, want)
	if storage.IsMissing(err) && s.Pending(name) {
		now, err := s.Stat(name)
		if err != nil {
			return err
		}
		return c.MayAs(file, now, want)
	}
	if err == nil && st != nil && !id.SameObject(st.Token) {
		err = fmt.Errorf("%w: %s was replaced", storage.ErrStale, name)
	}
	return err
}

// owns asks whether a user owns SOURCE: what is made of all sessions is for him alone.
func (a *Access) owns(c *access.Caller) error {
	st, err := a.Source.Stat("")
	if err == nil && st.UID != c.UID {
		err = fmt.Errorf("%w: this is made of all sessions, and for the owner of SOURCE alone", syscall.EACCES)
	}
	return err
}

// ownerOnly is owns for the caller of a request.
func (a *Access) ownerOnly(ctx context.Context) error {
	if c := a.caller(ctx); c != nil {
		return a.owns(c)
	}
	return nil
}

// mayBlobs asks whether the caller may read the blobs that a document shows. One that looked for blobs also tells
// which there are.
func (a *Access) mayBlobs(ctx context.Context, doc *document.Document) error {
	c := a.caller(ctx)
	if c == nil || !doc.HasBlobs() {
		return nil
	}
	if _, err := c.May(a.BlobsDir, access.Search); storage.IsMissing(err) {
		return nil
	} else if err != nil {
		return err
	}
	for _, hash := range doc.BlobHashes() {
		if _, err := c.May(path.Join(a.BlobsDir, hash), access.Read); err != nil {
			return err
		}
	}
	return nil
}

// backed is a directory that shows the file or directory at a path below root, which is SOURCE or what a name in it
// stands for.
type backed interface {
	behind() (name, root string)
}

// cacheOf is the cacheRule of a node. Where the modes that a directory shows do not tell everything, the kernel must ask
// about it each time that a user goes through it.
func (a *Access) cacheOf(n attributer) cacheRule {
	rule := n.cache()
	if a == nil {
		return rule
	}
	if d, ok := n.(backed); ok && !a.modesTellAll(d.behind()) {
		rule.attr = 0
	}
	return rule
}

func (a *Access) modesTellAll(name, root string) bool {
	a.mu.Lock()
	told := a.told
	a.mu.Unlock()
	if told.path == name && time.Since(told.at) < cacheSecond.attr { // crawlers stay in a session
		return told.modes
	}
	if path.Dir(root) == a.SourceDir {
		root = a.SourceDir
	}
	told = tellsAll{name, time.Now(), access.Plain(name, root)}
	a.mu.Lock()
	a.told = told
	a.mu.Unlock()
	return told.modes
}

// admitter is a directory that knows who may list it (access.Read) or find names in it (access.Search).
type admitter interface {
	admits(c *access.Caller, want access.Rights) error
}

// admit asks d about the caller of a request.
func (a *Access) admit(ctx context.Context, d admitter, want access.Rights) error {
	if c := a.caller(ctx); c != nil {
		return d.admits(c, want)
	}
	return nil
}

// mayStat asks whether the caller may be told the attributes of a directory. The kernel asks for them when a user goes
// through it, and then goes by the mode; where the mode grants more than there is, only an error keeps him out. Where
// the mode says no, it may be shown.
func (a *Access) mayStat(ctx context.Context, d admitter, attr *fuse.Attr) error {
	if a == nil {
		return nil
	}
	if b, ok := d.(backed); ok && a.modesTellAll(b.behind()) {
		return nil
	}
	c := a.caller(ctx)
	if c == nil || !c.Unsure && !c.Grants(attr.Mode, attr.Uid, attr.Gid, access.Search) {
		return nil
	}
	return d.admits(c, access.Search)
}
