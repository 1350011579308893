package names

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
)

// SlotSize is the size of a title slot in bytes, its newline included (docs/format.md, Title slot).
const SlotSize = 256

// TitleSlot returns the line of a title slot: exactly SlotSize bytes, with the title cut at a code
// point to fit, or nil if it does not fit without a title. title is WTF-8; source may be "".
func TitleSlot(title, source, updated string) []byte {
	head := []byte(`{"type":"title","v":1,"title":`)
	var tail []byte
	if source != "" {
		tail = rawjson.AppendQuoted([]byte(`,"source":`), source)
	}
	tail = append(tail, `,"updatedAt":`...)
	tail = rawjson.AppendQuoted(tail, updated)
	tail = append(tail, `,"pad":"`...)
	const end = "\"}\n"
	room := SlotSize - len(head) - len(tail) - len(end)
	if room < len(`""`) {
		return nil
	}
	if len(title) > SlotSize { // no longer one fits, and each round below quotes all of it
		title = title[:lastRune(title[:SlotSize+1])]
	}
	quoted := rawjson.AppendQuoted(nil, title)
	for len(quoted) > room {
		title = title[:lastRune(title)]
		quoted = rawjson.AppendQuoted(nil, title)
	}
	line := append(head, quoted...)
	line = append(line, tail...)
	line = append(line, bytes.Repeat([]byte{' '}, room-len(quoted))...)
	return append(line, end...)
}

// lastRune returns the offset of the last code point of a WTF-8 text that is not empty.
func lastRune(text string) int {
	isContinuation := func(c byte) bool { return c&0xC0 == 0x80 }
	start := len(text) - 1
	for start > 0 && isContinuation(text[start]) {
		start--
	}
	return start
}
