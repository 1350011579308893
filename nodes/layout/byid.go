package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// ByID is by-id/: a link for each session, named by its id. Every key that --resume takes is found
// (docs/design.md section 5).
type ByID struct {
	Listing *listing.Listing
	Archive *listing.Listing // nil for none: finds what nothing in Listing matches
}

var _ = (Directory)(ByID{})

// Stat has the time at which a session came or went last.
func (d ByID) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the ids in the order of names; of sessions with the same id there is one.
func (d ByID) List(ctx context.Context) ([]Entry, error) {
	sessions, err := d.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(sessions.All()))
	seen := make(map[string]bool, len(sessions.All()))
	for _, info := range sessions.All() {
		if !seen[info.ID] && d.Listing.HasDirectory(info) {
			seen[info.ID] = true
			entries = append(entries, Entry{Name: names.FileName(info.ID)})
		}
	}
	sortByName(entries)
	return entries, nil
}

// Find resolves a key as --resume does.
func (d ByID) Find(ctx context.Context, name string, known bool) (Entry, error) {
	info, err := d.Listing.Resume(ctx, name, known)
	to := ""
	if errors.Is(err, sessioncore.ErrNotFound) && !known {
		if d.Archive != nil {
			to = path.Join("..", Archive)
			info, err = d.Archive.Resume(ctx, name, false)
		}
		if errors.Is(err, sessioncore.ErrNotFound) {
			err = errNoKey
		}
	}
	if err != nil {
		return Entry{}, err
	}
	e := linkTo(name, info)
	e.Session = path.Join(to, e.Session)
	return e, nil
}

// errNoKey says what a key must be.
var errNoKey = fmt.Errorf("%w: no session's id or file name begins with it", fs.ErrNotExist)

// linkTo is a link to a session, with the owner and the times of its file.
func linkTo(name string, info *listing.Info) Entry {
	return Entry{Name: name, Session: info.DirName(), Stat: info.Stat}
}

func sortByName(entries []Entry) {
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
}
