package search

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// checker checks entries against a Query. Entry resets it, gives it the texts of an entry one by one until the
// rest does not matter, and then asks whether it is a hit:
//
//	the query  mutex -test     found for "mutex", and excluded for "test"
//	text 1     "a mutex is"    found; missing is 0, and line has the text
//	text 2     "go test"       excluded, so the entry is no hit
type checker struct {
	q        *Query
	found    []bool // for each of q's words, whether it was found
	missing  int    // the number of words that were not found yet
	excluded bool   // a word was found that must be absent
	hasTool  bool   // the tool of the query was found, or it has none
	line     string // the line with the first match
	isWhole  bool   // lines are not shortened

	// overlap is the number of bytes by which windows of a text overlap. It is negative if a text is
	// searched as a whole, as matches may have any length.
	overlap      int
	startsInside bool   // the text that is searched begins within a longer one
	endsInside   bool   // it ends within a longer one
	decoded      []byte // buffer for decoded text
	output       []byte // the long result of the next entry, from a file beside the session
	prompt       Prompts
}

const (
	// window is the part of a long text that is decoded at once, in bytes of the file.
	window = 64 << 10
	// longestFold is the maximum ratio of the sizes of a text and of its folding.
	longestFold = 3
)

// Entry implements Checker.
func (c *checker) Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool) {
	output := c.output // of this entry alone
	c.output = nil
	if !c.inTime(s.Time(e)) {
		return Hit{}, false
	}
	c.reset()
	isOfRole := false
	if c.q.role == userRole { // a message of the user's role may be a client's
		isOfRole = s.IsRequest(e)
		words := s.Request(e, text)
		c.request(words)
	} else {
		role := c.entry(s, e, text, output)
		isOfRole = c.hasRole(role)
	}
	if !isOfRole || !c.isHit() {
		return Hit{}, false
	}
	hit.Line = c.line
	if s.Kind(e) == sessioncore.TypeMessage && !s.IsRequest(e) {
		hit.Prompt = c.prompt.Before(s, e)
	}
	return hit, true
}

// Title implements Checker. A title has no role, tool or model.
func (c *checker) Title(title rawjson.Value, at time.Time) (line string, ok bool) {
	isOfEntries := c.q.role != "" || c.q.model != nil
	if isOfEntries || !title.IsString() || !c.inTime(at) {
		return "", false
	}
	c.reset()
	c.piece(title)
	return c.line, c.isHit()
}

// reset prepares for the next entry.
func (c *checker) reset() {
	clear(c.found)
	c.missing = len(c.found)
	c.excluded = false
	c.hasTool = c.q.tool == nil
	c.line = ""
	c.startsInside = false
	c.endsInside = false
}

// isHit reports whether the texts so far make a hit.
func (c *checker) isHit() bool { return c.missing == 0 && !c.excluded && c.hasTool }

// inTime reports whether a time is within after: and before:.
func (c *checker) inTime(at time.Time) bool {
	isBefore := c.q.before.IsZero() || at.Before(c.q.before)
	return isBefore && !at.Before(c.q.after)
}

// hasRole reports whether a message's role, nil for an entry without one, is the query's. A query for any role
// has every one.
func (c *checker) hasRole(role rawjson.Value) bool {
	if c.q.role == "" {
		return true
	}
	text, _ := role.Text()
	return slices.Contains(roles[c.q.role], rawjson.CamelCase(text))
}

// isOfModel reports whether a message is of the query's model, which is a part of PROVIDER/NAME, or the query is
// for any.
func (c *checker) isOfModel(m *message.Members) bool {
	if c.q.model == nil {
		return true
	}
	model, hasModel := m[message.Model].Text()
	provider, _ := m[message.Provider].Text()
	return hasModel && c.q.model.isIn([]byte(provider+"/"+model))
}

// tool checks the name of a tool that is called or has answered, which must be the query's as a whole. It sets
// hasTool alone: as a text the name is checked elsewhere.
func (c *checker) tool(name rawjson.Value) {
	text, isText := name.Bytes()
	if !isText || c.hasTool {
		return
	}
	start, end := c.q.tool.find(text)
	c.hasTool = start == 0 && end == len(text)
}

// piece checks a string or number, as the file has it. It returns false once the rest cannot change the result:
// a word is there that must not be, or all is found that must be and a line to show.
func (c *checker) piece(v rawjson.Value) bool {
	if v.IsString() {
		c.body(v[1 : len(v)-1])
	} else {
		c.find(v)
	}
	if c.excluded {
		return false
	}
	isSettled := c.isHit() && len(c.q.without) == 0 && c.line != ""
	return !isSettled
}

// body checks the text of a string. A long one is decoded and searched in windows, which overlap by as many
// bytes as a match may have.
func (c *checker) body(body []byte) {
	if c.foundInBeginning(body) {
		return
	}
	if len(body) <= window || c.overlap < 0 || c.isWhole {
		if bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body) {
			c.decoded = rawjson.AppendDecoded(c.decoded[:0], body)
			body = c.decoded
		}
		c.find(body)
		return
	}
	c.decoded = c.decoded[:0]
	for len(body) > 0 && !c.excluded {
		n := rawjson.CutPoint(body, window) // not within an escape or a character
		c.decoded = rawjson.AppendDecoded(c.decoded, body[:n])
		body = body[n:]
		c.endsInside = len(body) > 0
		c.find(c.decoded)
		c.startsInside = c.endsInside
		kept := max(0, len(c.decoded)-c.overlap)
		for kept < len(c.decoded) && !utf8.RuneStart(c.decoded[kept]) {
			kept++
		}
		c.decoded = append(c.decoded[:0], c.decoded[kept:]...)
	}
}

// beginning is the part of a text that is decoded before the rest, in bytes of the file.
const beginning = 1 << 10

// foundInBeginning checks the beginning of the text of a string. It reports whether the only word of the
// query is there, with all of the line that is shown, so that the rest does not matter.
func (c *checker) foundInBeginning(body []byte) bool {
	isOneWord := len(c.q.words) == 1 && len(c.q.without) == 0
	if !isOneWord || c.isWhole || c.found[0] {
		return false
	}
	only := c.q.words[0]
	if only.plain == nil || len(body) < 2*beginning {
		return false
	}
	cut := rawjson.CutPoint(body, beginning)
	c.decoded = rawjson.AppendDecoded(c.decoded[:0], body[:cut])
	at, _ := only.find(c.decoded)
	lineEnd := at + lineAfter + utf8.UTFMax
	if at < 0 || lineEnd > len(c.decoded) {
		return false
	}
	c.find(c.decoded)
	return true
}

// plain checks a text that is no JSON, nil for none. A long one is searched in windows, as in body.
func (c *checker) plain(text []byte) {
	overlap := max(0, c.overlap)
	isInWindows := c.overlap >= 0 && !c.isWhole
	from := 0
	for from < len(text) && !c.excluded {
		to := len(text)
		if isInWindows {
			to = min(to, from+window)
		}
		c.endsInside = to < len(text)
		part := text[max(0, from-overlap):to]
		c.find(bytes.ToValidUTF8(part, []byte("\uFFFD")))
		c.startsInside = c.endsInside
		from = to
	}
}

// find searches decoded text for the words, and sets line at the first match.
func (c *checker) find(text []byte) {
	for _, w := range c.q.without {
		if w.isIn(text) {
			c.excluded = true
			return
		}
	}
	if len(c.q.words) == 0 && c.line == "" { // a query of keys alone shows the first text
		c.line = c.lineAt(bytes.TrimSpace(text), 0)
	}
	for i, w := range c.q.words {
		if c.found[i] {
			continue
		}
		at, _ := w.find(text)
		if at < 0 {
			continue
		}
		c.found[i] = true
		c.missing--
		if c.line == "" {
			c.line = c.lineAt(text, at)
		}
	}
}

const (
	// lineBefore and lineAfter bound the shown bytes of a line before and after a match.
	lineBefore = 60
	lineAfter  = 180
)

// lineAt returns the line of text at an offset: whole if isWhole, else shortened. Where text is a window of a
// longer one, a line at its edge has an ellipsis there.
func (c *checker) lineAt(text []byte, at int) string {
	if c.isWhole {
		return wholeLineAt(text, at)
	}
	line := lineAt(text, at)
	if c.startsInside && bytes.IndexByte(text[:at], '\n') < 0 {
		line = ellipsis + strings.TrimPrefix(line, ellipsis)
	}
	if c.endsInside && bytes.IndexByte(text[at:], '\n') < 0 {
		line = strings.TrimSuffix(line, ellipsis) + ellipsis
	}
	return line
}

// wholeLineAt returns the line of text at an offset. At the offset of a newline it returns that line and the
// next one.
func wholeLineAt(text []byte, at int) string {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	behind := min(at+1, to)
	n := bytes.IndexByte(text[behind:], '\n')
	if n >= 0 {
		to = behind + n
	}
	return strings.TrimSpace(string(text[from:to]))
}

// lineAt returns the line of text at an offset. Of a long one it returns lineBefore bytes before the offset and
// lineAfter behind it, with an ellipsis at a cut end.
func lineAt(text []byte, at int) string {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	n := bytes.IndexByte(text[at:], '\n')
	if n > 0 {
		to = at + n
	}
	before := ""
	after := ""
	if at-from > lineBefore {
		from = at - lineBefore
		before = ellipsis
		for from < at && !utf8.RuneStart(text[from]) {
			from++
		}
	}
	if to-at > lineAfter {
		to = at + lineAfter
		after = ellipsis
		for to > at && !utf8.RuneStart(text[to]) {
			to--
		}
	}
	return before + strings.TrimSpace(string(text[from:to])) + after
}

// docs/design.md section 5, search/, defines the visible text of an entry.

// messageTexts and blockTexts are the members with texts, besides content.
var (
	messageTexts = []message.Key{message.Command, message.Code, message.Output, message.ErrorMessage,
		message.Summary, message.ShortSummary, message.ToolName, message.CustomType}
	blockTexts = []message.Key{message.Text, message.Thinking, message.Name, message.ToolName, message.Intent}
)

// userRole is the value of role: that finds requests of persons, by their own words alone.
const userRole = "user"

// request checks the words of a person's request. No model said them.
func (c *checker) request(words rawjson.Value) {
	c.excluded = c.q.model != nil
	if !c.excluded {
		c.content(words, 0)
	}
}

// entry checks the visible text and the tools of an entry with its output, and returns its message's role or nil.
// The functions below return false once the rest does not matter.
func (c *checker) entry(
	s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value, output []byte,
) (role rawjson.Value) {
	c.excluded = c.q.model != nil
	switch s.Kind(e) {
	case sessioncore.TypeMessage:
		m := message.Read(s.Message(e, text))
		c.excluded = !c.isOfModel(&m)
		if !c.excluded {
			c.message(&m)
			c.plain(output)
		}
		return m[message.Role]
	case sessioncore.TypeCustomMessage, sessioncore.TypeCompaction, sessioncore.TypeBranchSummary:
		m := message.Read(text)
		c.message(&m)
		c.content(s.Request(e, text), 0) // the words that called a skill
	case sessioncore.TypeTitleChange, sessioncore.TypeSessionInfo:
		mayGoOn := c.string(text.Member("title"))
		if mayGoOn {
			c.string(text.Member("name"))
		}
	case sessioncore.TypeLabel:
		c.string(text.Member("label"))
	}
	return nil
}

// message checks the texts and tools of a message.
func (c *checker) message(m *message.Members) {
	c.tool(m[message.ToolName])
	if !c.strings(m, messageTexts) {
		return
	}
	for file := range m[message.Files].EachElement {
		if !c.string(file.Member("path")) || !c.string(file.Member("content")) {
			return
		}
	}
	if c.content(m[message.Content], 0) {
		message.EachNested(m, c.nested)
	}
}

// nested checks a call that a tool made itself.
func (c *checker) nested(call *message.Members) {
	c.tool(call[message.Name])
	goesOn := c.string(call[message.Name]) && c.scalars(call[message.Arguments])
	if goesOn {
		c.string(call[message.ErrorMessage])
	}
}

// string checks a value that is text only if it is a string.
func (c *checker) string(v rawjson.Value) bool { return !v.IsString() || c.piece(v) }

// strings checks some members of a message or a block.
func (c *checker) strings(m *message.Members, keys []message.Key) bool {
	for _, key := range keys {
		goesOn := c.string(m[key])
		if !goesOn {
			return false
		}
	}
	return true
}

// content checks the content of a message or block: a text, a block, or a list of these.
func (c *checker) content(v rawjson.Value, depth int) bool {
	if !v.IsArray() {
		return c.block(v, depth)
	}
	for element := range v.EachElement {
		if !c.block(element, depth) {
			return false
		}
	}
	return true
}

// block checks a text or a block, and the blocks within it up to message.MaxDepth. depth counts from 0.
func (c *checker) block(v rawjson.Value, depth int) bool {
	if v.IsString() {
		return c.piece(v)
	}
	b := message.Read(v)
	c.tool(b[message.ToolName])
	if b.Kind() == message.CallKind {
		c.tool(b[message.Name])
	}
	if !c.strings(&b, blockTexts) || !c.scalars(b[message.Arguments]) {
		return false
	}
	source := b[message.Source]
	if source.IsObject() && !c.document(source, depth) {
		return false
	}
	if depth == message.MaxDepth {
		return true
	}
	if !c.content(b[message.Content], depth+1) {
		return false
	}
	inner := b[message.Block]
	if !inner.IsObject() {
		return true
	}
	return c.block(inner, depth+1)
}

// document checks the text or the blocks of a document.
func (c *checker) document(source rawjson.Value, depth int) bool {
	if source.Member("type").Is("text") {
		return c.string(source.Member("data"))
	}
	return depth == message.MaxDepth || c.content(source.Member("content"), depth+1)
}

// scalars checks the strings and numbers in a value, except keys. It scans the bytes, as a recursion would be
// as deep as the value.
func (c *checker) scalars(v rawjson.Value) bool {
	var s rawjson.Scanner
	for i := 0; i < len(v); {
		end := i + 1
		switch v[i] {
		case '"':
			end, _ = s.SkipString(v, i+1)
			after := rawjson.SkipSpace(v, end)
			isKey := after < len(v) && v[after] == ':'
			if !isKey && !c.piece(v[i:end]) {
				return false
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			end, _ = s.SkipNumber(v, i)
			if !c.piece(v[i:end]) {
				return false
			}
		}
		i = end
	}
	return true
}
