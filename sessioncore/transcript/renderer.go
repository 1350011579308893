package transcript

import (
	"bytes"
	"net/url"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// The renderer renders one entry. Its output depends only on the entry, on the links' prefixes and, for a tool's
// result, on the message that called the tool. Each block is preceded by a blank line and begins at the left margin,
// so that it cannot become part of what precedes it, however that ends.

const (
	// maxProse is how many bytes of the stored running text of an entry are shown. That is far more than anybody
	// writes or reads, and it keeps a line of a hostile file from filling the memory.
	maxProse = 1 << 20
	// maxBlocks is how many content blocks of an entry are shown.
	maxBlocks = 1000
	// maxOutput is how many bytes the excerpts of tool output in one entry may have together.
	maxOutput = 256 << 10
	// maxWord is how many characters are shown of a name: of a tool, a model, a mode.
	maxWord = 100
)

// renderer renders entries. It is not safe for concurrent use.
type renderer struct {
	s     *sessioncore.Snapshot
	links Links
	// measuring counts links instead of writing their targets, and leaves out the entry's name.
	measuring bool
	// bare leaves out what tells equal texts apart: times, names, and links to entries.
	bare bool

	entry   sessioncore.Entry
	asked   sessioncore.Entry
	heading []byte // shown if a turn begins with the entry
	naming  []byte // names the entry; shown if it belongs to a turn that began before
	body    []byte
	size    entrySize
	excerpt excerpter
	prose   []byte // running text not yet written to body
	cut     bool   // something was omitted that no link mentions yet
	err     error

	proseLeft, outputLeft, blocksLeft int

	calls   []toolCall // of the message callsOf
	callsOf sessioncore.Entry
}

func newRenderer(s *sessioncore.Snapshot, links Links) *renderer {
	return &renderer{s: s, links: links, callsOf: sessioncore.NoEntry}
}

// render renders an entry into heading, naming and body.
func (w *renderer) render(e, asked sessioncore.Entry, text rawjson.Value) (size entrySize, err error) {
	w.entry, w.asked = e, asked
	w.heading, w.naming, w.body, w.prose = w.heading[:0], w.naming[:0], w.body[:0], w.prose[:0]
	w.size, w.cut, w.err = entrySize{asked: sessioncore.NoEntry}, false, nil
	w.proseLeft, w.outputLeft, w.blocksLeft = maxProse, maxOutput, maxBlocks
	w.entryOf(text)
	w.flush()
	if w.cut {
		w.note("Not all of it is shown:")
		w.noteLink("the whole entry")
	}
	if len(w.body) == 0 {
		w.heading, w.naming = w.heading[:0], w.naming[:0] // an entry without a body is not part of a turn
		w.size.flags &^= partOfTurn
	}
	return w.size, w.err
}

// opening returns what stands before the body of the entry that was rendered.
func (w *renderer) opening(begins bool) []byte {
	if begins {
		return w.heading
	}
	return w.naming
}

// turn makes the entry part of a turn. what is the text of its heading, in Markdown.
func (w *renderer) turn(flags partFlags, speaker, what string) {
	w.size.flags |= partTurn | flags
	w.size.speaker = speakerOf(speaker)
	w.heading = append(append(w.heading, "\n## "...), what...)
	if when := w.time(shownTime); when != "" {
		w.heading = append(append(w.heading, " · "...), when...)
	}
	w.heading = append(w.appendName(append(w.heading, " · "...)), '\n')
	if flags&(partAlways|partJoins) == 0 {
		w.naming = append(w.naming, "\n*"...)
		if when := w.time(shownClock); when != "" {
			w.naming = append(append(w.naming, when...), " · "...)
		}
		w.naming = append(w.appendName(w.naming), "*\n"...)
	}
}

// appendName appends the name of the entry, as its file in entries/ has it.
func (w *renderer) appendName(dst []byte) []byte {
	if w.measuring {
		return dst
	}
	return append(dst, shownName(w.s.Name(w.entry))...)
}

// shownName returns a name in Markdown. Ids of the clients are shown as they are. A long name may be cut within a character.
func shownName(name string) []byte {
	text := []byte(strings.ToValidUTF8(name, "\uFFFD"))
	for _, c := range text {
		if !alphabet64[c] || c == '_' || c == '+' || c == '=' || c == '/' {
			return markdown.AppendCode(nil, markdown.AppendVisible(nil, text))
		}
	}
	return text
}

// afterHeading appends a name to the heading.
func (w *renderer) afterHeading(name []byte) {
	if len(name) == 0 {
		return
	}
	w.heading = bytes.TrimSuffix(w.heading, []byte("\n"))
	w.heading = append(markdown.AppendCode(append(w.heading, " · "...), name), '\n')
}

// time formats the entry's time; it returns "" if the entry has no time of its own.
func (w *renderer) time(form string) string {
	t, ok := w.s.OwnTime(w.entry)
	if !ok || w.bare {
		return ""
	}
	return t.UTC().Format(form)
}

// begin starts a block that is not running text.
func (w *renderer) begin() {
	w.flush()
	w.body = append(w.body, '\n')
}

// flush writes the collected running text. Where no heading precedes, the text begins at the left margin, since it
// could otherwise continue a list of the entry before.
func (w *renderer) flush() {
	if text := trimBlankLines(w.prose); len(text) > 0 {
		if len(w.body) == 0 && w.size.flags&partAlways == 0 {
			text = bytes.TrimLeft(text, " \t")
		}
		w.body = markdown.Append(append(w.body, '\n'), text)
	}
	w.prose = w.prose[:0]
}

// trimBlankLines removes leading blank lines and trailing white space.
func trimBlankLines(text []byte) []byte {
	text = bytes.TrimRight(text, " \t\n")
	for {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok || len(bytes.TrimLeft(line, " \t")) > 0 {
			return text
		}
		text = rest
	}
}

// proseOf returns the visible running text of v, within the entry's limit.
func (w *renderer) proseOf(v rawjson.Value) []byte {
	x := w.excerpt.of(v, excerptLimits{whole: w.proseLeft, head: w.proseLeft})
	w.proseLeft -= min(len(v), w.proseLeft)
	w.cut = w.cut || x.cut
	return x.head
}

// text adds running text.
func (w *renderer) text(v rawjson.Value) {
	if text := w.proseOf(v); len(text) > 0 {
		if len(w.prose) > 0 {
			w.prose = append(w.prose, "\n\n"...)
		}
		w.prose = append(w.prose, text...)
	}
}

// line returns a string as one line of text.
func (w *renderer) line(v rawjson.Value) []byte { return shownLine(v, maxWord) }

// note writes a line that is not part of the conversation: a label and values.
func (w *renderer) note(label string, values ...[]byte) {
	w.begin()
	w.body = append(append(append(w.body, '*'), label...), '*')
	for _, v := range values {
		if len(v) > 0 {
			w.body = markdown.AppendCode(append(w.body, ' '), v)
		}
	}
	w.body = append(w.body, '\n')
}

// more appends Markdown to the last note.
func (w *renderer) more(text []byte) {
	if len(text) > 0 {
		w.body = append(append(append(bytes.TrimSuffix(w.body, []byte("\n")), ' '), text...), '\n')
	}
}

// noteLink appends a link to the entry's file to the last note.
func (w *renderer) noteLink(text string) {
	if w.bare {
		return
	}
	link := []byte("[" + text + "](")
	if w.measuring {
		w.size.entries++
	} else {
		link = append(link, w.entryLink(w.entry)...)
	}
	w.more(append(link, ')'))
}

// fenced writes a code block.
func (w *renderer) fenced(info string, text []byte) {
	w.begin()
	w.body = markdown.AppendFenced(w.body, info, bytes.TrimRight(text, "\n"))
}

// output writes a text in a code block. A long text is shown as head and tail, with a link to the entry between them.
func (w *renderer) output(info string, v rawjson.Value) {
	limits := outputLimits
	if w.outputLeft < limits.whole {
		limits = excerptLimits{whole: w.outputLeft, head: w.outputLeft}
	}
	w.outputLeft -= min(len(v), limits.whole)
	x := w.excerpt.of(v, limits)
	w.cut = w.cut || x.cut && x.left == 0
	if len(bytes.TrimSpace(x.head)) == 0 && x.left == 0 {
		return
	}
	w.fenced(info, x.head)
	if x.left == 0 {
		return
	}
	w.note("… " + sizeText(x.left) + " left out:")
	w.noteLink("the whole entry")
	if len(x.tail) > 0 {
		w.fenced(info, x.tail)
	}
}

func (w *renderer) entryLink(e sessioncore.Entry) []byte {
	name := strings.ReplaceAll(url.QueryEscape(w.s.Name(e)), "+", "%20") // no character of Markdown's is left in it
	return []byte(w.links.Entries + name + ".json")
}
