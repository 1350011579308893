package view

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/markdown"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

// Render renders the branch that ends in leaf (NoEntry: before the first entry) as Markdown with a
// heading for each turn (docs/design.md, transcript.md). The document is the concatenation of its
// rendered entries. Render determines only their sizes; the text is rendered when the document is
// read.
//
// When the branch grows the text only grows: nothing in it depends on where the branch ends, but that
// the current branch names the lost ones as long as nobody speaks on it. At the top is the title; in an
// untitled session that is the first prompt, so the document has no title as long as no entry is shown.
func Render(
	ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, links Links,
) (*document.Document, error) {
	t, err := newTranscript(ctx, s, leaf, links)
	if err != nil {
		return nil, err
	}
	d := document.New(s, nil, t)
	if len(t.head) > 0 {
		d.AddText(string(t.writer.append(nil, t.head...)[1:]))
	}
	for i, shown := range t.entries {
		d.AddMade(int32(i+1), shown.size)
	}
	return d, nil
}

// transcript is a branch as a list of blocks, which are made when they are read, and the Maker of
// its document.
type transcript struct {
	builder *builder
	reader  sessioncore.EntryReader
	writer  markdownWriter
	head    []block       // stands before the entries
	entries []shownEntry  // a piece of the document each
	scratch []byte        // the entry that is measured
	text    rawjson.Value // of the entry that was read last
}

// shownEntry is an entry that a transcript shows.
type shownEntry struct {
	entry  sessioncore.Entry
	begins bool  // a turn begins here, with a heading
	size   int64 // of its text, in bytes
}

// newTranscript returns the transcript of the branch that ends in leaf. It renders each entry once to know its size.
func newTranscript(
	ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry, links Links,
) (*transcript, error) {
	t := emptyTranscript(s, links)
	var err error
	if leaf != sessioncore.NoEntry {
		t.entries, err = emptyTranscript(s, links).layOut(ctx, s, s.Path(leaf))
		if err != nil {
			return nil, err
		}
	}
	lost, err := t.lostBranches(ctx, s, leaf)
	if err != nil {
		return nil, err
	}
	t.head, err = t.headOf(s, len(lost) > 0)
	t.head = append(t.head, lost...)
	return t, err
}

// maxLost bounds the lost branches that are named.
const maxLost = 5

// lostBranches returns a line with the lost branches of a session if it has any and nobody speaks on the
// current one, which ends in leaf.
func (t *transcript) lostBranches(
	ctx context.Context, s *sessioncore.Snapshot, leaf sessioncore.Entry,
) ([]block, error) {
	current, err := s.Leaf()
	if err != nil {
		return nil, err
	}
	isSpoken := slices.ContainsFunc(t.entries, func(e shownEntry) bool {
		return e.begins
	})
	if leaf != current || isSpoken {
		return nil, nil
	}
	lost, err := report.LostBranches(ctx, s)
	if err != nil || len(lost) == 0 {
		return nil, err
	}
	text := "1 lost branch: "
	if len(lost) > 1 {
		text = fmt.Sprintf("%d lost branches: ", len(lost))
	}
	named := lost[:min(len(lost), maxLost)]
	for i, name := range named {
		if i > 0 {
			text += ", "
		}
		text += "branches/" + string(visibleName(name))
	}
	if len(lost) > len(named) {
		text += ", … (branches.tsv)"
	}
	return []block{lineOf(paragraphLine, span{text: text})}, nil
}

// emptyTranscript returns a transcript without entries.
func emptyTranscript(s *sessioncore.Snapshot, links Links) *transcript {
	b := &builder{s: s, callsOf: sessioncore.NoEntry}
	return &transcript{
		builder: b,
		reader:  sessioncore.NewEntryReader(s),
		writer:  markdownWriter{links: links},
	}
}

// sizeCache has the size of each rendered entry, so that a stat of a transcript renders each entry
// once, and after growth only the new ones: entries never change.
type sizeCache struct {
	mu    sync.Mutex  // guards sizes; held while entries are rendered
	sizes []entrySize // by entry; zero if not rendered yet
}

// sizesKey is the key under which the snapshots of an index share a sizeCache.
type sizesKey struct{ links Links }

// entrySize describes a rendered entry, in 28 bytes.
type entrySize struct {
	body    uint32            // bytes
	heading uint32            // bytes of the heading, shown if a turn begins here
	naming  uint32            // bytes of the line that names the entry, shown if none begins here
	speaker uint32            // see entryBlocks
	name    uint32            // a hash of the entry's name, which changes if a later entry has the same id
	asked   sessioncore.Entry // see entryBlocks; another one if the id of an entry above comes again
	flags   turnFlags
}

// sizesOf returns the cache that all snapshots of an index share for transcripts with these links.
func sizesOf(s *sessioncore.Snapshot, links Links) *sizeCache {
	return s.Shared(sizesKey{links}, func() any {
		return &sizeCache{}
	}).(*sizeCache)
}

// layOut returns the entries of a path that show something, with their sizes, which it renders unless they are
// known. Its buffers are as large as the largest entry.
func (t *transcript) layOut(
	ctx context.Context, s *sessioncore.Snapshot, path []sessioncore.Entry,
) (entries []shownEntry, err error) {
	cache := sizesOf(s, t.writer.links)
	err = storage.LockUntil(ctx, &cache.mu)
	if err != nil {
		return nil, err
	}
	defer cache.mu.Unlock()
	missing := max(0, s.Len()-len(cache.sizes))
	cache.sizes = append(cache.sizes, make([]entrySize, missing)...)
	var turn turnStart
	for _, e := range path {
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		size := &cache.sizes[e]
		err = t.measure(e, size)
		if err != nil {
			return nil, err
		}
		opening := size.naming
		begins := turn.begins(size.flags, size.speaker)
		if begins {
			opening = size.heading
		}
		shownSize := int64(size.body) + int64(opening)
		if shownSize > 0 {
			entries = append(entries, shownEntry{entry: e, begins: begins, size: shownSize})
		}
	}
	return entries, nil
}

// turnStart describes the first entry of a turn.
type turnStart struct {
	flags   turnFlags
	speaker uint32
}

// begins reports whether an entry begins the next turn, which is then the current one.
func (t *turnStart) begins(flags turnFlags, speaker uint32) bool {
	isNote := flags&inTurn == 0
	joinsAnswer := flags&joinsTurn != 0 && t.flags&fromAssistant != 0
	continues := flags&beginsTurn == 0 && speaker == t.speaker && t.flags&inTurn != 0
	if isNote || joinsAnswer || continues {
		return false
	}
	*t = turnStart{flags: flags, speaker: speaker}
	return true
}

// measure renders an entry and sets its size, unless that is known and still right.
func (t *transcript) measure(e sessioncore.Entry, size *entrySize) error {
	s := t.builder.s
	name := hashOf(s.Name(e))
	isSameCall := size.flags&answersCall == 0 || size.asked == report.AnswerAbove(s, e)
	if size.name == name && isSameCall {
		return nil
	}
	b, err := t.blocksOf(e)
	if err != nil {
		return err
	}
	length := func(blocks ...block) uint32 {
		t.scratch = t.writer.append(t.scratch[:0], blocks...)
		return uint32(len(t.scratch))
	}
	*size = entrySize{
		body:    length(b.body...),
		heading: length(b.heading),
		naming:  length(b.naming),
		speaker: b.speaker,
		name:    name,
		asked:   b.asked,
		flags:   b.flags,
	}
	return nil
}

// blocksOf returns the blocks of an entry, which are valid until the next call.
func (t *transcript) blocksOf(e sessioncore.Entry) (_ *entryBlocks, err error) {
	t.text, err = t.reader.Read(e)
	if err != nil {
		return nil, err
	}
	return t.builder.build(e, t.text)
}

// Make implements document.Maker: it renders an entry.
func (t *transcript) Make(dst []byte, piece int32) ([]byte, error) {
	shown := t.entries[piece-1]
	blocks, err := t.blocksOf(shown.entry)
	if err != nil {
		return dst, err
	}
	dst = t.writer.append(dst, *blocks.opening(shown.begins))
	return t.writer.append(dst, blocks.body...), nil
}

const (
	// maxTitleLine is how many characters of a title are shown.
	maxTitleLine = 200
	// maxFirstWords is how many characters of the first prompt serve as a title.
	maxFirstWords = 80
	// maxTitleHead is how many bytes of that prompt are decoded.
	maxTitleHead = 16 * maxFirstWords
	// maxWordless is how many prompts without words, such as mere images, are skipped to find it.
	maxWordless = 20
)

// headOf returns the blocks before the first turn: the title and a line about the session. There
// are none as long as no entry is shown and the title can still change, unless hasMore says that
// more follows.
func (t *transcript) headOf(s *sessioncore.Snapshot, hasMore bool) ([]block, error) {
	header, _, err := s.ReadHeader()
	if err != nil {
		return nil, err
	}
	name, err := s.Title()
	if err != nil {
		return nil, err
	}
	title := markdown.Line([]byte(name), maxTitleLine)
	if title == "" {
		title, err = t.firstWords()
		if err != nil {
			return nil, err
		}
	}
	isEmpty := len(t.entries) == 0 && !hasMore
	if title == "" && isEmpty {
		return nil, nil
	}
	id := shownLine(header.Member("id"), maxTitleLine)
	if title == "" {
		title = strings.TrimSpace("Session " + id)
	}
	if id == "" {
		id = "?"
	}
	about := lineOf(paragraphLine, span{text: "Session "}, codeOf(id))
	cwd := shownLine(header.Member("cwd"), maxTitleLine)
	if cwd != "" {
		about.add(span{text: " in "}, codeOf(cwd))
	}
	about.add(startSpans(s.HeaderTime())...)
	about.add(span{text: "."})
	return []block{lineOf(titleLine, span{text: title}), about}, nil
}

// startSpans returns the start of a session, if that is known, and the name of the time zone of its
// transcript.
func startSpans(at time.Time) []span {
	zone := sessioncore.ZoneName()
	if at.UnixMilli() == 0 {
		return []span{{text: ", times in "}, codeOf(zone)}
	}
	text := at.Local().Format(", begun " + dateLayout + " MST")
	if strings.HasSuffix(text, " "+zone) {
		return []span{{text: text}}
	}
	return []span{{text: text + " ("}, codeOf(zone), {text: ")"}}
}

// firstWords returns the beginning of the first words of a person's request, "" if there are none.
func (t *transcript) firstWords() (string, error) {
	requests := 0
	for _, shown := range t.entries {
		if !t.builder.s.IsRequest(shown.entry) {
			continue
		}
		requests++
		if requests > maxWordless { // all before were without words
			break
		}
		text, err := t.reader.Read(shown.entry)
		if err != nil {
			return "", err
		}
		words := message.FirstText(t.builder.s.Request(shown.entry, text))
		head := excerptOf(words, excerptLimits{whole: maxTitleHead, head: maxTitleHead}).head
		line, _, _ := bytes.Cut(trimBlankLines(head), []byte("\n"))
		if len(line) > 0 {
			return string(markdown.AppendLine(nil, line, maxFirstWords)), nil
		}
	}
	return "", nil
}

// hashSeed differs in each process.
var hashSeed = maphash.MakeSeed()

// hashOf returns a hash of a text, which another process has otherwise.
func hashOf(text string) uint32 { return uint32(maphash.String(hashSeed, text)) }

// Continues reports whether t begins with all entries of earlier, shown in the same way.
func (t *transcript) Continues(earlier document.Maker) bool {
	old, isTranscript := earlier.(*transcript)
	if !isTranscript || len(t.entries) < len(old.entries) {
		return false
	}
	for i, before := range old.entries {
		now := t.entries[i]
		// The size covers the entry's name, which changes if a later entry has the same id.
		if now.begins != before.begins || now.size != before.size {
			return false
		}
		if !sessioncore.SameText(t.builder.s, now.entry, old.builder.s, before.entry) {
			return false
		}
	}
	return true
}
