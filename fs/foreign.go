package fs

import (
	"log/slog"

	"sessionfs/sessioncore/agents"
	_ "sessionfs/sessioncore/agents/all" // registers them
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
	"sessionfs/sessioncore/storage/redact"
	"sessionfs/sessioncore/writer"
)

// openForeign opens the directory of another agent, whose sessions are shown and not changed.
func (t *tree) openForeign(o options, log *slog.Logger, memory *budget.Budget, shownIn string) error {
	source := t.source
	opened, err := t.agent.Open(agents.Source{
		Files: source, Path: source.Path(), Memory: memory, Temporary: temporaryDir(),
		Sub: func(name string) (storage.Files, string, error) {
			sub, err := t.sub(name)
			if err != nil {
				return nil, "", err
			}
			return sub, sub.Path(), nil
		},
	})
	if err != nil {
		return err
	}
	t.place, t.prompts = opened.Path, nil
	if t.agent.Prompts != nil {
		t.prompts = t.agent.Prompts(source)
	}
	raw := foreign.Shown{Files: opened.Files, Agent: opened.Agent}
	converted := foreign.New(raw, opened.Agent, memory, temporaryDir())
	t.openView(o, log, converted, nil, nil, t.place, shownIn, memory, writer.Options{})
	t.view.Foreign = true
	t.store.SetProgram(func(string) program.Program { return program.OMP }) // its format is what they are converted to
	t.files = raw
	if o.Redact {
		t.files = redact.New(raw, o.rules)
		return nil
	}
	t.bill = t.newBill(converted.Facts(), memory, t.store.Program)
	return nil
}
