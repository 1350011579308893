package claude

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file reads About's facts about a session from the records at both ends of its file.

// factReader collects these facts.
type factReader struct {
	id       string // the session's
	isListed bool   // the title is needed, too
	titles   titles
	moves    whereabouts
	first    string // the uuid of the first record, or ""
	copyOf   string // the session that a copied record names first, or ""
	origin   string // the session that was handed over, or ""
}

// fromEnds returns About as far as the session's own file tells it, and the uuid of its first record, "" if it has
// none at its beginning. With an error, both are as far as they were found before.
func (a Format) fromEnds(name string, obj storage.Object, size int64, listed bool) (about agents.About, first string, err error) {
	about = a.FactsAbout(name)
	if about.Side {
		return about, "", nil
	}
	e := factReader{id: about.ID, isListed: listed}
	err = agents.Ends(obj, size, e.isNeeded, e.add)
	about.Moved = e.moves.cwd()
	about.Parent = e.parent()
	if !listed || err != nil {
		return about, e.first, err
	}
	if e.titles.given() == "" && !e.titles.done { // the first prompt stands behind the beginning
		err = agents.Beyond(obj, size, e.isNeeded, func(v rawjson.Value) bool {
			e.titles.add(agents.Read(v))
			return !e.titles.done
		})
	}
	about.Title = e.titles.title()
	return about, e.first, err
}

// isNeeded reports whether a line may have a fact, and counts its bytes for the title.
func (e *factReader) isNeeded(line []byte) bool {
	e.titles.read += len(line)
	isTalkNeeded := e.first == "" || e.isListed && !e.titles.done
	if isTalkNeeded && bytes.Contains(line, []byte(`"uuid"`)) {
		return true
	}
	return namesParent(line)
}

// add adds a record. At the end of a file only given titles count, as its first prompt is elsewhere.
func (e *factReader) add(v rawjson.Value, isHead bool) {
	r := agents.Read(v)
	if isHead {
		e.titles.add(r)
	} else {
		e.titles.addGiven(r)
	}
	if e.first != "" && !namesParent(v) {
		return
	}
	if e.first == "" {
		e.first, _ = r.Member("uuid").Text()
	}
	e.moves.add(r)
	if e.origin == "" {
		e.origin = agents.OriginIn(r, e.id)
	}
	if e.copyOf == "" {
		e.copyOf = e.originalOf(r)
	}
}

// originalOf returns the other session that a record, copied into a fork, names, or "". Clients name it in a member
// of its own or in one of two spellings of the record's session. Records of some forks are exact copies.
func (e *factReader) originalOf(r agents.Object) string {
	named := []rawjson.Value{
		r.Member("forkedFrom").Member("sessionId"),
		r.Member("session_id"),
		r.Member("sessionId"),
	}
	for _, v := range named {
		id, _ := v.Text()
		if id != "" && id != e.id {
			return id
		}
	}
	return ""
}

// parent returns the original of the session, or "": named by copied records, else by a record about its branch, else by
// a handover.
func (e *factReader) parent() string {
	switch {
	case e.copyOf != "":
		return e.copyOf
	case e.moves.branchOf != "" && e.moves.branchOf != e.id:
		return e.moves.branchOf
	}
	return e.origin
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

// namesParent reports whether a line may have more for About than a record of the conversation: the original of a
// copy, or a fact of the client's own records.
func namesParent(line []byte) bool {
	isIn := func(w agents.Word) bool { return w.IsIn(line) }
	if slices.ContainsFunc(parentWords, isIn) {
		return true
	}
	if isTalk(line) {
		return false
	}
	return agents.HasAny(line, asideWords...) || agents.HasAny(line, moveWords...)
}

// MayMove implements agents.Starter. Behind the first record, About reads no directory in a record of
// the conversation.
func (Format) MayMove(head, tail []byte) bool {
	cut := bytes.IndexByte(tail, '\n') // the first line of the tail is not whole, and About does not read it
	hasFirst := false
	for _, text := range [][]byte{head, tail[cut+1:]} {
		for line := range bytes.Lines(text) {
			isLaterTalk := hasFirst && isTalk(line)
			if !isLaterTalk && agents.HasAny(line, moveWords...) {
				return true
			}
			hasFirst = hasFirst || hasUUID(line)
		}
	}
	return false
}

// hasUUID reports whether a line is a record of a conversation.
func hasUUID(line []byte) bool {
	v := agents.ObjectIn(line)
	uuid, _ := v.Member("uuid").Text()
	return uuid != ""
}

// whereabouts has the directory of a session that moved, and the original of a session that branched off.
type whereabouts struct {
	relocated string // "" if it did not move
	worktree  string // "" outside of a worktree
	branchOf  string // the id of a session, or ""
}

// add adds a record. The last one of several of a type counts.
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

// cwd returns the present directory of the session, "" if it did not move.
func (w *whereabouts) cwd() string {
	if w.worktree != "" {
		return w.worktree
	}
	return w.relocated
}
