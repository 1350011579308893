package report

import (
	"bytes"
	"cmp"
	"context"
	"hash/maphash"
	"sync"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// roomBytes are the parts of a session file, in bytes. An image in blobs/ takes those of its reference.
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

// roomOf returns the parts of the file of a snapshot.
func roomOf(ctx context.Context, s *sessioncore.Snapshot) (b roomBytes, repeated repeatedImages, err error) {
	sums, err := factsOf(ctx, s, addRoom)
	b = sums.bytes
	b.Other = s.Stat().Size - b.Text - b.Thinking - b.ToolCalls - b.ToolResults - b.Images
	return b, sums.repeated, err
}

// addRoom adds the entries from one on.
func addRoom(ctx context.Context, s *sessioncore.Snapshot, from int, to *roomSums) error {
	entries := make([]sessioncore.Entry, s.Len()-from)
	for i := range entries {
		entries[i] = sessioncore.Entry(from + i)
	}
	var adding sync.Mutex
	return s.ReadEntries(ctx, entries, func() func(int, rawjson.Value) error {
		return func(i int, text rawjson.Value) error {
			found := entryRoom{snap: s}
			found.entry(entries[i], text)
			adding.Lock()
			defer adding.Unlock()
			to.add(&found)
			return nil
		}
	})
}

func (b *roomBytes) add(more roomBytes) {
	b.Text += more.Text
	b.Thinking += more.Thinking
	b.ToolCalls += more.ToolCalls
	b.ToolResults += more.ToolResults
	b.Images += more.Images
}

func (r *roomSums) add(found *entryRoom) {
	r.bytes.add(found.bytes)
	for _, i := range found.images {
		if _, ok := r.images[i.hash]; ok {
			r.repeated.Count++
			r.repeated.Bytes += i.size
		} else if len(r.images) < maxImages {
			if r.images == nil {
				r.images = map[uint64]struct{}{}
			}
			r.images[i.hash] = struct{}{}
		}
	}
}

// entryRoom is the room of one entry.
type entryRoom struct {
	snap   *sessioncore.Snapshot
	bytes  roomBytes
	images []imageRoom
}

type imageRoom struct {
	hash uint64
	size int64 // of the data
}

// entry adds an entry: the blocks of its content, and the result of a tool as a whole but for its images.
func (f *entryRoom) entry(e sessioncore.Entry, text rawjson.Value) {
	result := isResult(f.snap, e)
	if !result || bytes.Contains(text, []byte(`"image`)) {
		if f.snap.Kind(e) == sessioncore.TypeMessage {
			text = f.snap.Message(e, text)
		}
		m := message.Read(text)
		f.content(m[message.Content])
	}
	if result {
		at, _ := f.snap.EntryRange(e)
		f.bytes = roomBytes{ToolResults: at.Size - f.bytes.Images, Images: f.bytes.Images}
	}
}

func (f *entryRoom) content(content rawjson.Value) {
	if content.IsString() {
		f.bytes.Text += int64(len(content))
	}
	for block := range content.EachElement {
		m, size := message.Read(block), int64(len(block))
		switch m.Kind() {
		case message.TextKind:
			f.bytes.Text += size
		case message.ThinkingKind:
			f.bytes.Thinking += size
		case message.CallKind:
			f.bytes.ToolCalls += size
		case message.ImageKind:
			f.image(&m, size)
		case message.ResultKind:
			inside := entryRoom{snap: f.snap}
			inside.content(m[message.Content])
			f.bytes.ToolResults += size - inside.bytes.Images
			f.bytes.Images += inside.bytes.Images
			f.images = append(f.images, inside.images...)
		}
	}
}

// image adds an image, whose data is in the block or in its source, or that an address or a reference stands for.
func (f *entryRoom) image(m *message.Members, size int64) {
	f.bytes.Images += size
	if m[message.Source] != nil {
		inside := message.Read(m[message.Source])
		m = &inside
	}
	if data := cmp.Or(string(m[message.Data]), string(m[message.URL])); data != "" {
		f.images = append(f.images, imageRoom{maphash.String(seed, data), int64(len(data))})
	}
}
