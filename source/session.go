package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Expand returns the paths in the tree of arguments; the root without arguments. It tries in order:
// a path of this machine in SOURCE or in a mount of it, a path of the tree, a pattern that the
// shell could not expand, and the beginning of a session's id with a path in that session behind
// it.
func (t *MountTree) Expand(args ...string) (found []string, err error) {
	if len(args) == 0 {
		return []string{"."}, nil
	}
	for _, arg := range args {
		paths, err := t.expandOne(arg)
		if err != nil {
			return nil, err
		}
		found = append(found, paths...)
	}
	return found, nil
}

// expandOne is Expand for one argument. An argument that stands for nothing is returned as a path of the tree, for
// the error of opening it.
func (t *MountTree) expandOne(arg string) ([]string, error) {
	shown, isLocal := t.local(arg)
	if isLocal {
		return []string{shown}, nil
	}
	name := clean(arg)
	_, missing := t.Lstat(name)
	if missing == nil {
		return []string{name}, nil
	}
	if isPattern(name) {
		return t.matching(arg, name)
	}
	if !storage.IsGone(missing) {
		return []string{name}, nil
	}
	key, below, _ := strings.Cut(name, "/")
	session, err := t.byID(key)
	switch {
	case err == nil:
		name = path.Join(session, below)
	case !storage.IsGone(err):
		return nil, err
	case path.IsAbs(arg): // so that it is named as it was typed
		return nil, &iofs.PathError{Op: "open", Path: arg, Err: syscall.ENOENT}
	}
	return []string{name}, nil
}

// isPattern reports whether a name is a pattern. As in a shell, a text that is no valid one stands for itself.
func isPattern(name string) bool {
	_, err := path.Match(name, "")
	return err == nil && strings.ContainsAny(name, "*?[")
}

// matching returns the paths that match a pattern, which was typed as arg. That there are none is an error.
func (t *MountTree) matching(arg, pattern string) ([]string, error) {
	matches, err := t.Glob(pattern)
	if err == nil && len(matches) == 0 {
		err = syscall.ENOENT
	}
	if err != nil {
		return nil, &iofs.PathError{Op: "glob", Path: arg, Err: err}
	}
	return matches, nil
}

// maxCandidates is how many sessions, or entries, are named among which a choice is to be made.
const maxCandidates = 10

// byID returns the path of the session that --resume finds with a key: its whole id or name, or the beginning
// of one id alone. If there is none, the error is the one for a missing file.
func (t *MountTree) byID(key string) (string, error) {
	found, err := t.Resuming(t.ctx, key)
	if errors.Is(err, sessioncore.ErrNotFound) {
		return t.Resolve(path.Join("by-id", key)) // which finds archived ones too
	}
	if err != nil {
		return "", err
	}
	decoded, ok := names.DecodeName(key)
	if !ok {
		decoded = key
	}
	var ids, lines []string
	for _, info := range found {
		isWhole := info.ID == decoded || info.BaseName() == decoded
		if isWhole {
			return found[0].Path(), nil // the one that --resume takes
		}
		if !slices.Contains(ids, info.ID) {
			ids = append(ids, info.ID)
			modified := info.Modified().Local().Format("2006-01-02 15:04")
			line := fmt.Sprintf("  %s  %s  %s", info.ID, modified, info.DisplayName())
			lines = append(lines, names.Visible(line))
		}
	}
	if len(ids) > 1 {
		return "", Ambiguous(key+" begins the id of more than one session; type more of it", lines)
	}
	return found[0].Path(), nil
}

// Ambiguous refuses an argument that names several, with lines that tell these apart.
func Ambiguous(said string, lines []string) error {
	more := ""
	if len(lines) > maxCandidates {
		more = fmt.Sprintf("\n  and %d more", len(lines)-maxCandidates)
		lines = lines[:maxCandidates]
	}
	return fs.Refuse(fs.ErrArgument, "%s:\n%s%s", said, strings.Join(lines, "\n"), more)
}

// NamedSession is the session of an argument, and an entry of it.
type NamedSession struct {
	Dir   string // the directory of the session, a path of the tree without links
	Entry string // as in entries/, without the suffix; "" where only the session is named
}

// Branch returns the directory that shows the branch to the entry, or the session's directory.
func (n NamedSession) Branch() string {
	if n.Entry == "" {
		return n.Dir
	}
	return path.Join(n.Dir, "branches", ".by-id", n.Entry)
}

// Branch returns the session that an argument names, and the last entry of the branch: the
// leaf if the argument names none. Callers must release the session.
func (t *MountTree) Branch(arg string) (snap *sessioncore.Snapshot, end sessioncore.Entry, err error) {
	at, err := t.Named(arg)
	if err != nil {
		return nil, end, err
	}
	snap, err = t.Snapshot(t.ctx, at.Dir)
	if err != nil {
		return nil, end, fmt.Errorf("%s: %w", at.Dir, err)
	}
	end, err = EndOf(snap, at.Entry)
	if err != nil {
		snap.Release()
	}
	return snap, end, err
}

// EndOf returns the entry of a session with a name, the leaf for "".
func EndOf(snap *sessioncore.Snapshot, entry string) (sessioncore.Entry, error) {
	if entry == "" {
		return snap.Leaf()
	}
	return snap.FindBranch(entry)
}

// Named returns the session and the entry that an argument names: by an id or its beginning, a
// path in a mount or in the tree, also one in the session's directory such as entries/ID.json, or
// its file. #ENTRY may follow, the id of an entry or its beginning. An argument that names none, or
// several, is refused.
func (t *MountTree) Named(arg string) (NamedSession, error) {
	found, err := t.AllNamed(arg)
	if err == nil && len(found) > 1 {
		err = fs.Refuse(fs.ErrUsage, "%s stands for %d sessions; one is expected", arg, len(found))
	}
	if err != nil {
		return NamedSession{}, err
	}
	return found[0], nil
}

// AllNamed is Named for an argument that may be a pattern of several.
func (t *MountTree) AllNamed(arg string) (found []NamedSession, err error) {
	found, err = t.FindNamed(arg)
	if storage.IsGone(err) {
		err = t.NotFound(arg, "as its id or path")
	}
	return found, err
}

// NotFound refuses an argument that names no session. where tells the parts of a session that were
// searched for it.
func (t *MountTree) NotFound(arg, where string) error {
	of := ""
	if t.Source != mountopts.All {
		of = " of " + t.TableSource()
	}
	said := fmt.Sprintf("no session%s has %s %s", of, arg, where)
	if !areWords.MatchString(arg) { // a path, or an entry of a session
		return fs.Refuse(fs.ErrArgument, "%s", said)
	}
	demo := ""
	if t.Demo {
		demo = "--demo "
	}
	return fs.Refuse(fs.ErrArgument, "%s; 'sessionfs search %s%s' looks into what was said", said, demo, arg)
}

// areWords matches words that a shell reads as they are, and a search as words.
var areWords = regexp.MustCompile(`^[\p{L}\p{N}_][\p{L}\p{N}_. -]*$`)

// FindNamed is AllNamed with the file system's error where there is none. Text behind # is part of a name if there
// is such a name, else an entry.
func (t *MountTree) FindNamed(arg string) (found []NamedSession, err error) {
	found, err = t.namedBy(arg)
	before := beforeEntry(arg)
	if storage.IsGone(err) && before != arg {
		found, err = t.namedBy(before)
		for i := range found {
			found[i].Entry, err = t.Entry(found[i].Dir, arg[len(before)+1:])
			if err != nil {
				return nil, err
			}
		}
	}
	return found, err
}

// beforeEntry returns the argument without #ENTRY.
func beforeEntry(arg string) string {
	at := strings.LastIndexByte(arg, '#')
	if at > 0 {
		return arg[:at]
	}
	return arg
}

// namedBy returns the sessions that an argument means, several for a pattern.
func (t *MountTree) namedBy(arg string) (found []NamedSession, err error) {
	paths, err := t.Expand(arg)
	for _, p := range paths {
		resolved, err := t.Resolve(p)
		if err != nil {
			return nil, err
		}
		n, ok := t.sessionOf(resolved)
		if !ok {
			return nil, fmt.Errorf("%s: %w", arg, iofs.ErrNotExist)
		}
		found = append(found, n)
	}
	return found, err
}

// sessionOf returns the session that a path without links lies in, and the entry that it names. ok is false if it
// lies in none.
func (t *MountTree) sessionOf(resolved string) (n NamedSession, ok bool) {
	for _, suffix := range fileSuffixes {
		resolved = strings.TrimSuffix(resolved, suffix)
	}
	for dir := resolved; dir != "." && dir != "/"; dir = path.Dir(dir) {
		for _, suffix := range fileSuffixes {
			info, err := t.Lstat(dir + suffix)
			if err == nil && info.Mode().IsRegular() {
				below := strings.TrimPrefix(resolved[len(dir):], "/")
				return NamedSession{Dir: dir, Entry: entryIn(below)}, true
			}
		}
	}
	return NamedSession{}, false
}

// fileSuffixes end the names of session files: as they are, archived, and as Codex compresses them.
var fileSuffixes = []string{layout.SessionSuffix + layout.ArchiveSuffix, layout.SessionSuffix + ".zst", layout.SessionSuffix}

// entryIn returns the entry that a path without links in a session's directory is about, "" for
// none.
func entryIn(below string) string {
	parts := strings.Split(below, "/")
	last := parts[len(parts)-1]
	switch {
	case parts[0] == "entries" && len(parts) > 1:
		return strings.TrimSuffix(last, ".json")
	case parts[0] == "tree" && len(parts) > 1 && last != ".deep":
		return last
	case parts[0] == "branches" && len(parts) > 2:
		return parts[2] // behind .by-id
	}
	return ""
}

// Entry returns the name of the entry of a session with an id that begins with key, or is key. It refuses a key that
// begins none, or several.
func (t *MountTree) Entry(session, key string) (string, error) {
	key = strings.TrimSuffix(key, ".json")
	dir := path.Join(session, "entries")
	_, err := t.Lstat(path.Join(dir, key+".json"))
	if err == nil {
		return key, nil
	}
	items, err := t.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var found []string
	for _, it := range items {
		if strings.HasPrefix(it.Name(), key) {
			found = append(found, "  "+strings.TrimSuffix(it.Name(), ".json"))
		}
	}
	switch len(found) {
	case 0:
		return "", fs.Refuse(fs.ErrArgument, "%s has no entry whose id begins with %q", session, key)
	case 1:
		return strings.TrimSpace(found[0]), nil
	}
	return "", Ambiguous(key+" begins the id of more than one entry; type more of it", found)
}

// FileOf returns the path of the file of the session that an id, or its beginning, names among the agents
// of this user, and #ENTRY where that follows it; "" if it names none.
func FileOf(ctx context.Context, id string, stderr io.Writer) (path string, err error) {
	if len(AgentDirs(os.Getenv)) == 0 || strings.Contains(id, "/") {
		return "", nil
	}
	const debug = false
	t, err := placeAt(mountopts.All).OpenTree(ctx, Sessions, nil, debug, stderr)
	if err != nil {
		return "", err
	}
	defer t.Close()
	found, err := t.FindNamed(id)
	if storage.IsGone(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if len(found) != 1 { // of a pattern
		return "", nil
	}
	session := found[0]
	path, err = t.FileOf(session.Dir)
	if err == nil && session.Entry != "" {
		path += "#" + session.Entry
	}
	return path, err
}
