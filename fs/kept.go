package fs

import (
	"path/filepath"
	"sync"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/transfer"
)

// keptFiles are the copies of sessionfs keep of an agent's directory, which the first run may make at any
// time.
type keptFiles struct {
	// isAlone says that the directory is itself one with such copies, as the agent's is gone.
	isAlone bool
	none    *dir.Storage // has no files; nil unless isAlone
	dir     string       // of all kept sessions
	agent   *agents.Agent
	from    string // the agent's directory

	mu   sync.Mutex // guards open
	open *dir.Storage
}

// keptFiles returns the kept copies for the agent's directory of a place. There need not be any yet.
func (p *place) keptFiles() (k *keptFiles, err error) {
	k = &keptFiles{
		agent:   p.agent,
		from:    p.source.Path(),
		isAlone: transfer.HasKept(p.source.Path()),
	}
	if k.isAlone {
		k.none, err = p.opened(p.source.Sub(".none"))
		return k, err
	}
	k.dir, err = KeptDir()
	if err != nil { // this user has no home, and keeps nothing
		k.dir = ""
	}
	return k, nil
}

// over returns the files of the agent's directory, or of the directory name in it unless that is "", with the kept
// ones that are gone from it.
func (k *keptFiles) over(files *dir.Storage, name string) storage.Files {
	switch {
	case k.isAlone:
		return storage.Over(k.none, files) // which shows the last versions
	case k.dir == "":
		return files
	}
	return storage.OverLater(files, func() (storage.Files, bool) {
		return k.find(name)
	})
}

// find returns the kept copies of a directory in the agent's directory, or of that itself for "". ok is false as long
// as there are none.
func (k *keptFiles) find(name string) (files storage.Files, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.open == nil {
		copies := transfer.KeptIn(k.dir, k.agent.Name, k.from)
		if !transfer.HasKept(copies) {
			return nil, false
		}
		open, err := dir.Open(copies)
		if err != nil {
			return nil, false
		}
		k.open = open
	}
	if name == "" {
		return k.open, true
	}
	sub, err := k.open.Sub(name)
	return sub, err == nil
}

// KeptOf returns the directory with the kept sessions of a directory of an agent that is gone, "" for
// none.
func KeptOf(agent, gone string) string {
	kept, err := KeptDir()
	if err != nil {
		return ""
	}
	for _, from := range RealPaths(gone) { // as keep has named it, by a path without links
		copies := transfer.KeptIn(kept, agent, from)
		if transfer.HasKept(copies) {
			return filepath.Clean(copies)
		}
	}
	return ""
}
