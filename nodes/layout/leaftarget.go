package layout

import (
	"context"
	"fmt"
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
