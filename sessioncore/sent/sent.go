package sent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
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

// maxDepth is how deep references are looked for. The deepest that a client writes, those in the history that a provider
// keeps, are 7 deep.
const maxDepth = 32

// refEdits returns the edits that resolve the references to blobs in a text: image blocks below the key content, anything
// with the data of an image below images, the result of image_generation_call, and image_url.
func (b *builder) refEdits(text rawjson.Value) (edits rawjson.Edits, err error) {
	// find looks at a value below a key; the elements of an array are below the key of the array.
	var find func(v rawjson.Value, key string, depth int) error
	find = func(v rawjson.Value, key string, depth int) error {
		if depth > maxDepth {
			return nil
		}
		for element := range v.EachElement {
			if err := find(element, key, depth+1); err != nil {
				return err
			}
		}
		before := len(edits)
		var kind, mime, data, result rawjson.Value
		for m := range v.EachMember {
			name, _ := m.Key.Bytes()
			switch string(name) {
			case "type":
				kind = m.Value
			case "mimeType":
				mime = m.Value
			case "data":
				data = m.Value
			case "result":
				result = m.Value
			case "image_url":
				if edits, err = b.resolver.URL(edits, m.Value, m.Value.OffsetIn(text)); err != nil {
					return err
				}
			}
			if m.Value.IsObject() || m.Value.IsArray() {
				if err := find(m.Value, string(name), depth+1); err != nil {
					return err
				}
			}
		}
		media, _ := mime.Text()
		isImage := kind.Is("image") || key == "images" && strings.HasPrefix(strings.ToLower(media), "image/")
		switch {
		case isImage && (key == "content" || key == "images") && data.IsString():
			if e, ok := b.resolver.Image(data, data.OffsetIn(text)); ok {
				edits = append(edits[:before], e)
			}
		case kind.Is("image_generation_call"):
			if e, ok := b.resolver.Image(result, result.OffsetIn(text)); ok {
				edits = append(edits, e)
			}
		}
		return nil
	}
	if err = find(text, "", 0); err == nil {
		err = b.ctx.Err()
	}
	return edits, err
}

// settings is what the settings entries of a path come to.
type settings struct {
	level, configured, tier, mode, modeData rawjson.Value
	models                                  []any // roles and their models in turn
	explicit                                bool  // a model change has named the model of the role default
	rules                                   []rawjson.Value
	seen                                    map[string]bool // the rules
}

// settings returns the members after the messages: the state that results from the settings of the path.
func (b *builder) settings() ([]byte, error) {
	s := settings{level: quoted("off"), mode: quoted("none"), seen: map[string]bool{}}
	for _, e := range b.path {
		if err := b.ctx.Err(); err != nil {
			return nil, err
		}
		kind := b.s.Kind(e)
		answer := kind == sessioncore.TypeMessage && b.s.Role(e) == sessioncore.RoleAssistant && !s.explicit
		switch kind {
		case sessioncore.TypeThinkingLevelChange, sessioncore.TypeModelChange, sessioncore.TypeServiceTierChange,
			sessioncore.TypeTTSRInjection, sessioncore.TypeModeChange:
		default:
			if !answer {
				continue
			}
		}
		text, _, _, err := b.s.LoadedText(e)
		if err != nil {
			return nil, err
		}
		if answer {
			message := messageOf(text)
			s.setModel("default", quoted(message.Member("provider").AsKey()+"/"+message.Member("model").AsKey()))
			continue
		}
		s.take(kind, text)
	}
	all := object("thinkingLevel", s.level, "configuredThinkingLevel", s.configured, "serviceTier", s.tier, "models", object(s.models...),
		"injectedTtsrRules", list(s.rules...), "mode", s.mode, "modeData", s.modeData)
	all[0] = ',' // the object has begun with the messages
	return all[:len(all)-1], nil
}

func (s *settings) take(kind sessioncore.EntryType, text rawjson.Value) {
	switch kind {
	case sessioncore.TypeThinkingLevelChange:
		level := text.Member("thinkingLevel")
		s.level, s.configured = quoted("off"), nil
		if !level.Missing() {
			s.level, s.configured = level, level
		}
		if configured := text.Member("configured"); !configured.Missing() {
			s.configured = configured
		}
	case sessioncore.TypeModelChange:
		model, role := text.Member("model"), "default"
		if r := text.Member("role"); !r.Missing() {
			role = r.AsKey()
		}
		if model.Truthy() {
			s.setModel(role, model)
			s.explicit = s.explicit || role == "default"
		}
	case sessioncore.TypeServiceTierChange:
		s.tier = tiers(text.Member("serviceTier"))
	case sessioncore.TypeTTSRInjection:
		sessioncore.EachName(text.Member("injectedRules"), func(name rawjson.Value) {
			if key := callKey(name); !s.seen[key] || name.IsObject() || name.IsArray() {
				s.seen[key] = true
				s.rules = append(s.rules, name)
			}
		})
	case sessioncore.TypeModeChange:
		s.mode, s.modeData = text.Member("mode"), text.Member("data")
	}
}

func (s *settings) setModel(role string, model rawjson.Value) {
	for i := 0; i < len(s.models); i += 2 {
		if s.models[i] == role {
			s.models[i+1] = model
			return
		}
	}
	s.models = append(s.models, role, model)
}

// familyTiers are the names of tiers that stand for those of some families of providers.
var familyTiers = map[string]string{
	"priority":    `{"openai":"priority","anthropic":"priority","google":"priority"}`,
	"openai-only": `{"openai":"priority"}`,
	"claude-only": `{"anthropic":"priority"}`,
	"auto":        `{"openai":"auto"}`,
	"default":     `{"openai":"default"}`,
	"flex":        `{"openai":"flex"}`,
	"scale":       `{"openai":"scale"}`,
}

// tiers returns service tiers by the family of the provider, nil if there is none.
func tiers(v rawjson.Value) rawjson.Value {
	if text, ok := v.Text(); ok {
		return rawjson.Value(familyTiers[text])
	}
	var found []any
	for _, family := range []string{"openai", "anthropic", "google"} {
		if text, _ := v.Member(family).Text(); slices.Contains([]string{"auto", "default", "flex", "scale", "priority"}, text) {
			found = append(found, family, text)
		}
	}
	if found == nil {
		return nil
	}
	return object(found...)
}
