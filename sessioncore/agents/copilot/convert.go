package copilot

import (
	"cmp"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

// maxImages is how many bytes of images are kept until a message names them.
const maxImages = 32 << 20

var provider = foreign.Provider{API: "github-copilot", Name: "github-copilot", Model: "unknown"}

// converter makes entries of the events of a session, or of one of its subagents (docs/format.md, GitHub Copilot CLI).
type converter struct {
	*foreign.Builder
	callers       callers
	usage         usage
	members, data foreign.Object // memory for those of an event
	header        foreign.Header // of a subagent's session, which begins with its own first event
	began         rawjson.Value  // the time of messages in a document of the first clients
	answered      bool           // the last message
	thoughts      []rawjson.Value
	images        map[string]image // by asset
	kept          int              // bytes of images
	commands      map[string]string
	paths         map[string]rawjson.Value // the files that a shell's command may name, by call
}

// image is an image with its type, both JSON texts.
type image struct{ mimeType, data rawjson.Value }

// Converter implements foreign.Agent.
func (h *Home) Converter(about foreign.About, _ storage.Object) foreign.Converter {
	named := ""
	if !about.Side && !about.Listed && !about.Facts {
		named = h.title(about.ID)
	}
	return foreign.NewBuilder(about, provider, func(b *foreign.Builder) func(rawjson.Value) {
		b.Named(named)
		c := &converter{
			Builder: b, callers: callers{}, usage: newUsage(), images: map[string]image{}, commands: map[string]string{},
			paths: map[string]rawjson.Value{},
		}
		return c.event
	})
}

// event handles an event, or a document of the first clients.
func (c *converter) event(v rawjson.Value) {
	c.members = c.members.Read(v)
	c.data = c.data.Read(c.members.Member("data"))
	event, data := c.members, c.data
	id, _ := event.Member("id").Text()
	typ, isEvent := event.Member("type").Text()
	if !isEvent && c.Chain == "" {
		c.older(event)
		return
	}
	c.From(id, event.Member("timestamp"))
	agent := c.callers.of(event, data)
	c.usage.note(typ, agent, data)
	switch {
	case typ == "session.start":
		c.start(data)
	case typ == "session.binary_asset":
		c.asset(data)
	case agent == c.Chain && typ != "subagent.started":
		if c.Chain != "" {
			c.Begin(c.header)
		}
		c.own(typ, id, data)
	}
}

// start handles the event that begins a file.
func (c *converter) start(data foreign.Object) {
	context := foreign.Read(data.Member("context"))
	h := foreign.Header{Cwd: context.Member("cwd"), Version: data.Member("copilotVersion"), Branch: context.Member("branch")}
	c.Model(data.Member("selectedModel"))
	if c.Chain != "" {
		c.header = foreign.Header{Cwd: slices.Clone(h.Cwd), Version: slices.Clone(h.Version), Branch: slices.Clone(h.Branch)}
		return
	}
	h.Time = data.Member("startTime")
	c.Begin(h)
	c.Level(data.Member("reasoningEffort"))
}

// asset keeps an image for the messages that name it.
func (c *converter) asset(data foreign.Object) {
	id, _ := data.Member("assetId").Text()
	if c.kept += len(data.Member("data")); c.kept > maxImages {
		clear(c.images)
		c.kept = len(data.Member("data"))
	}
	c.images[id] = image{slices.Clone(data.Member("mimeType")), slices.Clone(data.Member("data"))}
}

// addImage adds the image that an attachment or a part of a result is, or names. It returns false for another one.
func (c *converter) addImage(to *foreign.Blocks, v foreign.Object) bool {
	asset, _ := v.Member("assetId").Text()
	i, ok := c.images[asset]
	if !ok {
		i = image{v.Member("mimeType"), v.Member("data")}
	}
	mimeType, _ := i.mimeType.Text()
	ok = strings.HasPrefix(mimeType, "image/") && i.data.IsString()
	if ok {
		to.Image(i.mimeType, i.data)
	}
	return ok
}

// own handles an event of the session's own agent.
func (c *converter) own(typ, id string, data foreign.Object) {
	call, _ := data.Member("toolCallId").Text()
	switch typ {
	case "session.resume":
		c.Model(data.Member("selectedModel"))
		c.Directory(data.Member("context").Member("cwd"))
	case "session.model_change":
		c.Model(data.Member("newModel"))
		c.Level(data.Member("reasoningEffort"))
	case "user.message":
		c.message(data)
	case "assistant.reasoning":
		c.thoughts = append(c.thoughts, slices.Clone(data.Member("content")))
	case "assistant.message":
		c.answer(id, data)
	case "tool.user_requested":
		c.commands[call], _ = data.Member("arguments").Member("command").Text()
	case "tool.execution_start":
		c.Tool(data.Member("toolCallId"), data.Member("toolName"))
		if paths := data.Member("shellToolInfo").Member("possiblePaths"); paths.IsArray() && len(paths) > len("[]") {
			c.paths[call] = slices.Clone(paths)
		}
	case "tool.execution_complete":
		c.result(call, data)
	case "session.compaction_complete":
		if isTrue(data.Member("success")) {
			c.Compaction(data.Member("summaryContent"), "", foreign.Count(data.Member("preCompactionTokens")))
		}
	case "session.context_cleared":
		c.Hang("")
	case "abort":
		if a := c.Open(); a != nil && c.answered {
			a.Stop("aborted")
		}
	case "session.error":
		c.Answer(id).Error(data.Member("message"))
		c.answered = false
	case "system.notification", "skill.invoked":
		var content foreign.Blocks
		content.Text(data.Member("content"))
		kind, _, _ := strings.Cut(typ, ".")
		c.Custom("copilot/"+kind, content, kind == "system")
	case "session.import_legacy":
		c.document(id, foreign.Read(data.Member("legacySession")))
	case "session.shutdown":
		if rest := c.usage.rest(data); c.Open() != nil && c.Chain == "" {
			c.Open().Count(rest)
		}
	}
}

func isTrue(v rawjson.Value) bool { return string(v) == "true" }

// isPerson reports whether a person typed a message: with a source, the client or another agent sends it.
func isPerson(data foreign.Object) bool {
	source, _ := data.Member("source").Text()
	return !isTrue(data.Member("isAutopilotContinuation")) &&
		(source == "" || source == "user" || source == "immediate-prompt" || strings.HasPrefix(source, "command-"))
}

// message handles a message to the agent. The names of attached files follow it; the client shows them as a list.
func (c *converter) message(m foreign.Object) {
	var content, files foreign.Blocks
	c.addContent(&content, m.Member("content"))
	m.Member("attachments").EachElement(func(v rawjson.Value, _ int) bool {
		attached := foreign.Read(v)
		if !c.addImage(&content, attached) {
			files.Text(attached.AnyOf("path", "filePath", "url"))
			files.Text(attached.Member("text"))
		}
		return true
	})
	source, _ := m.Member("source").Text()
	if c.answered = false; isPerson(m) || c.Chain != "" && strings.HasPrefix(source, "agent-") {
		c.Prompted(textOf(m.Member("content")))
		c.User(content)
	} else {
		kind, _, _ := strings.Cut(cmp.Or(source, "autopilot"), "-")
		c.Custom("copilot/"+kind, content, false)
	}
	if len(files) > 0 {
		c.Custom("copilot/attachments", files, false)
	}
}

// addContent adds the content of a message: a text, or the parts of one of the first clients.
func (c *converter) addContent(to *foreign.Blocks, content rawjson.Value) {
	if text := textOf(content); text != "" {
		to.Text(rawjson.AppendQuoted(nil, text))
	}
	content.EachElement(func(part rawjson.Value, _ int) bool {
		url, _ := part.Member("image_url").Member("url").Text()
		if mimeType, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,"); ok {
			to.Image(rawjson.AppendQuoted(nil, mimeType), rawjson.AppendQuoted(nil, data))
		}
		return true
	})
}

// textOf returns the text of a message, without the reminder for the model with which old clients end it.
func textOf(content rawjson.Value) string {
	text, _ := content.Text()
	content.EachElement(func(part rawjson.Value, _ int) bool {
		more, _ := part.Member("text").Text()
		text += more
		return true
	})
	if at := strings.LastIndex(text, "<reminder>"); at >= 0 && strings.HasSuffix(rawjson.TrimSpace(text), "</reminder>") {
		text = rawjson.TrimSpace(text[:at])
	}
	return text
}

// answer adds a message of the model to its answer: those of one call of the model are one.
func (c *converter) answer(id string, data foreign.Object) {
	api, _ := data.Member("apiCallId").Text()
	a := c.Answer(cmp.Or(api, id))
	c.answered = true
	a.Model(data.Member("model"))
	a.Count(c.usage.of(c.Chain, api, data))
	thought := data.Member("reasoningText")
	for _, other := range c.thoughts {
		if string(other) != string(thought) {
			a.Thinking(other, nil)
		}
	}
	if c.thoughts = nil; thought.IsString() && !thought.Is("") {
		a.Thinking(thought, data.AnyOf("reasoningOpaque", "encryptedContent"))
	}
	a.Text(data.Member("content"))
	data.Member("toolRequests").EachElement(func(v rawjson.Value, _ int) bool {
		a.Call(v.Member("toolCallId"), v.Member("name"), v.Member("arguments"))
		return true
	})
}

// result adds the result of a call, or a command that the person ran.
func (c *converter) result(call string, data foreign.Object) {
	result := foreign.Read(data.Member("result"))
	text := result.Member("content")
	if !text.IsString() {
		text = data.Member("error").Member("message")
	}
	if command, ok := c.commands[call]; ok || isTrue(data.Member("isUserRequested")) {
		output, _ := text.Text()
		c.Bash(command, output, data.Member("shellExecution").Member("exitCode"))
		return
	}
	r := foreign.Result{Call: data.Member("toolCallId"), IsError: !isTrue(data.Member("success"))}
	r.Content.Text(text)
	result.AnyOf("binaryResultsForLlm", "contents").EachElement(func(v rawjson.Value, _ int) bool {
		c.addImage(&r.Content, foreign.Read(v))
		return true
	})
	details := foreign.AppendMember(nil, "detailedContent", result.Member("detailedContent"))
	details = foreign.AppendMember(details, "fileEdits", data.Member("fileEdits"))
	if details = foreign.AppendMember(details, "possiblePaths", c.paths[call]); len(details) > 0 {
		details[0] = '{'
		r.Details = append(details, '}')
	}
	if agent := c.callers[call]; isName(agent) {
		r.Session = "artifacts/" + agent
		if c.Chain != "" {
			r.Session = "../" + agent
		}
	}
	c.Result(r)
}

// older handles the first line of a document of the first clients, or a message in it.
func (c *converter) older(v foreign.Object) {
	if role, ok := v.Member("role").Text(); ok {
		c.From("", c.began)
		c.chat(role, v)
	} else if v.Member("startTime").IsString() {
		c.document("", v)
	}
}

// document adds a document, or the part of it that its messages follow. These have no times.
func (c *converter) document(id string, doc foreign.Object) {
	c.began = slices.Clone(doc.Member("startTime"))
	c.From(id, c.began)
	c.Begin(foreign.Header{})
	c.Model(doc.Member("selectedModel"))
	doc.Member("chatMessages").EachElement(func(v rawjson.Value, _ int) bool {
		m := foreign.Read(v)
		role, _ := m.Member("role").Text()
		c.chat(role, m)
		return true
	})
}

// chat adds a message of a document.
func (c *converter) chat(role string, m foreign.Object) {
	switch role {
	case "user":
		c.message(m)
	case "assistant":
		c.Close()
		a := c.Answer("")
		a.Text(rawjson.AppendQuoted(nil, textOf(m.Member("content"))))
		m.Member("tool_calls").EachElement(func(call rawjson.Value, _ int) bool {
			of := foreign.Read(call.Member("function"))
			a.Call(call.Member("id"), of.Member("name"), of.Member("arguments"))
			return true
		})
	case "tool":
		r := foreign.Result{Call: m.Member("tool_call_id")}
		c.addContent(&r.Content, m.Member("content"))
		c.Result(r)
	}
}
