package writer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// ErrNoDirectory means that a working directory does not exist.
var ErrNoDirectory = errors.New("no such directory")

// SetCWD moves a session to a working directory, as the client's /move does (docs/design.md section
// 2, cwd): it sets cwd in the header, and moves the file and its artifacts to the directory of such
// sessions (scopeDir). A line as the file cwd shows it means the current directory.
//
// The header is written first, at the old place, as that may fail for want of room. If a later step
// fails, the earlier ones are undone. So a session with that cwd may still need its file moved.
func (w *Writer) SetCWD(ctx context.Context, s *sessioncore.Session, line string) error {
	err := w.writable(s.Name())
	if err != nil {
		return err
	}
	err = w.mayMove(s)
	if err != nil {
		return err
	}
	cwd, err := w.newCWD(ctx, s, line) // before the lock is taken: a network's directory may take long
	if err != nil {
		return err
	}
	for {
		moved, err := w.moveOnce(ctx, s, cwd)
		if err != nil || moved.cwd == cwd {
			return err
		}
		// The first round completed an earlier move.
		s = w.store.Session(moved.name)
	}
}

// movedSession is the place of a session after a move.
type movedSession struct {
	name string // of its file
	cwd  string // in its header
}

// moveOnce moves a session to cwd or, to complete a move that was killed, to the session's old working
// directory. The breadcrumbs and a leaf in memory follow the file.
func (w *Writer) moveOnce(ctx context.Context, s *sessioncore.Session, cwd string) (moved movedSession, err error) {
	var leaf *string
	changed := false
	err = w.change(ctx, s, func(c *change) (err error) {
		leaf, _ = leafID(c.snap)
		moved.cwd, err = c.nextCWD(cwd)
		if err != nil {
			return err
		}
		moved.name, changed, err = c.setCWD(moved.cwd)
		return err
	})
	if err != nil || !changed {
		return moved, err
	}
	if w.opts.Crumbs != nil {
		clients.MoveBreadcrumbs(w.opts.Crumbs, w.opts.Root, s.Name(), moved.name, moved.cwd)
	}
	if moved.name == s.Name() {
		return moved, nil
	}
	w.store.CloseWithArtifacts(s.Name()) // they have files open under names that are gone
	if w.opts.LeafMemory {
		err = w.moveInMemory(ctx, w.store.Session(moved.name), leaf)
	}
	return moved, err
}

// nextCWD returns the old working directory where a move there was killed after the artifacts: that
// is completed first, as else they would stay behind. Otherwise it returns cwd.
func (c *change) nextCWD(cwd string) (string, error) {
	old, err := cwdOf(c.snap)
	if err != nil {
		return cwd, err
	}
	if old == "" || old == cwd {
		return cwd, nil
	}
	hasArtifacts := c.checkFree(artifactsOf(c.s.Name())) != nil
	if hasArtifacts {
		return cwd, nil
	}
	place, err := c.placeFor(old)
	if err != nil {
		return cwd, err
	}
	isFree := c.checkFree(place) == nil
	if isFree && errors.Is(c.checkFree(artifactsOf(place)), fs.ErrExist) {
		return old, nil
	}
	return cwd, nil
}

// checkFree returns nil if no file or directory has a name. The error wraps fs.ErrExist if one has it,
// or is one of the storage.
func (c *change) checkFree(name string) error {
	_, err := c.w.store.Storage().Stat(name)
	if storage.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", fs.ErrExist, name)
}

// artifactsOf returns the directory of a session's artifacts.
func artifactsOf(name string) string { return strings.TrimSuffix(name, sessioncore.FileEnding) }

// mayMove returns an error if the session can never be moved: it lies in another one's artifacts.
func (w *Writer) mayMove(s *sessioncore.Session) error {
	owner := sessioncore.OutermostOf(w.store.Storage(), s.Name())
	if owner == s.Name() {
		return nil
	}
	return &FieldError{Want: "a session of its own", Got: "one in the artifacts of " + artifactsOf(owner)}
}

// newCWD returns the working directory of a line. It must exist unless it is the session's own.
func (w *Writer) newCWD(ctx context.Context, s *sessioncore.Session, line string) (string, error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer snap.Release()
	old, err := cwdOf(snap)
	if err != nil {
		return "", err
	}
	if old != "" && line == string(names.TitleLine(old)) {
		return old, nil // the line is the file's own text
	}
	err = checkPath(line, "control characters", unicode.IsControl)
	if err != nil {
		return "", err
	}
	cwd := path.Clean(line)
	if cwd == old {
		return cwd, nil
	}
	return cwd, isDirectory(cwd)
}

// checkPath returns an error unless a text can be a working directory. excluded describes the
// characters that isExcluded reports.
func checkPath(cwd, excluded string, isExcluded func(rune) bool) error {
	isPath := path.IsAbs(cwd) && len(cwd) <= sessioncore.MaxPath && utf8.ValidString(cwd)
	if isPath && !strings.ContainsFunc(cwd, isExcluded) {
		return nil
	}
	want := fmt.Sprintf("an absolute path in UTF-8, without %s, of at most %d bytes", excluded, sessioncore.MaxPath)
	return &FieldError{Field: "cwd", Want: want, Got: fmt.Sprintf("%.80q", cwd)}
}

// isDirectory returns an error unless dir is a directory. Like the client, it follows links and
// keeps the path unresolved.
func isDirectory(dir string) error {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w: %s", ErrNoDirectory, dir)
	case err == nil && !info.IsDir():
		return fmt.Errorf("%w: %s", unix.ENOTDIR, dir)
	}
	return err
}

// cwdOf returns the working directory in a session's header, "" if there is none.
func cwdOf(s *sessioncore.Snapshot) (string, error) {
	header, _, err := s.ReadHeader()
	cwd, _ := header.Member("cwd").Text()
	return cwd, err
}

// setCWD is SetCWD under the lock. It returns the file's new name, and whether anything changed. Its
// steps are: make the directory, write the header, move the file.
func (c *change) setCWD(cwd string) (to string, changed bool, err error) {
	name := c.s.Name()
	to, err = c.placeFor(cwd)
	if err != nil {
		return "", false, err
	}
	old, slot, err := c.snap.ReadHeader()
	if err != nil {
		return "", false, err
	}
	disk, _ := c.w.opts.Journal.(mover)
	if to != name {
		before, _ := old.Member("cwd").Text()
		wasKilled := before == cwd // an earlier move got as far as the header
		err := c.makePlace(disk, to, wasKilled)
		if err != nil {
			return "", false, err
		}
	}
	set := c.cwdMembers(old, slot, cwd, to)
	if len(set) > 0 {
		header := c.headerEdit(set...)
		err = c.rewrite(c.withMigration([]fileEdit{header}), nil)
	} else if to != name {
		err = c.w.opts.Journal.Sync(name) // as a rewrite does; open handles cannot sync the old name later
	}
	if err != nil {
		return "", false, err
	}
	if to == name {
		return to, len(set) > 0, nil
	}
	err = disk.Move(name, to, sessioncore.FileEnding)
	if err != nil {
		return "", false, c.withOldHeader(err, old, set)
	}
	return to, true, nil
}

// withOldHeader puts the old values of the changed members back into the header, and returns the error
// for which that is done. If it fails too, the error says so.
func (c *change) withOldHeader(cause error, old rawjson.Value, changed []rawjson.Field) error {
	before := slices.Clone(changed)
	for i := range before {
		before[i].JSON = string(old.Member(before[i].Key))
	}
	err := c.setHeader(before)
	if err != nil {
		return fmt.Errorf("%w (and the header was not put back: %v)", cause, err)
	}
	return cause
}

// setHeader sets members of the header of the current file. The lock must be held, and stays held.
func (c *change) setHeader(set []rawjson.Field) error {
	if len(set) == 0 {
		return nil
	}
	now, err := c.s.Acquire(c.ctx)
	if err != nil {
		return err
	}
	defer now.Release()
	current := &change{
		w:        c.w,
		s:        c.s,
		ctx:      c.ctx,
		snap:     now,
		keepLock: true,
	}
	return current.rewrite([]fileEdit{current.headerEdit(set...)}, nil)
}

// placeFor returns the new file name for a cwd. Sessions outside directories keep theirs, and so do
// all in a flat store and in operator.
func (c *change) placeFor(cwd string) (string, error) {
	name := c.s.Name()
	if storage.Dir(name) == "" || c.w.opts.Flat || c.snap.Dialect() == sessioncore.Operator {
		return name, nil
	}
	dir, err := c.w.scopeDir(c.ctx, cwd, name)
	return path.Join(dir, path.Base(name)), err
}

// makePlace makes the directory for a file's new name, and checks that its names are free. If an
// earlier move was killed, the artifacts may be there already. The error wraps storage.ErrUnsupported
// in a storage that cannot move files, where disk is nil.
func (c *change) makePlace(disk mover, to string, wasKilled bool) error {
	if disk == nil {
		return fmt.Errorf("%w: sessions stay where they are", storage.ErrUnsupported)
	}
	err := disk.MkdirAll(storage.Dir(to))
	if err != nil {
		return err
	}
	err = c.checkFree(to)
	if err != nil {
		return err
	}
	if !wasKilled { // else Move knows whether the artifacts are the session's own
		err = c.checkFree(artifactsOf(to))
		if err != nil {
			return err
		}
	}
	return disk.CheckWritable(storage.Dir(to))
}

// previousFilesKey is the member of omp's header with the paths from before moves, from 18 on.
const previousFilesKey = "previousSessionFiles"

// cwdMembers returns the members of the header to be changed for a new cwd and the file name to, none
// if the header has them already. slot is nil for a file without a title slot.
func (c *change) cwdMembers(header, slot rawjson.Value, cwd, to string) (set []rawjson.Field) {
	old, isText := header.Member("cwd").Text()
	isSame := isText && old == cwd
	moves := to != c.s.Name()
	if isSame && !moves {
		return nil
	}
	if !isSame {
		set = append(set, rawjson.Field{Key: "cwd", JSON: string(rawjson.AppendQuoted(nil, cwd))})
	}
	if c.snap.Dialect() != sessioncore.OMP {
		return set
	}
	hasPrevious := slot != nil || !header.Member(previousFilesKey).Missing() // its client knows them
	if moves && hasPrevious {
		previous, isNew := addPrevious(header, c.w.pathOf(c.s.Name()))
		if isNew {
			set = append(set, previous)
		}
	}
	directories, isChanged := withoutDirectory(header, cwd)
	if isChanged {
		set = append(set, directories)
	}
	return set
}

// addPrevious returns the header's member of previous paths with one more. isNew is false if the path
// is among them. A member that the client would not read is replaced.
func addPrevious(header rawjson.Value, file string) (member rawjson.Field, isNew bool) {
	var files []string
	if shapes()["previousFiles"].check(header) == nil {
		files = texts(header.Member(previousFilesKey))
	}
	isNew = !slices.Contains(files, file)
	member.Key = previousFilesKey
	member.JSON = quotedList(append(files, file))
	return member, isNew
}

// withoutDirectory returns the header's member of additional directories without cwd, and whether that
// changes it. If none is left, the member is removed: it has no JSON. The client does so at each move.
func withoutDirectory(header rawjson.Value, cwd string) (member rawjson.Field, isChanged bool) {
	if shapes()["directories"].check(header) != nil {
		return rawjson.Field{}, false // no such member, or one that keeps the client from opening the session
	}
	all := texts(header.Member(directoriesKey))
	rest := slices.DeleteFunc(slices.Clone(all), func(dir string) bool {
		return dir == cwd
	})
	member.Key = directoriesKey
	if len(rest) > 0 {
		member.JSON = quotedList(rest)
	}
	isChanged = len(rest) < len(all) || len(rest) == 0
	return member, isChanged
}

// texts returns the strings in an array, "" for other elements.
func texts(array rawjson.Value) (all []string) {
	for v := range array.EachElement {
		text, _ := v.Text()
		all = append(all, text)
	}
	return all
}

// quotedList returns an array of strings as JSON.
func quotedList(all []string) string {
	var list []byte
	for _, text := range all {
		quoted := rawjson.AppendQuoted(nil, text)
		list = rawjson.AppendListed(list, string(quoted))
	}
	return "[" + string(list) + "]"
}
