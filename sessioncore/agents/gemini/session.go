package gemini

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

var (
	_ foreign.FactsAgent = (*home)(nil)
	_ foreign.Joiner     = (*home)(nil)
)

var provider = foreign.Provider{API: "google-gemini-cli", Name: "google-gemini-cli", Model: "gemini"}

// IsSession implements foreign.Agent.
func (*home) IsSession(name string) bool {
	base := path.Base(name)
	return strings.HasSuffix(base, ending) && (strings.HasPrefix(base, prefix) || isSide(name))
}

// isSide reports whether a session lies below that of the agent that called it.
func isSide(name string) bool { return path.Base(path.Dir(name)) == subagentsDir }

// Join implements foreign.Joiner. Old clients write a session as one object.
func (h *home) Join(name string, obj storage.Object) storage.Object {
	if strings.HasSuffix(h.fileName(name), oldEnding) {
		return foreign.Unfold(obj, "messages")
	}
	return obj
}

// fileName returns the path of a session's file, which is name where it lies alone.
func (h *home) fileName(name string) string {
	if h.Raw == nil {
		return name
	}
	file, _, _ := h.real(name)
	return file
}

// Converter implements foreign.Agent.
func (*home) Converter(about foreign.About, _ storage.Object) foreign.Converter {
	return foreign.NewBuilder(about, provider, newConverter)
}

// About implements foreign.Agent.
func (h *home) About(name string, obj storage.Object, size int64, listed bool) (foreign.About, error) {
	project, _, _ := strings.Cut(name, "/")
	f := finder{}
	if h.Raw != nil {
		f.cwd = h.cwd(project)
	}
	about := h.FactsAbout(name)
	err := foreign.Ends(obj, size, tells, f.record)
	if err == nil && listed && f.title() == "" {
		err = foreign.Beyond(obj, size, tells, func(v rawjson.Value) bool {
			f.record(v, true)
			return f.title() == ""
		})
	}
	if !about.Side {
		about.ID = cmp.Or(f.id, about.ID)
	}
	if about.Moved = f.cwd; listed {
		about.Title = f.title()
	}
	return about, err
}

// FactsAbout implements foreign.FactsAgent. A session that is one object is converted anew at each change.
func (h *home) FactsAbout(name string) foreign.About {
	about := foreign.About{ID: strings.TrimSuffix(path.Base(name), ending), Side: isSide(name)}
	if file := h.fileName(name); h.Raw != nil && strings.HasSuffix(file, oldEnding) {
		st, _ := h.Raw.Stat(file)
		about.Before = fmt.Sprint(st.Token)
	}
	return about
}

// tells reports whether a line may say more than that it is a part of the talk.
func tells(line []byte) bool {
	return bytes.Contains(line, []byte(`"sessionId"`)) || bytes.Contains(line, []byte(`"summary"`)) ||
		bytes.Contains(line, []byte(`"user"`))
}

// finder finds the facts about a session in its records.
type finder struct{ id, cwd, named, prompt string }

func (f *finder) title() string { return cmp.Or(f.named, f.prompt) }

// record notes a record. A prompt behind a gap is not the first.
func (f *finder) record(v rawjson.Value, isHead bool) {
	if id, ok := v.Member("sessionId").Text(); ok && f.id == "" {
		f.id = id
	}
	for _, facts := range []rawjson.Value{v, v.Member("$set")} {
		if title, _ := facts.Member("summary").Text(); title != "" {
			f.named = title
		}
	}
	if !isHead {
		return
	}
	eachMessage(v, func(m rawjson.Value) {
		if m.Member("type").Is("user") {
			said := userOf(m)
			f.cwd = cmp.Or(f.cwd, said.directory())
			f.prompt = cmp.Or(f.prompt, said.title())
		}
	})
}

// eachMessage calls f for the messages in a record: itself, or all of a list.
func eachMessage(v rawjson.Value, f func(rawjson.Value)) {
	list := v.Member("messages")
	if set := v.Member("$set"); set.IsObject() {
		list = set.Member("messages")
	} else if v.Member("id").IsString() {
		f(v)
		return
	}
	list.EachElement(func(m rawjson.Value, _ int) bool {
		if m.Member("id").IsString() {
			f(m)
		}
		return true
	})
}
