package copilot

import (
	"regexp"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

var _ agents.FactsFormat = (*Home)(nil)

// IsSession implements agents.Format.
func (*Home) IsSession(name string) bool {
	return strings.HasSuffix(name, ending) && strings.Contains(name, "/")
}

// Beside returns the title that a session has in another file, for a search.
func (h *Home) Beside(name string) string { return h.title(h.FactsAbout(name).ID) }

// FactsAbout implements agents.FactsFormat. A file that lies elsewhere names its session itself.
func (h *Home) FactsAbout(name string) (about agents.About) {
	if h.Raw == nil {
		return about
	}
	session, subagent := h.Split(name)
	about.ID = session
	if subagent != "" {
		about.ID = subagent
		about.Side = true
		about.Chain = subagent
	}
	return about
}

// Converter implements agents.Format.
func (*Home) Converter(about agents.About, _ storage.Object) *agents.Builder {
	b, _ := newConverter(about)
	return b
}

// About implements agents.Format. The title comes from workspace.yaml; for a list also the first
// prompt.
func (h *Home) About(name string, obj storage.Object, size int64, listed bool) (agents.About, error) {
	about := h.FactsAbout(name)
	if about.Side {
		return about, nil
	}
	about.Title = h.title(about.ID)
	builder, c := newConverter(about)
	title, err := builder.FindTitle(obj, size, tells)
	needsParent := !listed && c.isCopy && c.parent == "" // its note is behind the copied events
	if needsParent && err == nil {
		err = agents.Beyond(obj, size, tells, func(v rawjson.Value) bool {
			builder.Add(nil, v, 1)
			return c.parent == ""
		})
	}
	about.Parent = c.parent
	if listed {
		about.Title = title
	}
	return about, err
}

// tells reports whether a line may have an event with a fact that lists show of a session.
func tells(line []byte) bool {
	return agents.HasAny(line, `"session.start"`, `"user.message"`, `"Forked from `, `"session.import_legacy"`)
}

// forked matches the note that a fork gets, with the ids of the original and of the fork.
var forked = regexp.MustCompile(`^Forked from ".*" \(([^() ]+)\) as ".*" \(([^() ]+)\)`)
