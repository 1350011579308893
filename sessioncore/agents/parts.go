package agents

import (
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// EachPart calls f for the parts of content in Google's form: a text, an object, or one list of both.
// A list in that list is no part. The client writes none, and each level would be read once more.
func EachPart(content rawjson.Value, f func(part rawjson.Value)) {
	if !content.IsArray() {
		onePart(content, f)
		return
	}
	for part := range content.EachElement {
		onePart(part, f)
	}
}

// onePart calls f for an object, or for a text as the object with the member text. It ignores other values.
func onePart(v rawjson.Value, f func(part rawjson.Value)) {
	switch {
	case v.IsString():
		part := append(rawjson.Value(`{"text":`), v...)
		f(append(part, '}'))
	case v.IsObject():
		f(v)
	}
}

// TextIn returns the texts in content of Google's form, joined, without thoughts.
func TextIn(content rawjson.Value) string {
	var all strings.Builder
	EachPart(content, func(part rawjson.Value) {
		text, ok := part.Member("text").Text()
		if ok && !IsThought(part) {
			all.WriteString(text)
		}
	})
	return all.String()
}

// IsThought reports whether a part is a thought of the model.
func IsThought(part rawjson.Value) bool { return part.Member("thought").Truthy() }

// Part adds a part that is no call: a text, an image, or the type or the URI of other data.
func (l *Blocks) Part(part rawjson.Value) {
	data := part.Member("inlineData")
	file := part.Member("fileData")
	mimeType, _ := data.Member("mimeType").Text()
	switch {
	case strings.HasPrefix(mimeType, "image/"):
		l.Image(data.Member("mimeType"), data.Member("data"))
	case data.IsObject():
		l.Text(Quoted("[" + mimeType + "]"))
	case file.IsObject():
		l.Text(file.Member("fileUri"))
	case !part.Member("text").Is(""):
		l.Text(part.Member("text"))
	}
}

// Response adds the result of a tool: a text, or parts with the tool's answer in one of them.
func (l *Blocks) Response(result rawjson.Value) {
	EachPart(result, func(part rawjson.Value) {
		answer := part.Member("functionResponse")
		if !answer.IsObject() {
			l.Part(part)
			return
		}
		response := answer.Member("response")
		text := response.AnyOf("output", "error")
		hasOthers := response.IsObject() && string(response) != "{}"
		if len(text) == 0 && hasOthers {
			text = response
		}
		if len(text) > 0 && !text.IsString() { // its JSON is shown
			text = Quoted(string(text))
		}
		l.Text(text)
		EachPart(answer.Member("parts"), l.Part)
	})
}

// Quoted returns a text as a JSON text, or nil for "".
func Quoted(text string) rawjson.Value {
	if text == "" {
		return nil
	}
	return rawjson.AppendQuoted(nil, text)
}
