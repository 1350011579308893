package fs

import (
	"errors"
	"os"
	"path/filepath"

	"sessionfs/blobfs"
	"sessionfs/mountopts"
	"sessionfs/nodes"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/writer"
)

// The visible directories of SOURCE. All else is hidden, as it holds credentials and settings
// (docs/design.md section 1).
const (
	blobsName     = "blobs"
	terminalsName = "terminal-sessions"
	archiveName   = "archive/sessions" // of the client (docs/format.md, omp after 18.2.3)
)

// archivedSnapshots is the maximum number of cached snapshots of archived sessions.
const archivedSnapshots = 16

// openDir opens the agent directory of omp or pi.
func (o *opener) openDir(p *place) error {
	source := p.source
	flat := piSessionDir(source, o.Source, os.Getenv)
	onDisk, err1 := p.openSessions(layout.Sessions, flat)
	blobs, err2 := p.sub(blobsName)
	terminals, err3 := p.openTerminals(o.State)
	if err := errors.Join(err1, err2, err3); err != nil {
		return err
	}
	owner, err := source.Stat("")
	if err != nil {
		return err
	}
	onDisk.SetSharing(sharing(o.Options)) // pi's sessions may be on another file system
	paths := []string{o.Source, o.SourceAs, source.Path()}
	for _, path := range clients.AgentDirs(os.Getenv, paths...) {
		onDisk.AlsoAt(filepath.Join(path, layout.Sessions))
	}
	live := clients.New(source, terminals)
	leases := clients.NewLeases(clients.LeaseDirs(os.Getenv, paths...)...).Beside(onDisk.Paths()...)
	p.files, p.root, p.blobs, p.shared = onDisk, onDisk.Path(), blobfs.New(blobs), onDisk.Shared()
	p.prompts, p.program = history.New(source), program.NewRoot(source, o.Source, source.Path()).Program
	p.writer = writer.Options{
		Journal: onDisk,
		Crumbs:  terminals,
		Clients: live,
		Leases:  leases,
		Flat:    flat != "",
		Scopes:  clients.ScopesOf(owner.UID),
	}
	if o.Redact {
		return nil
	}
	p.names = func() []nodes.Name {
		list := p.view.Listing
		return []nodes.Name{
			nodes.ArchiveName(p.archive.raw),
			nodes.SourceName(blobsName, blobs, nil),
			nodes.UnlessEmpty("continue", layout.Continue{Listing: list, Crumbs: terminals}, "continue"),
			nodes.UnlessEmpty("running", &layout.Running{Listing: list, Clients: live, Leases: leases}, ""),
			nodes.SourceName(terminalsName, terminals, nil),
		}
	}
	p.archive, err = o.openArchive(p)
	return err
}

// openArchive opens the archived sessions beside others.
func (o *opener) openArchive(live *place) (*place, error) {
	p := &place{
		source: live.source, shownIn: layout.Archive, blobs: live.blobs, keep: archivedSnapshots,
		frozen:  nodes.ErrArchived,
		program: func(string) program.Program { return program.OMP }, // pi archives nothing
	}
	live.closers = append(live.closers, p.close)
	onDisk, err := p.sub(archiveName)
	if err != nil {
		return nil, err
	}
	p.files, p.raw, p.root = gzip.New(onDisk, o.memory, temporaryDir()), onDisk, onDisk.Path()
	return p, nil
}

// openTerminals opens the directory of the breadcrumbs, which is in state unless that is empty.
func (p *place) openTerminals(state string) (*dir.Storage, error) {
	if state == "" {
		return p.sub(terminalsName)
	}
	parent, err := p.opened(dir.Open(state))
	if err != nil {
		return nil, err
	}
	return p.opened(parent.Sub(terminalsName))
}

// sharing returns the sharing with other machines that the options select.
func sharing(o mountopts.Options) dir.Sharing {
	switch {
	case o.Shared:
		return dir.SharingAlways
	case o.NotShared:
		return dir.SharingNever
	}
	return dir.SharingDetected
}
