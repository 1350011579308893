package fs

import (
	"log/slog"
	"path/filepath"

	"sessionfs/mountopts"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/claude"
	"sessionfs/sessioncore/storage/codex"
	"sessionfs/sessioncore/storage/foreign"
	"sessionfs/sessioncore/storage/gzip"
	"sessionfs/sessioncore/storage/redact"
	"sessionfs/sessioncore/writer"
)

// Agent is whose sessions are in a directory.
type Agent string

// The agents. That of omp, pi, xcsh and operator is "".
const (
	Claude Agent = "claude"
	Codex  Agent = "codex"
)

// AgentOf tells by the names in a directory whose it is. Many directories have one called projects: that of Claude Code has
// those of absolute paths. Whatever else is there, one with sessions of omp, which can be written, is omp's.
func AgentOf(dir string) Agent {
	has := func(name string) bool {
		found, _ := filepath.Glob(filepath.Join(dir, name))
		return len(found) > 0
	}
	switch {
	case has("sessions/-*/"):
	case has("projects/-*/") || has("projects/") && (filepath.Base(dir) == ".claude" || has("history.jsonl")):
		return Claude
	case has("sessions/[0-9][0-9][0-9][0-9]/[0-9][0-9]/") || filepath.Base(dir) == ".codex" && has("sessions/") || has("archived_sessions/"):
		return Codex
	}
	return ""
}

// openForeign opens the directory of another agent, whose sessions are shown and not changed.
func (t *tree) openForeign(o mountopts.Options, log *slog.Logger, agent Agent, memory *budget.Budget, shownIn string) error {
	source := t.source
	var raw storage.Files
	var how foreign.Agent
	switch agent {
	case Claude:
		projects, err := t.sub("projects")
		if err != nil {
			return err
		}
		raw, how, t.place = claude.NewProjects(projects), claude.Agent{}, projects.Path()
	default:
		home := codex.New(gzip.NewZstd(source, memory, temporaryDir()), source.Path())
		raw, how, t.place = home, home, filepath.Join(source.Path(), "sessions")
	}
	raw, o.ReadOnly = foreign.Shown{Files: raw, Agent: how}, true
	t.openView(o, log, foreign.New(raw, how, memory, temporaryDir()), nil, nil, t.place, shownIn, memory, writer.Options{})
	t.view.Foreign, t.prompts = true, history.NewLines(source)
	t.store.SetProgram(func(string) program.Program { return program.OMP }) // its format is what they are converted to
	t.files = raw
	if o.Redact {
		t.files = redact.New(raw)
	}
	return nil
}
