package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/gzip"
)

// FoundFile is a file with the name of a session file, or the reason why a path that was given has
// none.
type FoundFile struct {
	Path string // for people
	Err  error

	files storage.Files
	name  string // in files, without the ending of a compressed file
	agent string // the agent directory, which has blobs/
	place string // the path below sessions/ of that; "" if the file does not lie in one
	entry string // the end of the branch that is taken alone; "" for all of the session

	source string        // the other agent that wrote it, "" for none
	how    agents.Format // the reader of that agent
	path   string        // absolute, of the file
	// isOrphan says that it is the session of a subagent, and that the calling session is gone.
	isOrphan bool
	// handover is the number of a handover, "" for an import.
	handover string
	from     *Sources
}

// Sources are the places with the sessions to import. It shows the files of the machine, archives
// unpacked.
type Sources struct {
	// Found are the sessions in the order of their paths.
	Found []FoundFile
	// Others is how many files and links are neither sessions nor belong to one.
	Others int

	*gzip.Storage
	disk      *dir.Storage
	temporary string   // a directory for unpacked files
	unpacked  []string // bundles
	homes     map[string]agents.Store
}

// Open returns empty Sources, which unpack into the directory temporary. Callers must close it.
func Open(temporary string) (*Sources, error) {
	disk, err := dir.Open("/")
	if err != nil {
		return nil, err
	}
	unpacking := gzip.New(gzip.NewZstd(disk, nil, temporary), nil, temporary)
	return &Sources{
		Storage:   unpacking,
		disk:      disk,
		temporary: temporary,
		homes:     map[string]agents.Store{},
	}, nil
}

// Close removes the unpacked files.
func (s *Sources) Close() {
	for _, dir := range s.unpacked {
		_ = os.RemoveAll(dir)
	}
}

const (
	sessions       = "sessions"
	databaseEnding = ".db"
)

// Add adds the sessions at a path: a session file, an archive of one, a bundle or a directory, also
// of a session in a mount; "-" is a bundle from stdin. PATH#ID is the branch to an entry of
// another agent's session. Only a link at its end is followed. Found has unusable files too; the
// error means an interrupt.
func (s *Sources) Add(ctx context.Context, given string, stdin io.Reader) error {
	var err error
	if given == "-" {
		err = s.addBundle(ctx, given, stdin)
	} else {
		err = s.add(ctx, given)
	}
	if err != nil {
		s.refuse(given, err)
	}
	return ctx.Err()
}

// refuse adds a path to Found with the reason why it has no session.
func (s *Sources) refuse(path string, err error) {
	s.Found = append(s.Found, FoundFile{Path: path, Err: withoutPath(err)})
}

// add is Add for a path. The error is for a path without sessions. In the path "a.jsonl#7f", 7f is an entry,
// unless a file has that name.
func (s *Sources) add(ctx context.Context, given string) error {
	path, entry, err := realPathAndEntry(given)
	if err != nil {
		return err
	}
	name := strings.TrimPrefix(filepath.ToSlash(path), "/")
	st, err := s.disk.Stat(name)
	if err == nil && st.Kind == storage.KindDir && isShown(s.disk, name) {
		name += sessioncore.FileEnding
		st, err = s.disk.Stat(name)
	}
	if err != nil {
		return err
	}
	return s.addPlace(ctx, walkedPlace{given: given, name: name}, st.Kind, entry)
}

// addPlace is add for a file or directory of a kind. entry is the id of the entry that was named, "" for
// none.
func (s *Sources) addPlace(ctx context.Context, at walkedPlace, kind storage.Kind, entry string) error {
	given := at.given
	name := at.name
	isDir := kind == storage.KindDir
	isFile := kind == storage.KindFile
	session := strings.TrimSuffix(strings.TrimSuffix(name, gzip.Ending), gzip.ZstdEnding)
	switch {
	case !isDir && !isFile: // opening it could wait
		return errors.New("it is no regular file; to import from a pipe, name -")
	case isFile && strings.HasSuffix(session, sessioncore.FileEnding):
		s.addFile(given, session, entry)
		return nil
	case isFile && strings.HasSuffix(name, documentEnding):
		_, _, err := writtenBy(ctx, s.disk, name)
		if err != nil {
			return err
		}
		s.addFile(given, name, entry)
		return nil
	case entry != "":
		return errors.New("an entry is that of a session: name its file")
	case isDir:
		isComposed, err := s.addComposed(given, name)
		if isComposed || err != nil {
			return err
		}
		return s.walk(ctx, at)
	case strings.HasSuffix(name, databaseEnding): // of an agent, or a bundle with an odd name
		isComposed, err := s.addComposed(given, storage.Dir(name))
		if isComposed || err != nil {
			return err
		}
	}
	f, err := s.disk.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return s.addBundle(ctx, given, io.NewSectionReader(f, 0, math.MaxInt64))
}

// realPathAndEntry returns the path that PATH or PATH#ID means, and the ID, which is "" if PATH exists as it is.
func realPathAndEntry(given string) (path, entry string, err error) {
	path, err = realPath(given)
	isMissing := errors.Is(err, fs.ErrNotExist)
	at := strings.LastIndexByte(given, '#')
	hasEntry := at >= 0
	if !isMissing || !hasEntry {
		return path, "", err
	}
	path, err = realPath(given[:at])
	return path, given[at+1:], err
}

// realPath returns a path as an absolute one without links.
func realPath(given string) (string, error) {
	path, err := filepath.Abs(given)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}

// isShown reports whether a directory shows a session in a mount, or is a copy of one with the session's file.
func isShown(files storage.Files, name string) bool {
	_, err := files.Stat(name + sessioncore.FileEnding)
	return err == nil && isGenerated(files, name)
}

// errGenerated refuses files that are made of a session.
var errGenerated = errors.New("it is a session's directory of a mount, without the session's file beside it: " +
	"name that file, or what sessionfs bundle writes")

// isGenerated reports whether a directory shows a session in a mount, or is a copy of one.
func isGenerated(files storage.Files, name string) bool {
	_, err := files.Stat(name + "/context.json")
	_, also := files.Stat(name + "/header.json")
	return err == nil && also == nil
}

// withoutPath drops the path from an error, as the line that tells it names the one that was given.
func withoutPath(err error) error {
	at, ok := errors.AsType[*fs.PathError](err)
	if ok {
		return at.Err
	}
	return err
}

// addBundle unpacks a bundle, or a tar archive of an agent directory, and adds the sessions in it. It is an
// error if there are none.
func (s *Sources) addBundle(ctx context.Context, given string, in io.Reader) error {
	to, err := os.MkdirTemp(s.temporary, "sessionfs-import-")
	if err != nil {
		return fmt.Errorf("a bundle is unpacked into a temporary directory, for which TMPDIR can name another place: %w", err)
	}
	s.unpacked = append(s.unpacked, to)
	left, err := unpack(ctx, in, to)
	if err != nil {
		return fmt.Errorf("it is neither a session or an archive by its name (.jsonl, .jsonl.gz) nor a bundle, nor a tar archive of "+
			"an agent directory: %w", withoutPath(err))
	}
	to, err = filepath.EvalSymlinks(to)
	if err != nil {
		return err
	}
	for _, member := range left {
		s.refuse(filepath.Join(given, member.name), member.err)
	}
	before := len(s.Found)
	err = s.walk(ctx, walkedPlace{given: given, name: strings.TrimPrefix(to, "/")})
	if err == nil && len(s.Found) == before {
		err = errors.New("no session is in it")
	}
	return err
}

// walkedPlace is a file or directory below a path that was given.
type walkedPlace struct {
	given string // the path that was given
	below string // the path below it; "" for itself
	name  string // the path in Sources
}

// join returns the place of a name in a directory.
func (p walkedPlace) join(name string) walkedPlace {
	return walkedPlace{
		given: p.given,
		below: path.Join(p.below, name),
		name:  path.Join(p.name, name),
	}
}

// shown returns the path for people.
func (p walkedPlace) shown() string { return filepath.Join(p.given, p.below) }

// walk looks through a directory. Of an agent directory only the sessions are looked at.
func (s *Sources) walk(ctx context.Context, dir walkedPlace) error {
	items, err := storage.List(s, dir.name)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	hasArtifacts := map[string]bool{} // the names of directories beside sessions
	isDir := map[string]bool{}
	for _, item := range items {
		if item.Kind == storage.KindFile && sessioncore.IsSessionName(item.Name) {
			hasArtifacts[strings.TrimSuffix(item.Name, sessioncore.FileEnding)] = true
		}
		isDir[item.Name] = item.Kind == storage.KindDir
	}
	if isGenerated(s.disk, dir.name) {
		return errGenerated
	}
	only := dirsOf("/"+dir.name, isDir)
	for _, item := range items {
		isLeftOut := only != nil && !slices.Contains(only, item.Name)
		isArtifacts := isDir[item.Name] && hasArtifacts[item.Name]
		if !isLeftOut && !isArtifacts {
			s.visit(ctx, dir.join(item.Name), item)
		}
	}
	return nil
}

// visit adds a file, or the files of a directory, to Found, or to the others.
func (s *Sources) visit(ctx context.Context, at walkedPlace, item storage.Item) {
	_, _, inSessions := splitAgent(at.name + "/")
	switch {
	case item.Kind == storage.KindDir:
		err := s.walk(ctx, at)
		if err != nil {
			s.refuse(at.shown(), err)
		}
	case item.Kind == storage.KindFile && s.isWanted(item.Name, at.name):
		s.addFile(at.shown(), at.name, "")
	case item.Kind == storage.KindLink && inSessions:
		s.refuse(at.shown(), errors.New("it is a link, and links are not followed: name what it leads to"))
	case !isClients(item.Name):
		s.Others++
	}
}

// isWanted reports whether a file in a directory is a session by its name, and no part of another one.
func (s *Sources) isWanted(base, at string) bool {
	switch {
	case !sessioncore.IsSessionName(base) && !isDocument(at):
		return false
	case agents.IsPart(at):
		return s.isOrphan(at)
	}
	return !s.hides(at)
}

// dirsOf returns the directories of an agent directory that have sessions, nil for another
// directory. isDir has the directories in it. Those of omp and of an agent with the same mark are joined, as
// a directory with that mark may be either's.
func dirsOf(dir string, isDir map[string]bool) (only []string) {
	if isDir[sessions] {
		only = []string{sessions, "archive"}
	}
	for _, a := range agents.All() {
		mark := a.Dirs[0]
		switch {
		case mark == sessions && only != nil:
			only = append(only, a.Dirs...)
		case isDir[mark] && a.Detect(dir):
			return a.Dirs
		}
	}
	return only
}

// isClients reports whether a name is a lock's or a temporary file's.
func isClients(name string) bool {
	if name[0] != '.' {
		return false
	}
	return strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, ".tmp")
}

// addFile adds a file with the name of a session. shown is its path for people.
func (s *Sources) addFile(shown, name, entry string) {
	f := FoundFile{
		Path:  shown,
		files: s.Storage,
		name:  name,
		agent: storage.Dir(name),
		entry: entry,
		from:  s,
	}
	agent, place, isInAgent := splitAgent(name)
	if isInAgent {
		f.agent = agent
		f.place = place
	}
	s.Found = append(s.Found, f)
}

// splitAgent splits a path at the directory of an agent directory that has its sessions: a/sessions/p/x.jsonl
// into a and p/x.jsonl, and a/archive/sessions/p/x.jsonl into the same.
func splitAgent(name string) (agent, place string, ok bool) {
	const mark = "/" + sessions + "/"
	rooted := "/" + name
	at := strings.LastIndex(rooted, mark)
	if at < 0 {
		return "", "", false
	}
	agent = strings.TrimSuffix(rooted[:at], "/archive")
	agent = strings.TrimPrefix(agent, "/")
	return agent, rooted[at+len(mark):], true
}
