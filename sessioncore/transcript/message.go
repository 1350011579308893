package transcript

import (
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// messageFields has the members of a message that a transcript shows.
type messageFields struct {
	role, content                        rawjson.Value
	provider, model, stop, problem       rawjson.Value // of an assistant
	tool, call, failed                   rawjson.Value // of a tool's result
	command, code, output, exit          rawjson.Value // of what the user ran
	cancelled, truncated, images, hidden rawjson.Value
	customType, display, files           rawjson.Value
	synthetic                            rawjson.Value
}

// readMessage finds the members of a message in one pass, in the spelling of either dialect.
func readMessage(message rawjson.Value) (f messageFields) {
	message.EachMember(func(m rawjson.Member) bool {
		if to := f.named(m.Name()); to != nil {
			*to = m.Value
		}
		return true
	})
	return f
}

func (f *messageFields) named(key string) *rawjson.Value {
	switch key {
	case "role":
		return &f.role
	case "content":
		return &f.content
	case "provider":
		return &f.provider
	case "model":
		return &f.model
	case "stopReason":
		return &f.stop
	case "errorMessage":
		return &f.problem
	case "toolName":
		return &f.tool
	case "toolCallId", "toolUseId":
		return &f.call
	case "isError":
		return &f.failed
	case "command":
		return &f.command
	case "code":
		return &f.code
	case "output":
		return &f.output
	case "exitCode":
		return &f.exit
	case "cancelled":
		return &f.cancelled
	case "truncated":
		return &f.truncated
	case "images":
		return &f.images
	case "excludeFromContext":
		return &f.hidden
	case "customType":
		return &f.customType
	case "display":
		return &f.display
	case "files":
		return &f.files
	case "synthetic":
		return &f.synthetic
	}
	return nil
}

// roleHeadings has the headings of turns by role.
var roleHeadings = map[string]string{
	"user": "User", "developer": "Developer", "system": "System",
	"bashExecution": "User ran a command", "pythonExecution": "User ran Python", "fileMention": "Files that the user mentioned",
}

// message renders the value of an entry's member "message".
func (w *renderer) message(message rawjson.Value) {
	if message.Missing() {
		return
	}
	f := readMessage(message)
	name, _ := f.role.Text()
	switch role := rawjson.CamelCase(name); role {
	case "assistant":
		w.assistant(&f)
	case "toolResult", "tool":
		w.turn(partJoins, "tool", "Tool result")
		w.result(&f)
	case "custom", "hookMessage":
		w.custom(f)
	case "branchSummary":
		w.branchSummary(message)
	case "compactionSummary":
		w.compaction(message)
	case "user", "developer", "system", "bashExecution", "pythonExecution", "fileMention":
		heading := roleHeadings[role]
		if f.synthetic.Truthy() {
			heading += " (automatic)"
		}
		w.turn(partAlways, role, heading)
		switch role {
		case "bashExecution", "pythonExecution":
			w.execution(role, &f)
		case "fileMention":
			w.files(f.files)
		default:
			w.content(f.content)
		}
	default:
		w.turn(partAlways, "other", "Message")
		w.afterHeading(markdown.AppendLine(nil, markdown.AppendVisible(nil, []byte(name)), maxWord))
		if message.IsObject() {
			w.content(f.content)
		} else {
			w.data(message)
		}
	}
}

// custom renders a message of an extension.
func (w *renderer) custom(f messageFields) {
	heading := "Extension"
	if len(f.display) > 0 && !f.display.Truthy() {
		heading = "Extension (not displayed)"
	}
	w.turn(partAlways, "custom", heading)
	w.afterHeading(w.line(f.customType))
	w.content(f.content)
}

// assistant renders a message of the model.
func (w *renderer) assistant(f *messageFields) {
	model := modelName(f.provider, f.model)
	w.turn(partAssistant, "assistant "+string(model), "Assistant")
	w.afterHeading(model)
	w.content(f.content)
	stop, _ := f.stop.Text()
	problem := shownLine(f.problem, maxProblem)
	if len(problem) == 0 && (stop == "" || stop == "stop" || stop == "toolUse" || stop == "tool_use") {
		return
	}
	w.note("Stopped:", w.line(f.stop))
	w.more(func(out []byte) []byte { return markdown.AppendText(out, problem) })
}

// maxProblem is how many characters of an error message are shown.
const maxProblem = 500

// execution renders a command or code that the user ran.
func (w *renderer) execution(role string, f *messageFields) {
	if role == "bashExecution" {
		w.output("sh", f.command)
	} else {
		w.output("python", f.code)
	}
	w.output("", f.output)
	w.content(f.images)
	if f.cancelled.Truthy() {
		w.note("Cancelled.")
	} else if f.exit.IsNumber() && f.exit.Truthy() {
		w.note("Exit status", w.scalar(f.exit))
	}
	if f.truncated.Truthy() {
		w.note("The output was truncated when it was recorded.")
	}
	if f.hidden.Truthy() {
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
