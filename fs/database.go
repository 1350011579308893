package fs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fuse"

	"sessionfs/blobfs"
	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/postgres"
	"sessionfs/sessioncore/storage/redact"
	"sessionfs/sessioncore/writer"
)

// openDatabase is openTree for a database: the sessions are rows of a table, and what a client keeps in its directory
// beside them (prompts, breadcrumbs, archived sessions) is not there.
func openDatabase(o mountopts.Options, log *slog.Logger) (t *tree, err error) {
	if err := o.CheckSource(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	memory := budget.New(cmp.Or(o.Memory, budget.Default))
	memory.LimitCollector(sessioncore.TakeReadingPeak)
	rows, err := openRows(o, log, memory)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSource, err)
	}
	at := strings.TrimSuffix(rows.Prefix(), "/")
	t = &tree{rows: closing{rows}, place: at}
	blobs, err := t.openBlobs(o, rows)
	if err != nil {
		t.closeStorages()
		return nil, fmt.Errorf("%w: -o blobs: %w", ErrSource, err)
	}
	t.openRowsView(o, log, rows, blobs, memory, at)
	names := t.names(rows, layout.ByID{Listing: t.view.Listing})
	if blobs != nil {
		names = append(names, blobsDir(t.view, blobs))
	}
	t.setRoot(rows, names)
	rows.Notify(t.view.Lost, t.view.Back)
	return t, nil
}

// openBlobs opens the blobs of a database: a directory, or a table that is made if it is not there. nil means none.
func (t *tree) openBlobs(o mountopts.Options, rows *postgres.Storage) (storage.Storage, error) {
	switch o.Blobs {
	case "":
		return nil, nil
	case mountopts.BlobsInDatabase:
		blobs, err := rows.OpenBlobs(context.Background(), !o.ReadOnly)
		if err != nil {
			return nil, err
		}
		t.rows = both{blobs, t.rows}
		return blobs, nil
	}
	blobs, err := dir.Open(o.Blobs)
	if err != nil {
		return nil, err
	}
	t.subs = append(t.subs, blobs)
	return blobs, nil
}

func openRows(o mountopts.Options, log *slog.Logger, memory *budget.Budget) (*postgres.Storage, error) {
	source, err := postgres.ParseSource(o.Source)
	if err != nil {
		return nil, err
	}
	return postgres.Open(context.Background(), source, postgres.Options{Memory: memory, Log: log, Temporary: temporaryDir(), Fresh: postgres.Fresh})
}

// openRowsView makes the view of the rows, whose paths begin with at. Without blobs references to them stay
// what they are.
func (t *tree) openRowsView(o mountopts.Options, log *slog.Logger, rows, blobs storage.Storage, memory *budget.Budget, at string) {
	shown, journal := storage.Files(rows), storage.Journal(rows)
	if o.Redact {
		shown, journal = redact.New(rows), nil
	}
	t.waiting = writer.NewWaiting(shown, memory)
	t.store = sessioncore.NewStore(t.waiting)
	t.store.SetProgram(func() program.Program { return program.OMP }) // no other client has a database
	list := listing.New(t.store, at)
	options := writer.Options{
		Journal: journal, Waiting: t.waiting,
		ReadOnly: o.ReadOnly, Sync: o.Sync, LiveAllow: o.LiveAllow, LeafMemory: o.LeafMemory, Root: at, Scope: list.Scope,
	}
	t.view = &nodes.View{
		Log: log, Listing: list, Sessions: t.store, ReadOnly: o.ReadOnly, Redacted: o.Redact, ContextSent: o.ContextSent,
		BlobRefs: o.ContextBlobsRef || o.Redact || blobs == nil, Memory: memory, Statfs: statfsOfDatabase,
	}
	if blobs != nil {
		store := blobfs.New(blobs)
		options.Blobs, t.view.Blobs = store, store
		if onDisk, ok := blobs.(*dir.Storage); ok {
			onDisk.OnNoDescriptor(t.store.Close)
		}
	}
	t.view.Writer = writer.New(t.store, options)
	t.view.Search = newSearcher(t.view, t.waiting, layout.Sessions)
}

// closing is a database as an io.Closer.
type closing struct{ *postgres.Storage }

// Close implements io.Closer.
func (c closing) Close() error {
	c.Storage.Close()
	return nil
}

// both are a table of blobs and the database that it is in.
type both struct {
	blobs *postgres.Blobs
	rows  io.Closer
}

// Close implements io.Closer.
func (b both) Close() error {
	b.blobs.Close()
	return b.rows.Close()
}

// statfsOfDatabase answers statfs: how much room a database has is not known.
func statfsOfDatabase(out *fuse.StatfsOut) error {
	const block = 4096
	*out = fuse.StatfsOut{Bsize: block, Frsize: block, NameLen: syscall.NAME_MAX}
	return nil
}
