package fs

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sessionfs/blobfs"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/writer"
)

// openDatabase opens a database: the sessions are rows of a table. A client's other files (prompts,
// breadcrumbs, archived sessions) are not there.
func (o *opener) openDatabase(p *place) error {
	if err := o.CheckSource(); err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	rows, err := o.openRows()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSource, err)
	}
	p.closers = append(p.closers, rows.Close)
	if o.Blobs != "" {
		blobs, err := p.opened(dir.Open(o.Blobs))
		if err != nil {
			return fmt.Errorf("%w: -o blobs: %w", ErrSource, err)
		}
		p.blobs = blobfs.New(blobs)
		p.names = func() []nodes.Name { return []nodes.Name{nodes.SourceName(blobsName, blobs, nil)} }
	}
	p.files, p.top, p.root = rows, rows.Known(), strings.TrimSuffix(rows.Prefix(), "/")
	p.program = func(string) program.Program { return program.OMP } // no other client has a database
	p.writer = writer.Options{Journal: rows, Scopes: clients.ScopesOf(uint32(os.Geteuid()))}
	if rows.Several() {
		p.nameOf, p.writer.PathOf = rows.NameOf, rows.PathOf
		p.writer.Own = func() (string, error) { return ownSessions(rows, os.Getenv) }
	}
	p.space = spaceOfDatabase
	p.ready = func() { rows.Notify(p.view.Lost, p.view.Back) }
	return nil
}

// ownSessions returns the directory of the sessions of this user's clients.
func ownSessions(rows *postgres.Storage, getenv func(string) string) (dir string, err error) {
	home := getenv("HOME")
	var places []string
	xdg, omp := filepath.Join(getenv("XDG_DATA_HOME"), "omp"), filepath.Join(home, ".omp", "agent")
	for _, agent := range []string{getenv("PI_CODING_AGENT_DIR"), xdg, omp} {
		if !filepath.IsAbs(agent) {
			continue
		}
		place := filepath.Join(agent, layout.Sessions) + "/"
		if dir, _, ok := strings.Cut(rows.NameOf(place), "/"); ok {
			return dir, nil
		}
		places = append(places, place)
	}
	const text = "%w: the sessions of several people are here, and none in %s, where yours would be: " +
		"mount with prefix=, the path of yours in the table"
	return "", fmt.Errorf(text, writer.ErrNotOwn, strings.Join(places, " or "))
}

func (o *opener) openRows() (*postgres.Storage, error) {
	source, err := postgres.ParseSource(o.Source)
	if err != nil {
		return nil, err
	}
	return postgres.Open(context.Background(), source, postgres.Options{
		Memory: o.memory, Log: o.log, Temporary: temporaryDir(), Fresh: postgres.Fresh, Empty: o.Empty,
	})
}

// spaceOfDatabase answers statfs for a database, whose free space is unknown.
func spaceOfDatabase() (nodes.Space, error) {
	const block = 4096
	return nodes.Space{BlockSize: block, FragmentSize: block}, nil
}
