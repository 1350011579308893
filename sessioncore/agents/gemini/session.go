package gemini

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

var (
	_ foreign.FactsAgent = (*home)(nil)
	_ foreign.Joiner     = (*home)(nil)
	_ storage.Files      = (*home)(nil)
)

// IsSession implements foreign.Agent.
func (*home) IsSession(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ending) && (strings.HasPrefix(base, prefix) || isSide(name))
}

// isSide reports whether a session lies below that of the agent that called it.
func isSide(name string) bool { return path.Base(path.Dir(name)) == foreign.Subagents }

// isOld reports whether a session is one object, and returns its file.
func (h *home) isOld(name string) (file string, is bool) {
	if file = name; h.Raw != nil {
		file, _, _ = h.Real(name)
	}
	return file, strings.HasSuffix(file, oldEnding)
}

// Join implements foreign.Joiner.
func (h *home) Join(name string, obj storage.Object) storage.Object {
	if _, isOld := h.isOld(name); isOld {
		return foreign.Unfold(obj, "messages")
	}
	return obj
}

// Converter implements foreign.Agent.
func (*home) Converter(about foreign.About, _ storage.Object) foreign.Converter {
	return newBuilder(about)
}

func newBuilder(about foreign.About) *foreign.Builder {
	provider := foreign.Provider{API: "google-gemini-cli", Name: "google-gemini-cli", Model: "gemini"}
	return foreign.NewBuilder(about, provider, newConverter)
}

// FactsAbout implements foreign.FactsAgent. A session that is one object is converted anew at each change.
func (h *home) FactsAbout(name string) foreign.About {
	about := foreign.About{ID: strings.TrimSuffix(path.Base(name), ending), Side: isSide(name)}
	if file, isOld := h.isOld(name); isOld && h.Raw != nil {
		st, _ := h.Raw.Stat(file)
		about.Before = fmt.Sprint(st.Token)
	}
	return about
}

// About implements foreign.Agent.
func (h *home) About(name string, obj storage.Object, size int64, listed bool) (about foreign.About, err error) {
	about = h.FactsAbout(name)
	if project, _, _ := strings.Cut(name, "/"); h.Raw != nil {
		about.Moved = h.cwd(project)
	}
	if listed {
		about.Title, err = newBuilder(about).FindTitle(obj, size, func(line []byte) bool {
			return bytes.Contains(line, []byte(`"summary"`)) || bytes.Contains(line, []byte(`"user"`))
		})
	}
	return about, err
}
