package transcript

import (
	"bytes"
	"cmp"

	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// entryOf renders an entry by its type. It knows the types and fields of both dialects (docs/design.md section 9).
func (w *renderer) entryOf(text rawjson.Value) {
	name := w.s.Kind(w.entry).String()
	if name == "" {
		name, _ = text.Member("type").Text()
	}
	switch name {
	case "message":
		w.message(w.s.Message(w.entry, text))
	case "custom_message":
		m := message.Read(text)
		w.custom(&m)
	case "compaction":
		w.compaction(text)
	case "branch_summary", "branch":
		w.branchSummary(text)
	case "custom", "custom_info", "leaf", "model_usage", "credential_pin":
		// Program state: nothing to show.
	default:
		w.change(name, text)
	}
}

// change renders an entry that changes settings, or one of any other type, as one line.
func (w *renderer) change(name string, text rawjson.Value) {
	line := func(keys ...string) []byte { return w.line(text.AnyOf(keys...)) }
	switch name {
	case "model_change":
		model := line("model")
		if len(model) == 0 {
			model = modelName(text.Member("provider"), text.AnyOf("modelId", "model_id"))
		}
		if role := line("role"); len(role) > 0 && string(role) != "default" {
			w.note("Model for", role, model)
			return
		}
		w.note("Model:", model)
	case "thinking_level_change":
		w.noteOr("Thinking level:", line("thinkingLevel", "thinking_level"), "off")
	case "service_tier_change":
		w.noteOr("Service tier:", w.scalar(text.AnyOf("serviceTier", "service_tier")), "none")
	case "mode_change":
		w.noteOr("Mode:", line("mode"), "none")
	case "title_change", "session_info":
		w.noteOr("Title:", line("title", "name"), "none")
	case "label":
		target := line("targetId", "target_id")
		if label := line("label"); len(label) > 0 {
			w.note("Label", label)
			w.more(markdown.AppendCode([]byte("*on entry* "), target))
			return
		}
		w.note("Label taken from entry", target)
	case "mcp_tool_selection":
		w.note("Tools:", w.list(text.AnyOf("selectedToolNames", "selected_tool_names")))
	case "ttsr_injection":
		w.note("Rules brought to mind:", w.list(text.AnyOf("injectedRules", "injected_rules")))
	case "session_init":
		w.note("A task for a subagent, with the tools", w.list(text.Member("tools")))
		w.noteLink("system prompt and task")
	case "reset_boundary":
		w.note("The context was cleared.")
	case "archive":
		said := "Archived, with all that follows it, entry"
		if !text.Member("archived").Truthy() {
			said = "Brought back from the archive, with all that follows it, entry"
		}
		w.note(said, line("targetId"))
	default:
		w.note("An entry of type", markdown.Line([]byte(name), maxWord))
		w.noteLink("the entry")
	}
}

func (w *renderer) noteOr(label string, v []byte, none string) {
	w.note(label, []byte(cmp.Or(string(v), none)))
}

// scalar returns a string as one line, and any other value as JSON.
func (w *renderer) scalar(v rawjson.Value) []byte {
	if v.IsString() || v.Missing() {
		return w.line(v)
	}
	return markdown.Line(v, maxWord)
}

// maxListed is how many names of a list are shown.
const maxListed = 30

// list returns a list of names as one line.
func (w *renderer) list(v rawjson.Value) []byte {
	var names [][]byte
	for name := range v.EachElement {
		if len(names) == maxListed {
			names = append(names, []byte("…"))
			break
		}
		names = append(names, w.scalar(name))
	}
	return bytes.Join(names, []byte(", "))
}

// modelName returns a model's name with its provider, "" if there is none.
func modelName(provider, model rawjson.Value) []byte {
	name := shownLine(model, maxWord)
	if p := shownLine(provider, maxWord); len(p) > 0 && len(name) > 0 {
		return append(append(p, '/'), name...)
	}
	return name
}

// compaction renders the summary that replaces earlier turns in what is sent to the model.
func (w *renderer) compaction(text rawjson.Value) {
	w.turn(partAlways, "compaction", "Compaction")
	before := ""
	if n := text.AnyOf("tokensBefore", "tokens_before"); n.IsNumber() && len(n) < 20 {
		before = ", " + string(n) + " tokens"
	}
	w.begin()
	w.body = append(w.body, "*The model goes on from this summary of what was said before"+before+", and from the turns that were kept.*\n"...)
	summary := text.Member("summary")
	if !summary.Truthy() {
		summary = text.AnyOf("shortSummary", "short_summary")
	}
	w.text(summary)
}

// branchSummary renders the summary of an abandoned branch.
func (w *renderer) branchSummary(text rawjson.Value) {
	if kind := text.Member("details").Member("kind"); !text.Member("summary").Truthy() && kind.IsString() {
		w.note("Without a summary was left entry", w.line(text.AnyOf("fromId", "from_id")))
		return
	}
	w.turn(partAlways, "branch", "Branch summary")
	w.note("What happened on the branch that was left at entry", w.line(text.AnyOf("fromId", "from_id")))
	w.text(text.Member("summary"))
}

// roleHeadings has the headings of turns by role.
var roleHeadings = map[string]string{
	"user": "User", "developer": "Developer", "system": "System",
	"bashExecution": "User ran a command", "pythonExecution": "User ran Python", "fileMention": "Files that the user mentioned",
}

// message renders the value of an entry's member "message".
func (w *renderer) message(v rawjson.Value) {
	if v.Missing() {
		return
	}
	m := message.Read(v)
	role := m.Role()
	heading, ok := roleHeadings[role]
	switch role {
	case "assistant":
		w.assistant(&m)
		return
	case "toolResult", "tool":
		w.turn(partJoins, "tool", "Tool result")
		w.result(&m, true)
		return
	case "custom", "hookMessage":
		w.custom(&m)
		return
	case "branchSummary":
		w.branchSummary(v)
		return
	case "compactionSummary":
		w.compaction(v)
		return
	}
	if !ok {
		w.turn(partAlways, "other", "Message")
		name, _ := m[message.Role].Text()
		w.afterHeading(markdown.Line([]byte(name), maxWord))
		if v.IsObject() {
			w.content(m[message.Content])
		} else {
			w.data(v)
		}
		return
	}
	if m[message.Synthetic].Truthy() {
		heading += " (automatic)"
	}
	w.turn(partAlways, role, heading)
	switch role {
	case "bashExecution", "pythonExecution":
		w.execution(role, &m)
	case "fileMention":
		w.files(m[message.Files])
	default:
		w.content(m[message.Content])
	}
}

// custom renders a message of an extension.
func (w *renderer) custom(m *message.Members) {
	if display := m[message.Display]; len(display) > 0 && !display.Truthy() {
		w.note("Not displayed:", w.line(m[message.CustomType]))
		w.noteLink("the entry")
		return
	}
	w.turn(partAlways, "custom", "Extension")
	w.afterHeading(w.line(m[message.CustomType]))
	w.content(m[message.Content])
}

// assistant renders a message of the model.
func (w *renderer) assistant(m *message.Members) {
	model := modelName(m[message.Provider], m[message.Model])
	w.turn(partAssistant, "assistant "+string(model), "Assistant")
	w.afterHeading(model)
	w.content(m[message.Content])
	stop, _ := m[message.StopReason].Text()
	problem := shownLine(m[message.ErrorMessage], maxProblem)
	if len(problem) == 0 && (stop == "" || stop == "stop" || stop == "toolUse" || stop == "tool_use") {
		return
	}
	w.note("Stopped:", w.line(m[message.StopReason]))
	w.more(markdown.AppendText(nil, problem))
}

// maxProblem is how many characters of an error message are shown.
const maxProblem = 500

// execution renders a command or code that the user ran.
func (w *renderer) execution(role string, m *message.Members) {
	if role == "bashExecution" {
		w.output("sh", m[message.Command])
	} else {
		w.output("python", m[message.Code])
	}
	w.output("", m[message.Output])
	w.content(m[message.Images])
	if exit := m[message.ExitCode]; m[message.Cancelled].Truthy() {
		w.note("Cancelled.")
	} else if exit.IsNumber() && exit.Truthy() {
		w.note("Exit status", w.scalar(exit))
	}
	if m[message.Truncated].Truthy() {
		w.note("The output was truncated when it was recorded.")
	}
	if m[message.Excluded].Truthy() {
		w.note("The model was not told.")
	}
}

// files renders files that were read because the user mentioned them.
func (w *renderer) files(files rawjson.Value) {
	for file := range files.EachElement {
		if w.blocksLeft--; w.blocksLeft < 0 {
			w.cut = true
			return
		}
		path := w.line(file.Member("path"))
		if why := w.line(file.AnyOf("skippedReason", "skipped_reason")); len(why) > 0 {
			w.note("File that was not read", path, why)
		} else {
			w.note("File", path)
		}
		w.output("", file.Member("content"))
		if image := file.Member("image"); image.IsObject() {
			w.block(image)
		}
	}
}
