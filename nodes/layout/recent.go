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
	for i, info := range d.infos(sessions) {
		entries = append(entries, linkTo(recentName(i, info), info))
	}
	return entries, nil
}

// Find finds a link by its whole name.
func (d Recent) Find(ctx context.Context, name string, known bool) (_ Entry, err error) {
	sessions := d.Listing.Known()
	if !known {
		if sessions, err = d.Listing.Sessions(ctx); err != nil {
			return Entry{}, err
		}
	}
	for i, info := range d.infos(sessions) {
		if recentName(i, info) == name && (!known || d.Listing.IsCurrent(info)) {
			return linkTo(name, info), nil
		}
	}
	return Entry{}, fmt.Errorf("%w: not among the recent ones", sessioncore.ErrNotFound)
}

// infos returns the sessions by rank.
func (d Recent) infos(sessions *listing.Sessions) (infos []*listing.Info) {
	for _, info := range sessions.All() {
		if len(infos) == recentCount {
			break
		}
		if d.Listing.HasDirectory(info) {
			infos = append(infos, info)
		}
	}
	return infos
}

// recentName returns the name of the link to the session of a rank, from 0.
func recentName(rank int, info *listing.Info) string {
	return names.FileName(fmt.Sprintf("%02d-%s", rank+1, info.DisplayName()))
}
