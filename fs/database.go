package fs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/writer"
)

// openDatabase is openTree for a database: the sessions are rows of a table, and what a client keeps in its directory
// beside them (prompts, breadcrumbs, archived sessions) is not there.
func openDatabase(o options, log *slog.Logger) (t *tree, err error) {
	if err := o.CheckSource(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	memory := newMemory(o)
	rows, err := openRows(o, log, memory)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	t = &tree{place: strings.TrimSuffix(rows.Prefix(), "/"), closers: []func(){rows.Close}}
	var blobs storage.Storage // nil means none
	if o.Blobs != "" {
		if blobs, err = t.keep(dir.Open(o.Blobs)); err != nil {
			t.close()
			return nil, fmt.Errorf("%w: -o blobs: %w", ErrSource, err)
		}
	}
	options := writer.Options{Scopes: clients.ScopesOf(uint32(os.Geteuid()))}
	if rows.Several() {
		t.pathOf, options.PathOf = rows.PathOf, rows.PathOf
		options.Own = func() (string, error) { return ownSessions(rows, os.Getenv) }
	}
	t.openView(o, log, rows, rows, blobs, t.place, layout.Sessions, memory, options)
	if rows.Several() {
		t.view.Listing.SetPeople(rows.NameOf)
	}
	t.view.Statfs = statfsOfDatabase
	t.store.SetProgram(func(string) program.Program { return program.OMP }) // no other client has a database
	if blobs != nil && !o.Redact {
		t.unmasked = append(t.unmasked, nodes.SourceName(blobsName, blobs, nil))
	}
	t.setRoot(rows.Known(), nodes.SourceName(layout.Sessions, t.files, t.store), o.prices)
	rows.Notify(t.view.Lost, t.view.Back)
	return t, nil
}

// ownSessions returns the directory that has the sessions of this user's clients.
func ownSessions(rows *postgres.Storage, getenv func(string) string) (dir string, err error) {
	home := getenv("HOME")
	var places []string
	for _, agent := range []string{getenv("PI_CODING_AGENT_DIR"), filepath.Join(getenv("XDG_DATA_HOME"), "omp"), filepath.Join(home, ".omp", "agent")} {
		if !filepath.IsAbs(agent) {
			continue
		}
		place := filepath.Join(agent, layout.Sessions) + "/"
		if dir, _, ok := strings.Cut(rows.NameOf(place), "/"); ok {
			return dir, nil
		}
		places = append(places, place)
	}
	return "", fmt.Errorf("%w: the sessions of several people are here, and none in %s, where yours would be: mount with prefix=, the path of yours in the table", writer.ErrNotOwn, strings.Join(places, " or "))
}

func openRows(o options, log *slog.Logger, memory *budget.Budget) (*postgres.Storage, error) {
	source, err := postgres.ParseSource(o.Source)
	if err != nil {
		return nil, err
	}
	return postgres.Open(context.Background(), source, postgres.Options{Memory: memory, Log: log, Temporary: temporaryDir(), Fresh: postgres.Fresh, Empty: o.Empty})
}

// statfsOfDatabase answers statfs: how much room a database has is not known.
func statfsOfDatabase(out *fuse.StatfsOut) error {
	const block = 4096
	*out = fuse.StatfsOut{Bsize: block, Frsize: block, NameLen: syscall.NAME_MAX}
	return nil
}
