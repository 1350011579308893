package sent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"

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
	if s.Dialect() != sessioncore.OMP {
		return s.Context(ctx, at, blobs)
	}
	b := &builder{ctx: ctx, s: s, blobs: blobs, resolver: document.NewResolver(ctx, blobs), doc: document.New(s, blobs, nil)}
	if at != sessioncore.NoEntry {
		b.path = s.Path(at)
	}
	if err := b.build(); err != nil {
		b.doc.Close()
		return nil, err
	}
	b.doc.SetResolved(b.resolver, b.refs)
	return b.doc, nil
}

// builder makes a document.
type builder struct {
	ctx      context.Context
	s        *sessioncore.Snapshot
	blobs    document.Blobs
	doc      *document.Document
	resolver *document.Resolver
	path     []sessioncore.Entry
	messages []message
	paired   map[string]bool // the tool calls that have a result
	refs     bool            // a message has a reference to a blob
	wrote    bool            // a message was written
	held     int             // bytes of composed messages in the document
	marks    rawjson.Edits   // what the marks in the message that is being composed stand for
}

// maxHeld is how many bytes of composed messages a context may have: the document holds them. A model takes less.
const maxHeld = 16 << 20

func (b *builder) build() error {
	if err := b.choose(); err != nil {
		return err
	}
	b.repair()
	b.doc.AddText(`{"messages":[`)
	for i := range b.messages {
		m := &b.messages[i]
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if m.dropped || m.refused {
			continue
		}
		if err := b.write(m); err != nil {
			return err
		}
	}
	settings, err := b.settings()
	b.doc.AddText("]" + string(settings) + "}\n")
	return err
}

// write adds what is sent for a message to the document.
func (b *builder) write(m *message) error {
	text, same, refs, err := b.s.LoadedText(m.entry)
	if err != nil {
		return err
	}
	b.refs = b.refs || refs
	part := messageOf(text)
	plain := same && m.isPlain(part)
	if !plain {
		part = text
	}
	var edits rawjson.Edits
	if refs {
		if edits, err = b.refEdits(part); err != nil {
			return err
		}
	}
	if plain {
		b.separate()
		b.doc.AddEdited(b.s.TextOffset(m.entry)+int64(part.OffsetIn(text)), part, append(edits, plainEdits(part)...))
		return nil
	}
	composed, err := b.compose(m, b.marked(text, edits))
	if err != nil || len(composed) == 0 {
		return err
	}
	if b.held += len(composed); b.held > maxHeld {
		return fmt.Errorf("%w: more than %d MiB of messages that are not sent as they are", ErrUnsupported, maxHeld>>20)
	}
	b.separate()
	b.addMarked(composed)
	return nil
}

// separate begins a further message.
func (b *builder) separate() {
	if b.wrote {
		b.doc.AddText(",")
	}
	b.wrote = true
}

// marker begins the text that stands for a blob while a message is composed. No session file can have it.
var marker = "blob:" + rand.Text() + ":"

// mark returns the text that stands for what an edit inserts.
func (b *builder) mark(e rawjson.Edit) string {
	b.marks = append(b.marks, e)
	return marker + strconv.Itoa(len(b.marks)-1) + ";"
}

// marked returns a text with marks in the place of the edits.
func (b *builder) marked(text rawjson.Value, edits rawjson.Edits) rawjson.Value {
	b.marks = b.marks[:0]
	if len(edits) == 0 {
		return text
	}
	marks := make(rawjson.Edits, 0, len(edits))
	for _, e := range edits.InOrder() {
		marks = append(marks, rawjson.Edit{Start: e.Start, End: e.End, Text: b.mark(e)})
	}
	return marks.Apply(text)
}

// addMarked adds a composed message to the document, with what its marks stand for.
func (b *builder) addMarked(composed []byte) {
	for i, part := range strings.Split(string(composed), marker) {
		if i > 0 {
			number, rest, _ := strings.Cut(part, ";")
			n, err := strconv.Atoi(number)
			if err != nil {
				panic(fmt.Sprintf("sent: mark %q", number))
			}
			if e := b.marks[n]; e.Blob != nil {
				b.doc.AddBlob(e.Blob)
			} else {
				b.doc.AddText(e.Text)
			}
			part = rest
		}
		b.doc.AddText(part)
	}
}
