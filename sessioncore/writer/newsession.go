package writer

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// NewSession describes a session to be created (docs/design.md section 2, new-session).
type NewSession struct {
	CWD    string // absolute working directory
	Title  string // "" for none
	Parent string // parentSession of the header; "" for none
	Agent  string // the owner, where there are several agents; "" for the usual one
	Create bool   // the working directory need not exist yet
}

// ParseNewSession parses a line for the file new-session: a working directory, or an object with
// cwd, title, parentSession, agent and create.
func ParseNewSession(line []byte) (NewSession, error) {
	text := rawjson.Value(bytes.TrimSpace(line))
	isObject := len(text) > 0 && text[0] == '{'
	if !isObject {
		n := NewSession{CWD: string(line)}
		return n, n.check()
	}
	if !rawjson.IsValidObject(text) {
		return NewSession{}, &FieldError{Want: "a working directory or one JSON object in one line, " +
			"as jq -c prints it"}
	}
	err := shapes()["newSession"].check(text)
	if err != nil {
		return NewSession{}, err
	}
	var n NewSession
	n.CWD, _ = text.Member("cwd").Text()
	n.Title, _ = text.Member("title").Text()
	n.Parent, _ = text.Member("parentSession").Text()
	n.Agent, _ = text.Member("agent").Text()
	n.Create = text.Member("create").IsTrue()
	return n, n.check()
}

// check returns a FieldError for a field that is too long, and for a directory that is no absolute path
// or has line breaks.
func (n *NewSession) check() error {
	isBreak := func(r rune) bool {
		return r == 0 || r == '\n' || r == '\r'
	}
	err := checkPath(n.CWD, "line breaks", isBreak)
	if err != nil {
		return err
	}
	if len(n.Parent) > sessioncore.MaxPath {
		return &FieldError{Field: "parentSession", Want: fmt.Sprintf("at most %d bytes", sessioncore.MaxPath)}
	}
	if len(n.Title) > maxTitle {
		return &FieldError{Field: "title", Want: fmt.Sprintf("at most %d bytes", maxTitle)}
	}
	return nil
}

// NewSession creates a session, a file with only a header, and returns its name in the storage. Its
// directory has other sessions of the working directory, or is the client's for it (docs/format.md,
// Files); in a store of the operator dialect, or where pi was given a directory, it is the root.
// The error is ENAMETOOLONG if the directory's name is too long, as in the client, and
// ErrNoDirectory if the working directory does not exist and n.Create is not set.
func (w *Writer) NewSession(ctx context.Context, n NewSession) (name string, err error) {
	err = w.writable("new session")
	if err != nil {
		return "", err
	}
	err = n.check()
	if err != nil {
		return "", err
	}
	n.CWD = path.Clean(n.CWD)
	err = isDirectory(n.CWD)
	isCreated := n.Create && errors.Is(err, ErrNoDirectory)
	if err != nil && !isCreated {
		return "", err
	}
	cwd := rawjson.AppendQuoted(nil, n.CWD)
	file := newFile{
		cwd:         cwd,
		parent:      n.Parent,
		title:       cleanTitle(n.Title),
		titleSource: titleByUser,
	}
	file.dialect, file.form, err = w.storeDialect(ctx)
	if err != nil {
		return "", err
	}
	dir, err := w.DirFor(ctx, n.CWD, file.dialect)
	if err != nil {
		return "", err
	}
	file.slot = file.dialect == sessioncore.OMP && w.hasSlots(dir)
	return w.create(ctx, dir, file)
}

// hasSlots reports whether the newest session in a directory begins with a title slot, as sessions of
// newer omp clients do. It is false without a session, since an older client overwrites a file that
// begins with a slot.
func (w *Writer) hasSlots(dir string) bool {
	items, _ := storage.List(w.store.Storage(), dir) // a missing directory has none
	for _, item := range slices.Backward(items) {    // names begin with the time
		if !sessioncore.IsSession(item) {
			continue
		}
		newest, err := w.store.Storage().Open(path.Join(dir, item.Name))
		if err != nil {
			return false
		}
		defer newest.Close()
		return slotIn(newest, slotSize) != nil
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

// ErrNotOwn means that there is no place for new sessions, as the store shows only other people's.
var ErrNotOwn = errors.New("new sessions have no place here")

// pathOf returns the path of a file as clients write it.
func (w *Writer) pathOf(name string) string {
	if w.opts.PathOf != nil {
		return w.opts.PathOf(name)
	}
	return path.Join(w.opts.Root, name)
}

// Own returns the directory below the storage's root for new sessions and their directories, "" for the
// root itself. The error is ErrNotOwn if the store shows only other people's sessions.
func (w *Writer) Own() (dir string, err error) {
	if w.opts.Own != nil {
		return w.opts.Own()
	}
	return "", nil
}

// createNamed creates a file with the content of write, completely or not at all. On a disk it makes the
// directory and takes the client's lock; a row of a table is inserted only if none has its name.
func (w *Writer) createNamed(ctx context.Context, name string, write func(io.Writer) error) error {
	disk, ok := w.opts.Journal.(mover)
	if ok {
		err := disk.MkdirAll(storage.Dir(name))
		if err != nil {
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

// mover is a Journal of files in directories, between which they can be moved.
type mover interface {
	// MkdirAll makes a directory with those above it.
	MkdirAll(dir string) error
	// CheckWritable returns an error if no file can be made in a directory, if that is known.
	CheckWritable(dir string) error
	// Move renames a file and the directory beside it, which has the file's name without suffix.
	Move(name, to, suffix string) error
}

// sessionFileName returns a session's file name like the clients': the time, with characters
// replaced that some file systems forbid, and the id.
func sessionFileName(d *sessioncore.Dialect, now time.Time, id string) string {
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(now.UTC().Format(d.FileTime))
	return stamp + "_" + id + sessioncore.FileEnding
}

// sessionIDOf returns a UUID of version 7 (RFC 9562): the time in milliseconds, then the last 74 of the
// given bits, and between them the version and the variant.
func sessionIDOf(now time.Time, bits [16]byte) string {
	id := bits
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(id[:6], ms[2:]) // the time has 48 bits
	const (
		version = 0x70 // in the upper half of the byte
		variant = 0x80 // in the two upper bits
	)
	id[6] = id[6]&0x0F | version
	id[8] = id[8]&0x3F | variant
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// scopeDir returns the directory below the storage's root for a session of a working directory: the
// client's directory for it if that exists, else one with such sessions other than the file except,
// else the client's. It ignores a directory that clients of omp rename when they start, as a path
// in it would not last.
func (w *Writer) scopeDir(ctx context.Context, cwd, except string) (dir string, err error) {
	if w.opts.Scope != nil {
		dir, err = w.opts.Scope(ctx, cwd, except)
		if err != nil {
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
	if w.store.Program("") != sessioncore.ByPi {
		scopes := w.opts.Scopes()
		name = scopes.Name(cwd)
		if scopes.Passing(dir, cwd) {
			dir = ""
		}
	}
	_, err = w.store.Storage().Stat(path.Join(own, name))
	isThere := err == nil // then the client searches nowhere else
	if isThere || dir == "" {
		dir = name
	}
	if len(dir) > unix.NAME_MAX {
		const text = "%w: cwd is too long: the directory for its sessions would have a name of %d bytes, " +
			"at most %d are possible"
		return "", fmt.Errorf(text, unix.ENAMETOOLONG, len(dir), unix.NAME_MAX)
	}
	return path.Join(own, dir), nil
}

// operatorDir is the name of operator's directory in a home directory: ~/.operator/profiles/<name>.
const operatorDir = ".operator"

// storeDialect returns the dialect and the time form of new sessions. The session in the root with
// the latest name decides, as operator keeps all sessions there (docs/format.md, Operator dialect).
// In an empty store its path decides. The agent directory decides between omp and pi. The error is
// that of listing the root.
func (w *Writer) storeDialect(ctx context.Context) (d *sessioncore.Dialect, form rawjson.TimeForm, err error) {
	owner := sessioncore.ProgramOfSession(w.store.Program(""), 0)
	items, err := storage.List(w.store.Storage(), "")
	if err != nil && !storage.IsMissing(err) {
		return nil, 0, err
	}
	hasDirectories := false
	for _, item := range slices.Backward(items) { // names begin with the time
		if item.Kind == storage.KindDir {
			hasDirectories = true
		}
		if !sessioncore.IsSession(item) {
			continue
		}
		header, err := sessioncore.ReadHeaderOf(ctx, w.store.Storage(), item.Name)
		if err != nil || header == nil {
			continue // not a session, gone, or not readable
		}
		d := sessioncore.DialectOf(header).OfProgram(owner)
		_, form, ok := d.Time(header.Member("timestamp"))
		if !ok {
			form = d.Form
		}
		return d, form, nil
	}
	directories := strings.Split(filepath.ToSlash(w.opts.Root), "/")
	if !hasDirectories && slices.Contains(directories, operatorDir) {
		return sessioncore.Operator, sessioncore.Operator.Form, nil
	}
	d = sessioncore.OMP.OfProgram(owner)
	return d, d.Form, nil
}
