package layout

import (
	"context"
	"fmt"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/storage"
)

// Continue is continue/: for each terminal a link to the session that its breadcrumb names. A breadcrumb that names
// no session of this store has no link.
type Continue struct {
	Listing *listing.Listing
	Crumbs  storage.Files // terminal-sessions/
}

var _ = (Directory)(Continue{})

// Stat mirrors the directory of breadcrumbs.
func (d Continue) Stat(_ context.Context) (storage.Stat, error) { return d.Crumbs.Stat("") }

// List returns the terminals in the order of the storage.
func (d Continue) List(ctx context.Context) ([]Entry, error) {
	crumbs, err := storage.List(d.Crumbs, "")
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, crumb := range crumbs {
		if crumb.Kind != storage.KindFile {
			continue
		}
		if e, err := d.Find(ctx, crumb.Name, false); err == nil {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Find follows the breadcrumb of a terminal. The link has its owner and times.
func (d Continue) Find(ctx context.Context, terminal string, _ bool) (Entry, error) {
	if terminal[0] == '.' {
		return Entry{}, fmt.Errorf("%w: no terminal is called %q", sessioncore.ErrNotFound, terminal)
	}
	st, err := d.Crumbs.Stat(terminal)
	if err != nil {
		return Entry{}, err
	}
	file, err := clients.ReadBreadcrumb(d.Crumbs, terminal)
	if err != nil {
		return Entry{}, err
	}
	session, err := d.Listing.Locate(ctx, file)
	if err != nil {
		return Entry{}, err
	}
	return Entry{Name: terminal, Session: SessionDir(session.Name()), Stat: st}, nil
}
