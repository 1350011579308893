package listing

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/storage"
)

// The client lists a session by the first 4 KB of its file. Its results for a cut prefix are part
// of the format: other lists must agree (docs/format.md, Listing and resuming).

// parseInfo parses a file's prefix as in client 14.9.9, or 18.2.3 for files with a title slot. It
// returns nil if the client does not list the file. It also knows the operator dialect.
func parseInfo(prefix []byte) *Info {
	content := bytes.TrimPrefix(prefix, []byte("\xEF\xBB\xBF"))
	if !utf8.Valid(content) {
		content = rawjson.AppendUTF8(nil, content)
	}
	p := infoParser{content: content, values: prefixValues(content)}
	hasHeader := p.header()
	hasNull := slices.ContainsFunc(p.values, func(v rawjson.Value) bool {
		return string(v) == "null"
	})
	if !hasHeader || hasNull { // the client fails on null
		return nil
	}
	p.entries()
	p.shareFirst(p.first)
	if p.first == "" {
		p.first = firstMessageText(content, p.flags&infoSlot != 0)
	}
	if p.first == "" {
		p.first = noMessages
	}
	p.MessageCount = max(p.MessageCount, countMessageMarkers(content))
	if p.Title == "" {
		p.Title = p.summary
	}
	info := p.Info // a copy, as p holds the prefix
	return &info
}

// infoParser parses one prefix.
type infoParser struct {
	Info
	content []byte // the prefix as UTF-8
	values  []rawjson.Value
	summary string // the title if the header has none
}

// header reads the header: the first value, or the one after a title slot. It returns false if that value is
// no header.
func (p *infoParser) header() bool {
	values := p.values
	if p.hasSlot() {
		p.flags |= infoSlot // its title overrides the header's; a blank one removes it
		title, _ := values[0].Member("title").Text()
		if rawjson.TrimSpace(title) != "" {
			p.Title = title
		}
		values = values[1:]
	}
	if len(values) == 0 {
		return false
	}
	header := values[0]
	d := sessioncore.DialectOf(header)
	if d == nil {
		return false
	}
	if d == sessioncore.Operator {
		p.flags |= infoOperator
	}
	at := header.Member("timestamp")
	ms, _, isTime := d.Time(at)
	isOwnForm := at.IsString() || d == sessioncore.Operator
	if isTime && isOwnForm {
		p.created = ms
	}
	p.ID, _ = header.Member("id").Text()
	p.CWD, _ = header.Member("cwd").Text()
	p.Parent, _ = header.Member(d.ParentSessionKey).Text()
	if !header.Member("subagent").Missing() {
		p.flags |= infoSubagent
	}
	if p.flags&(infoSlot|infoOperator) == 0 {
		p.Title, _ = header.Member("title").Text()
	}
	return true
}

// hasSlot reports whether the first line is a title slot. Client 18.2.3 also lists files with a
// partial slot, but no client loads them.
func (p *infoParser) hasSlot() bool {
	if len(p.values) == 0 {
		return false
	}
	first := p.values[0]
	return sessioncore.IsTitleSlot(first) && bytes.HasPrefix(p.content, first)
}

// entries parses all values; a header or title slot has no effect.
func (p *infoParser) entries() {
	for _, v := range p.values {
		typ := v.Member("type")
		switch {
		case p.flags&infoOperator != 0 && typ.Is("session_info"): // the last one sets or removes the name
			p.summary, _ = v.Member("name").Text()
		case p.flags&infoOperator == 0 && typ.Is("compaction"):
			text, ok := v.Member("shortSummary").Text()
			if ok {
				p.summary = text
			}
		case typ.Is("message"):
			p.MessageCount++
			m := v.Member("message")
			p.note(m)
			if p.first == "" && m.Member("role").Is("user") {
				p.first = contentText(m.Member("content"))
			}
		case typ.Is("custom_message"):
			p.note(v)
		}
	}
}

// note keeps the words of a message, or of an entry like one, if it is the first request.
func (p *infoParser) note(v rawjson.Value) {
	if p.asked == "" {
		p.asked = requestText(v)
	}
}

// requestText returns the words of a message, or of an entry like one, if it is a person's request.
func requestText(v rawjson.Value) string {
	m := message.Read(v)
	words, _ := message.Request(&m)
	return contentText(words)
}

// cutRequests are in the beginning of a request that may be long, as it has the text of a skill.
var cutRequests = [][]byte{[]byte(`"skill-prompt"`), []byte(`"collab-prompt"`)}

// requestInCut returns the words of the request that the end of a prefix cuts, or "". It reads the whole line
// from the file, at most maxHeader bytes.
func requestInCut(file io.ReaderAt, prefix []byte, size int64) string {
	start := bytes.LastIndexByte(prefix, '\n') + 1
	isCut := slices.ContainsFunc(cutRequests, func(sign []byte) bool {
		return bytes.Contains(prefix[start:], sign)
	})
	if !isCut {
		return ""
	}
	line := make([]byte, min(maxHeader, size-int64(start)))
	err := storage.ReadFull(file, line, int64(start))
	if err != nil {
		return ""
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	for _, v := range prefixValues(rawjson.AppendUTF8(nil, line)) {
		if v.Member("type").Is("custom_message") {
			asked := requestText(v)
			return asked[:min(len(asked), prefixSize)]
		}
	}
	return ""
}

// contentText returns the texts of a message's content, separated by blanks.
func contentText(content rawjson.Value) string {
	if !content.IsArray() {
		text, _ := content.Text()
		return text
	}
	var texts []string
	for block := range content.EachElement {
		if block.Member("type").Is("text") {
			text, _ := block.Member("text").Text()
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, " ")
}

// prefixValues returns the JSON values in complete lines of a decoded prefix.
func prefixValues(content []byte) []rawjson.Value {
	var values []rawjson.Value
	var s rawjson.Scanner
	for line := range bytes.Lines(content) {
		at := rawjson.SkipSpace(line, 0)
		end, st := s.SkipValue(line, at)
		if st == rawjson.OK && rawjson.SkipSpace(line, end) == len(line) {
			values = append(values, rawjson.Value(line[at:end]))
		}
	}
	return values
}

var (
	rolePattern    = regexp.MustCompile(`"role"\s*:\s*"(\w+)"`)
	contentPattern = regexp.MustCompile(`"(?:content|text)"\s*:\s*"`)
)

// untilQuote returns the inside of a JSON string after its first quote, or all of a cut one.
func untilQuote(text []byte) []byte {
	i := 0
	for i < len(text) {
		switch text[i] {
		case '\\':
			i += 2 // the next byte is escaped, perhaps a quote
		case '"':
			return text[:i]
		default:
			i++
		}
	}
	return text
}

// unescapeFragment decodes the inside of a cut or malformed JSON string.
func unescapeFragment(raw []byte) string {
	raw = bytes.TrimSuffix(raw, []byte(`\`))
	var s rawjson.Scanner
	quoted := append(bytes.Clone(raw), '"')
	end, st := s.SkipString(quoted, 0)
	if st == rawjson.OK && end == len(quoted) {
		return string(rawjson.AppendDecoded(nil, raw))
	}
	text := string(raw)
	for _, escape := range clientEscapes {
		text = strings.ReplaceAll(text, escape.sequence, escape.char)
	}
	return text
}

// clientEscapes are the escapes that the client replaces in a malformed string, in its order, one after
// the other.
var clientEscapes = []struct{ sequence, char string }{
	{`\n`, "\n"},
	{`\r`, "\r"},
	{`\t`, "\t"},
	{`\"`, `"`},
	{`\\`, `\`},
}

// countMessageMarkers counts message types in a text, at any depth.
func countMessageMarkers(text []byte) (n int) {
	for {
		_, value, found := bytes.Cut(text, []byte(`"type":`))
		if !found {
			return n
		}
		unspaced := bytes.TrimPrefix(value, []byte(" "))
		if bytes.HasPrefix(unspaced, []byte(`"message"`)) {
			n++
		}
		text = value
	}
}

// firstMessageText searches a text that could not be parsed for the first user message. The newer
// client, with title slots, skips empty messages, and falls back to the first message of a developer or an
// assistant that has a text.
func firstMessageText(text []byte, newer bool) string {
	fallback := ""
	for _, match := range rolePattern.FindAllSubmatchIndex(text, -1) {
		role := string(text[match[2]:match[3]]) // the first group
		rest := text[match[1]:]
		switch role {
		case "user":
			content := contentBehind(rest)
			if content != "" || !newer {
				return content
			}
		case "developer", "assistant":
			if newer && fallback == "" {
				fallback = contentBehind(rest)
			}
		}
	}
	return fallback
}

// contentBehind returns the first text of a message behind its role, in a text that could not be parsed.
func contentBehind(text []byte) string {
	at := contentPattern.FindIndex(text)
	if at == nil {
		return ""
	}
	return unescapeFragment(untilQuote(text[at[1]:]))
}
