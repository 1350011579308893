package sent

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// object returns a JSON object of keys and their values in turn: a string, or JSON, which is left out if it is absent.
func object(members ...any) rawjson.Value {
	out := []byte("{")
	for i := 0; i < len(members); i += 2 {
		json, ok := members[i+1].(rawjson.Value)
		if !ok {
			json = quoted(members[i+1].(string))
		}
		if len(json) == 0 {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted(members[i].(string))...), ':'), json...)
	}
	return append(out, '}')
}

func quoted(text string) rawjson.Value { return rawjson.AppendQuoted(nil, text) }

func textBlock(text string) rawjson.Value { return object("type", "text", "text", text) }

// list returns an array.
func list(elements ...rawjson.Value) rawjson.Value {
	parts := make([][]byte, len(elements))
	for i, e := range elements {
		parts[i] = e
	}
	return append(append([]byte("["), bytes.Join(parts, []byte(","))...), ']')
}

// listed returns an array of a first element and others.
func listed(first rawjson.Value, others []rawjson.Value) rawjson.Value {
	return list(append([]rawjson.Value{first}, others...)...)
}

func elements(array rawjson.Value) (all []rawjson.Value) {
	for v := range array.EachElement {
		all = append(all, v)
	}
	return all
}

// written returns a message with a role, content, and where it is from.
func written(role string, content, attribution, timestamp rawjson.Value) rawjson.Value {
	return object("role", role, "content", content, "attribution", attribution, "timestamp", timestamp)
}

// byUser and byAgent are values of attribution.
var byUser, byAgent = quoted("user"), quoted("agent")

// replaced returns an object with a member replaced, and others removed.
func replaced(text rawjson.Value, key string, value rawjson.Value, others ...string) rawjson.Value {
	var edits rawjson.Edits
	return edits.Object(text, 0, `"`+key+`":`+string(value), named(append(others, key)...)).Apply(text)
}

// named returns a function that reports whether a member has one of the keys.
func named(keys ...string) func(rawjson.Member) bool {
	return func(m rawjson.Member) bool { return slices.ContainsFunc(keys, m.KeyIs) }
}

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
	switch role := text.Member("role"); {
	case role.Is("assistant") && text.Member("provider").Is("github-copilot"):
		return sessioncore.PayloadEdits(nil, text)
	case role.Is("assistant"):
		return nil
	case role.Is("user"):
		by = byUser
	}
	if text.Member("attribution").Missing() {
		edits = edits.Object(text, 0, `"attribution":`+string(by), named("attribution"))
	}
	return edits
}

// compose returns what is sent for a message, none or several objects with commas between them. text is that of its
// entry.
func (b *builder) compose(m *message, text rawjson.Value) (rawjson.Value, error) {
	isEntry, at := b.s.Kind(m.entry) != sessioncore.TypeMessage, rawjson.Value(nil)
	if isEntry {
		at = rawjson.AppendDate(nil, text.Member("timestamp"))
	} else {
		text = messageOf(text)
		at = text.Member("timestamp")
	}
	switch m.role {
	case "user", "developer", "assistant", "toolResult":
		plain := rawjson.Value(plainEdits(text).Apply(text))
		switch {
		case m.isPlain(text):
			return plain, nil
		case m.role == "user":
			return steered(plain), nil
		case m.role == "assistant":
			return b.repaired(m, plain), nil
		}
		return pruned(plain), nil
	case "bashExecution", "pythonExecution":
		return executed(text)
	case "fileMention":
		return mentioned(text), nil
	case "custom", "hookMessage":
		return composeCustom(text, isEntry, m.role == "hookMessage", at), nil
	case "branchSummary":
		return summarized(list(textBlock(tidied(branchLead+or(text.Member("summary"), "")+summaryEnd))), nil, at), nil
	case "compactionSummary":
		if !isEntry {
			return summarized(summaryContent(text), text.Member("providerPayload"), at), nil
		}
		payload, _ := providerPayload(text)
		content, err := b.compacted(text)
		return summarized(content, payload, at), err
	case roleNotes:
		notes, _ := notesOf(text)
		return written("developer", list(textBlock(rawjson.TrimSpace(tidied(notesLead+notes+notesEnd)))), nil, at), nil
	}
	return nil, nil // a role that the client does not send
}

// summarized returns the message of a summary.
func summarized(content, payload, at rawjson.Value) rawjson.Value {
	return object("role", "user", "content", content, "attribution", byAgent, "historyRewriteAt", at, "providerPayload", payload, "timestamp", at)
}

// compactionBlock returns the text of the summary of a compaction, or of its message.
func compactionBlock(text rawjson.Value) rawjson.Value {
	summary := or(text.Member("summary"), "")
	if text.Member("method").Is("handoff") {
		return textBlock(tidied(handoffLead + summary + handoffEnd))
	}
	return textBlock(tidied(compactionLead + summary + summaryEnd))
}

// rawSummary returns the block of a summary that is followed by others, whatever the summary is: if it is missing, it has no text.
func rawSummary(text rawjson.Value) rawjson.Value {
	return object("type", "text", "text", text.Member("summary"))
}

// summaryContent returns the content of a message compactionSummary.
func summaryContent(text rawjson.Value) rawjson.Value {
	if blocks := text.Member("blocks"); blocks != nil {
		return listed(rawSummary(text), elements(blocks))
	}
	return listed(compactionBlock(text), elements(text.Member("images")))
}

// pruned returns the result of a tool whose output was shortened later: one text in the place of several.
func pruned(text rawjson.Value) rawjson.Value {
	said, content, first := "", []rawjson.Value(nil), -1
	for _, block := range elements(text.Member("content")) {
		if !block.Member("type").Is("text") {
			content = append(content, block)
			continue
		}
		part, _ := block.Member("text").Text()
		said += part
		if first < 0 {
			first = len(content)
		}
	}
	block := textBlock(cmp.Or(said, "[Output truncated]"))
	return replaced(text, "content", list(slices.Insert(content, max(first, 0), block)...))
}

// mentioned returns the messages of files that a user mentioned: those that are text, and those that are images.
func mentioned(text rawjson.Value) rawjson.Value {
	var plain, shown []string
	var images, messages []rawjson.Value
	for _, file := range elements(text.Member("files")) {
		inner := "\n"
		if content := file.Member("content"); content.Truthy() {
			inner += content.AsKey() + "\n"
		}
		one := `<file path="` + file.Member("path").AsKey() + `">` + inner + "</file>"
		if image := file.Member("image"); image.Truthy() {
			images, shown = append(images, image), append(shown, one)
		} else {
			plain = append(plain, one)
		}
	}
	at := text.Member("timestamp")
	if len(plain) > 0 {
		messages = append(messages, written("developer", list(textBlock(strings.Join(plain, "\n"))), byUser, at))
	}
	if len(images) > 0 {
		messages = append(messages, written("user", listed(textBlock(strings.Join(shown, "\n")), images), byUser, at))
	}
	return joined(messages)
}

// joined returns messages with commas between them.
func joined(messages []rawjson.Value) rawjson.Value {
	array := list(messages...)
	return array[1 : len(array)-1]
}

// executed returns the message of a command that the user ran.
func executed(text rawjson.Value) (rawjson.Value, error) {
	if text.Member("excludeFromContext").Truthy() {
		return nil, nil
	}
	images := elements(text.Member("images"))
	what, said := "command", "Ran `"+text.Member("command").AsKey()+"`\n"
	output, failed := text.Member("output"), "Command exited"
	if text.Member("role").Is("pythonExecution") {
		what, said, failed, images = "execution", "Ran Python:\n```python\n"+text.Member("code").AsKey()+"\n```\n", "Execution failed", nil
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
	} else if !code.Missing() && number(code) != 0 {
		said += "\n\n" + failed + " with code " + code.AsKey()
	}
	notice, err := outputNotice(text.Member("meta"))
	return written("user", listed(textBlock(said+notice), images), byUser, text.Member("timestamp")), err
}

// composeCustom returns what is sent for a message of an extension: mostly as of the developer, and as of the user what
// a user asked and what has images. isEntry says that it is a custom_message entry, and isHook that it is of the older kind.
func composeCustom(text rawjson.Value, isEntry, isHook bool, at rawjson.Value) rawjson.Value {
	customType, content, by := text.Member("customType"), text.Member("content"), text.Member("attribution")
	if !isContent(content) {
		return nil
	}
	if isEntry && (!customType.IsString() || !customType.Truthy()) {
		customType = quoted(otherCustom)
	}
	if isEntry && by != nil && !by.Is("user") {
		by = byAgent
	}
	asked := !isHook && by.Is("user")
	if asked && customType.Is(collabPrompt) {
		return written("user", interjected(content), byUser, at)
	}
	if said, ok := content.Text(); ok {
		content = list(textBlock(said))
	}
	if asked && customType.Is(skillPrompt) {
		return written("user", content, byUser, at)
	}
	texts, images := textsAndImages(content)
	if len(images) == 0 {
		return written("developer", content, by, at)
	}
	var messages []rawjson.Value
	if len(texts) > 0 {
		messages = append(messages, written("developer", list(texts...), by, at))
	}
	lead := textBlock("Images attached to " + customType.AsKey() + ".")
	return joined(append(messages, written("user", listed(lead, images), by, at)))
}

// textsAndImages returns the blocks of text of a content, and those of images.
func textsAndImages(content rawjson.Value) (texts, images []rawjson.Value) {
	for _, block := range elements(content) {
		switch kind := block.Member("type"); {
		case kind.Is("text"):
			texts = append(texts, block)
		case kind.Is("image"):
			images = append(images, block)
		}
	}
	return texts, images
}

// interjected returns the content of a message that the user sent while the agent worked, in the words around it that
// tell the model so. Content without text stays.
func interjected(content rawjson.Value) rawjson.Value {
	if text, isText := content.Text(); isText && text != "" {
		return quoted(interjection(text))
	}
	texts, images := textsAndImages(content)
	parts := make([]string, len(texts))
	for i, block := range texts {
		parts[i], _ = block.Member("text").Text()
	}
	text := strings.Join(parts, "\n")
	if text == "" {
		return content
	}
	return listed(textBlock(interjection(text)), images)
}

// steered returns a user's message that was sent while the agent worked.
func steered(text rawjson.Value) rawjson.Value {
	content := text.Member("content")
	if changed := interjected(content); string(changed) != string(content) {
		return replaced(text, "content", changed, "steering")
	}
	return text
}
