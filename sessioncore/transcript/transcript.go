package transcript

import (
	"bytes"
	"context"
	"hash/maphash"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
)

// Links are the prefixes of the links in a transcript, which depend on where it lies.
type Links struct {
	Entries string // path to entries/, with a slash at its end
	Blobs   string // path to the blob store, with a slash at its end
}

// Render renders the branch that ends in leaf (NoEntry: before the first entry) as Markdown with a heading for each
// turn (docs/design.md, transcript.md). The document is the concatenation of its rendered entries. Render determines
// only their sizes; the text is rendered when the document is read.
//
// When the branch grows the text only grows: nothing in it depends on where the branch ends. At the top is the title;
// in an untitled session that is the first prompt, so the document is empty as long as no entry is shown.
func Render(ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, links Links) (*document.Document, error) {
	_, d, err := render(ctx, s, leaf, links)
	return d, err
}

// render is Render, which also returns the document's Maker.
func render(ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, links Links) (*transcript, *document.Document, error) {
	var path []sessioncore.Entry
	if leaf != sessioncore.NoEntry {
		path = s.Path(leaf)
	}
	sizes, err := sizesOf(s).of(ctx, s, path)
	if err != nil {
		return nil, nil, err
	}
	head, titled, err := headOf(s, leaf)
	if err != nil {
		return nil, nil, err
	}
	if !titled && !slices.ContainsFunc(sizes, func(p entrySize) bool { return p.body > 0 }) {
		head = nil
	}
	t := &transcript{
		renderer: newRenderer(s, links), reader: sessioncore.NewEntryReader(s), head: head, entries: make([]shownEntry, 0, len(path)),
	}
	d := document.New(s, nil, t)
	d.AddText(string(head))
	t.layOut(d, path, sizes)
	return t, d, nil
}

// transcript is the Maker of a document: the entries that it shows, in order.
type transcript struct {
	renderer *renderer
	reader   sessioncore.EntryReader
	head     []byte       // what precedes the entries
	entries  []shownEntry // a piece of the document each
}

// shownEntry is an entry that a transcript shows.
type shownEntry struct {
	entry  sessioncore.Entry
	asked  sessioncore.Entry // for a tool's result, the message that called the tool
	begins bool              // a turn begins here, with a heading
	size   int64             // of its text, in bytes
}

// layOut decides which entries begin a turn, and adds a piece for each entry that is shown.
func (t *transcript) layOut(d *document.Document, path []sessioncore.Entry, sizes []entrySize) {
	var turn entrySize // the current turn's first entry
	asked := sessioncore.NoEntry
	for i, e := range path {
		part, it := shownEntry{entry: e, asked: asked}, sizes[i]
		if isAssistant(t.renderer.s, e) {
			asked = e
		}
		switch {
		case it.flags&partTurn == 0: // a note, or nothing
		case it.flags&partJoins != 0 && turn.flags&partAssistant != 0:
		case it.flags&partAlways == 0 && it.speaker == turn.speaker && turn.flags&partTurn != 0:
		default:
			part.begins = true
			turn = it
		}
		if part.size = it.in(part, t.renderer); part.size > 0 {
			t.entries = append(t.entries, part)
			d.AddMade(int32(len(t.entries)), part.size)
		}
	}
}

// Make implements document.Maker: it renders an entry.
func (t *transcript) Make(dst []byte, piece int32) ([]byte, error) {
	made, err := t.part(t.entries[piece-1])
	return append(append(dst, made.Opening...), made.Body...), err
}

func isAssistant(s *sessioncore.Snapshot, e sessioncore.Entry) bool {
	return s.Kind(e) == sessioncore.TypeMessage && s.Role(e) == sessioncore.RoleAssistant
}

// maxTitleLine is how many characters of a title are shown.
const maxTitleLine = 200

// headOf renders what precedes the first turn: the title and a line about the session. titled reports that the title
// will not change when the branch grows.
func headOf(s *sessioncore.Snapshot, leaf sessioncore.Entry) (head []byte, titled bool, err error) {
	header, _, err := s.ReadHeader()
	if err != nil {
		return nil, false, err
	}
	name, err := s.Title()
	if err != nil {
		return nil, false, err
	}
	title := markdown.Line([]byte(name), maxTitleLine)
	id := shownLine(header.Member("id"), maxTitleLine)
	if len(title) == 0 {
		if title, err = firstWords(s, leaf); err != nil {
			return nil, false, err
		}
	}
	if titled = len(title) > 0; !titled {
		title = bytes.TrimSpace(append([]byte("Session "), id...))
	}
	out := append(markdown.AppendText([]byte("# "), title), "\n\nSession "...)
	if len(id) == 0 {
		id = []byte("?")
	}
	out = markdown.AppendCode(out, id)
	if cwd := shownLine(header.Member("cwd"), maxTitleLine); len(cwd) > 0 {
		out = markdown.AppendCode(append(out, " in "...), cwd)
	}
	if began := s.HeaderTime(); began.UnixMilli() != 0 {
		out = began.UTC().AppendFormat(append(out, ", begun "...), shownTime+" MST")
	}
	return append(out, ".\n"...), titled, nil
}

// shownTime is the layout of times: seconds, UTC.
const shownTime = "2006-01-02 15:04:05"

// shownClock is that of times within a turn.
const shownClock = "15:04:05"

const (
	// maxFirstWords is how many characters of the first prompt serve as a title.
	maxFirstWords = 80
	// maxWordless is how many prompts without words, such as mere images, are skipped to find it.
	maxWordless = 20
)

// firstWords returns the beginning of the first text of the user on the branch.
func firstWords(s *sessioncore.Snapshot, leaf sessioncore.Entry) ([]byte, error) {
	if leaf == sessioncore.NoEntry {
		return nil, nil
	}
	wordless := 0
	for _, e := range s.Path(leaf) {
		if s.Kind(e) != sessioncore.TypeMessage || s.Role(e) != sessioncore.RoleUser {
			continue
		}
		if wordless++; wordless > maxWordless {
			break
		}
		text, err := s.EntryText(e)
		if err != nil {
			return nil, err
		}
		content := text.Member("message").Member("content")
		words := firstLine(content)
		for block := range content.EachElement {
			if len(words) == 0 {
				words = firstLine(block.Member("text"))
			}
		}
		if len(words) > 0 {
			return words, nil
		}
	}
	return nil, nil
}

// firstLine returns the first line of v that is not blank.
func firstLine(v rawjson.Value) []byte {
	line, _, _ := bytes.Cut(bytes.TrimLeft(shownText(v, maxFirstWords), " \t\n"), []byte("\n"))
	return markdown.AppendLine(nil, line, maxFirstWords)
}

// speakerSeed differs in each process.
var speakerSeed = maphash.MakeSeed()

// speakerOf returns a hash that identifies the speaker of a turn.
func speakerOf(who string) uint32 { return uint32(maphash.String(speakerSeed, who)) }

// Continues reports whether t begins with all entries of earlier, shown in the same way.
func (t *transcript) Continues(earlier document.Maker) bool {
	old, ok := earlier.(*transcript)
	if !ok || len(t.entries) < len(old.entries) {
		return false
	}
	for i, before := range old.entries {
		now := t.entries[i]
		// The size covers the entry's name, which changes if a later entry has the same id.
		if now.begins != before.begins || now.size != before.size ||
			!sessioncore.SameText(t.renderer.s, now.entry, old.renderer.s, before.entry) ||
			!sessioncore.SameText(t.renderer.s, now.asked, old.renderer.s, before.asked) {
			return false
		}
	}
	return true
}
