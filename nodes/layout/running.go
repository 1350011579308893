package layout

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync/atomic"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

// Running is running/: a link to each session that an agent has open, by its name (docs/design.md
// section 5). It reads all breadcrumbs and the list of all locks once, so that its cost does not
// depend on the number of sessions while no agent runs.
type Running struct {
	Listing *listing.Listing
	Clients *clients.Clients
	Leases  *clients.Leases

	last atomic.Pointer[[]Entry] // the last listing
}

var _ = (Directory)((*Running)(nil))

// Stat returns the time at which a session was last added or removed.
func (d *Running) Stat(ctx context.Context) (storage.Stat, error) { return d.Listing.Stat(ctx) }

// List returns the sessions in the order of names, with the fields that Find sets.
func (d *Running) List(ctx context.Context) ([]Entry, error) {
	entries, err := d.links(ctx)
	if err == nil {
		d.last.Store(&entries)
	}
	return entries, err
}

// Find finds a link by its full name.
func (d *Running) Find(ctx context.Context, name string, known bool) (Entry, error) {
	var entries []Entry
	var err error
	if last := d.last.Load(); known && last != nil {
		entries = *last
	} else if entries, err = d.List(ctx); err != nil {
		return Entry{}, err
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.Name == name })
	if i < 0 {
		return Entry{}, fmt.Errorf("%w: no agent has such a session open", sessioncore.ErrNotFound)
	}
	return entries[i], nil
}

// links makes the links. Sessions that share a name have their id appended, except the oldest.
func (d *Running) links(ctx context.Context) ([]Entry, error) {
	infos, err := d.infos(ctx)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(infos, func(a, b *listing.Info) int {
		return strings.Compare(path.Base(a.Name()), path.Base(b.Name()))
	})
	var entries []Entry
	used := map[string]bool{}
	for _, info := range infos {
		name := info.DisplayName()
		if used[name] {
			name += " " + info.ID
		}
		used[name] = true
		entries = append(entries, linkTo(names.FileName(name), info))
	}
	sortByName(entries)
	return entries, nil
}

// infos returns the sessions that are open.
func (d *Running) infos(ctx context.Context) (open []*listing.Info, err error) {
	var named []string // sessions, or those of their subagents
	for _, file := range d.Clients.Named() {
		if s, err := d.Listing.Locate(ctx, file); err == nil {
			named = append(named, s.Name())
		}
	}
	held := d.Leases.Held()
	if len(named) == 0 && held == nil {
		return nil, nil
	}
	sessions, err := d.Listing.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	for _, info := range sessions.All() {
		isNamed := slices.ContainsFunc(named, func(name string) bool {
			return name == info.Name() || strings.HasPrefix(name, info.DirName()+"/")
		})
		if isNamed || held != nil && held(info.Name(), names.LeaseName(info.ID)) {
			open = append(open, info)
		}
	}
	return open, nil
}
