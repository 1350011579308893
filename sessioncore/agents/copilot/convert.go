package copilot

import (
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// innerKey is the member with the content of an event.
const innerKey = "data"

// maxImages is how many bytes of images are kept until a message names them.
const maxImages = 32 << 20

// maxUses is how often an image of one event is shown. A client names it once, or where it resumes.
const maxUses = 16

var provider = agents.Provider{API: "github-copilot", Name: "github-copilot", Model: "unknown"}

// converter makes entries of the events of a session, or of one of its subagents (docs/format-copilot.md).
type converter struct {
	*agents.Builder
	callers    callers
	usage      tokenCounts
	first      rawjson.Value // data of the file's first event, for a subagent's session, which begins later
	began      rawjson.Value // the time of messages in a document of the first clients
	id, parent string        // the ids of the session and of its original, if it is a fork
	started    int64         // when the session began, in milliseconds
	isCopy     bool          // it has older messages, as a fork has
	answered   bool          // the last message has an answer
	thoughts   []rawjson.Value
	images     map[string]rawjson.Value // by the ids of assets
	uses       map[string]int           // the number of messages that named an asset
	kept       int                      // bytes of images
	commands   map[string]string
	paths      map[string]rawjson.Value // the files that a shell's command may name, by call
}

// newConverter returns a Builder with its converter, which has more facts than the Builder.
func newConverter(about agents.About) (*agents.Builder, *converter) {
	c := &converter{}
	b := agents.NewBuilder(about, provider, func(b *agents.Builder) func(*agents.Record) {
		b.InnerKey = innerKey
		b.RawControls = true
		b.List = "chatMessages"
		*c = converter{
			Builder:  b,
			callers:  callers{},
			usage:    newUsage(),
			images:   map[string]rawjson.Value{},
			uses:     map[string]int{},
			commands: map[string]string{},
			paths:    map[string]rawjson.Value{},
		}
		b.Named(b.About.Title)
		return c.event
	})
	return b, c
}

// event handles an event, or a document of the first clients.
func (c *converter) event(r *agents.Record) {
	event := r.Object
	data := r.Inner
	id, _ := event.Member("id").Text()
	typ, isEvent := event.Member("type").Text()
	if !isEvent && c.Chain == "" {
		c.older(event)
		return
	}
	entry, at := agents.EntryIn(event) // of a session that was handed over
	if entry == "" {
		entry = id
		at = event.Member("timestamp")
	}
	c.From(entry, at)
	agent := c.callers.of(event, data)
	c.usage.note(typ, agent, data)
	switch {
	case typ == "session.start":
		c.start(event, data)
	case typ == "session.binary_asset":
		asset, _ := data.Member("assetId").Text()
		c.asset(asset, event.Member("data"))
	case agent == c.Chain && typ != "subagent.started": // that one belongs to the caller
		if c.first != nil {
			c.begin(agents.Read(c.first), nil)
			c.first = nil
		}
		if typ == "user.message" && c.Chain == "" && c.isOlder(event) {
			c.isCopy = true
		}
		c.own(typ, id, data)
	}
}

// isOlder reports whether an event was written before the session began.
func (c *converter) isOlder(event agents.Object) bool {
	at, _, ok := rawjson.ReadTimestamp(event.Member("timestamp"))
	return ok && at < c.started
}

// start handles the event that begins a file. For a subagent's session it keeps the data for the header, which has the
// time of the subagent's first event.
func (c *converter) start(event, data agents.Object) {
	c.id, _ = data.Member("sessionId").Text()
	c.started, _, _ = rawjson.ReadTimestamp(data.Member("startTime"))
	c.parent = agents.OriginIn(data, c.id)
	c.Model(data.Member("selectedModel"))
	if c.Chain != "" {
		c.first = slices.Clone(event.Member("data"))
		return
	}
	c.begin(data, data.Member("startTime"))
	c.Level(data.Member("reasoningEffort"))
}

// begin begins the session by the data of the first event of the file, at a time, which may be missing for that of the
// current event. Its id counts where the file's name says none.
func (c *converter) begin(data agents.Object, at rawjson.Value) {
	context := agents.Read(data.Member("context"))
	h := agents.Header{
		Time:   at,
		Cwd:    context.Member("cwd"),
		Branch: context.Member("branch"),
	}
	h.Version = data.Member("copilotVersion")
	if c.ID == "" {
		h.ID = data.Member("sessionId")
	}
	c.Begin(h)
}

// asset keeps an image for the messages that name it. Beyond maxImages it forgets all earlier ones.
func (c *converter) asset(id string, data rawjson.Value) {
	c.kept += len(data)
	if c.kept > maxImages {
		clear(c.images)
		c.kept = len(data)
	}
	c.images[id] = slices.Clone(data)
	c.uses[id] = 0
}

// addImage adds the image that an attachment or a part of a result is, or names. It returns false
// for another one.
func (c *converter) addImage(to *agents.Blocks, v agents.Object) bool {
	id, _ := v.Member("assetId").Text()
	asset, isAsset := c.images[id]
	if isAsset {
		c.uses[id]++
		if c.uses[id] > maxUses {
			to.Text(agents.Quoted("[image " + id + "]"))
			return true
		}
		v = agents.Read(asset)
	}
	mimeType, _ := v.Member("mimeType").Text()
	data := v.Member("data")
	if !strings.HasPrefix(mimeType, "image/") || !data.IsString() {
		return false
	}
	to.Image(v.Member("mimeType"), data)
	return true
}

// own handles an event of the session's own agent, by its type and id. Events of other types than these are ofSession's.
func (c *converter) own(typ, id string, data agents.Object) {
	call, _ := data.Member("toolCallId").Text()
	endsAnswer := typ == "user.message" || typ == "abort"
	if endsAnswer && len(c.thoughts) > 0 {
		c.answer(nil) // of thoughts alone
	}
	switch typ {
	case "user.message":
		c.message(data)
	case "assistant.reasoning":
		c.thoughts = append(c.thoughts, slices.Clone(data.Member("content")))
	case "assistant.message":
		c.answer(data)
	case "tool.user_requested":
		arguments := data.Member("arguments")
		c.commands[call], _ = arguments.Member("command").Text()
	case "tool.execution_start":
		c.Tool(data.Member("toolCallId"), data.Member("toolName"))
		shell := data.Member("shellToolInfo")
		paths := shell.Member("possiblePaths")
		if paths.IsArray() && len(paths) > len("[]") {
			c.paths[call] = slices.Clone(paths)
		}
	case "tool.execution_complete":
		c.result(call, data)
	case "abort":
		answer := c.Open()
		if answer != nil && c.answered {
			answer.Abort()
		}
	case "system.notification", "skill.invoked":
		var content agents.Blocks
		content.Text(data.Member("content"))
		kind, _, _ := strings.Cut(typ, ".")
		c.Custom("copilot/"+kind, content, kind == "system")
	default:
		c.ofSession(typ, id, data)
	}
}

// ofSession handles an event about the session as a whole.
func (c *converter) ofSession(typ, id string, data agents.Object) {
	switch typ {
	case "session.resume":
		c.Model(data.Member("selectedModel"))
		context := data.Member("context")
		c.Directory(context.Member("cwd"))
	case "session.info":
		message, _ := data.Member("message").Text()
		ids := forked.FindStringSubmatch(message)
		if ids == nil {
			return
		}
		original := ids[1]
		fork := ids[2]
		if fork == c.sessionID() {
			c.parent = original
		}
	case "session.model_change":
		c.Model(data.Member("newModel"))
		c.Level(data.Member("reasoningEffort"))
	case "session.compaction_complete":
		if data.Member("success").IsTrue() {
			tokensBefore := agents.Count(data.Member("preCompactionTokens"))
			c.Compaction(data.Member("summaryContent"), "", tokensBefore)
		}
	case "session.context_cleared":
		c.Hang("")
	case "session.error":
		c.answer(nil)
		c.Open().Error(data.Member("message"))
		c.answered = false
	case "session.import_legacy":
		c.document(id, agents.Read(data.Member("legacySession")))
	case "session.shutdown":
		rest := c.usage.rest(data)
		answer := c.Open()
		if answer != nil && c.Chain == "" {
			answer.Count(rest)
		}
	}
}

// sessionID returns the id in the first event, or else the one in the name of the file.
func (c *converter) sessionID() string {
	if c.id != "" {
		return c.id
	}
	return c.ID
}

// isPerson reports whether a person typed a message: with a source, the client or another agent
// sends it.
func isPerson(data agents.Object) bool {
	if data.Member("isAutopilotContinuation").IsTrue() {
		return false
	}
	source, _ := data.Member("source").Text()
	switch source {
	case "", "user", "immediate-prompt":
		return true
	}
	return strings.HasPrefix(source, "command-")
}

// message handles a message to the agent. The names of attached files follow it; the client shows
// them as a list.
func (c *converter) message(m agents.Object) {
	var content, files agents.Blocks
	text, _ := m.Member("content").Text()
	text = typed(text)
	content.Text(agents.Quoted(text))
	for v := range m.Member("attachments").EachElement {
		attached := agents.Read(v)
		if !c.addImage(&content, attached) {
			files.Text(attached.AnyOf("path", "filePath", "url"))
			files.Text(attached.Member("text"))
		}
	}
	source, _ := m.Member("source").Text()
	isTask := c.Chain != "" && strings.HasPrefix(source, "agent-") // the caller's words for a subagent
	c.answered = false
	if isPerson(m) || isTask {
		c.Prompted(text)
		c.User(content)
	} else {
		kind, _, _ := strings.Cut(source, "-")
		if source == "" { // its continuation has no source
			kind = "autopilot"
		}
		c.Custom("copilot/"+kind, content, false)
	}
	if len(files) > 0 {
		c.Custom("copilot/attachments", files, false)
	}
}

// typed returns a message without the reminder for the model that old clients add at its end.
func typed(text string) string {
	at := strings.LastIndex(text, "<reminder>")
	isAtEnd := strings.HasSuffix(rawjson.TrimSpace(text), "</reminder>")
	if at < 0 || !isAtEnd {
		return text
	}
	return rawjson.TrimSpace(text[:at])
}

// answer adds a message of the model to its answer, with the thoughts before it. The messages of one call of the model
// are one answer. data may be nil, for thoughts alone or nothing.
func (c *converter) answer(data agents.Object) {
	modelCall, _ := data.Member("apiCallId").Text()
	if modelCall == "" { // each message of old clients is an answer
		c.Close()
	}
	answer := c.Answer(modelCall)
	c.answered = true
	answer.Model(data.Member("model"))
	used := c.usage.of(c.Chain, modelCall, data)
	answer.Count(used)
	thought := data.Member("reasoningText")
	for _, earlier := range c.thoughts {
		isRepeated := string(earlier) == string(thought) // the message has it with its signature
		if !isRepeated {
			answer.Thinking(earlier, nil)
		}
	}
	c.thoughts = nil
	if thought.IsString() && !thought.Is("") {
		signature := data.AnyOf("reasoningOpaque", "encryptedContent")
		answer.Thinking(thought, signature)
	}
	answer.Text(data.Member("content"))
	for call := range data.Member("toolRequests").EachElement {
		answer.Call(call.Member("toolCallId"), call.Member("name"), call.Member("arguments"))
	}
}

// result adds the result of a call, by the call's id, or a command that the person ran.
func (c *converter) result(call string, data agents.Object) {
	result := agents.Read(data.Member("result"))
	text := textOf(data, result)
	command, isCommand := c.commands[call]
	if isCommand || data.Member("isUserRequested").IsTrue() {
		output, _ := text.Text()
		shell := data.Member("shellExecution")
		c.Bash(command, output, shell.Member("exitCode"))
		return
	}
	shown := agents.ToolResult{
		Call:    data.Member("toolCallId"),
		IsError: !data.Member("success").IsTrue(),
		Details: c.details(call, data, result),
		Session: c.sideOf(call),
	}
	shown.Content.Text(text)
	images := result.AnyOf("binaryResultsForLlm", "contents")
	for part := range images.EachElement {
		c.addImage(&shown.Content, agents.Read(part))
	}
	c.Result(shown)
}

// textOf returns the text of a result, or the message of the error of its call.
func textOf(data, result agents.Object) rawjson.Value {
	text := result.Member("content")
	if text.IsString() {
		return text
	}
	failure := data.Member("error")
	return failure.Member("message")
}

// details returns an object with the facts of a call that its text lacks, nil for none.
func (c *converter) details(call string, data, result agents.Object) rawjson.Value {
	var details []byte
	text := textOf(data, result)
	detailed := result.Member("detailedContent")
	if string(detailed) != string(text) {
		details = agents.AppendMember(details, "detailedContent", detailed)
	}
	details = agents.AppendMember(details, "fileEdits", data.Member("fileEdits"))
	details = agents.AppendMember(details, "possiblePaths", c.paths[call])
	if len(details) == 0 {
		return nil
	}
	details[0] = '{' // instead of a comma
	return append(details, '}')
}

// sideOf returns the path of the session of the subagent that a call started, "" for none.
func (c *converter) sideOf(call string) string {
	agent := c.callers[call]
	if agent == c.Chain || !agents.IsSubagent(agent) {
		return ""
	}
	if c.Chain != "" {
		return "../" + agent
	}
	return "artifacts/" + agent
}

// older handles the first line of a document of the first clients, or a message in it.
func (c *converter) older(v agents.Object) {
	switch {
	case v.Member("role").IsString():
		c.From("", c.began)
		c.Chat(v, typed)
	case v.Member("startTime").IsString():
		c.document("", v)
	}
}

// document adds a document with all messages, or its part before them. The messages have no times.
func (c *converter) document(id string, doc agents.Object) {
	c.began = slices.Clone(doc.Member("startTime"))
	c.From(id, c.began)
	c.begin(doc, nil)
	c.Model(doc.Member("selectedModel"))
	for message := range doc.Member("chatMessages").EachElement {
		c.Chat(agents.Read(message), typed)
	}
}
