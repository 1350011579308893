package agents

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxStub is the size of the largest file that may lack a conversation.
const maxStub = 64 << 10

var _ FactsFormat = (*Projects)(nil)

// IsSession implements Format.
func (p *Projects) IsSession(name string) bool {
	if !strings.HasSuffix(name, sessionEnding) {
		return false
	}
	isInProject := strings.Count(name, "/") == 1 // also of a subagent without its session
	hasID := p.Session(path.Base(name)) != ""
	return isInProject || isSide(name) || hasID
}

// isSide reports whether a name names a subagent's session.
func isSide(name string) bool { return path.Base(path.Dir(name)) == Subagents }

// Converter implements Format.
func (p *Projects) Converter(about About, _ storage.Object) *Builder { return p.builder(about) }

// builder returns a new Builder with the agent's converter. Answers without a model have the one of about.
func (p *Projects) builder(about About) *Builder {
	provider := p.Provider
	if about.Model != "" {
		provider.Model = about.Model
	}
	return NewBuilder(about, provider, p.Begin)
}

// FactsAbout implements FactsFormat. The model of a subagent may be in another file.
func (p *Projects) FactsAbout(name string) About {
	id := strings.TrimSuffix(path.Base(name), sessionEnding)
	about := About{ID: id, Side: isSide(name)}
	if p.Model == nil || p.Raw == nil || !about.Side {
		return about
	}
	file, kind, err := p.real(name)
	if err == nil && kind == storage.KindFile {
		about.Model = p.Model(file)
	}
	return about
}

// About implements Format.
func (p *Projects) About(name string, obj storage.Object, size int64, listed bool) (about About, err error) {
	about = p.FactsAbout(name)
	about.Moved = p.CwdBeside(name)
	if listed {
		builder := p.builder(about)
		about.Title, err = builder.FindTitle(obj, size, p.HasTitle)
	}
	return about, err
}

// CwdBeside returns the working directory of a session's project, "" if only records name it.
func (p *Projects) CwdBeside(name string) string {
	if p.Raw == nil {
		return ""
	}
	project, _, _ := strings.Cut(name, "/")
	return p.Cwd(project)
}

// isHidden reports whether a session is a copy: without a conversation beside one that has it, or
// copied to another project.
func (p *Projects) isHidden(project, name string, s *projectSession) bool {
	hasTalk := func(file string) bool { return !p.isStub(file) }
	hasTwins := len(s.twins) > 1 // else no file need be read
	if hasTwins && p.isStub(s.file) && slices.ContainsFunc(s.twins, hasTalk) {
		return true
	}
	return p.Copied(project, name)
}

// isStub reports whether a session has no conversation. It caches the answer. One that cannot be read is no stub.
func (p *Projects) isStub(file string) bool {
	isStub, _ := p.stubs.Get(p.Raw, file, func(st storage.Stat) (bool, error) {
		if st.Size > maxStub || !strings.HasSuffix(file, sessionEnding) {
			return false, nil
		}
		text, err := storage.ReadFile(p.Raw, file, maxStub)
		if err != nil {
			return false, err
		}
		return !p.hasMessage(text), nil
	})
	return isStub
}

// hasMessage reports whether a session that is made of the records in a text has a message.
func (p *Projects) hasMessage(text []byte) bool {
	b := p.builder(About{})
	var out []byte
	add := func(v rawjson.Value) {
		out = b.Add(out, v, 1) // the number of the line does not matter
	}
	everyLine := func([]byte) bool { return true }
	lines := &head{}
	lines.eachObject(text, everyLine, add)
	out = b.Tail(out)
	return bytes.Contains(out, []byte(`"message":{`))
}
