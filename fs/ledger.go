package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"sessionfs/sessioncore/ledger"
)

// noCache is the value of the option cache, and of the variable SESSIONFS_CACHE, for none.
const noCache = "none"

// openLedger opens the file with the charges of sessions that earlier commands read. It returns nil where there
// is to be none: where secrets are masked, in a directory of SOURCE, and in the home of another user.
func (u *Unmounted) openLedger() *ledger.Book {
	o := u.options
	if o.Redact || o.NoCache || os.Getenv("SESSIONFS_CACHE") == noCache {
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
		return nil
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
		if err != nil {
			return ""
		}
		st, isKnown := info.Sys().(*syscall.Stat_t)
		isOwn := isKnown && int(st.Uid) == os.Geteuid()
		if !isOwn {
			return ""
		}
		return home
	}
	return ""
}

// makerOfCharges names all that charges depend on besides the sessions: this build of the program, and the local
// days, as an answer may be billed on the day of its end.
func makerOfCharges() (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	info, err := os.Stat(program)
	if err != nil {
		return "", err
	}
	zone := make([]int, 0, zoneMonths)
	month := time.Now()
	for range zoneMonths {
		_, offset := month.Zone()
		zone = append(zone, offset)
		month = month.AddDate(0, -1, 0)
	}
	return fmt.Sprint(info.Size(), info.ModTime().UnixNano(), time.Local, zone), nil
}

// zoneMonths is how many months, the last ones, tell a zone from another of the same name.
const zoneMonths = 24
