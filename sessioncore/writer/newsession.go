package writer

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// NewSession is a session to be made (docs/design.md section 2, new-session).
type NewSession struct {
	CWD    string // absolute working directory
	Title  string // "" for none
	Parent string // what the header calls parentSession; "" for none
}

var newSessionRules = []fieldRule{
	{key: "cwd", kinds: rawjson.String, notEmpty: true},
	{key: "title", kinds: rawjson.String | rawjson.Null, optional: true},
	{key: "parentSession", kinds: rawjson.String | rawjson.Null, optional: true},
}

// ParseNewSession reads a line of the file new-session: a working directory, or an object with cwd,
// title and parentSession.
func ParseNewSession(line []byte) (NewSession, error) {
	text := rawjson.Value(bytes.TrimSpace(line))
	if len(text) > 0 && text[0] == '{' {
		if !rawjson.IsValidObject(text) {
			return NewSession{}, &FieldError{Want: "a working directory or one JSON object"}
		}
		if err := check(text, "", newSessionRules); err != nil {
			return NewSession{}, err
		}
		var n NewSession
		n.CWD, _ = text.Member("cwd").Text()
		n.Title, _ = text.Member("title").Text()
		n.Parent, _ = text.Member("parentSession").Text()
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

// NewSession makes a session and returns its name in the storage. It is pending, where the storage can,
// until the first message of an assistant, or until Sync. In a store of the operator dialect it goes
// beside the others (flat.go); else where sessions of that working directory are, or into the directory
// with the documented name (docs/format.md, Files). Where that name is longer than a file system allows, it is
// refused with ENAMETOOLONG, as the client fails in such a directory too.
func (w *Writer) NewSession(ctx context.Context, n NewSession) (name string, err error) {
	if w.opts.ReadOnly {
		return "", fmt.Errorf("%w: new session", sessioncore.ErrReadOnly)
	}
	if err := n.check(); err != nil {
		return "", err
	}
	n.CWD = path.Clean(n.CWD)
	file := newFile{cwd: rawjson.AppendQuoted(nil, n.CWD), parent: n.Parent, title: cleanTitle(n.Title), titleSource: titleByUser}
	if file.dialect, file.form, err = w.storeDialect(); err != nil {
		return "", err
	}
	dir := ""
	if file.dialect == sessioncore.OMP {
		if dir, err = scopeDir(w.store.Storage(), n.CWD); err != nil {
			return "", err
		}
	}
	return w.create(ctx, dir, file, true)
}

// createNamed writes a new file: in memory where wait says so and the storage can. used tells that it holds what
// must not be lost.
func (w *Writer) createNamed(ctx context.Context, name string, wait, used bool, write func(io.Writer) error) error {
	root := w.store.Storage()
	if wait && !(used && w.opts.Sync) {
		err := root.CreatePending(name, used, write)
		if !errors.Is(err, storage.ErrNoRoom) && !errors.Is(err, storage.ErrUnsupported) {
			return err
		}
	}
	if err := root.MkdirAll(storage.Dir(name)); err != nil && !errors.Is(err, storage.ErrUnsupported) {
		return err
	}
	unlock, err := root.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = unlock() }()
	return storage.Replaced(root.Replace(name, storage.Token{}, write))
}

// sessionFileName names a session's file as clients do: the time with the characters that some file
// systems forbid replaced, and the id.
func sessionFileName(d *sessioncore.Dialect, now time.Time, id string) string {
	stamp := strings.NewReplacer(":", "-", ".", "-").Replace(now.UTC().Format(d.FileTime))
	return stamp + "_" + id + sessioncore.FileEnding
}

// newSessionID makes a UUID of version 7 (RFC 9562): the time in milliseconds, then chance.
func newSessionID(now time.Time) string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(now.UnixMilli()))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0F | 0x70
	b[8] = b[8]&0x3F | 0x80
	h := hex.EncodeToString(b[:])
	return strings.Join([]string{h[:8], h[8:12], h[12:16], h[16:20], h[20:]}, "-")
}

// scopeName is the documented name of the directory for the sessions of a working directory.
func scopeName(cwd string) string {
	return "--" + strings.NewReplacer("/", "-", `\`, "-", ":", "-").Replace(strings.TrimPrefix(cwd, "/")) + "--"
}

// scopeDir returns the directory below the storage's root that a new session of a working directory goes
// into: the one that holds sessions with that cwd, of several the one with the latest, else the one
// with the documented name.
func scopeDir(root storage.Storage, cwd string) (string, error) {
	dirs, err := root.List("")
	if err != nil && !storage.IsMissing(err) {
		return "", err
	}
	best, latest := scopeName(cwd), ""
	for _, dir := range dirs {
		if dir.Kind != storage.KindDir {
			continue
		}
		files, err := root.List(dir.Name)
		if err != nil {
			continue // gone, or not ours to read: then none of ours goes there
		}
		for _, file := range slices.Backward(files) { // names begin with the time
			if file.Kind != storage.KindFile || !sessioncore.IsSessionName(file.Name) {
				continue
			}
			if file.Name <= latest {
				break
			}
			if headerCWD(root, path.Join(dir.Name, file.Name)) == cwd {
				best, latest = dir.Name, file.Name
				break
			}
		}
	}
	if len(best) > unix.NAME_MAX {
		return "", fmt.Errorf("%w: cwd is too long: the directory for its sessions would have a name of %d bytes, at most %d are possible",
			unix.ENAMETOOLONG, len(best), unix.NAME_MAX)
	}
	return best, nil
}

// headerCWD returns the working directory in a file's header, "" where there is none to be read.
func headerCWD(root storage.Storage, name string) string {
	header, _ := sessioncore.ReadHeaderOf(root, name)
	cwd, _ := header.Member("cwd").Text()
	return cwd
}
