package listing

import (
	"bytes"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
)

// The client lists a session by the first 4 KB of its file. What it makes of a prefix that is cut or not JSON is part
// of the format: other tools' lists must agree with it. This file reproduces its lenient parser, checked against
// client 14.9.9 (docs/format.md, Listing and resuming).

// prefixValues returns the values that the client's list reads from a decoded prefix. Unlike when a session is loaded
// (package jsonl), a torn value swallows the following lines as long as they could belong to it.
func prefixValues(content []byte) []rawjson.Value {
	var values []rawjson.Value
	var s rawjson.Scanner
	for at := rawjson.SkipSpace(content, 0); at < len(content); at = rawjson.SkipSpace(content, at) {
		end, st := s.SkipValue(content, at)
		if st == rawjson.Short {
			break
		}
		if st == rawjson.OK {
			values = append(values, rawjson.Value(content[at:end]))
			at = end
			for end < len(content) && (content[end] == ' ' || content[end] == '\t' || content[end] == '\r') {
				end++
			}
			if end == len(content) || content[end] == '\n' {
				continue
			}
		}
		newline := bytes.IndexByte(content[at:], '\n')
		if newline < 0 {
			break
		}
		at += newline + 1
	}
	return values
}

// textProperty searches text from an offset on for `"name"`, and returns what is between the quotes of the string
// after the next colon, up to the end of the text if it is cut. It ignores nesting. ok is false if there is no such
// name or string.
func textProperty(text []byte, name string, from int) (raw []byte, ok bool) {
	at := indexFrom(text, `"`+name+`"`, from)
	if at < 0 {
		return nil, false
	}
	colon := indexFrom(text, ":", at+len(name)+2)
	if colon < 0 {
		return nil, false
	}
	start := rawjson.SkipSpace(text, colon+1)
	if start >= len(text) || text[start] != '"' {
		return nil, false
	}
	start++
	for i := start; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[start:i], true
		}
	}
	return text[start:], true
}

func indexFrom(text []byte, what string, from int) int {
	if from > len(text) {
		return -1
	}
	if at := bytes.Index(text[from:], []byte(what)); at >= 0 {
		return from + at
	}
	return -1
}

// unescapeFragment decodes the inside of a JSON string that may be cut or malformed.
func unescapeFragment(raw []byte) string {
	raw = bytes.TrimSuffix(raw, []byte(`\`))
	var s rawjson.Scanner
	quoted := append(bytes.Clone(raw), '"')
	if end, st := s.SkipString(quoted, 0); st == rawjson.OK && end == len(quoted) {
		return string(rawjson.AppendDecoded(nil, raw))
	}
	text := string(raw)
	for _, escape := range [...][2]string{{`\n`, "\n"}, {`\r`, "\r"}, {`\t`, "\t"}, {`\"`, `"`}, {`\\`, `\`}} {
		text = strings.ReplaceAll(text, escape[0], escape[1])
	}
	return text
}

// textString is textProperty with the string decoded.
func textString(text []byte, name string, from int) (string, bool) {
	raw, ok := textProperty(text, name, from)
	if !ok {
		return "", false
	}
	return unescapeFragment(raw), true
}

// countMessageMarkers counts what looks like the type member of a message, at any depth.
func countMessageMarkers(text []byte) int {
	count := 0
	for at := 0; ; {
		at = indexFrom(text, `"type"`, at)
		if at < 0 {
			return count
		}
		colon := indexFrom(text, ":", at+len(`"type"`))
		if colon < 0 {
			return count
		}
		raw, ok := textProperty(text, "type", at)
		if ok && (string(raw) == "message" || bytes.IndexByte(raw, '\\') >= 0 && unescapeFragment(raw) == "message") {
			count++
		}
		at = colon + 1
	}
}

// firstMessageText searches for the first user message in a text that could not be parsed up to it. The newer client,
// whose files have a title slot, skips empty messages and falls back to those of other roles.
func firstMessageText(text []byte, newer bool) string {
	const role = `"role"`
	fallback := ""
	for at := indexFrom(text, role, 0); at >= 0; at = indexFrom(text, role, at+len(role)) {
		who, _ := textString(text, "role", at)
		if who != "user" && (!newer || who != "developer" && who != "assistant" || fallback != "") {
			continue
		}
		content, ok := textString(text, "content", at)
		if !ok {
			content, _ = textString(text, "text", at)
		}
		switch {
		case who == "user" && (content != "" || !newer):
			return content
		case who != "user":
			fallback = content
		}
	}
	return fallback
}
