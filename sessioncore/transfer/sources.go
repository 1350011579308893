package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/gzip"
)

// Found is a file with the name of a session file, or the reason why a path that was given has none.
type Found struct {
	Path string // for people
	Size int64  // bytes, as far as it is known without unpacking
	Err  error

	files storage.Storage
	name  string // in files, without gzip.Ending
	agent string // the agent directory in files, which has blobs/
	place string // the path below sessions/ of that; "" if the file does not lie in one
}

// Sources are the places from which sessions are taken.
type Sources struct {
	// Found are the sessions in the order of their paths.
	Found []Found
	// Others is how many files and links are neither sessions nor belong to one.
	Others int

	temporary string // a directory for what is unpacked
	disk      *dir.Storage
	unpacked  *gzip.Storage
	open      []io.Closer
}

// Open returns Sources without any. What needs room while it is read takes it in the directory temporary. Callers must
// close it.
func Open(temporary string) (*Sources, error) {
	disk, err := dir.Open("/")
	if err != nil {
		return nil, err
	}
	return &Sources{temporary: temporary, disk: disk, unpacked: gzip.New(disk, nil, temporary)}, nil
}

// Close closes everything.
func (s *Sources) Close() {
	for _, c := range s.open {
		_ = c.Close()
	}
	s.unpacked.Close()
	_ = s.disk.Close()
}

const sessions = "sessions"

// The beginnings of files that are told by their content.
const (
	gzipMagic = "\x1f\x8b"
	tarMagic  = "ustar"
	tarAt     = 257 // where that is
)

// Add looks for sessions at a path: a session file, an archive of one, a bundle or a directory. Only a link at its end is
// followed. What cannot be used is in Found; the error is that of an interrupt.
func (s *Sources) Add(ctx context.Context, given string) error {
	if err := s.add(ctx, given); err != nil {
		s.Found = append(s.Found, Found{Path: given, Err: err})
	}
	return ctx.Err()
}

func (s *Sources) add(ctx context.Context, given string) error {
	real, err := filepath.Abs(given)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return withoutPath(err)
	}
	name := strings.TrimPrefix(filepath.ToSlash(real), "/")
	st, err := s.disk.Stat(name)
	switch {
	case err != nil:
		return withoutPath(err)
	case st.Kind == storage.KindDir:
		return s.walk(ctx, given, name, "", false)
	case st.Kind != storage.KindFile:
		return storage.ErrNotRegular
	}
	kind, err := s.kindOf(name)
	switch session := strings.TrimSuffix(name, gzip.Ending); {
	case err != nil:
		return withoutPath(err)
	case kind == tarMagic:
		f, err := os.Open(real)
		if err != nil {
			return withoutPath(err)
		}
		s.open = append(s.open, f)
		return s.addBundle(ctx, given, f)
	case !strings.HasSuffix(session, sessioncore.FileEnding):
		return errors.New("it is neither a bundle nor called .jsonl or .jsonl.gz, as sessions and archives of them are")
	case (kind == gzipMagic) != (session != name):
		return errors.New("its content is not what its name says: .gz is for what is compressed by gzip")
	default:
		s.addFile(given, s.unpacked, session, st.Size)
	}
	return nil
}

// withoutPath drops the path from an error, as the line that tells it names the one that was given.
func withoutPath(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

// kindOf tells what a file is by its content.
func (s *Sources) kindOf(name string) (string, error) {
	obj, err := s.disk.Open(name)
	if err != nil {
		return "", err
	}
	defer obj.Close()
	var head [tarAt + len(tarMagic)]byte
	if _, err := obj.ReadAt(head[:], 0); err != nil && err != io.EOF {
		return "", err
	}
	switch {
	case string(head[:len(gzipMagic)]) == gzipMagic:
		return gzipMagic, nil
	case string(head[tarAt:]) == tarMagic:
		return tarMagic, nil
	}
	return "", nil
}

// AddStream looks for sessions in a bundle that is read once, and therefore copied.
func (s *Sources) AddStream(ctx context.Context, in io.Reader) error {
	f, err := s.spool(ctx, in)
	if err == nil {
		err = s.addBundle(ctx, "-", f)
	}
	if err != nil {
		s.Found = append(s.Found, Found{Path: "-", Err: err})
	}
	return ctx.Err()
}

func (s *Sources) addBundle(ctx context.Context, given string, in *os.File) error {
	b, err := openBundle(ctx, in)
	if err != nil {
		return err
	}
	return s.walkIn(ctx, b, given, "", "", false)
}

// spool copies a stream to a file without a name.
func (s *Sources) spool(ctx context.Context, in io.Reader) (*os.File, error) {
	f, err := os.CreateTemp(s.temporary, "sessionfs-import-")
	if err != nil {
		return nil, fmt.Errorf("a bundle from a pipe is kept in a temporary file, for which TMPDIR can name another directory: %w", err)
	}
	s.open = append(s.open, f)
	if err := os.Remove(f.Name()); err != nil {
		return nil, err
	}
	_, err = io.Copy(f, &interruptible{ctx, in})
	return f, err
}

// interruptible is a reader that ends with its context.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}

func (s *Sources) walk(ctx context.Context, given, name, below string, inAgent bool) error {
	return s.walkIn(ctx, s.unpacked, given, name, below, inAgent)
}

// walkIn looks through a directory; below is its path below the one that was given. inAgent says that it is a part of an
// agent directory other than its sessions, where a .jsonl that is no session is something else of the agent's.
func (s *Sources) walkIn(ctx context.Context, files storage.Storage, given, name, below string, inAgent bool) error {
	items, err := files.List(name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return withoutPath(err)
	}
	isSession := map[string]bool{}
	for _, item := range items {
		if item.Kind == storage.KindFile && sessioncore.IsSessionName(item.Name) {
			isSession[strings.TrimSuffix(item.Name, sessioncore.FileEnding)] = true
		}
		inAgent = inAgent || item.Kind == storage.KindDir && item.Name == sessions
	}
	for _, item := range items {
		at, shown := path.Join(name, item.Name), path.Join(below, item.Name)
		_, _, inSessions := splitAgent(at + "/")
		switch {
		case item.Kind == storage.KindDir && !isSession[item.Name]: // else it is the artifacts of a session
			if err := s.walkIn(ctx, files, given, at, shown, inAgent && item.Name != sessions); err != nil {
				s.Found = append(s.Found, Found{Path: filepath.Join(given, shown), Err: err})
			}
		case item.Kind == storage.KindFile && sessioncore.IsSessionName(item.Name) && !(inAgent && !isSessionFile(ctx, files, at)):
			st, _ := files.Stat(at) // opening it will say why it fails
			s.addFile(filepath.Join(given, shown), files, at, st.Size)
		case item.Kind == storage.KindLink && inSessions:
			s.Found = append(s.Found, Found{Path: filepath.Join(given, shown), Err: errors.New("it is a link, and links are not followed: name what it leads to")})
		case item.Kind != storage.KindDir && !inAgent && !isClients(item.Name):
			s.Others++
		}
	}
	return nil
}

// isSessionFile reports whether a file begins as a session does.
func isSessionFile(ctx context.Context, files storage.Storage, name string) bool {
	header, err := sessioncore.ReadHeaderOf(ctx, files, name)
	return err != nil && !errors.Is(err, sessioncore.ErrNotSession) || header != nil
}

// isClients reports whether a name is that of a lock or of a temporary file.
func isClients(name string) bool {
	return name[0] == '.' && (strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".tmp"))
}

// addFile adds a file with the name of a session.
func (s *Sources) addFile(shown string, files storage.Storage, name string, size int64) {
	f := Found{Path: shown, Size: size, files: files, name: name, agent: storage.Dir(name)}
	if agent, place, ok := splitAgent(name); ok {
		f.agent, f.place = agent, place
	}
	s.Found = append(s.Found, f)
}

// splitAgent splits a path at the directory of an agent directory that has its sessions.
func splitAgent(name string) (agent, place string, ok bool) {
	const mark = "/" + sessions + "/"
	at := strings.LastIndex("/"+name, mark)
	if at < 0 {
		return "", "", false
	}
	agent = strings.TrimSuffix(("/" + name)[:at], "/archive")
	return strings.TrimPrefix(agent, "/"), name[at+len(mark)-1:], true
}
