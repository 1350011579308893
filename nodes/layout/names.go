package layout

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
)

// Directories in the directory of a session.
const (
	// Artifacts has the session's own files. They are also found, unlisted, in the session's
	// directory, so that a path may omit the name.
	Artifacts = "artifacts"
	Entries   = "entries"
	Branches  = "branches"
	ByLabel   = "by-label"
	// Tree, as the target of leaf, stands for the position before the first entry.
	Tree = "tree"
)

// Names in branches/ and in the directory of a branch.
const (
	BranchIDs = ".by-id"
	// CurrentBranch is the only fixed name in branches/ that can be an id; such an id has its first
	// byte encoded (docs/design.md section 1, Names).
	CurrentBranch = "current"
	BranchPath    = "path"
)

// EntryPath returns the path of an entry's file below the session's directory.
func EntryPath(s *sessioncore.Snapshot, e sessioncore.Entry) string {
	return Entries + "/" + s.Name(e) + EntrySuffix
}

const (
	EntrySuffix = ".json" // ends the names of entries' files

	pathDigits  = 6   // minimum number of digits in branches/…/path/
	maxFileName = 255 // bytes that file systems accept, so that path/ can be copied
)

// PathName returns the name in path/ of the entry at a place of a branch, from 0: its number, from
// 1, its path label, and the name of its file in entries/ (docs/design.md, branches/).
func PathName(s *sessioncore.Snapshot, place int, e sessioncore.Entry) string {
	return numbered(place+1, pathDigits, s.PathLabel(e), s.Name(e))
}

// numbered returns the name of a link to an entry's file called name, with a number of at least so many digits.
// It leaves the label out if the name would be too long with it.
func numbered(number, digits int, label, name string) string {
	withLabel := fmt.Sprintf("%0*d-%s-%s%s", digits, number, label, name, EntrySuffix)
	if len(withLabel) <= maxFileName {
		return withLabel
	}
	return fmt.Sprintf("%0*d--%s%s", digits, number, name, EntrySuffix)
}

// FindPathName returns the entry of a name in a branch's path/, or an error that wraps sessioncore.ErrNotFound, or
// storage.ErrStale if the file was changed under the snapshot.
func FindPathName(s *sessioncore.Snapshot, branch *sessioncore.Branch, name string) (sessioncore.Entry, error) {
	entries := branch.Entries()
	digits, _, _ := strings.Cut(name, "-")
	number, err := strconv.ParseUint(digits, 10, 31)
	isNumber := err == nil && number >= 1 && number <= uint64(len(entries))
	if !isNumber {
		return sessioncore.NoEntry, fmt.Errorf("%w: %q", sessioncore.ErrNotFound, name)
	}
	place := int(number) - 1
	e := entries[place]
	if PathName(s, place, e) != name { // the number is written in another way, or the rest is another one
		return sessioncore.NoEntry, fmt.Errorf("%w: %q", sessioncore.ErrNotFound, name)
	}
	return e, s.Confirm(context.Background(), e)
}

// Names in search/, and in the directory of a query.
const (
	Search       = "search"
	HitsTable    = "results.tsv"
	HitsSessions = "sessions"
)

// hitDigits is the minimum number of digits in the names of links to hits.
const hitDigits = 4

// HitName returns the name of a link to a hit: number, kind, and the name of its file in entries/, which a hit
// in the title does not have.
func HitName(number int, h *search.Hit) string {
	if h.Entry == "" {
		return fmt.Sprintf("%0*d-%s", hitDigits, number, h.What)
	}
	return numbered(number, hitDigits, h.What, h.Entry)
}

// LinkedHits returns the hits with a link: all, or the first one of each session.
func LinkedHits(hits []search.Hit, all bool) (linked []*search.Hit) {
	linkedFiles := map[string]bool{}
	for i := range hits {
		h := &hits[i]
		if all || !linkedFiles[h.File] {
			linked = append(linked, h)
			linkedFiles[h.File] = true
		}
	}
	return linked
}

// HitSessionName returns the name of a link to a session that has hits.
func HitSessionName(number int, h *search.Hit) string {
	return names.FileName(fmt.Sprintf("%0*d-%s", hitDigits, number, h.Session))
}

// The directories of session files in the mount, and their names.
const (
	Sessions      = "sessions"
	Archive       = "archive"
	SessionSuffix = ".jsonl"
	ArchiveSuffix = ".gz" // follows SessionSuffix in the names of archived sessions
)

// SessionDir returns the directory that shows a session file.
func SessionDir(file string) string { return strings.TrimSuffix(file, SessionSuffix) }

// SessionName returns the name of a session file's directory; ok is false for other files, and for
// hidden ones, which the client does not list.
func SessionName(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, SessionSuffix)
	return name, ok && name != "" && name[0] != '.'
}

// Hidden reports whether a name of SOURCE is a lock or temporary file of the client or of ours,
// which the mount does not show (docs/format.md, Files).
func Hidden(name string) bool {
	if storage.IsOwnName(name) {
		return true
	}
	withoutDot, hasDot := strings.CutPrefix(name, ".")
	if hasDot && isLockOrTemporary(withoutDot) {
		return true
	}
	saved, isBackup := strings.CutSuffix(name, ".bak")
	return isBackup && hexAfterSession(saved)
}

// isLockOrTemporary reports whether a name without its dot is X.jsonl.lock or X.jsonl.<hex>.tmp.
func isLockOrTemporary(name string) bool {
	locked, isLock := strings.CutSuffix(name, ".lock")
	if isLock {
		return strings.HasSuffix(locked, SessionSuffix)
	}
	written, isTemporary := strings.CutSuffix(name, ".tmp")
	return isTemporary && hexAfterSession(written)
}

// hexAfterSession reports whether base is X.jsonl.<hex>.
func hexAfterSession(base string) bool {
	file, digits, hasDigits := cutLast(base, '.')
	if !hasDigits || digits == "" || !strings.HasSuffix(file, SessionSuffix) {
		return false
	}
	return strings.Trim(digits, "0123456789abcdefABCDEF") == ""
}

// cutLast is strings.Cut around the last c.
func cutLast(text string, c byte) (before, after string, found bool) {
	at := strings.LastIndexByte(text, c)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+1:], true
}

// The directories of tree/ nest like the entries, but a chain of thousands of entries is longer
// than a path may be. So the nesting is literal for a stretch, and continues in tree/.deep/
// (docs/design.md, tree/).

const (
	maxNesting      = 64   // levels of a stretch
	maxNestingBytes = 2000 // bytes of a stretch's path, with separators
	// Deep is the directory in tree/ where the nesting continues.
	Deep = ".deep"
	// EntryLink is the link in each directory of tree/ to the entry's file. An id that equals it
	// has its first byte encoded.
	EntryLink = "entry.json"
)

// Nesting is a place in a stretch: the number of levels below its start, and the bytes of the path
// with a separator after each name.
type Nesting struct{ Levels, Bytes int32 }

// Below returns the place of a directory of that name in the one at n; ok is false where the
// stretch ends, so that the name is a link to the start of another one.
func (n Nesting) Below(name string) (below Nesting, ok bool) {
	below = Nesting{
		Levels: n.Levels + 1,
		Bytes:  n.Bytes + int32(len(name)) + 1,
	}
	return below, below.Levels <= maxNesting && below.Bytes <= maxNestingBytes+1
}

// TreeName returns the name of an entry's directory in tree/.
func TreeName(s *sessioncore.Snapshot, e sessioncore.Entry) string { return s.Name(e, EntryLink) }

// FindTreeName returns the entry of a directory's name in tree/, or sessioncore.ErrNotFound.
func FindTreeName(s *sessioncore.Snapshot, name string) (sessioncore.Entry, error) {
	e, err := s.FindName(name, EntryLink)
	if err == nil && !s.Tree().Has(e) {
		return sessioncore.NoEntry, sessioncore.ErrNotFound
	}
	return e, err
}

// StretchStarts returns the first entries of stretches, the children of an entry together, in the order of
// a walk down from the roots. The stretches that start at roots are left out. tree/.deep lists the entries.
func StretchStarts(s *sessioncore.Snapshot) (starts []sessioncore.Entry) {
	type level struct { // entries of one directory, and its place
		entries []sessioncore.Entry
		dir     Nesting
	}
	tree := s.Tree()
	stack := []level{{entries: tree.Roots()}} // no recursion: a chain may have any length
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, e := range top.entries {
			name := TreeName(s, e)
			place, isWithin := top.dir.Below(name)
			if !isWithin {
				place, _ = Nesting{}.Below(name)
				starts = append(starts, e)
			}
			stack = append(stack, level{entries: tree.Children(e), dir: place})
		}
	}
	return starts
}

// ErrNoReference means that a target of leaf names no entry in any accepted form.
var ErrNoReference = fmt.Errorf("%w: the target of leaf must be an entry of this session: <id>, entries/<id>.json, "+
	"tree/…/<id>, branches/<id> or by-label/<label>; or tree, the place before the first entry",
	sessioncore.ErrInvalid)

// places are the directories in a session's directory through which a reference can lead.
var places = []string{Entries, Tree, Branches, ByLabel}

// FindLeaf returns the entry of a target of leaf, in any form that a script may have
// (docs/design.md, leaf), or NoEntry for the position before the first entry. The error wraps ErrNoReference for
// another form, and sessioncore.ErrNotFound for a name that is not there.
func FindLeaf(snap *sessioncore.Snapshot, target string) (sessioncore.Entry, error) {
	parts := belowSession(target)
	if len(parts) == 0 || slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return sessioncore.NoEntry, ErrNoReference
	}
	dir := parts[0]
	below := parts[1:]
	if len(below) == 0 && dir == Tree {
		return sessioncore.NoEntry, nil
	}
	if len(below) == 0 {
		return entryNamed(snap, dir)
	}
	switch dir {
	case Entries:
		return entryOfFile(snap, below)
	case Tree:
		return entryInTree(snap, below)
	case Branches:
		return branchNamed(snap, below)
	case BranchIDs: // the target of a link in branches/
		return branchNamed(snap, parts)
	case ByLabel:
		return entryLabelled(snap, below)
	}
	return sessioncore.NoEntry, ErrNoReference
}

// entryOfFile finds the entry of a path below entries/: the name of a file.
func entryOfFile(snap *sessioncore.Snapshot, below []string) (sessioncore.Entry, error) {
	base, hasSuffix := strings.CutSuffix(below[0], EntrySuffix)
	if !hasSuffix || len(below) > 1 {
		return sessioncore.NoEntry, ErrNoReference
	}
	return snap.FindName(base)
}

// entryInTree finds the entry of a path below tree/: the last directory's, which may be followed by entry.json.
// The directories above it may be any.
func entryInTree(snap *sessioncore.Snapshot, below []string) (sessioncore.Entry, error) {
	last := below[len(below)-1]
	if last == EntryLink && len(below) > 1 {
		last = below[len(below)-2]
	}
	if last == Deep || last == EntryLink {
		return sessioncore.NoEntry, ErrNoReference
	}
	return FindTreeName(snap, last)
}

// entryLabelled finds the entry of a path below by-label/: a label.
func entryLabelled(snap *sessioncore.Snapshot, below []string) (sessioncore.Entry, error) {
	if len(below) > 1 {
		return sessioncore.NoEntry, ErrNoReference
	}
	l, err := report.FindByLabel(snap, below[0])
	if err != nil {
		return sessioncore.NoEntry, err
	}
	return l.Entry, nil
}

// entryNamed finds an entry by the name of its file, with or without the suffix, or by its id or
// the beginning of that.
func entryNamed(snap *sessioncore.Snapshot, name string) (sessioncore.Entry, error) {
	base, hasSuffix := strings.CutSuffix(name, EntrySuffix)
	if hasSuffix {
		e, err := snap.FindName(base)
		if err == nil {
			return e, nil
		}
	}
	e, err := snap.FindName(name) // an id may end like the suffix
	if err == nil {
		return e, nil
	}
	return snap.FindBeginning(name)
}

// branchNamed finds the entry that the parts of a path below branches/ name. Before the first entry
// there is no current branch.
//
//	a1b2, .by-id/a1b2                 the end of the branch
//	current                           the leaf
//	current/path/0003-assistant-a1b2  an entry on the branch
func branchNamed(snap *sessioncore.Snapshot, parts []string) (e sessioncore.Entry, err error) {
	inIDs := len(parts) > 1 && parts[0] == BranchIDs
	if inIDs {
		parts = parts[1:]
	}
	name := parts[0]
	inPath := len(parts) == 3 && parts[1] == BranchPath
	isBranch := len(parts) == 1 || inPath
	if !isBranch || name == BranchIDs {
		return sessioncore.NoEntry, ErrNoReference
	}
	switch {
	case inIDs: // without fixed names
		e, err = snap.FindBranch(name)
	case name == CurrentBranch:
		e, err = CurrentLeaf(snap)
	default:
		e, err = snap.FindBranch(name, CurrentBranch)
	}
	if err != nil || !inPath {
		return e, err
	}
	return FindPathName(snap, snap.Branch(e), parts[2])
}

// CurrentLeaf returns the entry at the leaf, or sessioncore.ErrNotFound before the first entry.
func CurrentLeaf(snap *sessioncore.Snapshot) (sessioncore.Entry, error) {
	leaf, err := snap.Leaf()
	if err == nil && leaf == sessioncore.NoEntry {
		err = fmt.Errorf("%w: the leaf is before the first entry", sessioncore.ErrNotFound)
	}
	return leaf, err
}

// belowSession returns the parts of a target below a session's directory. In an absolute path, or
// one that goes up, they begin at the last name in places: the part before it may be any path to a
// session, which only the kernel could resolve. The entry is always one of the session whose leaf
// is moved.
func belowSession(target string) []string {
	parts := strings.FieldsFunc(target, func(c rune) bool {
		return c == '/'
	})
	for len(parts) > 0 && parts[0] == "." {
		parts = parts[1:]
	}
	isAbsolute := strings.HasPrefix(target, "/")
	goesUp := len(parts) > 0 && parts[0] == ".."
	if !isAbsolute && !goesUp {
		return parts
	}
	begin := len(parts)
	for i, part := range parts {
		if !slices.Contains(places, part) {
			continue
		}
		isLast := i == len(parts)-1
		if !isLast || part == Tree { // of the places only tree is a target itself
			begin = i
		}
	}
	return parts[begin:]
}
