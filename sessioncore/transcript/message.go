package transcript

import (
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

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
		w.result(&m)
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
	heading := "Extension"
	if display := m[message.Display]; len(display) > 0 && !display.Truthy() {
		heading = "Extension (not displayed)"
	}
	w.turn(partAlways, "custom", heading)
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
	w.more(func(out []byte) []byte { return markdown.AppendText(out, problem) })
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
	files.EachElement(func(file rawjson.Value, _ int) bool {
		if w.blocksLeft--; w.blocksLeft < 0 {
			w.cut = true
			return false
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
		return true
	})
}
