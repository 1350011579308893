package codex

import (
	"bytes"
	"maps"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

const (
	// maxFirst bounds the first line of a rollout, which has some 20 KB of instructions.
	maxFirst = 8 << 20
	// maxBeginnings bounds the cached rollouts, and maxCounted the cached places in each.
	maxBeginnings, maxCounted = 1 << 14, 64
)

// beginning caches facts of a rollout's beginning, which does not change.
type beginning struct {
	file    storage.Token // state of the last check
	first   int64         // size of the first line, 0 if it is too long or incomplete
	base    base
	counted map[int64]lineCount // by the size of the counted part
}

// base is the place in another rollout that a rollout continues.
type base struct {
	thread string // "" if it continues none
	size   int64  // bytes of that thread's rollout
}

// lineCount has the number of complete lines in a part of a rollout, and the end of the last one.
type lineCount struct{ lines, end int64 }

// beginningOf returns the facts in the first line of a rollout. obj is the file, nil for a
// parent's.
func (h *Home) beginningOf(name string, now storage.Token, obj storage.Object) (beginning, error) {
	if b, ok := h.cached(name, now); ok {
		return b, nil
	}
	b := beginning{file: now}
	read := func(text []byte) (n int, err error) { return obj.ReadAt(text, 0) }
	if obj == nil {
		p := &part{name: name, object: now}
		read = func(text []byte) (int, error) {
			text = text[:min(int64(len(text)), now.Size)]
			return len(text), h.parents.readFull(p, text, 0)
		}
	}
	for size := int64(32 << 10); size <= maxFirst; size *= 4 {
		text := make([]byte, size)
		n, err := read(text)
		if obj == nil && err != nil {
			return b, err
		}
		if end := bytes.IndexByte(text[:n], '\n'); end >= 0 {
			b.first, b.base = int64(end)+1, baseOf(bytes.TrimSpace(text[:end]))
			break
		}
		if int64(n) < size {
			return b, nil // it may be incomplete
		}
	}
	h.beginnings.Add(name, b)
	return b, nil
}

// baseOf returns the base of a rollout by its first line.
func baseOf(line rawjson.Value) (b base) {
	if !bytes.Contains(line, []byte(`"history_base"`)) || !rawjson.IsValidObject(line) ||
		!line.Member("type").Is("session_meta") {
		return base{}
	}
	from := line.Member("payload").Member("history_base")
	b.thread, _ = from.Member("thread_id").Text()
	if b.size = agents.Count(from.Member("end_byte_offset")); b.size == 0 {
		return base{}
	}
	return b
}

// count counts the lines of a part.
func (h *Home) count(name string, p part) (lineCount, error) {
	b, _ := h.cached(name, p.object)
	if c, ok := b.counted[p.to]; ok {
		return c, nil
	}
	c := lineCount{end: p.from}
	buf := make([]byte, readAhead)
	for at := p.from; at < p.to; at += int64(len(buf)) {
		buf = buf[:min(int64(len(buf)), p.to-at)]
		if err := h.parents.readFull(&p, buf, at); err != nil {
			return c, err
		}
		if last := bytes.LastIndexByte(buf, '\n'); last >= 0 {
			c.lines, c.end = c.lines+int64(bytes.Count(buf, []byte{'\n'})), at+int64(last)+1
		}
	}
	if b.file != (storage.Token{}) {
		if b.counted = maps.Clone(b.counted); b.counted == nil || len(b.counted) >= maxCounted {
			b.counted = map[int64]lineCount{}
		}
		b.counted[p.to] = c
		h.beginnings.Add(name, b)
	}
	return c, nil
}

// cached returns the cached beginning of a rollout that is unchanged or has grown.
func (h *Home) cached(name string, now storage.Token) (beginning, bool) {
	b, ok := h.beginnings.Get(name)
	if !ok || b.file != now && (!b.file.SameObject(now) || now.Size <= b.file.Size) {
		return beginning{}, false
	}
	b.file = now
	h.beginnings.Add(name, b)
	return b, true
}
