package sent

import (
	"bytes"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
)

// object writes one JSON object.
type object struct{ buf []byte }

// raw adds a member with a JSON value, none if the value is absent.
func (o *object) raw(key string, v rawjson.Value) {
	if len(v) == 0 {
		return
	}
	separator := byte(',')
	if len(o.buf) == 0 {
		separator = '{'
	}
	o.buf = append(append(append(o.buf, separator, '"'), key...), `":`...)
	o.buf = append(o.buf, v...)
}

// text adds a member with a string.
func (o *object) text(key, text string) { o.raw(key, rawjson.AppendQuoted(nil, text)) }

func (o *object) end() []byte { return append(o.buf, '}') }

// textBlock returns a block of text.
func textBlock(text string) rawjson.Value {
	var o object
	o.text("type", "text")
	o.text("text", text)
	return o.end()
}

// list returns an array.
func list(elements ...rawjson.Value) rawjson.Value {
	parts := make([][]byte, len(elements))
	for i, e := range elements {
		parts[i] = e
	}
	return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
}

// written returns a message with a role, content, and where it is from.
func written(role string, content, attribution, timestamp rawjson.Value) []byte {
	var o object
	o.text("role", role)
	o.raw("content", content)
	o.raw("attribution", attribution)
	o.raw("timestamp", timestamp)
	return o.end()
}

// attributed are the values of attribution.
var byUser, byAgent = rawjson.Value(`"user"`), rawjson.Value(`"agent"`)

// isPlain reports whether a message is sent as it is, but for plainEdits.
func (m *message) isPlain(text rawjson.Value) bool {
	switch m.role {
	case "user":
		return string(text.Member("steering")) != "true"
	case "developer":
		return true
	case "assistant":
		return !m.strips && !m.demotes
	case "toolResult":
		return text.Member("prunedAt") == nil
	}
	return false
}

// plainEdits returns what is changed in a message that is sent as it is: a missing attribution is filled in, and an
// answer of GitHub Copilot loses the state of its connection.
func plainEdits(text rawjson.Value) (edits rawjson.Edits) {
	by := byAgent
	switch {
	case text.Member("role").Is("assistant"):
		return copilotEdits(text)
	case text.Member("role").Is("user"):
		by = byUser
	}
	if text.Member("attribution").Missing() {
		edits = edits.Object(text, 0, `"attribution":`+string(by), func(m rawjson.Member) bool { return m.KeyIs("attribution") })
	}
	return edits
}

func copilotEdits(text rawjson.Value) (edits rawjson.Edits) {
	if !text.Member("provider").Is("github-copilot") || !text.Member("providerPayload").Member("type").Is("openaiResponsesHistory") {
		return nil
	}
	edits = edits.Object(text, 0, "", func(m rawjson.Member) bool { return m.KeyIs("providerPayload") })
	content := text.Member("content")
	content.EachElement(func(block rawjson.Value, at int) bool {
		if block.Member("type").Is("thinking") {
			edits = edits.Object(block, content.OffsetIn(text)+at, "", func(m rawjson.Member) bool { return m.KeyIs("thinkingSignature") })
		}
		return true
	})
	return edits
}

// compose returns what is sent for a message, none or several objects with commas between them. text is that of its
// entry.
func (b *builder) compose(m *message, text rawjson.Value) ([]byte, error) {
	switch m.of {
	case ofCustom:
		return composeCustom(customEntry(text), b.time(m.entry)), nil
	case ofBranch:
		summary, _ := text.Member("summary").Text()
		return summarized(list(textBlock(branchSummary(summary))), nil, b.time(m.entry)), nil
	case ofCompaction:
		payload, _ := providerPayload(text)
		content := list(compactionBlock(text))
		if a, ok := archiveOf(text); ok {
			var err error
			if content, err = b.archived(text, &a); err != nil {
				return nil, err
			}
		}
		return summarized(content, payload, b.time(m.entry)), nil
	case ofNotes:
		notes, _ := notesOf(text)
		return written("developer", list(textBlock(contextNotesText(notes))), nil, b.time(m.entry)), nil
	}
	text = messageOf(text)
	if m.isPlain(text) {
		return plainEdits(text).Apply(text), nil
	}
	at := text.Member("timestamp")
	switch m.role {
	case "user":
		return steered(text), nil
	case "assistant":
		return b.repaired(m, plainEdits(text).Apply(text)), nil
	case "toolResult":
		return pruned(plainEdits(text).Apply(text)), nil
	case "bashExecution", "pythonExecution":
		return executed(text)
	case "fileMention":
		return mentioned(text), nil
	case "custom", "hookMessage":
		c := custom{customType: text.Member("customType"), content: text.Member("content"), attribution: text.Member("attribution")}
		c.hook = m.role == "hookMessage"
		return composeCustom(c, at), nil
	case "branchSummary":
		return summarized(list(textBlock(branchSummary(text.Member("summary").AsKey()))), nil, at), nil
	case "compactionSummary":
		return summarized(summaryContent(text), text.Member("providerPayload"), at), nil
	}
	return nil, nil // a role that the client does not send
}

// summarized returns the message of a summary.
func summarized(content, payload, at rawjson.Value) []byte {
	var o object
	o.text("role", "user")
	o.raw("content", content)
	o.raw("attribution", byAgent)
	o.raw("historyRewriteAt", at)
	o.raw("providerPayload", payload)
	o.raw("timestamp", at)
	return o.end()
}

// compactionBlock returns the text of the summary of a compaction, or of its message.
func compactionBlock(text rawjson.Value) rawjson.Value {
	summary := text.Member("summary").AsKey()
	if text.Member("method").Is("handoff") {
		return textBlock(handoffSummary(summary))
	}
	return textBlock(compactionSummary(summary))
}

// summaryContent returns the content of a message compactionSummary.
func summaryContent(text rawjson.Value) rawjson.Value {
	if blocks := text.Member("blocks"); blocks != nil {
		return list(append([]rawjson.Value{textBlock(text.Member("summary").AsKey())}, elements(blocks)...)...)
	}
	return list(append([]rawjson.Value{compactionBlock(text)}, elements(text.Member("images"))...)...)
}

func elements(array rawjson.Value) (all []rawjson.Value) {
	array.EachElement(func(v rawjson.Value, _ int) bool {
		all = append(all, v)
		return true
	})
	return all
}

// mentioned returns the messages of files that a user mentioned: those that are text, and those that are images.
func mentioned(text rawjson.Value) []byte {
	var plain, shown []byte
	var images []rawjson.Value
	for _, file := range elements(text.Member("files")) {
		inner := "\n"
		if content := file.Member("content"); content.Truthy() {
			inner = "\n" + content.AsKey() + "\n"
		}
		one := `<file path="` + templated(file.Member("path")) + `">` + inner + "</file>"
		to := &plain
		if image := file.Member("image"); image.Truthy() {
			images, to = append(images, image), &shown
		}
		if len(*to) > 0 {
			*to = append(*to, '\n')
		}
		*to = append(*to, one...)
	}
	var out []byte
	at := text.Member("timestamp")
	if len(plain) > 0 {
		out = written("developer", list(textBlock(string(plain))), byUser, at)
	}
	if len(images) > 0 {
		if len(out) > 0 {
			out = append(out, ',')
		}
		out = append(out, written("user", list(append([]rawjson.Value{textBlock(string(shown))}, images...)...), byUser, at)...)
	}
	return out
}

// templated returns the text that a JavaScript template makes of a value.
func templated(v rawjson.Value) string {
	if v == nil {
		return "undefined"
	}
	return v.AsKey()
}

// executed returns the message of a command that the user ran.
func executed(text rawjson.Value) ([]byte, error) {
	if text.Member("excludeFromContext").Truthy() {
		return nil, nil
	}
	what, said := "command", "Ran `"+templated(text.Member("command"))+"`\n"
	output, failed := text.Member("output"), "Command exited"
	if text.Member("role").Is("pythonExecution") {
		what, said, failed = "execution", "Ran Python:\n```python\n"+templated(text.Member("code"))+"\n```\n", "Execution failed"
		if output.Truthy() {
			said += "Output:\n"
		}
	}
	if output.Truthy() {
		said += "```\n" + output.AsKey() + "\n```"
	} else {
		said += "(no output)"
	}
	code := text.Member("exitCode")
	if text.Member("cancelled").Truthy() {
		said += "\n\n(" + what + " cancelled)"
	} else if n, err := strconv.ParseFloat(string(code), 64); !code.Missing() && (err != nil || n != 0) {
		said += "\n\n" + failed + " with code " + code.AsKey()
	}
	notice, err := outputNotice(text.Member("meta"))
	if err != nil {
		return nil, err
	}
	content := []rawjson.Value{textBlock(said + notice)}
	if what == "command" {
		content = append(content, elements(text.Member("images"))...)
	}
	return written("user", list(content...), byUser, text.Member("timestamp")), nil
}
