package sent

import (
	"context"
	"errors"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
)

// ErrUnsupported is wrapped by errors for what cannot be composed as the client does.
var ErrUnsupported = errors.New("not supported with -o context=sent")

// Context returns what omp 18 sends from an entry on, or before the first entry if at is NoEntry: one JSON object and
// a newline. References to blobs are resolved through blobs; if blobs is nil, they are left as they are. In other
// dialects it is what Snapshot.Context returns. The document holds a reference to the snapshot until it is closed.
func Context(ctx context.Context, s *sessioncore.Snapshot, at sessioncore.Entry, blobs document.Blobs) (*document.Document, error) {
	return contextWithin(ctx, s, at, blobs, maxComposed)
}

// contextWithin is Context with another value for maxComposed.
func contextWithin(ctx context.Context, s *sessioncore.Snapshot, at sessioncore.Entry, blobs document.Blobs, room int) (*document.Document, error) {
	if s.Dialect() != sessioncore.OMP {
		return s.Context(ctx, at, blobs)
	}
	b := &builder{ctx: ctx, s: s, resolver: document.NewResolver(ctx, blobs), room: room}
	if at != sessioncore.NoEntry {
		b.path = s.Path(at)
	}
	b.doc = document.New(s, blobs, b)
	if err := b.build(); err != nil {
		b.doc.Close()
		return nil, err
	}
	b.doc.SetResolved(b.resolver, b.refs)
	return b.doc, nil
}

// builder makes a document, and is then the Maker of its pieces.
type builder struct {
	ctx      context.Context
	s        *sessioncore.Snapshot
	doc      *document.Document
	resolver *document.Resolver
	path     []sessioncore.Entry
	messages []message
	paired   map[string]bool // the ids of the tool calls that have a result
	slots    []slot          // what is sent for the frames of the compaction's archive
	refs     bool            // a message has a reference to a blob
	room     int             // how many bytes of composed messages may still be held for the blobs in them
	made     []int           // index in messages of each made piece
}

const (
	// maxHeld is the size in bytes of the longest composed message that the document holds. A longer one is composed
	// again when it is read.
	maxHeld = 4 << 10
	// maxComposed is how many bytes of longer messages a document holds since they have images that are blobs. In
	// further ones the references stay.
	maxComposed = 16 << 20
)

func (b *builder) build() error {
	if err := b.choose(); err != nil {
		return err
	}
	b.dropDangling()
	b.dropFailed()
	b.doc.AddText(`{"messages":[`)
	first := true
	for i := range b.messages {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		separator := ","
		if first {
			separator = ""
		}
		wrote, err := b.write(i, separator)
		if err != nil {
			return err
		}
		first = first && !wrote
	}
	b.doc.AddText(`]`)
	settings, err := b.settings()
	if err != nil {
		return err
	}
	b.doc.AddText(string(settings) + "}\n")
	return nil
}

// write adds a message to the document, after a separator. It reports false if nothing is sent for it.
func (b *builder) write(i int, separator string) (bool, error) {
	m := &b.messages[i]
	text, same, refs, err := b.s.LoadedText(m.entry)
	if err != nil {
		return false, err
	}
	var known rawjson.Edits
	if refs {
		if known, err = b.refEdits(text); err != nil {
			return false, err
		}
		if m.of == ofCompaction && b.slots != nil {
			known = b.frameEdits(known, text)
		}
		b.refs = true
	}
	if part := messageOf(text); m.of == ofMessage && same && m.isPlain(part) {
		edits := plainEdits(part)
		b.doc.AddText(separator)
		b.doc.AddEdited(b.s.TextOffset(m.entry)+int64(part.OffsetIn(text)), part, append(edits, within(known, text, part)...))
		return true, nil
	}
	marked := text
	if len(known) > 0 && len(text) <= b.room {
		b.room -= len(text)
		known = known.InOrder()
		marked = mark(text, known)
	} else {
		known = nil
	}
	composed, err := b.compose(m, marked)
	if err != nil || len(composed) == 0 {
		return false, err
	}
	b.doc.AddText(separator)
	if len(composed) <= maxHeld || known != nil {
		b.addMarked(composed, known)
		return true, nil
	}
	b.made = append(b.made, i)
	b.doc.AddMade(int32(len(b.made)), int64(len(composed)))
	return true, nil
}

// Make implements document.Maker: it composes a message again.
func (b *builder) Make(dst []byte, piece int32) ([]byte, error) {
	m := &b.messages[b.made[piece-1]]
	text, _, _, err := b.s.LoadedText(m.entry)
	if err != nil {
		return nil, err
	}
	composed, err := b.compose(m, text)
	return append(dst, composed...), err
}

// Continues implements document.Maker. Contexts do not continue one another: they end in the settings.
func (b *builder) Continues(document.Maker) bool { return false }
