package report

import (
	"bytes"
	"context"
	"hash/maphash"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// roomBytes are the parts of a session file, in bytes. An image in blobs/ takes the bytes of its
// reference.
type roomBytes struct {
	Text        int64 `json:"text"`
	Thinking    int64 `json:"thinking"`
	ToolCalls   int64 `json:"toolCalls"`
	ToolResults int64 `json:"toolResults"`
	Images      int64 `json:"images"`
	Other       int64 `json:"other"`
}

// repeatedImages are those that the file had before.
type repeatedImages struct {
	Count int   `json:"count"`
	Bytes int64 `json:"bytes"`
}

// maxImages bounds how many images are told apart, 16 bytes each.
const maxImages = 1 << 20

// roomSums are the sums of entries.
type roomSums struct {
	bytes    roomBytes
	repeated repeatedImages
	images   map[uint64]struct{} // hashes of their data
}

// addRoom adds the parts of the entries from one on. After an error only some may have been added.
func addRoom(ctx context.Context, s *sessioncore.Snapshot, from int, to *roomSums) error {
	reader := sessioncore.NewEntryReader(s)
	for e := sessioncore.Entry(from); int(e) < s.Len(); e++ {
		text, err := reader.Read(e)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		to.entry(s, e, text)
	}
	return nil
}

// entry adds an entry: the blocks of its content, and the result of a tool as a whole but for its
// images.
func (r *roomSums) entry(s *sessioncore.Snapshot, e sessioncore.Entry, text rawjson.Value) {
	addContent := func() {
		body := text
		if s.Kind(e) == sessioncore.TypeMessage {
			body = s.Message(e, text)
		}
		m := message.Read(body)
		r.content(m[message.Content])
	}
	if !isResult(s, e) {
		addContent()
		return
	}
	lines, _ := s.EntryRange(e)
	mayHaveImages := bytes.Contains(text, []byte(`"image`)) // most have none, and their blocks need not be read
	if mayHaveImages {
		r.result(lines.Size, addContent)
		return
	}
	r.bytes.ToolResults += lines.Size
}

// content adds the blocks of a content, which may be a text; other values have none.
func (r *roomSums) content(content rawjson.Value) {
	if content.IsString() {
		r.bytes.Text += int64(len(content))
	}
	for block := range content.EachElement {
		m := message.Read(block)
		size := int64(len(block))
		switch m.Kind() {
		case message.TextKind:
			r.bytes.Text += size
		case message.ThinkingKind:
			r.bytes.Thinking += size
		case message.CallKind:
			r.bytes.ToolCalls += size
		case message.ImageKind:
			r.bytes.Images += size
			r.image(&m)
		case message.ResultKind:
			r.result(size, func() {
				r.content(m[message.Content])
			})
		}
	}
}

// result adds size bytes as the result of a tool, but for the images that content adds.
func (r *roomSums) result(size int64, content func()) {
	before := r.bytes
	content()
	images := r.bytes.Images - before.Images
	r.bytes = before
	r.bytes.ToolResults += size - images
	r.bytes.Images += images
}

// image counts an image that the file had before, and remembers a new one, up to maxImages. Its data is in the
// block or in its source, or an address or a reference stands for it.
func (r *roomSums) image(m *message.Members) {
	if m[message.Source] != nil {
		inside := message.Read(m[message.Source])
		m = &inside
	}
	data := string(m[message.Data])
	if data == "" {
		data = string(m[message.URL])
	}
	hash := maphash.String(seed, data)
	_, isKnown := r.images[hash]
	if isKnown {
		r.repeated.Count++
		r.repeated.Bytes += int64(len(data))
		return
	}
	if data == "" || len(r.images) >= maxImages {
		return
	}
	if r.images == nil {
		r.images = map[uint64]struct{}{}
	}
	r.images[hash] = struct{}{}
}
