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

// Depth is 1.
func (d Recent) Depth() int { return 1 }

// Stat has the time at which a session came or went last.
func (d Recent) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the sessions by rank, all that Find sets included.
func (d Recent) List(ctx context.Context) ([]Entry, error) {
	sessions, err := d.Listing.Look(ctx)
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, info := range sessions.All() {
		if len(entries) == recentCount {
			break
		}
		if d.Listing.HasDirectory(info) {
			name := fmt.Sprintf("%02d-%s", len(entries)+1, info.DisplayName())
			entries = append(entries, linkTo(names.FileName(name), info))
		}
	}
	return entries, nil
}

// Find finds a link by its whole name.
func (d Recent) Find(ctx context.Context, name string) (Entry, error) {
	entries, err := d.List(ctx)
	if err != nil {
		return Entry{}, err
	}
	for _, e := range entries {
		if e.Name == name {
			return e, nil
		}
	}
	return Entry{}, fmt.Errorf("%w: not among the recent ones", sessioncore.ErrNotFound)
}
