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
	// measuring counts links instead of writing their targets.
	measuring bool

	entry   sessioncore.Entry
	asked   sessioncore.Entry
	heading []byte
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

// render renders an entry; heading is to be shown only if a turn begins with the entry. heading and body are valid
// until the next call.
func (w *renderer) render(e, asked sessioncore.Entry, text rawjson.Value) (heading, body []byte, size entrySize, err error) {
	w.entry, w.asked = e, asked
	w.heading, w.body, w.prose = w.heading[:0], w.body[:0], w.prose[:0]
	w.size, w.cut, w.err = entrySize{asked: sessioncore.NoEntry}, false, nil
	w.proseLeft, w.outputLeft, w.blocksLeft = maxProse, maxOutput, maxBlocks
	w.entryOf(text)
	w.flush()
	if w.cut {
		w.note("Not all of it is shown:")
		w.noteLink("the whole entry")
	}
	if len(w.body) == 0 {
		w.heading = w.heading[:0] // an entry without a body is not part of a turn
		w.size.flags &^= partOfTurn
	}
	return w.heading, w.body, w.size, w.err
}

// turn makes the entry part of a turn. what is the text of its heading, in Markdown.
func (w *renderer) turn(flags partFlags, speaker, what string) {
	w.size.flags |= partTurn | flags
	w.size.speaker = speakerOf(speaker)
	w.heading = append(append(w.heading, "\n## "...), what...)
	if when := w.time(shownTime); when != "" {
		w.heading = append(append(w.heading, " · "...), when...)
	}
	w.heading = append(w.heading, '\n')
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
	if !ok {
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
	x, squeezed := w.excerpt.of(v, excerptLimits{whole: w.proseLeft, head: w.proseLeft})
	w.proseLeft -= min(len(v), w.proseLeft)
	w.cut = w.cut || squeezed || x.left > 0
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

// more appends to the last note.
func (w *renderer) more(add func(out []byte) []byte) {
	line := append(bytes.TrimSuffix(w.body, []byte("\n")), ' ')
	if w.body = add(line); len(w.body) == len(line) {
		w.body = w.body[:len(line)-1] // nothing to add
	}
	w.body = append(w.body, '\n')
}

// noteLink appends a link to the entry to the last note.
func (w *renderer) noteLink(text string) {
	w.more(func(out []byte) []byte {
		w.body = out
		w.linkEntry(text)
		return w.body
	})
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
	x, squeezed := w.excerpt.of(v, limits)
	w.cut = w.cut || squeezed
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

// linkEntry writes a link to the entry's file.
func (w *renderer) linkEntry(text string) {
	w.body = append(append(append(w.body, '['), text...), "]("...)
	if w.measuring {
		w.size.entries++
	} else {
		w.body = append(w.body, w.entryLink(w.entry)...)
	}
	w.body = append(w.body, ')')
}

func (w *renderer) entryLink(e sessioncore.Entry) []byte {
	name := strings.ReplaceAll(url.QueryEscape(w.s.Name(e)), "+", "%20") // no character of Markdown's is left in it
	return []byte(w.links.Entries + name + ".json")
}

// image writes a link to a blob.
func (w *renderer) image(what []byte, hash string) {
	w.begin()
	w.body = append(markdown.AppendText(append(w.body, "![Image: "...), what), "]("...)
	if w.measuring {
		w.size.blobs++
	} else {
		w.body = append(w.body, w.links.Blobs...)
	}
	w.body = append(append(w.body, hash...), ")\n"...)
}
