package view

import (
	"strings"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// entryOf adds an entry by its type. It knows the types and fields of both dialects (docs/design.md
// section 9).
func (b *builder) entryOf(text rawjson.Value) {
	name := b.s.Kind(b.entry).String()
	if name == "" {
		name, _ = text.Member("type").Text()
	}
	switch name {
	case "message":
		b.message(b.s.Message(b.entry, text))
	case "custom_message":
		m := message.Read(text)
		b.custom(&m)
	case "compaction":
		b.compaction(text)
	case "branch_summary", "branch":
		b.branchSummary(text)
	case "custom", "custom_info", "leaf", "model_usage", "credential_pin":
		// Program state: nothing to show.
	default:
		b.change(name, text)
	}
}

// settings are the entries that set one thing, a value or a list of names.
var settings = map[string]struct {
	label string
	keys  []string
	none  string // in place of no value; "" for a list
}{
	"thinking_level_change": {"Thinking level:", []string{"thinkingLevel", "thinking_level"}, "off"},
	"mode_change":           {"Mode:", []string{"mode"}, "none"},
	"title_change":          {"Title:", []string{"title", "name"}, "none"},
	"session_info":          {"Title:", []string{"title", "name"}, "none"},
	"mcp_tool_selection":    {"Tools:", []string{"selectedToolNames", "selected_tool_names"}, ""},
	"ttsr_injection":        {"Rules brought to mind:", []string{"injectedRules", "injected_rules"}, ""},
	"session_init":          {"A task for a subagent, with the tools", []string{"tools"}, ""},
	"reset_boundary":        {"The context was cleared.", nil, ""},
}

// change adds one line for an entry of the type name that changes settings, or for one of any other type.
func (b *builder) change(name string, text rawjson.Value) {
	word := func(keys ...string) string {
		return b.word(text.AnyOf(keys...))
	}
	set, isSetting := settings[name]
	switch {
	case name == "model_change":
		model := word("model")
		if model == "" {
			model = modelName(text.Member("provider"), text.AnyOf("modelId", "model_id"))
		}
		b.model(word("role"), model)
	case name == "service_tier_change":
		tier := b.scalar(text.AnyOf("serviceTier", "service_tier"))
		if tier == "" {
			tier = "none"
		}
		b.note("Service tier:", tier)
	case name == "label":
		b.label(word("label"), codeOf(word("targetId", "target_id")))
	case name == "archive":
		said := "Archived, with all that follows it, entry"
		if !text.Member("archived").Truthy() {
			said = "Brought back from the archive, with all that follows it, entry"
		}
		b.note(said, word("targetId"))
	case isSetting:
		value := b.list(text.AnyOf(set.keys...))
		if set.none != "" {
			value = word(set.keys...)
			if value == "" {
				value = set.none
			}
		}
		b.note(set.label, value)
		if name == "session_init" {
			b.link("system prompt and task")
		}
	default:
		b.note("An entry of type", markdown.Line([]byte(name), maxWord))
		b.link("the entry")
	}
}

// model adds a change of the model of a role, or of the one for all others.
func (b *builder) model(role, model string) {
	if role == "" || role == "default" {
		b.note("Model:", model)
		return
	}
	b.note("Model for", role, model)
}

// label adds a label that was set on an entry, or taken from it if it is empty.
func (b *builder) label(label string, target span) {
	if label == "" {
		b.note("Label taken from entry", target.text)
		return
	}
	b.note("Label", label)
	b.more(span{style: emphasisStyle, text: "on entry"}, target)
}

// scalar returns a string as one line, and any other value as JSON.
func (b *builder) scalar(v rawjson.Value) string {
	if v.IsString() || v.Missing() {
		return b.word(v)
	}
	return markdown.Line(v, maxWord)
}

// maxListed is how many names of a list are shown.
const maxListed = 30

// list returns a list of names as one line.
func (b *builder) list(v rawjson.Value) string {
	var names []string
	for name := range v.EachElement {
		if len(names) == maxListed {
			names = append(names, "…")
			break
		}
		names = append(names, b.scalar(name))
	}
	return strings.Join(names, ", ")
}

// modelName returns a model's name with its provider, as PROVIDER/NAME, or the name alone without one. It is "" if
// the model has no name.
func modelName(provider, model rawjson.Value) string {
	name := shownLine(model, maxWord)
	of := shownLine(provider, maxWord)
	if of == "" || name == "" {
		return name
	}
	return of + "/" + name
}

// compaction adds the summary that replaces earlier turns in the context of the model.
func (b *builder) compaction(text rawjson.Value) {
	b.turn(beginsTurn, "compaction", "Compaction", "")
	before := ""
	tokens := text.AnyOf("tokensBefore", "tokens_before")
	const maxDigits = 19
	if tokens.IsNumber() && len(tokens) <= maxDigits {
		before = ", " + string(tokens) + " tokens"
	}
	b.note("The model goes on from this summary of what was said before" + before +
		", and from the turns that were kept.")
	summary := text.Member("summary")
	if !summary.Truthy() {
		summary = text.AnyOf("shortSummary", "short_summary")
	}
	b.prose(summary)
}

// branchSummary adds the summary of an abandoned branch.
func (b *builder) branchSummary(text rawjson.Value) {
	kind := text.Member("details").Member("kind")
	summary := text.Member("summary")
	leftAt := b.word(text.AnyOf("fromId", "from_id"))
	if !summary.Truthy() && kind.IsString() {
		b.note("Without a summary was left entry", leftAt)
		return
	}
	b.turn(beginsTurn, "branch", "Branch summary", "")
	b.note("What happened on the branch that was left at entry", leftAt)
	b.prose(summary)
}

// userHeading is the heading of a prompt.
const userHeading = "User"

// roleHeadings has the headings of turns by role.
var roleHeadings = map[string]string{
	"user": userHeading, "developer": "Developer", "system": "System",
	"bashExecution": "User ran a command", "pythonExecution": "User ran Python",
	"fileMention": "Files that the user mentioned",
}

// message adds the value of an entry's member "message".
func (b *builder) message(v rawjson.Value) {
	if v.Missing() {
		return
	}
	m := message.Read(v)
	role := m.Role()
	heading := roleHeadings[role]
	about := ""
	if b.skillCall(&m) {
		return
	}
	switch {
	case role == "assistant":
		b.assistant(&m)
		return
	case role == "toolResult" || role == "tool":
		b.turn(joinsTurn, "tool", "Tool result", "")
		b.result(&m, true)
		return
	case role == "custom" || role == "hookMessage":
		b.custom(&m)
		return
	case role == "branchSummary":
		b.branchSummary(v)
		return
	case role == "compactionSummary":
		b.compaction(v)
		return
	case heading == "":
		name, _ := m[message.Role].Text()
		heading = "Message"
		about = markdown.Line([]byte(name), maxWord)
	case m[message.Synthetic].Truthy():
		heading += " (automatic)"
	}
	flags := beginsTurn
	isOfUser := strings.HasPrefix(heading, userHeading) // also a command that the user ran
	if isOfUser && !m[message.Synthetic].Truthy() {
		flags |= fromUser
	}
	b.turn(flags, role, heading, about)
	switch {
	case role == "bashExecution" || role == "pythonExecution":
		b.execution(&m)
	case role == "fileMention":
		b.files(m[message.Files])
	case v.IsObject():
		b.each(m[message.Content], b.block)
	default:
		b.data(v)
	}
}

// skillCall adds a request that has the text of a skill: the words of the person, and a link to the
// text. It returns false for other messages.
func (b *builder) skillCall(m *message.Members) bool {
	skill := message.SkillOf(m)
	if skill == "" {
		return false
	}
	words, _ := message.Request(m)
	b.request(words)
	b.note("With the text of the skill", markdown.Line([]byte(skill), maxWord))
	b.link("the entry")
	return true
}

// request adds the words of a person.
func (b *builder) request(words rawjson.Value) {
	b.turn(beginsTurn|fromUser, "user", userHeading, "")
	b.each(words, b.block)
}

// custom adds a message of an extension, or a person's words in one.
func (b *builder) custom(m *message.Members) {
	if b.skillCall(m) {
		return
	}
	words, isRequest := message.Request(m)
	if isRequest {
		b.request(words)
		return
	}
	display := m[message.Display]
	isNotDisplayed := len(display) > 0 && !display.Truthy() // a message without the member is displayed
	if isNotDisplayed {
		b.note("Not displayed:", b.word(m[message.CustomType]))
		b.link("the entry")
		return
	}
	b.turn(beginsTurn, "custom", "Extension", b.word(m[message.CustomType]))
	b.each(m[message.Content], b.block)
}

// assistant adds a message of the model.
func (b *builder) assistant(m *message.Members) {
	model := modelName(m[message.Provider], m[message.Model])
	b.turn(fromAssistant, "assistant "+model, "Assistant", model)
	b.each(m[message.Content], b.block)
	problem := shownLine(m[message.ErrorMessage], maxProblem)
	if problem == "" && isUsualStop(m[message.StopReason]) {
		return
	}
	b.note("Stopped:", b.word(m[message.StopReason]))
	b.more(span{text: problem})
}

// isUsualStop reports whether a reason to stop is the end of an answer or a call of tools, or none.
func isUsualStop(reason rawjson.Value) bool {
	switch text, _ := reason.Text(); text {
	case "", "stop", "toolUse", "tool_use":
		return true
	}
	return false
}

// maxProblem is how many characters of an error message are shown.
const maxProblem = 500

// execution adds a command or code that the user ran.
func (b *builder) execution(m *message.Members) {
	b.output("sh", m[message.Command])
	b.output("python", m[message.Code])
	b.output("", m[message.Output])
	b.each(m[message.Images], b.block)
	if m[message.Cancelled].Truthy() {
		b.note("Cancelled.")
	} else {
		b.exitStatus(m[message.ExitCode])
	}
	if m[message.Truncated].Truthy() {
		b.note("The output was truncated when it was recorded.")
	}
	if m[message.Excluded].Truthy() {
		b.note("The model was not told.")
	}
}

// exitStatus adds the exit status of a command that failed.
func (b *builder) exitStatus(status rawjson.Value) {
	if status.IsNumber() && status.Truthy() {
		b.note("Exit status", b.scalar(status))
	}
}

// files adds files that were read because the user mentioned them.
func (b *builder) files(files rawjson.Value) {
	if !files.IsArray() {
		return
	}
	b.each(files, func(file rawjson.Value) {
		path := b.word(file.Member("path"))
		why := b.word(file.AnyOf("skippedReason", "skipped_reason"))
		if why != "" {
			b.note("File that was not read", path, why)
		} else {
			b.note("File", path)
		}
		b.output("", file.Member("content"))
		image := file.Member("image")
		if image.IsObject() {
			b.block(image)
		}
	})
}
