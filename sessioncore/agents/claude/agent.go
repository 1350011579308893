package claude

import (
	"context"
	"path"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/storage"
)

const (
	ending      = ".jsonl"
	subagents   = "subagents"
	agentPrefix = "agent-"
	// chainPrefix begins the names of subagents in a session's file, before their first uuid.
	chainPrefix = "sidechain-"
)

// Format reads Claude Code's sessions: PROJECT/ID.jsonl, and subagents below PROJECT/ID/subagents.
type Format struct {
	// Projects are searched for a fork's original; nil for no search.
	Projects *Projects
}

var _ agents.CalledFormat = Format{}

// IsSession implements agents.Format.
func (Format) IsSession(name string) bool {
	base := path.Base(name)
	if !strings.HasSuffix(base, ending) {
		return false
	}
	isInProject := strings.Count(name, "/") == 1
	return isInProject || isSubagent(base)
}

// isSubagent reports whether a file is the session of a subagent, by its name.
func isSubagent(base string) bool {
	return strings.HasPrefix(base, agentPrefix) || strings.HasPrefix(base, chainPrefix)
}

// Converter implements agents.Format.
func (a Format) Converter(about agents.About, _ storage.Object) *agents.Builder {
	return newConverter(about, a.Projects, "").Builder
}

// About implements agents.Format. If its records name no parent, that is looked for by the first record.
func (a Format) About(name string, obj storage.Object, size int64, listed bool) (agents.About, error) {
	about, first, err := a.fromEnds(name, obj, size, listed)
	mayBeCopy := about.Parent == "" && first != ""
	if mayBeCopy && a.Projects != nil {
		about.Parent = a.Projects.parentOf(name, first, listed)
	}
	return about, err
}

// Named implements agents.Starter. Exact copies are not looked for, as a name does not tell the parent.
func (a Format) Named(name string, obj storage.Object, size int64) (agents.About, error) {
	about, _, err := a.fromEnds(name, obj, size, true)
	return about, err
}

// InCaller implements agents.CalledFormat: the subagent that makes a summary gets a part of the talk, and the records
// of that hang on records that it does not get. It returns none if the caller's file is gone.
func (a Format) InCaller(ctx context.Context, name string, ids map[string]bool) (found map[string]bool, err error) {
	shown := parsePath(name)
	if a.Projects == nil || !shown.isBelowSubagents() {
		return nil, nil
	}
	obj, err := a.Projects.Raw.Open(shown.sessionFile())
	if storage.IsMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil, err
	}
	found = map[string]bool{}
	find := func(u *jsonl.Unit) error {
		uuid, _ := agents.Object(u.Members).Member("uuid").Text()
		if ids[uuid] {
			found[uuid] = true
		}
		return nil
	}
	_, err = jsonl.Records{}.Load(ctx, obj, jsonl.Position{}, st.Size, find)
	return found, err
}

// FactsAbout implements agents.FactsFormat.
func (Format) FactsAbout(name string) agents.About {
	id := strings.TrimSuffix(path.Base(name), ending)
	about := agents.About{ID: id, Side: isSubagent(id)}
	if !about.Side {
		return about
	}
	chain, isChain := strings.CutPrefix(id, chainPrefix)
	if isChain {
		about.Chain = chain
	} else {
		about.Before, _, _ = strings.Cut(name, "/") // the project, to find its parent's talk
	}
	isAlone := strings.Count(name, "/") == 1 // its session is gone
	if isAlone {
		about.ID = strings.TrimPrefix(id, agentPrefix) // the id that people know
	}
	return about
}

// Part implements agents.Sharer: the conversation of a subagent is a part of its session's file.
func (a Format) Part(name string, obj storage.Object) storage.Object {
	about := a.FactsAbout(name)
	shown := parsePath(name)
	if a.Projects == nil || about.Chain == "" || shown.entry == "" {
		return obj
	}
	return a.Projects.inside.Part(shown.sessionFile(), about.Chain, obj)
}
