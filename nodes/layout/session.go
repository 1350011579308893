package layout

import "sessionfs/sessioncore"

// Directories in the directory of a session.
const (
	// Artifacts has the session's own files. They are found, unlisted, in the session's directory too, so a path may
	// contain or omit the name.
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
	// CurrentBranch is the one fixed name in branches/ that can also be an id; the name of such an id has its first byte
	// encoded (docs/design.md section 1, Names).
	CurrentBranch = "current"
	BranchPath    = "path"
)

// EntryPath returns the path of an entry's file below the session's directory.
func EntryPath(s *sessioncore.Snapshot, e sessioncore.Entry) string {
	return Entries + "/" + s.Name(e) + EntrySuffix
}
