package copilot

import (
	"bytes"
	"cmp"
	"regexp"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

// Beside returns the title that a session has in another file, for a search.
func (h *Home) Beside(name string) string {
	about := h.FactsAbout(name)
	return h.title(about.ID)
}

// FactsAbout implements foreign.FactsAgent.
func (h *Home) FactsAbout(name string) foreign.About {
	if _, _, agent := split(name); agent != "" {
		return foreign.About{ID: agent, Side: true, Chain: agent}
	}
	return foreign.About{ID: idOf(name)}
}

// About implements foreign.Agent. The title is that of workspace.yaml; for a list also the first prompt.
func (h *Home) About(name string, obj storage.Object, size int64, listed bool) (foreign.About, error) {
	about := h.FactsAbout(name)
	if about.Side {
		return about, nil
	}
	about.Title = h.title(about.ID)
	return lookAt(about, obj, size, listed)
}

// lookAt completes the facts by the events of a session.
func lookAt(about foreign.About, obj storage.Object, size int64, listed bool) (foreign.About, error) {
	l := look{id: about.ID, callers: callers{}}
	err := foreign.Ends(obj, size, l.wants, l.note)
	lacks := func() bool { return listed && about.Title+l.asked == "" || !listed && l.isCopy && l.parent == "" }
	if err == nil && lacks() {
		err = foreign.Beyond(obj, size, l.wants, func(event rawjson.Value) bool {
			l.note(event, true)
			return lacks()
		})
	}
	about.ID = cmp.Or(about.ID, l.id)
	if about.Parent = l.parent; listed {
		about.Title = cmp.Or(about.Title, l.asked)
	}
	return about, err
}

// look is a look at the events that say something of their session.
type look struct {
	id, asked, parent string
	isCopy            bool // the file has copies of the events of another session
	callers           callers
}

// wants reports whether a line may be such an event.
func (*look) wants(line []byte) bool {
	return bytes.Contains(line, []byte(`"session.start"`)) || bytes.Contains(line, []byte(`"user.message"`)) ||
		bytes.Contains(line, []byte(`"Forked from `)) || bytes.Contains(line, []byte(`"chatMessages"`))
}

// forked matches the note that a fork gets, with the ids of the original and of the fork.
var forked = regexp.MustCompile(`^Forked from ".*" \(([^() ]+)\) as ".*" \(([^() ]+)\)`)

// note notes an event. A prompt behind a gap is not the first.
func (l *look) note(v rawjson.Value, isHead bool) {
	event := foreign.Read(v)
	data := foreign.Read(event.Member("data"))
	agent := l.callers.of(event, data)
	switch typ := event.Member("type"); {
	case typ.Is("session.start"): // a fork has the time of the original's first event
		l.id, _ = data.Member("sessionId").Text()
		began, _, _ := rawjson.ReadTimestamp(data.Member("startTime"))
		written, _, ok := rawjson.ReadTimestamp(event.Member("timestamp"))
		l.isCopy = ok && began > written
	case typ.Is("session.info") && data.Member("infoType").Is("fork"):
		message, _ := data.Member("message").Text()
		if is := forked.FindStringSubmatch(message); is != nil && is[2] == l.id {
			l.parent = is[1]
		}
	case l.asked != "" || !isHead || agent != "":
	case typ.Is("user.message") && isPerson(data):
		l.asked = foreign.FirstLine(textOf(data.Member("content")))
	case typ.Is("session.import_legacy"):
		l.asked = askedIn(data.Member("legacySession").Member("chatMessages"))
	case event.Member("chatMessages").IsArray():
		l.id, _ = event.Member("sessionId").Text()
		l.asked = askedIn(event.Member("chatMessages"))
	}
}

// askedIn returns the first line of the first message of a person.
func askedIn(messages rawjson.Value) (asked string) {
	messages.EachElement(func(m rawjson.Value, _ int) bool {
		if m.Member("role").Is("user") {
			asked = foreign.FirstLine(textOf(m.Member("content")))
		}
		return asked == ""
	})
	return asked
}

// alone is a session in a file that lies anywhere.
type alone struct{ *Home }

// IsSession implements foreign.Agent.
func (alone) IsSession(string) bool { return true }

// About implements foreign.Agent. The session names itself.
func (alone) About(_ string, obj storage.Object, size int64, listed bool) (foreign.About, error) {
	return lookAt(foreign.About{}, obj, size, listed)
}
