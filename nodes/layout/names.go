package layout

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/search"
)

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

const (
	// EntrySuffix ends the names of entries' files.
	EntrySuffix = ".json"

	// pathDigits is how many digits the numbers in branches/…/path/ have at least.
	pathDigits = 6
	// maxFileName is the longest file name that file systems take, in bytes: what is in path/ can be copied.
	maxFileName = 255
)

// PathName returns the name in path/ of the entry at a place of a branch, counted from 0: its number counted from 1,
// its path label, and the name of its file in entries/ (docs/design.md, branches/). The label is cut further if the
// name would be longer than file names can be.
func PathName(s *sessioncore.Snapshot, place int, e sessioncore.Entry) string {
	return numbered(place+1, pathDigits, s.PathLabel(e), s.Name(e))
}

// numbered returns the name of a link to an entry's file.
func numbered(number, digits int, label, name string) string {
	n := strconv.Itoa(number)
	if missing := digits - len(n); missing > 0 {
		n = "000000"[:missing] + n
	}
	return n + "-" + cutPathLabel(label, maxFileName-len(n)-len(name)-len("--"+EntrySuffix)) + "-" + name + EntrySuffix
}

// FindPathName returns the entry of a branch that has a name in path/, or sessioncore.ErrNotFound.
func FindPathName(s *sessioncore.Snapshot, branch *sessioncore.Branch, name string) (sessioncore.Entry, error) {
	entries := branch.Entries()
	number, _, _ := strings.Cut(name, "-")
	if n, err := strconv.ParseUint(number, 10, 31); err == nil && n >= 1 && n <= uint64(len(entries)) {
		if place := int(n) - 1; PathName(s, place, entries[place]) == name {
			return entries[place], nil
		}
	}
	return sessioncore.NoEntry, fmt.Errorf("%w: %q", sessioncore.ErrNotFound, name)
}

// cutPathLabel shortens a label of Snapshot.PathLabel to at most limit bytes. It cuts neither a %XX nor a character.
func cutPathLabel(label string, limit int) string {
	if len(label) <= limit {
		return label
	}
	at := 0
	for at < limit {
		n := len("%XX")
		if label[at] != '%' || len(label) == 1 {
			_, n = utf8.DecodeRuneInString(label[at:])
		}
		if at+n > limit {
			break
		}
		at += n
	}
	return label[:at]
}

// Names in search/, and in the directory of a query.
const (
	Search       = "search"
	HitsTable    = "results.tsv"
	HitsSessions = "sessions"
)

// HitName returns the name of a link to a hit: its number in the table, what it is, and the name of its file in entries/.
func HitName(number int, h *search.Hit) string {
	if h.Entry == "" {
		return fmt.Sprintf("%04d-%s", number, h.What)
	}
	return numbered(number, 4, h.What, h.Entry)
}

// HitSessions returns the first hit of each session among hits, in their order.
func HitSessions(hits []search.Hit) (first []*search.Hit) {
	seen := map[string]bool{}
	for i := range hits {
		if h := &hits[i]; !seen[h.File] {
			seen[h.File] = true
			first = append(first, h)
		}
	}
	return first
}

// HitSessionName returns the name of a link to a session that has hits.
func HitSessionName(number int, h *search.Hit) string {
	return names.FileName(fmt.Sprintf("%04d-%s", number, h.Session))
}
