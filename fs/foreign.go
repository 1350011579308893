package fs

import (
	"sessionfs/nodes"
	"sessionfs/sessioncore/agents"
	_ "sessionfs/sessioncore/agents/all" // registers them
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

// openForeign opens the directory of another agent, whose sessions are shown and not changed.
func (o *opener) openForeign(p *place) error {
	opened, err := p.agent.Open(agents.Source{
		Files: p.source, Path: p.source.Path(), Memory: o.memory, Temporary: temporaryDir(),
		Sub: func(name string) (storage.Files, string, error) {
			sub, err := p.sub(name)
			if err != nil {
				return nil, "", err
			}
			return sub, sub.Path(), nil
		},
	})
	if err != nil {
		return err
	}
	raw := foreign.Shown{Files: opened.Files, Agent: opened.Agent}
	converted := foreign.New(raw, opened.Agent, o.memory, temporaryDir())
	p.files, p.raw, p.root, p.frozen = converted, raw, opened.Path, nodes.ErrForeign
	p.program = func(string) program.Program { return program.OMP } // its format is what they are converted to
	if !o.Redact {
		p.facts = converted.Facts()
	}
	if p.agent.Prompts != nil {
		p.prompts = p.agent.Prompts(p.source)
	}
	return nil
}
