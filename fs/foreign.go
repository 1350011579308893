package fs

import (
	"log/slog"
	"os"
	"path/filepath"

	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/claude"
	"sessionfs/sessioncore/storage/codex"
	"sessionfs/sessioncore/storage/foreign"
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

// AgentOf tells by the names in a directory whose it is.
func AgentOf(dir string) Agent {
	is := func(name string) bool {
		info, err := os.Stat(filepath.Join(dir, name))
		return err == nil && info.IsDir()
	}
	if is("projects") {
		return Claude
	}
	years, _ := filepath.Glob(filepath.Join(dir, "sessions", "[0-9][0-9][0-9][0-9]"))
	if len(years) > 0 || is("archived_sessions") {
		return Codex
	}
	return ""
}

// openForeign opens the directory of another agent, whose sessions are shown and not changed.
func (t *tree) openForeign(o mountopts.Options, log *slog.Logger, agent Agent) error {
	source, memory := t.source, newMemory(o)
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
		home := codex.New(source, source.Path())
		raw, how, t.place = home, home, filepath.Join(source.Path(), "sessions")
	}
	o.ReadOnly = true
	t.openView(o, log, foreign.New(raw, how, memory, temporaryDir()), nil, nil, t.place, memory, writer.Options{})
	t.view.Statfs = statfsOf(source)
	t.files = raw
	if o.Redact {
		t.files = redact.New(raw)
	}
	t.setRoot(source, layout.ByID{Listing: t.view.Listing})
	return nil
}
