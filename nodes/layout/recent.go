package layout

import (
	"context"
	"fmt"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// recentCount is how many sessions recent/ holds (docs/design.md section 5).
const recentCount = 20

// Recent is recent/: links to the sessions that were modified last, named by their rank and what the client's short
// lists call them.
type Recent struct{ Listing *listing.Listing }

var _ = (Directory)(Recent{})

// Stat has the time at which a session came or went last.
func (d Recent) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the sessions by rank, all that Find sets included.
func (d Recent) List(ctx context.Context) ([]Entry, error) {
	sessions, err := d.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	d.each(sessions, func(name string, info *listing.Info) bool {
		entries = append(entries, linkTo(name, info))
		return true
	})
	return entries, nil
}

// Find finds a link by its whole name.
func (d Recent) Find(ctx context.Context, name string, known bool) (e Entry, err error) {
	sessions := d.Listing.Known()
	if !known {
		if sessions, err = d.Listing.Sessions(ctx); err != nil {
			return Entry{}, err
		}
	}
	err = fmt.Errorf("%w: not among the recent ones", sessioncore.ErrNotFound)
	d.each(sessions, func(called string, info *listing.Info) bool {
		if called == name && (!known || d.Listing.IsCurrent(info)) {
			e, err = linkTo(name, info), nil
		}
		return called != name
	})
	return e, err
}

// each calls f with the names of the links, by rank, until f returns false.
func (d Recent) each(sessions *listing.Sessions, f func(name string, info *listing.Info) bool) {
	rank := 0
	for _, info := range sessions.All() {
		if rank == recentCount {
			return
		}
		if !d.Listing.HasDirectory(info) {
			continue
		}
		rank++
		if !f(names.FileName(fmt.Sprintf("%02d-%s", rank, info.DisplayName())), info) {
			return
		}
	}
}
