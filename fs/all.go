package fs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"sessionfs/nodes"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage/union"
)

// openAll opens several agents. Each is a place of its own, as in a mount of it alone, so that each
// write follows that agent's rules and locks. The ways to find a session only read all places.
func (o *opener) openAll(p *place) error {
	var failed error
	leftOut := slices.Clip(o.LeftOut)
	for _, a := range o.Agents {
		agent := *o
		agent.Options = o.For(a)
		part, err := agent.open(a.Name)
		if err != nil {
			why := fmt.Errorf("%s: %w", a.Source, err)
			o.log.Error("an agent is left out", "agent", a.Name, "why", why) // for commands
			leftOut, failed = append(leftOut, a.Name+" is left out: "+why.Error()), cmp.Or(failed, why)
			continue
		}
		p.closers = append(p.closers, part.close)
		p.parts, p.shared = append(p.parts, part), p.shared || part.shared
	}
	if len(p.parts) == 0 {
		return cmp.Or(failed, fmt.Errorf("%w: no agent has sessions here", ErrSource))
	}
	p.unite()
	p.ready = func() {
		for _, part := range p.parts {
			agent := nodes.Agent{Name: part.name, View: part.view, Files: part.listed()}
			p.view.Agents = append(p.view.Agents, agent)
		}
		for _, out := range leftOut {
			p.view.LeaveOut(out)
		}
	}
	return nil
}

// unite makes a place of its parts. Its names are those of the first part that can be written.
func (p *place) unite() {
	var sides, bills []union.Part
	var prompts history.Several
	for _, part := range p.parts {
		sides = append(sides, union.Part{Name: part.name, Files: part.files})
		bills = append(bills, union.Part{Name: part.name, Files: part.billed().Storage()})
		if part.prompts != nil {
			prompts = append(prompts, history.Part{Agent: part.name, History: part.prompts})
		}
	}
	p.files, p.facts, p.prompts, p.keep = union.New(sides...), union.New(bills...), prompts, archivedSnapshots
	p.program = func(name string) program.Program {
		agent, file, _ := strings.Cut(name, "/")
		if i := slices.IndexFunc(p.parts, func(part *place) bool { return part.name == agent }); i >= 0 {
			return p.parts[i].program(file)
		}
		return program.Unknown
	}
	p.source, p.frozen = p.parts[0].source, nodes.ErrForeign
	if i := slices.IndexFunc(p.parts, func(part *place) bool { return part.frozen == nil }); i >= 0 {
		first := p.parts[i]
		p.source, p.frozen, p.archive, p.names = first.source, nil, first.archive, first.names
	}
	p.top = p.source
}
