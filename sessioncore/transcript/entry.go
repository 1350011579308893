package transcript

import (
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
			w.more(func(out []byte) []byte { return markdown.AppendCode(append(out, "*on entry* "...), target) })
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
	var names []byte
	n := 0
	v.EachElement(func(name rawjson.Value, _ int) bool {
		if n > 0 {
			names = append(names, ", "...)
		}
		if n++; n > maxListed {
			names = append(names, "…"...)
			return false
		}
		names = append(names, w.scalar(name)...)
		return true
	})
	return names
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
