package fs

import (
	"os"
	"path/filepath"

	"sessionfs/nodes"
	"sessionfs/sessioncore/agents"
	_ "sessionfs/sessioncore/agents/all" // registers the agents
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/storage/foreign"
	"sessionfs/sessioncore/storage/union"
	"sessionfs/sessioncore/transfer"
)

// openForeign opens the directory of another agent, whose sessions are read-only.
func (o *opener) openForeign(p *place) error {
	files, kept, err := p.withKept()
	if err != nil {
		return err
	}
	opened, err := p.agent.Open(agents.Source{
		Files: files, Path: p.source.Path(), Memory: o.memory, Temporary: temporaryDir(),
		Sub: func(name string) (storage.Files, string, error) {
			sub, err := p.sub(name)
			if err != nil {
				return nil, "", err
			}
			if kept == nil {
				return sub, sub.Path(), nil
			}
			more, err := p.opened(kept.Sub(name))
			return union.Over(sub, more), sub.Path(), err
		},
	})
	if err != nil {
		return err
	}
	raw := foreign.Shown{Files: opened.Files, Agent: opened.Agent}
	converted := foreign.New(raw, opened.Agent, o.memory, temporaryDir())
	p.files, p.raw, p.root, p.frozen = converted, raw, opened.Path, nodes.ErrForeign
	p.program = func(string) program.Program { return program.OMP } // they are converted to its format
	if !o.Redact {
		p.facts = converted.Facts()
	}
	if p.agent.Prompts != nil {
		p.prompts = p.agent.Prompts(p.source)
	}
	return nil
}

// withKept returns the agent's directory with the copies of sessionfs keep, and those alone or nil.
func (p *place) withKept() (files storage.Files, kept *dir.Storage, err error) {
	keptDir, err := KeptDir()
	if err != nil {
		return p.source, nil, nil
	}
	at := transfer.KeptIn(keptDir, p.agent.Name, p.source.Path())
	if _, err := os.Stat(filepath.Join(at, transfer.FromName)); err != nil {
		return p.source, nil, nil
	}
	if kept, err = p.opened(dir.Open(at)); err != nil {
		return nil, nil, err
	}
	return union.Over(p.source, kept), kept, nil
}

// KeptDir returns the directory in which sessionfs keep puts sessions. The error is that this user
// has no home.
func KeptDir() (string, error) {
	data, err := userDir("XDG_DATA_HOME", ".local/share")
	return filepath.Join(data, "kept"), err
}
