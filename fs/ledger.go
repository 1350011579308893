package fs

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"sessionfs/sessioncore/ledger"
	"sessionfs/sessioncore/storage"
)

// noCache is the value of the option cache, and of the variable SESSIONFS_CACHE, for none.
const noCache = "none"

// openLedger opens the file with the charges of sessions that earlier commands read. It returns nil where there
// is to be none: where secrets are masked, where other machines write to SOURCE, whose changes a look at a file may
// show late, in a directory of SOURCE, and in the home of another user.
func (u *Unmounted) openLedger() *ledger.Book {
	o := u.options
	isRefused := o.NoCache || os.Getenv("SESSIONFS_CACHE") == noCache
	if isRefused || o.Redact {
		return nil
	}
	isShared := func(p *place) bool {
		return p.source != nil && p.source.Shared()
	}
	if isShared(u.tree.place) || slices.ContainsFunc(u.tree.parts, isShared) {
		return nil
	}
	dir, err := userDir("XDG_CACHE_HOME", ".cache")
	if err != nil {
		return nil
	}
	home := ownHome(filepath.Dir(dir))
	isServed := func(place string) bool {
		return isWithin(home, place)
	}
	if home == "" || slices.ContainsFunc(Directories(o, os.Getenv), isServed) {
		return nil // a file in SOURCE would be a change of it
	}
	maker, err := makerOfCharges()
	if err != nil {
		return nil
	}
	return ledger.Open(filepath.Join(dir, "charges"), maker)
}

// ownHome returns a user's directory for caches, without links, or, if it is not made yet, the directory that it would
// be made in. It returns "" if there is neither, or if that belongs to another user. So it is for root with the HOME of
// the user who called sudo.
func ownHome(caches string) string {
	for _, dir := range []string{caches, filepath.Dir(caches)} {
		home, err := filepath.EvalSymlinks(dir)
		if err != nil {
			continue
		}
		info, err := os.Stat(home)
		if err != nil || !storage.IsOwn(info) {
			return ""
		}
		return home
	}
	return ""
}

// makerOfCharges returns a hash of all that charges depend on besides the sessions: this build of the program, of which
// some packages have the same time for all, and the local days, as an answer may be billed on the day of its end.
func makerOfCharges() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	var offsets []int // of each month of a year, which tell a zone from another of the same name
	for month := time.January; month <= time.December; month++ {
		_, offset := time.Date(zoneYear, month, 1, 0, 0, 0, 0, time.Local).Zone()
		offsets = append(offsets, offset)
	}
	facts := fmt.Sprint(program, info.Size(), info.ModTime().UnixNano(), time.Local, offsets)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(facts))), nil
}

// zoneYear is always the same, so that what is kept outlives a month.
const zoneYear = 2026
