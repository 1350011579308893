package claude

import (
	"bytes"
	"context"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
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
	return strings.HasSuffix(base, ending) && (strings.Count(name, "/") == 1 || isSubagent(base))
}

// isSubagent reports whether a file is the session of a subagent, by its name.
func isSubagent(base string) bool {
	return strings.HasPrefix(base, agentPrefix) || strings.HasPrefix(base, chainPrefix)
}

// Converter implements agents.Format.
func (a Format) Converter(about agents.About, _ storage.Object) *agents.Builder {
	return newConverter(about, a.Projects, "").Builder
}

// About implements agents.Format.
func (a Format) About(name string, obj storage.Object, size int64, listed bool) (agents.About, error) {
	about, first, err := a.fromEnds(name, obj, size, listed)
	if !about.Side && about.Parent == "" && first != "" && a.Projects != nil {
		about.Parent = a.Projects.parentOf(name, first, listed)
	}
	return about, err
}

// Named implements agents.Starter. Exact copies are not looked for, as a name does not tell the parent.
func (a Format) Named(name string, obj storage.Object, size int64) (agents.About, error) {
	about, _, err := a.fromEnds(name, obj, size, true)
	return about, err
}

// fromEnds returns About as far as the session's own file tells it, and the uuid of its first record.
// The records copied into a fork name their session in a member of their own or in one of two
// spellings of the same, or they are exact copies.
func (a Format) fromEnds(name string, obj storage.Object, size int64, listed bool) (about agents.About, first string, err error) {
	about = a.FactsAbout(name)
	if about.Side {
		return about, "", nil
	}
	var titles titles
	var at whereabouts
	origin := "" // of a handover
	want := func(line []byte) bool {
		titles.read += len(line)
		isNeeded := first == "" || listed && !titles.done
		return isNeeded && bytes.Contains(line, []byte(`"uuid"`)) || namesParent(line)
	}
	err = agents.Ends(obj, size, want, func(v rawjson.Value, isHead bool) {
		r := agents.Read(v)
		if isHead {
			titles.add(r)
		} else {
			titles.named(r)
		}
		if first != "" && !namesParent(v) {
			return
		}
		if first == "" {
			first, _ = r.Member("uuid").Text()
		}
		at.add(r)
		if origin == "" {
			origin = agents.OriginIn(r, about.ID)
		}
		forked := r.Member("forkedFrom").Member("sessionId")
		for _, from := range []rawjson.Value{forked, r.Member("session_id"), r.Member("sessionId")} {
			if id, _ := from.Text(); id != "" && id != about.ID && about.Parent == "" {
				about.Parent = id
			}
		}
	})
	about.Moved = at.cwd()
	if about.Parent == "" && at.branchOf != about.ID {
		about.Parent = at.branchOf
	}
	if about.Parent == "" {
		about.Parent = origin
	}
	if !listed || err != nil {
		return about, first, err
	}
	if titles.given() == "" && !titles.done {
		err = agents.Beyond(obj, size, want, func(v rawjson.Value) bool {
			titles.add(agents.Read(v))
			return !titles.done
		})
	}
	about.Title = titles.title()
	return about, first, err
}

// InCaller implements agents.CalledFormat. The subagent that makes a summary gets a part of the talk,
// whose records hang on records that it does not get.
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
	_, err = jsonl.Records{}.Load(ctx, obj, jsonl.Position{}, st.Size, func(u *jsonl.Unit) error {
		uuid, _ := agents.Object(u.Members).Member("uuid").Text()
		if ids[uuid] {
			found[uuid] = true
		}
		return nil
	})
	return found, err
}

// FactsAbout implements agents.FactsFormat.
func (Format) FactsAbout(name string) agents.About {
	about := agents.About{ID: strings.TrimSuffix(path.Base(name), ending)}
	about.Side = isSubagent(about.ID)
	if about.Side {
		about.Chain, _ = strings.CutPrefix(about.ID, chainPrefix)
		if about.Chain == about.ID {
			about.Chain = ""
			about.Before, _, _ = strings.Cut(name, "/") // the project, to find its parent's talk
		}
		if strings.Count(name, "/") == 1 { // its session is gone: people know the id
			about.ID = strings.TrimPrefix(about.ID, agentPrefix)
		}
	}
	return about
}

// Part implements agents.Sharer.
func (a Format) Part(name string, obj storage.Object) storage.Object {
	about := a.FactsAbout(name)
	shown := parsePath(name)
	if a.Projects == nil || about.Chain == "" || shown.entry == "" {
		return obj
	}
	return a.Projects.inside.Part(shown.sessionFile(), about.Chain, obj)
}

// Words of records with facts for About, beside the conversation.
var (
	// parentWords name the original session of a copied record.
	parentWords = []agents.Word{agents.NewWord(`"forkedFrom"`, 'F'), agents.NewWord(`"session_id"`, '_')}
	// asideWords stand in the client's own records.
	asideWords = []string{`-title"`, `"summary"`, `"derived-from"`}
	// moveWords stand in records with another working directory.
	moveWords = []string{`"relocated"`, `"worktree-state"`}
)

// isTalk reports whether a line begins as most records of a conversation do. Such a record has no
// title and no directory.
func isTalk(line []byte) bool { return bytes.HasPrefix(line, []byte(`{"parentUuid":`)) }

// namesParent reports whether a line may have more for About than a record of the conversation.
func namesParent(line []byte) bool {
	isIn := func(w agents.Word) bool { return w.IsIn(line) }
	return slices.ContainsFunc(parentWords, isIn) ||
		!isTalk(line) && (agents.HasAny(line, asideWords...) || agents.HasAny(line, moveWords...))
}

// MayMove implements agents.Starter. Behind the first record, About reads no directory in a record of
// the conversation.
func (Format) MayMove(head, tail []byte) bool {
	hasFirst := false
	isIn := func(text []byte) bool {
		for line := range bytes.Lines(text) {
			if !(hasFirst && isTalk(line)) && agents.HasAny(line, moveWords...) {
				return true
			}
			hasFirst = hasFirst || hasUUID(line)
		}
		return false
	}
	behindCut := tail[bytes.IndexByte(tail, '\n')+1:] // as About reads it
	return isIn(head) || isIn(behindCut)
}

// hasUUID reports whether a line is a record of a conversation.
func hasUUID(line []byte) bool {
	v := agents.ObjectIn(line)
	uuid, _ := v.Member("uuid").Text()
	return uuid != ""
}

// whereabouts has the directory to which a session moved, and the session from which it branched.
type whereabouts struct{ relocated, worktree, branchOf string }

// add adds a record. The last one of several counts.
func (w *whereabouts) add(r agents.Object) {
	typ := r.Member("type")
	switch {
	case typ.Is("relocated"):
		w.relocated, _ = r.Member("relocatedCwd").Text()
	case typ.Is("worktree-state"): // null when the client has left the worktree
		w.worktree, _ = r.Member("worktreeSession").Member("worktreePath").Text()
	case typ.Is("derived-from"):
		for v := range r.Member("sessions").EachElement {
			if v.Member("via").Is("branch") {
				w.branchOf, _ = v.Member("id").Text()
			}
		}
	}
}

func (w *whereabouts) cwd() string {
	if w.worktree != "" {
		return w.worktree
	}
	return w.relocated
}
