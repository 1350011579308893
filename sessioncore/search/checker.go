package search

import (
	"bytes"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// checker holds entries against a Query.
type checker struct {
	q       *Query
	overlap int    // bytes by which windows of a text overlap
	found   []bool // of the words of q
	missing int    // of them
	refused bool   // a word was found that must not be there
	hasTool bool
	line    string
	decoded []byte
	folded  []byte
}

const (
	// window is how much of a long text is decoded at once, in bytes of the file.
	window = 64 << 10
	// longestFold is how many times as long as its folding a text can be.
	longestFold = 3
)

// Entry implements Checker.
func (c *checker) Entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) (hit Hit, ok bool, err error) {
	if !c.inTime(s.Time(e)) {
		return Hit{}, false, nil
	}
	c.begin()
	r := reader{text: c.piece, tool: c.tool}
	role := r.entry(s, e, text)
	return Hit{Line: c.line}, c.isHit() && c.hasRole(role), nil
}

// Title implements Checker. A title has no role and no tool.
func (c *checker) Title(title rawjson.Value, at time.Time) (line string, ok bool) {
	if !title.IsString() || !c.inTime(at) || c.q.role != "" {
		return "", false
	}
	c.begin()
	c.piece(title)
	return c.line, c.isHit()
}

func (c *checker) begin() {
	clear(c.found)
	c.missing, c.refused, c.hasTool, c.line = len(c.found), false, c.q.tool == nil, ""
}

func (c *checker) isHit() bool { return c.missing == 0 && !c.refused && c.hasTool }

func (c *checker) inTime(at time.Time) bool {
	return !at.Before(c.q.after) && (c.q.before.IsZero() || at.Before(c.q.before))
}

func (c *checker) hasRole(role rawjson.Value) bool {
	if c.q.role == "" {
		return true
	}
	text, _ := role.Text()
	return slices.Contains(roles[c.q.role], rawjson.CamelCase(text))
}

func (c *checker) tool(name rawjson.Value) bool {
	if !c.hasTool {
		text, _ := name.Bytes()
		c.hasTool = c.q.tool.equals(text)
	}
	return true
}

// piece looks for the words in a string or number. It returns false once nothing that follows can change the answer.
func (c *checker) piece(v rawjson.Value) bool {
	if !v.IsString() {
		c.find(v)
	} else {
		c.body(v[1 : len(v)-1])
	}
	return !c.refused && (!c.isHit() || len(c.q.without) > 0 || c.line == "")
}

// body looks at the text of a string.
func (c *checker) body(body []byte) {
	if len(body) <= window {
		if bytes.IndexByte(body, '\\') >= 0 || !utf8.Valid(body) {
			c.decoded = rawjson.AppendDecoded(c.decoded[:0], body)
			body = c.decoded
		}
		c.find(body)
		return
	}
	c.decoded = c.decoded[:0]
	for len(body) > 0 && !c.refused {
		n := rawjson.CutPoint(body, window)
		c.decoded = rawjson.AppendDecoded(c.decoded, body[:n])
		body = body[n:]
		c.find(c.decoded)
		keep := max(0, len(c.decoded)-c.overlap)
		for keep < len(c.decoded) && !utf8.RuneStart(c.decoded[keep]) {
			keep++
		}
		c.decoded = append(c.decoded[:0], c.decoded[keep:]...)
	}
}

// find looks for the words in decoded text.
func (c *checker) find(text []byte) {
	for _, w := range c.q.without {
		if w.index(text, &c.folded) >= 0 {
			c.refused = true
			return
		}
	}
	if len(c.q.words) == 0 && c.line == "" {
		c.line = lineAt(bytes.TrimSpace(text), 0)
	}
	for i, w := range c.q.words {
		if c.found[i] {
			continue
		}
		if at := w.index(text, &c.folded); at >= 0 {
			c.found[i] = true
			c.missing--
			if c.line == "" {
				c.line = lineAt(text, at)
			}
		}
	}
}

const (
	// lineBefore and lineAfter are how many bytes of a line are shown before and after the beginning of what was found.
	lineBefore = 60
	lineAfter  = 180
)

// lineAt returns the line of text at an offset, cut where it is long.
func lineAt(text []byte, at int) string {
	from := bytes.LastIndexByte(text[:at], '\n') + 1
	to := len(text)
	if n := bytes.IndexByte(text[at:], '\n'); n > 0 {
		to = at + n
	}
	before, after := "", ""
	if at-from > lineBefore {
		from, before = at-lineBefore, "…"
		for from < at && !utf8.RuneStart(text[from]) {
			from++
		}
	}
	if to-at > lineAfter {
		to, after = at+lineAfter, "…"
		for to > at && !utf8.RuneStart(text[to]) {
			to--
		}
	}
	return before + strings.TrimSpace(string(text[from:to])) + after
}
