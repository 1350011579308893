package transcript

import (
	"bytes"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file and the transcript….go files beside it render one entry of a transcript. What they write
// depends on the entry alone, on where the transcript lies, and of a tool's result on the message that
// called for it. Each block is preceded by a blank line and begins at the left margin, so that nothing that
// stands before it, however it ends, takes it in.

const (
	// maxProse is how much running text of an entry is shown, in bytes of the stored text. It is far more
	// than anybody writes or reads, and keeps one line of a hostile file from taking the memory.
	maxProse = 1 << 20
	// maxBlocks is how many content blocks of an entry are shown.
	maxBlocks = 1000
	// maxOutput is how much of the excerpts of tool output an entry may show in all.
	maxOutput = 256 << 10
	// maxWord is how much is shown of a name: of a tool, a model, a mode. In characters.
	maxWord = 100
)

// renderer renders entries. It is not for concurrent use.
type renderer struct {
	s     *sessioncore.Snapshot
	links Links
	// measuring: what depends on links is counted, not written.
	measuring bool

	entry   sessioncore.Entry
	asked   sessioncore.Entry
	heading []byte
	body    []byte
	size    entrySize
	excerpt excerpter
	prose   []byte // running text that is yet to be written
	cut     bool   // something was left out that no link tells of yet
	err     error

	proseLeft, outputLeft, blocksLeft int

	calls   []toolCall // of the message callsOf
	callsOf sessioncore.Entry
}

func newRenderer(s *sessioncore.Snapshot, links Links) *renderer {
	return &renderer{s: s, links: links, callsOf: sessioncore.NoEntry}
}

// write renders an entry: the heading that stands above it where a turn begins with it, and the rest. Both
// are good until the next call.
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
		w.heading = w.heading[:0] // an empty turn is none
		w.size.flags &^= partOfTurn
	}
	return w.heading, w.body, w.size, w.err
}

// turn makes the entry part of a turn. what is its heading, in Markdown.
func (w *renderer) turn(flags partFlags, speaker, what string) {
	w.size.flags |= partTurn | flags
	w.size.speaker = speakerOf(speaker)
	w.heading = append(append(w.heading, "\n## "...), what...)
	if when := w.time(shownTime); when != "" {
		w.heading = append(append(w.heading, " · "...), when...)
	}
	w.heading = append(w.heading, '\n')
}

// afterHeading adds a name to the heading.
func (w *renderer) afterHeading(name []byte) {
	if len(name) == 0 {
		return
	}
	w.heading = bytes.TrimSuffix(w.heading, []byte("\n"))
	w.heading = append(markdown.AppendCode(append(w.heading, " · "...), name), '\n')
}

// time returns the entry's time, "" where it has none of its own.
func (w *renderer) time(form string) string {
	t, ok := w.s.OwnTime(w.entry)
	if !ok {
		return ""
	}
	return t.UTC().Format(form)
}

// begin begins a block that is not running text.
func (w *renderer) begin() {
	w.flush()
	w.body = append(w.body, '\n')
}

// flush writes the running text that was gathered. What follows the rendering of another entry without a
// heading begins at the left margin: else it could continue a list in it.
func (w *renderer) flush() {
	if text := trimBlankLines(w.prose); len(text) > 0 {
		if len(w.body) == 0 && w.size.flags&partAlways == 0 {
			text = bytes.TrimLeft(text, " \t")
		}
		w.body = markdown.Append(append(w.body, '\n'), text)
	}
	w.prose = w.prose[:0]
}

// trimBlankLines takes away blank lines at the start, and white space at the end.
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

// proseOf takes running text apart, within the entry's limit.
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

// note writes a line about something that is not said by anybody: a label and some values.
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

// more adds to the note that was written last.
func (w *renderer) more(add func(out []byte) []byte) {
	line := append(bytes.TrimSuffix(w.body, []byte("\n")), ' ')
	if w.body = add(line); len(w.body) == len(line) {
		w.body = w.body[:len(line)-1] // nothing to add
	}
	w.body = append(w.body, '\n')
}

// noteLink adds a link to the entry to the note that was written last.
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

// output writes a text in code blocks: a long one cut, with a link to its entry between head and tail.
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

// linkEntry writes a link to the file of the entry.
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
	return append(markdown.AppendLinkPath([]byte(w.links.Entries), w.s.Name(e)), ".json"...)
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
