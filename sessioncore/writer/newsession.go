package writer

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
)

// NewSession describes a session to be created (docs/design.md section 2, new-session).
type NewSession struct {
	CWD    string // absolute working directory
	Title  string // "" for none
	Parent string // parentSession of the header; "" for none
	Agent  string // whose it is to be, where there are several; "" for the usual one
	Create bool   // the working directory need not exist: somebody will create it
}

// ParseNewSession parses a line written to the file new-session: a working directory, or an object with cwd, title,
// parentSession, agent and create.
func ParseNewSession(line []byte) (NewSession, error) {
	text := rawjson.Value(bytes.TrimSpace(line))
	if len(text) > 0 && text[0] == '{' {
		if !rawjson.IsValidObject(text) {
			return NewSession{}, &FieldError{Want: "a working directory or one JSON object"}
		}
		if err := shapes["newSession"].check(text); err != nil {
			return NewSession{}, err
		}
		var n NewSession
		n.CWD, _ = text.Member("cwd").Text()
		n.Title, _ = text.Member("title").Text()
		n.Parent, _ = text.Member("parentSession").Text()
		n.Agent, _ = text.Member("agent").Text()
		n.Create = string(text.Member("create")) == "true"
		return n, n.check()
	}
	n := NewSession{CWD: string(line)}
	return n, n.check()
}

func (n *NewSession) check() error {
	if !path.IsAbs(n.CWD) || len(n.CWD) > sessioncore.MaxPath || !utf8.ValidString(n.CWD) || strings.ContainsAny(n.CWD, "\x00\n\r") {
		return &FieldError{Field: "cwd", Want: fmt.Sprintf("an absolute path in UTF-8, without line breaks, of at most %d bytes", sessioncore.MaxPath), Got: fmt.Sprintf("%.80q", n.CWD)}
	}
	if len(n.Parent) > sessioncore.MaxPath {
		return &FieldError{Field: "parentSession", Want: fmt.Sprintf("at most %d bytes", sessioncore.MaxPath)}
	}
	if len(n.Title) > maxTitle {
		return &FieldError{Field: "title", Want: fmt.Sprintf("at most %d bytes", maxTitle)}
	}
	return nil
}

// NewSession creates a session, a file with a header alone, and returns its name in the storage. In a store of the operator
// dialect it is created beside the others (storeDialect), as where pi was given a directory; otherwise in the directory that has sessions of
// that working directory, or in the one that the client makes (docs/format.md, Files). If that name is too long
// for a file system, the error is ENAMETOOLONG; the client fails in such a working directory too. One that does not exist
// is ErrNoDirectory, unless n.Create is set.
func (w *Writer) NewSession(ctx context.Context, n NewSession) (name string, err error) {
	if w.opts.ReadOnly {
		return "", fmt.Errorf("%w: new session", sessioncore.ErrReadOnly)
	}
	if err := n.check(); err != nil {
		return "", err
	}
	n.CWD = path.Clean(n.CWD)
	if err := isDirectory(n.CWD); err != nil && !(n.Create && errors.Is(err, ErrNoDirectory)) {
		return "", err
	}
	file := newFile{cwd: rawjson.AppendQuoted(nil, n.CWD), parent: n.Parent, title: cleanTitle(n.Title), titleSource: titleByUser}
	if file.dialect, file.form, err = w.storeDialect(ctx); err != nil {
		return "", err
	}
	dir, err := w.DirFor(ctx, n.CWD, file.dialect)
	if err != nil {
		return "", err
	}
	file.slot = file.dialect == sessioncore.OMP && w.hasSlots(dir)
	return w.create(ctx, dir, file)
}

// hasSlots reports whether the newest session in a directory begins with a title slot, as newer clients of omp begin theirs. An
// older client overwrites a file that begins with one, so that other directories get none.
func (w *Writer) hasSlots(dir string) bool {
	items, _ := storage.List(w.store.Storage(), dir) // which need not be there yet
	for _, item := range slices.Backward(items) {    // names begin with the time
		if item.Kind != storage.KindFile || !sessioncore.IsSessionName(item.Name) {
			continue
		}
		newest, err := w.store.Storage().Open(path.Join(dir, item.Name))
		if err != nil {
			return false
		}
		defer newest.Close()
		line := make([]byte, slotSize)
		err = storage.ReadFull(newest, line, 0)
		text := rawjson.Value(bytes.TrimSpace(line))
		return err == nil && rawjson.IsValidObject(text) && sessioncore.IsTitleSlot(text)
	}
	return false
}

// DirFor returns the directory below the storage's root for a new session of a working directory.
func (w *Writer) DirFor(ctx context.Context, cwd string, d *sessioncore.Dialect) (dir string, err error) {
	if !d.IsOMP() || w.opts.Flat {
		return "", nil
	}
	return w.scopeDir(ctx, cwd, "")
}

// ErrNotOwn means that there is no place for new sessions, as those of others are shown alone.
var ErrNotOwn = errors.New("new sessions have no place here")

// pathOf returns the path of a file, as clients write it.
func (w *Writer) pathOf(name string) string {
	if w.opts.PathOf != nil {
		return w.opts.PathOf(name)
	}
	return path.Join(w.opts.Root, name)
}

// Own returns the directory below the storage's root for new sessions and their directories.
func (w *Writer) Own() (dir string, err error) {
	if w.opts.Own != nil {
		return w.opts.Own()
	}
	return "", nil
}

// createNamed creates a file with the content that write writes, whole or not at all. In a directory it does so under the
// client's lock; a row is inserted only where none has its name.
func (w *Writer) createNamed(ctx context.Context, name string, write func(io.Writer) error) error {
	if disk, ok := w.opts.Journal.(mover); ok {
		if err := disk.MkdirAll(storage.Dir(name)); err != nil {
			return err
		}
		unlock, err := w.opts.Journal.Lock(ctx, name)
		if err != nil {
			return err
		}
		defer func() { _ = unlock() }() // nobody else knows the name
	}
	return storage.Replaced(w.opts.Journal.Replace(name, storage.Replacement{Write: write}))
}

// mover is a Journal whose files lie in directories, between which they can be moved.
type mover interface {
	// MkdirAll makes a directory with those above it.
	MkdirAll(dir string) error
	// CheckWritable returns why no file can be made in an existing directory, as far as that is known.
	CheckWritable(dir string) error
	// Move gives a file another name, and takes the directory beside it along, which is called like the file without suffix.
	Move(name, to, suffix string) error
}

// sessionFileName returns a session's file name as clients form it: the time, with characters replaced that some file
// systems forbid, and the id.
func sessionFileName(d *sessioncore.Dialect, now time.Time, id string) string {
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(now.UTC().Format(d.FileTime))
	return stamp + "_" + id + sessioncore.FileEnding
}

// newSessionID returns a UUID of version 7 (RFC 9562): the time in milliseconds, then random bits.
func newSessionID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return sessionIDOf(now, b)
}

// sessionIDOf returns the UUID with those bits for random ones.
func sessionIDOf(now time.Time, b [16]byte) string {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0F | 0x70
	b[8] = b[8]&0x3F | 0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// scopeDir returns the directory below the storage's root for a session of a working directory: the one that has such
// sessions other than the file except, or else the one that the client makes, which comes first where it is there. One that
// clients of omp rename when they start does not count: a path in it would not stay.
func (w *Writer) scopeDir(ctx context.Context, cwd, except string) (dir string, err error) {
	if w.opts.Scope != nil {
		if dir, err = w.opts.Scope(ctx, cwd, except); err != nil {
			return "", err
		}
	}
	own, err := w.Own()
	if err != nil {
		return "", err
	}
	if own != "" && !strings.HasPrefix(dir, own+"/") {
		dir = "" // another person's
	}
	dir = strings.TrimPrefix(dir, own+"/")
	name := clients.AbsoluteScope(cwd)
	if w.store.Program("") != program.Pi {
		if name = w.opts.Scopes.Name(cwd); w.opts.Scopes.Passing(dir, cwd) {
			dir = ""
		}
	}
	if _, err := w.store.Storage().Stat(path.Join(own, name)); err == nil {
		dir = name // where the client looks, whatever lies elsewhere
	}
	dir = cmp.Or(dir, name)
	if len(dir) > unix.NAME_MAX {
		return "", fmt.Errorf("%w: cwd is too long: the directory for its sessions would have a name of %d bytes, at most %d are possible",
			unix.ENAMETOOLONG, len(dir), unix.NAME_MAX)
	}
	return path.Join(own, dir), nil
}

// operatorDir is the name of operator's directory in a home directory: ~/.operator/profiles/<name>.
const operatorDir = ".operator"

// storeDialect returns the dialect of new sessions of the store, and the form of their times. operator's sessions of
// all working directories are in one directory (docs/format.md, Operator dialect), so that the session with the
// latest name there decides. If the store is empty, its path decides. Whether it is pi's, the agent directory says.
func (w *Writer) storeDialect(ctx context.Context) (d *sessioncore.Dialect, form rawjson.TimeForm, err error) {
	whose := program.OfSession(w.store.Program(""), 0)
	items, err := storage.List(w.store.Storage(), "")
	if err != nil && !storage.IsMissing(err) {
		return nil, 0, err
	}
	empty := true
	for _, item := range slices.Backward(items) { // names begin with the time
		if item.Kind == storage.KindDir {
			empty = false
		}
		if item.Kind != storage.KindFile || !sessioncore.IsSessionName(item.Name) {
			continue
		}
		header, err := sessioncore.ReadHeaderOf(ctx, w.store.Storage(), item.Name)
		if err != nil || header == nil {
			continue // not a session, gone, or not readable
		}
		d := sessioncore.DialectOf(header).OfProgram(whose)
		_, form, ok := d.Time(header.Member("timestamp"))
		if !ok {
			form = d.Form
		}
		return d, form, nil
	}
	if empty && slices.Contains(strings.Split(filepath.ToSlash(w.opts.Root), "/"), operatorDir) {
		return sessioncore.Operator, sessioncore.Operator.Form, nil
	}
	d = sessioncore.OMP.OfProgram(whose)
	return d, d.Form, nil
}
