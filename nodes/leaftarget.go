package nodes

import (
	"fmt"
	"slices"
	"strings"

	"sessionfs/sessioncore"
)

// errNoReference: a link's target that does not name an entry in any of the ways that leaf takes.
var errNoReference = fmt.Errorf("%w: the target of leaf must be an entry: <id>, entries/<id>.json, tree/…/<id>, branches/<id> or by-label/<label>", sessioncore.ErrInvalid)

// places are the directories below a session's that a reference can lead through.
var places = []string{"entries", "tree", branchesName, byLabelName}

// leafTarget finds the entry that a link's target names, in any way that a script would have it at hand
// (design.md, leaf). session is the name of the session's directory.
func leafTarget(snap *sessioncore.Snapshot, session, target string) (sessioncore.Entry, error) {
	parts, err := referenceParts(session, target)
	if err != nil {
		return sessioncore.NoEntry, err
	}
	last := parts[len(parts)-1]
	if len(parts) == 1 {
		return entryNamed(snap, last)
	}
	switch parts[0] {
	case "entries":
		base, ok := strings.CutSuffix(last, entrySuffix)
		if !ok || len(parts) != 2 {
			return sessioncore.NoEntry, errNoReference
		}
		return snap.FindName(base)
	case "tree":
		if last == entryLinkName && len(parts) > 2 {
			last = parts[len(parts)-2]
		}
		if last == deepName || last == entryLinkName {
			return sessioncore.NoEntry, errNoReference
		}
		return snap.FindTreeName(last)
	case branchesName:
		return branchNamed(snap, parts[1:])
	case byIDName: // as the links in branches/ say it
		return branchNamed(snap, parts)
	case byLabelName:
		if len(parts) != 2 {
			return sessioncore.NoEntry, errNoReference
		}
		l, err := snap.FindLabelName(last)
		if err != nil {
			return sessioncore.NoEntry, err
		}
		return l.Entry, nil
	}
	return sessioncore.NoEntry, errNoReference
}

// referenceParts cuts a target into its parts below the session's directory. An absolute path, or one
// that goes up, counts from the session's directory on; what the links in the session's directory say goes
// up to that directory and does not name it.
func referenceParts(session, target string) ([]string, error) {
	for strings.HasPrefix(target, "./") {
		target = strings.TrimLeft(target[1:], "/")
	}
	parts := strings.FieldsFunc(target, func(r rune) bool { return r == '/' })
	if strings.HasPrefix(target, "/") || strings.HasPrefix(target, "../") {
		at := -1
		for i, p := range parts {
			if p == session && i+1 < len(parts) && slices.Contains(places, parts[i+1]) {
				at = i
			}
		}
		if id := len(parts) - 1; at < 0 && id > 0 && parts[id-1] == session {
			at = id - 1
		}
		up := slices.IndexFunc(parts, func(p string) bool { return p != ".." })
		if at < 0 && up > 0 && up+1 < len(parts) && slices.Contains(places, parts[up]) {
			at = up - 1
		}
		if at < 0 {
			return nil, errNoReference
		}
		parts = parts[at+1:]
	}
	if len(parts) == 0 || slices.Contains(parts, "..") || slices.Contains(parts, ".") {
		return nil, errNoReference
	}
	return parts, nil
}

// entryNamed finds an entry by the name of its file, with or without its ending, or by its id.
func entryNamed(snap *sessioncore.Snapshot, name string) (sessioncore.Entry, error) {
	if base, ok := strings.CutSuffix(name, entrySuffix); ok {
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
// the branch's path/.
func branchNamed(snap *sessioncore.Snapshot, parts []string) (e sessioncore.Entry, err error) {
	find := snap.FindBranchName
	if len(parts) > 1 && parts[0] == byIDName {
		find, parts = snap.FindBranch, parts[1:]
	} else if len(parts) > 0 && parts[0] == currentName {
		find = func(string) (sessioncore.Entry, error) { return snap.Leaf() }
	}
	inPath := len(parts) == 3 && parts[1] == pathName
	if len(parts) != 1 && !inPath || parts[0] == byIDName {
		return sessioncore.NoEntry, errNoReference
	}
	if e, err = find(parts[0]); err != nil || e == sessioncore.NoEntry || !inPath {
		return e, err
	}
	branch := snap.Branch(e)
	place, err := branch.FindPathName(parts[2])
	if err != nil {
		return sessioncore.NoEntry, err
	}
	return branch.Entries()[place], nil
}
