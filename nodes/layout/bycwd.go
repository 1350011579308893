package layout

import (
	"context"

	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// ByCwd is by-cwd/ and all directories below it: they nest like the working directories of the sessions. In each
// there is a link to every session of just that directory, and latest.
type ByCwd struct {
	Listing *listing.Listing
	Cwd     string // the working directory, an absolute path; "/" for by-cwd/ itself
}

var _ = (Directory)(ByCwd{})

// Stat has the time at which a session came or went last.
func (d ByCwd) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.CwdStat(ctx, d.Cwd) }

// List returns the subdirectories, the links to sessions and latest in the order of names.
func (d ByCwd) List(ctx context.Context) ([]Entry, error) {
	found, err := d.Listing.CwdList(ctx, d.Cwd)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(found))
	for i, e := range found {
		entries[i] = Entry{Name: e.Name, Sub: d.sub(e)}
	}
	sortByName(entries)
	return entries, nil
}

// Find finds a subdirectory, a session's link or latest.
func (d ByCwd) Find(ctx context.Context, name string, known bool) (Entry, error) {
	e, err := d.Listing.CwdFind(ctx, d.Cwd, name, known)
	switch {
	case err != nil:
		return Entry{}, err
	case e.Dir == "":
		return linkTo(name, e.Session), nil
	}
	return Entry{Name: name, Sub: d.sub(e), Stat: e.Stat}, nil
}

func (d ByCwd) sub(e listing.CwdEntry) Directory {
	if e.Dir == "" {
		return nil
	}
	return ByCwd{d.Listing, e.Dir}
}
