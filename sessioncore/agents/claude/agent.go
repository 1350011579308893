package claude

import (
	"bytes"
	"cmp"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	ending      = ".jsonl"
	subagents   = "subagents"
	agentPrefix = "agent-"
	// chainPrefix begins the names of subagents' sessions that are a part of another session's file. The uuid of their first
	// record follows.
	chainPrefix = "sidechain-"
)

// Agent is how Claude Code keeps sessions: PROJECT/ID.jsonl, and below PROJECT/ID/subagents those of subagents.
type Agent struct {
	// Projects are those among which a fork's original is looked for; nil looks for none.
	Projects *Projects
}

// IsSession implements foreign.Agent.
func (Agent) IsSession(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ending) && (strings.Count(name, "/") == 1 || isSubagent(base))
}

// isSubagent reports whether a file is the session of a subagent, by its name.
func isSubagent(base string) bool {
	return strings.HasPrefix(base, agentPrefix) || strings.HasPrefix(base, chainPrefix)
}

// Converter implements foreign.Agent.
func (a Agent) Converter(about foreign.About, _ storage.Object) foreign.Converter {
	c := newConverter(about, newLearned())
	c.projects = a.Projects
	return c
}

// About implements foreign.Agent. A fork has copies of records that name the session they are from: in a member of their own,
// or in one of two spellings of the same; or they are copied as they are.
func (a Agent) About(name string, obj storage.Object, size int64, listed bool) (foreign.About, error) {
	about := a.FactsAbout(name)
	if about.Side {
		return about, nil
	}
	var titles titles
	var at whereabouts
	first := ""
	want := func(line []byte) bool {
		titles.read += len(line)
		isNeeded := first == "" || listed && !titles.done
		return isNeeded && bytes.Contains(line, []byte(`"uuid"`)) || tellsParent(line)
	}
	err := foreign.Ends(obj, size, want, func(v rawjson.Value, isHead bool) {
		r := foreign.Read(v)
		if isHead {
			titles.note(r)
		} else {
			titles.named(r)
		}
		if first != "" && !tellsParent(v) {
			return
		}
		if first == "" {
			first, _ = r.Member("uuid").Text()
		}
		at.note(r)
		for _, from := range []rawjson.Value{r.Member("forkedFrom").Member("sessionId"), r.Member("session_id"), r.Member("sessionId")} {
			if id, _ := from.Text(); id != "" && id != about.ID && about.Parent == "" {
				about.Parent = id
			}
		}
	})
	about.Moved = at.cwd()
	if about.Parent == "" && at.branchOf != about.ID {
		about.Parent = at.branchOf
	}
	if about.Parent == "" && first != "" && a.Projects != nil {
		about.Parent = a.Projects.parentOf(name, first, listed)
	}
	if !listed || err != nil {
		return about, err
	}
	if titles.title() == "" && !titles.done {
		err = foreign.Beyond(obj, size, want, func(v rawjson.Value) bool {
			titles.note(foreign.Read(v))
			return !titles.done
		})
	}
	about.Title = titles.title()
	return about, err
}

// FactsAbout implements foreign.FactsAgent.
func (Agent) FactsAbout(name string) foreign.About {
	about := foreign.About{ID: strings.TrimSuffix(path.Base(name), ending)}
	if about.Side = isSubagent(about.ID); about.Side {
		about.Chain, _ = strings.CutPrefix(about.ID, chainPrefix)
		if about.Chain == about.ID {
			about.Chain = ""
			about.Before, _, _ = strings.Cut(name, "/") // the project, for its parent's talk
		}
	}
	return about
}

// tellsParent reports whether a line may say more than that it is a record of the session. Most lines begin with the parent of
// a record of the conversation, which has no title and no directory.
func tellsParent(line []byte) bool {
	words := [...]string{`"forkedFrom"`, `"session_id"`, `-title"`, `"summary"`, `"relocated"`, `"worktree-state"`, `"derived-from"`}
	own := words[:]
	if bytes.HasPrefix(line, []byte(`{"parentUuid":`)) {
		own = words[:2]
	}
	return slices.ContainsFunc(own, func(word string) bool { return bytes.Contains(line, []byte(word)) })
}

// whereabouts names the directory to which a session moved, and the session that it branched off, as recorded.
type whereabouts struct{ relocated, worktree, branchOf string }

// note handles a record. Of several the last one counts.
func (w *whereabouts) note(r foreign.Object) {
	switch typ := r.Member("type"); {
	case typ.Is("relocated"):
		w.relocated, _ = r.Member("relocatedCwd").Text()
	case typ.Is("worktree-state"): // null when the client has left the worktree
		w.worktree, _ = r.Member("worktreeSession").Member("worktreePath").Text()
	case typ.Is("derived-from"):
		r.Member("sessions").EachElement(func(v rawjson.Value, _ int) bool {
			if v.Member("via").Is("branch") {
				w.branchOf, _ = v.Member("id").Text()
			}
			return true
		})
	}
}

func (w *whereabouts) cwd() string { return cmp.Or(w.worktree, w.relocated) }
