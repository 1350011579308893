package layout

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore"
)

// ErrNoReference means a target of leaf that names an entry in none of the accepted ways.
var ErrNoReference = fmt.Errorf("%w: the target of leaf must be an entry of this session: <id>, entries/<id>.json, tree/…/<id>, branches/<id> or by-label/<label>; or tree, the place before the first entry", sessioncore.ErrInvalid)

// places are the directories in a session's directory through which a reference can lead.
var places = []string{Entries, Tree, Branches, ByLabel}

// Find returns the entry that a target of leaf names, in any way in which a script may have it (docs/design.md, leaf), or
// NoEntry for the position before the first entry.
func (r *Reference) Find(ctx context.Context, snap *sessioncore.Snapshot, target string) (sessioncore.Entry, error) {
	parts, err := r.parts(ctx, target)
	if err != nil {
		return sessioncore.NoEntry, err
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
		l, err := snap.FindLabelName(last)
		if err != nil {
			return sessioncore.NoEntry, err
		}
		return l.Entry, nil
	}
	return sessioncore.NoEntry, ErrNoReference
}

// entryNamed finds an entry by the name of its file, with or without the suffix, or by its id.
func entryNamed(snap *sessioncore.Snapshot, name string) (sessioncore.Entry, error) {
	if base, ok := strings.CutSuffix(name, EntrySuffix); ok {
		if e, err := snap.FindName(base); err == nil {
			return e, nil
		}
	}
	if e, err := snap.FindName(name); err == nil {
		return e, nil
	}
	return snap.Find(name)
}

// branchNamed finds the entry at the end of a branch: <id>, .by-id/<id> or current; or the one of a name in
// the branch's path/. There is no current branch before the first entry.
func branchNamed(snap *sessioncore.Snapshot, parts []string) (e sessioncore.Entry, err error) {
	find := snap.FindBranchName
	if len(parts) > 1 && parts[0] == BranchIDs {
		find, parts = snap.FindBranch, parts[1:]
	} else if len(parts) > 0 && parts[0] == CurrentBranch {
		find = func(string) (sessioncore.Entry, error) { return CurrentLeaf(snap) }
	}
	inPath := len(parts) == 3 && parts[1] == BranchPath
	if len(parts) != 1 && !inPath || parts[0] == BranchIDs {
		return sessioncore.NoEntry, ErrNoReference
	}
	if e, err = find(parts[0]); err != nil || !inPath {
		return e, err
	}
	return FindPathName(snap, snap.Branch(e), parts[2])
}

// CurrentLeaf returns the entry at the leaf, or sessioncore.ErrNotFound if the leaf is before the first entry.
func CurrentLeaf(snap *sessioncore.Snapshot) (sessioncore.Entry, error) {
	leaf, err := snap.Leaf()
	if err == nil && leaf == sessioncore.NoEntry {
		err = fmt.Errorf("%w: the leaf is before the first entry", sessioncore.ErrNotFound)
	}
	return leaf, err
}

// Reference resolves targets of leaf in the directory of a session.
type Reference struct {
	// Session is the session's directory below sessions/.
	Session string
	// Follow turns a path below the mount's root into one below sessions/, or returns ErrLeadsNowhere.
	Follow func(ctx context.Context, parts []string) (below []string, err error)
}

// parts splits a target into its parts below the session's directory. Of an absolute path, or one that goes up, these
// are the parts after the session's directory.
func (r *Reference) parts(ctx context.Context, target string) ([]string, error) {
	for strings.HasPrefix(target, "./") {
		target = strings.TrimLeft(target[1:], "/")
	}
	parts := strings.FieldsFunc(target, func(c rune) bool { return c == '/' })
	if strings.HasPrefix(target, "/") || strings.HasPrefix(target, "../") {
		var err error
		if parts, err = r.below(ctx, parts); err != nil {
			return nil, err
		}
	}
	if len(parts) == 0 || slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return nil, ErrNoReference
	}
	return parts, nil
}

// below finds the session's directory in a path and returns what follows it. Where in the path the mount begins is
// unknown, so every part that is a name in the root is tried as one. A path that leads through the
// root to another session is no reference, even if a part of it has the name of this session.
func (r *Reference) below(ctx context.Context, parts []string) ([]string, error) {
	elsewhere := false
	for i := range parts {
		whole, err := r.Follow(ctx, parts[i:])
		if errors.Is(err, ErrLeadsNowhere) {
			continue
		} else if err != nil {
			return nil, err
		}
		whole = strings.Split(path.Clean(strings.Join(whole, "/")), "/") // ".." goes up from where the links lead
		if rest, ok := cutSession(whole, strings.Split(r.Session, "/")); ok {
			return rest, nil
		}
		elsewhere = true
	}
	if !elsewhere {
		if rest, ok := r.belowName(parts); ok {
			return rest, nil
		}
		if rest, ok := belowUp(parts); ok {
			return rest, nil
		}
	}
	return nil, ErrNoReference
}

// cutSession removes the directory of a session from the front of a path below sessions/. It ignores a part
// "artifacts" that only the path has.
func cutSession(parts, session []string) (rest []string, ok bool) {
	for at := 0; at < len(session); parts = parts[1:] {
		switch {
		case len(parts) == 0:
			return nil, false
		case parts[0] == session[at]:
			at++
		case at == 0 || parts[0] != Artifacts:
			return nil, false
		}
	}
	return parts, true
}

// belowName finds the session's directory in a path by its name, unless the path shows that it is in another
// directory.
func (r *Reference) belowName(parts []string) (rest []string, ok bool) {
	session := strings.Split(r.Session, "/")
	name := session[len(session)-1]
	at := -1
	for i, p := range parts[:max(0, len(parts)-1)] {
		if p == name && (i == len(parts)-2 || slices.Contains(places, parts[i+1])) {
			at = i
		}
	}
	if at < 0 {
		return nil, false
	}
	up := at
	for up >= 0 && parts[up] != ".." {
		up--
	}
	if up >= 0 && !endsIn(session, parts[up+1:at+1]) {
		return nil, false
	}
	return parts[at+1:], true
}

// endsIn reports whether the path of a session's directory ends in parts, with or without parts "artifacts".
func endsIn(session, parts []string) bool {
	if parts[0] == Artifacts && len(parts) > 1 {
		parts = parts[1:]
	}
	for i := range session {
		if rest, ok := cutSession(parts, session[i:]); ok && len(rest) == 0 {
			return true
		}
	}
	return false
}

// belowUp resolves the target of a link in the session's directory, which goes up to that directory without naming
// it.
func belowUp(parts []string) (rest []string, ok bool) {
	up := slices.IndexFunc(parts, func(p string) bool { return p != ".." })
	if up > 0 && up+1 < len(parts) && slices.Contains(places, parts[up]) {
		return parts[up:], true
	}
	return nil, false
}
