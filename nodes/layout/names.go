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

// numbered returns the name of a link to an entry's file, without the label if it is too long.
func numbered(number, digits int, label, name string) string {
	numbered := fmt.Sprintf("%0*d-%s-%s%s", digits, number, label, name, EntrySuffix)
	if len(numbered) > maxFileName {
		return fmt.Sprintf("%0*d--%s%s", digits, number, name, EntrySuffix)
	}
	return numbered
}

// FindPathName returns the entry of a name in a branch's path/, or sessioncore.ErrNotFound.
func FindPathName(s *sessioncore.Snapshot, branch *sessioncore.Branch, name string) (sessioncore.Entry, error) {
	entries := branch.Entries()
	number, _, _ := strings.Cut(name, "-")
	n, err := strconv.ParseUint(number, 10, 31)
	isNumber := err == nil && n >= 1 && n <= uint64(len(entries))
	if !isNumber {
		return sessioncore.NoEntry, fmt.Errorf("%w: %q", sessioncore.ErrNotFound, name)
	}
	place := int(n) - 1
	e := entries[place]
	if PathName(s, place, e) != name {
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

// HitName returns the name of a link to a hit: number, kind, and the name of its file in entries/.
func HitName(number int, h *search.Hit) string {
	if h.Entry == "" {
		return fmt.Sprintf("%04d-%s", number, h.What)
	}
	return numbered(number, 4, h.What, h.Entry)
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
	return names.FileName(fmt.Sprintf("%04d-%s", number, h.Session))
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
	rest, hasDot := strings.CutPrefix(name, ".")
	if hasDot {
		locked, isLock := strings.CutSuffix(rest, ".lock")
		if isLock && strings.HasSuffix(locked, SessionSuffix) {
			return true
		}
		written, isTemporary := strings.CutSuffix(rest, ".tmp")
		if isTemporary {
			return hexAfterSession(written)
		}
	}
	saved, isBackup := strings.CutSuffix(name, ".bak")
	return isBackup && hexAfterSession(saved)
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
	// Deep is the directory in tree/ in which the nesting continues.
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

// StretchStarts returns the entries at which stretches start, in the order of a walk down from the
// roots. tree/.deep lists them.
func StretchStarts(s *sessioncore.Snapshot) (starts []sessioncore.Entry) {
	type place struct {
		entry sessioncore.Entry
		at    Nesting
	}
	tree := s.Tree()
	var stack []place
	push := func(entries []sessioncore.Entry, in Nesting) {
		for _, e := range entries {
			name := TreeName(s, e)
			at, isWithin := in.Below(name)
			if !isWithin {
				at, _ = Nesting{}.Below(name)
				starts = append(starts, e)
			}
			stack = append(stack, place{entry: e, at: at})
		}
	}
	push(tree.Roots(), Nesting{})
	for len(stack) > 0 {
		top := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		push(tree.Children(top.entry), top.at)
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
// (docs/design.md, leaf), or NoEntry for the position before the first entry.
func FindLeaf(snap *sessioncore.Snapshot, target string) (sessioncore.Entry, error) {
	parts := belowSession(target)
	if len(parts) == 0 || slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return sessioncore.NoEntry, ErrNoReference
	}
	last := parts[len(parts)-1]
	if len(parts) == 1 {
		if last == Tree {
			return sessioncore.NoEntry, nil
		}
		return entryNamed(snap, last)
	}
	switch parts[0] {
	case Entries:
		base, ok := strings.CutSuffix(last, EntrySuffix)
		if !ok || len(parts) != 2 {
			return sessioncore.NoEntry, ErrNoReference
		}
		return snap.FindName(base)
	case Tree:
		if last == EntryLink && len(parts) > 2 {
			last = parts[len(parts)-2]
		}
		if last == Deep || last == EntryLink {
			return sessioncore.NoEntry, ErrNoReference
		}
		return FindTreeName(snap, last)
	case Branches:
		return branchNamed(snap, parts[1:])
	case BranchIDs: // the target of a link in branches/
		return branchNamed(snap, parts)
	case ByLabel:
		if len(parts) != 2 {
			return sessioncore.NoEntry, ErrNoReference
		}
		l, err := report.FindByLabel(snap, last)
		if err != nil {
			return sessioncore.NoEntry, err
		}
		return l.Entry, nil
	}
	return sessioncore.NoEntry, ErrNoReference
}

// entryNamed finds an entry by the name of its file, with or without the suffix, or by its id or
// the beginning of that.
func entryNamed(snap *sessioncore.Snapshot, name string) (sessioncore.Entry, error) {
	base, ok := strings.CutSuffix(name, EntrySuffix)
	if ok {
		e, err := snap.FindName(base)
		if err == nil {
			return e, nil
		}
	}
	e, err := snap.FindName(name)
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
	fixed := []string{CurrentBranch}
	if len(parts) > 1 && parts[0] == BranchIDs {
		fixed = nil
		parts = parts[1:]
	}
	inPath := len(parts) == 3 && parts[1] == BranchPath
	isBranch := len(parts) == 1 || inPath
	if !isBranch || parts[0] == BranchIDs {
		return sessioncore.NoEntry, ErrNoReference
	}
	if fixed != nil && parts[0] == CurrentBranch {
		e, err = CurrentLeaf(snap)
	} else {
		e, err = snap.FindBranch(parts[0], fixed...)
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
		if !isLast || part == Tree {
			begin = i
		}
	}
	return parts[begin:]
}
