package nodes

import (
	"fmt"
	"strings"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
)

// errNoReference means a target of leaf that names an entry in none of the accepted ways.
var errNoReference = fmt.Errorf("%w: the target of leaf must be an entry of this session: <id>, entries/<id>.json, tree/…/<id>, branches/<id> or by-label/<label>; or tree, the place before the first entry", sessioncore.ErrInvalid)

// treeName is the directory of the tree. As the target of leaf it stands for the position before the first
// entry.
const treeName = "tree"

// places are the directories in a session's directory through which a reference can lead.
var places = []string{"entries", treeName, branchesName, byLabelName}

// leafTarget finds the entry that a link's target names, in any way in which a script may have it
// (docs/design.md, leaf), or returns NoEntry for the position before the first entry.
func leafTarget(snap *sessioncore.Snapshot, in *reference, target string) (sessioncore.Entry, error) {
	parts, err := in.parts(target)
	if err != nil {
		return sessioncore.NoEntry, err
	}
	last := parts[len(parts)-1]
	if len(parts) == 1 {
		if last == treeName {
			return sessioncore.NoEntry, nil
		}
		return entryNamed(snap, last)
	}
	switch parts[0] {
	case "entries":
		base, ok := strings.CutSuffix(last, layout.EntrySuffix)
		if !ok || len(parts) != 2 {
			return sessioncore.NoEntry, errNoReference
		}
		return snap.FindName(base)
	case treeName:
		if last == layout.EntryLink && len(parts) > 2 {
			last = parts[len(parts)-2]
		}
		if last == layout.Deep || last == layout.EntryLink {
			return sessioncore.NoEntry, errNoReference
		}
		return layout.FindTreeName(snap, last)
	case branchesName:
		return branchNamed(snap, parts[1:])
	case byIDName: // the target of a link in branches/
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

// entryNamed finds an entry by the name of its file, with or without the suffix, or by its id.
func entryNamed(snap *sessioncore.Snapshot, name string) (sessioncore.Entry, error) {
	if base, ok := strings.CutSuffix(name, layout.EntrySuffix); ok {
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
	if len(parts) > 1 && parts[0] == byIDName {
		find, parts = snap.FindBranch, parts[1:]
	} else if len(parts) > 0 && parts[0] == currentName {
		find = func(string) (sessioncore.Entry, error) { return currentLeaf(snap) }
	}
	inPath := len(parts) == 3 && parts[1] == pathName
	if len(parts) != 1 && !inPath || parts[0] == byIDName {
		return sessioncore.NoEntry, errNoReference
	}
	if e, err = find(parts[0]); err != nil || !inPath {
		return e, err
	}
	return layout.FindPathName(snap, snap.Branch(e), parts[2])
}

// currentLeaf returns the entry at the leaf, or sessioncore.ErrNotFound if the leaf is before the first entry.
func currentLeaf(snap *sessioncore.Snapshot) (sessioncore.Entry, error) {
	leaf, err := snap.Leaf()
	if err == nil && leaf == sessioncore.NoEntry {
		err = fmt.Errorf("%w: the leaf is before the first entry", sessioncore.ErrNotFound)
	}
	return leaf, err
}
