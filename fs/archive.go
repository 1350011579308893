package fs

import (
	"os"
	"path/filepath"

	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/writer"
)

// archiveName is where the client puts archived sessions, in SOURCE (docs/format.md, omp after 18.2.3).
const archiveName = "archive/sessions"

// keepArchived is how many archived sessions keep a snapshot: what is kept of them comes on top of that of the others.
const keepArchived = 16

// archive is the archived sessions and where they are.
type archive struct {
	onDisk   *dir.Storage
	unpacked *gzip.Storage
	store    *sessioncore.Store
}

// openArchive returns a view of the archived sessions beside live.
func (t *tree) openArchive(live *nodes.View) (*nodes.View, error) {
	onDisk, err := t.sub(archiveName)
	if err != nil {
		return nil, err
	}
	a := &archive{onDisk: onDisk, unpacked: gzip.New(onDisk, live.Memory, temporaryDir())}
	a.store = sessioncore.NewStore(a.unpacked)
	a.store.Keep(keepArchived)
	a.store.SetProgram(func() program.Program { return program.OMP }) // pi archives nothing
	onDisk.OnNoDescriptor(a.store.Close)
	t.archive, t.closers = a, append(t.closers, a.unpacked.Close, a.store.Close)
	view := &nodes.View{
		Log: live.Log, Blobs: live.Blobs, BlobRefs: live.BlobRefs, Memory: live.Memory, Statfs: live.Statfs, ReadOnly: live.ReadOnly,
		ContextSent: live.ContextSent,
		Writer:      writer.New(a.store, writer.Options{ReadOnly: true}),
		Listing:     listing.NewIn(a.store, onDisk.Path(), layout.Archive),
		Sessions:    a.store,
		Live:        live,
	}
	view.Search = newSearcher(view, a.unpacked, layout.Archive)
	return view, nil
}

// temporaryDir is where large archives are unpacked to: /tmp is often in memory.
func temporaryDir() string {
	if d := os.Getenv("TMPDIR"); filepath.IsAbs(d) {
		return d
	}
	return "/var/tmp"
}
