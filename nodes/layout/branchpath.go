package layout

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore"
)

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
	number := strconv.Itoa(place + 1)
	if n := pathDigits - len(number); n > 0 {
		number = "000000"[:n] + number
	}
	name := s.Name(e)
	label := cutPathLabel(s.PathLabel(e), maxFileName-len(number)-len(name)-len("--"+EntrySuffix))
	return number + "-" + label + "-" + name + EntrySuffix
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
