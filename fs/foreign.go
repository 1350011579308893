package fs

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

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
	Claude Agent = claude.Name
	Codex  Agent = codex.Name
)

// AgentOf tells by the names in a directory whose it is. Many directories have one called projects: that of Claude Code has
// those of absolute paths, also of Windows (C--). Whatever else is there, one with sessions of omp, which can be written, is omp's.
func AgentOf(dir string) Agent {
	in := func(name string) string { return filepath.Join(dir, name) }
	sessions, projects := in("sessions"), in("projects")
	_, noPrompts := os.Stat(in("history.jsonl"))
	switch {
	case HasScopes(dir):
	case hasDir(projects, "-*") || hasDir(projects, "[A-Za-z]--*") || hasDir(projects) && (filepath.Base(dir) == ".claude" || noPrompts == nil):
		return Claude
	case hasDir(sessions, "[0-9][0-9][0-9][0-9]", "[0-9][0-9]") || hasDir(sessions) && filepath.Base(dir) == ".codex" ||
		hasDir(in("archived_sessions")) || hasRollout(sessions):
		return Codex
	}
	return ""
}

// HasScopes reports whether an agent directory has sessions of omp or pi, by the names of the directories in which these are.
func HasScopes(dir string) bool { return hasDir(filepath.Join(dir, "sessions"), "-*") }

// maxNames is how many names of a directory are looked at to tell whose it is. One that has more has them of one kind.
const maxNames = 1024

// hasDir reports whether dir is a directory in which there is one, at each level, whose name matches the next of patterns.
func hasDir(dir string, patterns ...string) bool {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || len(patterns) == 0 {
		return err == nil && info.IsDir()
	}
	return slices.ContainsFunc(namesIn(dir), func(name string) bool {
		matches, _ := filepath.Match(patterns[0], name)
		return matches && hasDir(filepath.Join(dir, name), patterns[1:]...)
	})
}

// namesIn returns up to maxNames names in a directory, in no order.
func namesIn(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(maxNames) // names read before an error count
	return names
}

// hasRollout reports whether a rollout of Codex lies directly in a directory.
func hasRollout(dir string) bool {
	return slices.ContainsFunc(namesIn(dir), func(name string) bool { return strings.HasPrefix(name, "rollout-") })
}

// openForeign opens the directory of another agent, whose sessions are shown and not changed.
func (t *tree) openForeign(o options, log *slog.Logger, agent Agent, memory *budget.Budget, shownIn string) error {
	source := t.source
	var raw storage.Files
	var how foreign.Agent
	switch agent {
	case Claude:
		projects, err := t.sub("projects")
		if err != nil {
			return err
		}
		p := claude.NewProjects(projects)
		raw, how, t.place = p, claude.Agent{Projects: p}, projects.Path()
	default:
		home := codex.New(gzip.NewZstd(source, memory, temporaryDir()), source.Path())
		raw, how, t.place = home, home, filepath.Join(source.Path(), "sessions")
	}
	raw = foreign.Shown{Files: raw, Agent: how}
	t.openView(o, log, foreign.New(raw, how, memory, temporaryDir()), nil, nil, t.place, shownIn, memory, writer.Options{})
	t.view.Foreign, t.prompts = true, history.Lines{Files: source}
	t.store.SetProgram(func(string) program.Program { return program.OMP }) // its format is what they are converted to
	t.files = raw
	if o.Redact {
		t.files = redact.New(raw, o.rules)
	}
	return nil
}
