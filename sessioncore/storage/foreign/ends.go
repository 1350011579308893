package foreign

import (
	"bytes"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// endSize is how much of both ends of a file Ends looks at. Claude Code itself reads no more to list its sessions, and
// writes the titles anew for that.
const endSize = 64 << 10

// Ends calls f for the objects that are whole lines in the first and the last 64 KiB of a file. Lines for which want returns
// false are not parsed.
func Ends(obj storage.Object, size int64, want func(line []byte) bool, f func(v rawjson.Value)) error {
	buf := make([]byte, min(size, 2*endSize))
	if size <= 2*endSize {
		if err := storage.ReadFull(obj, buf, 0); err != nil {
			return err
		}
		eachObject(buf, want, f)
		return nil
	}
	head, tail := buf[:endSize], buf[endSize:]
	if err := storage.ReadFull(obj, head, 0); err != nil {
		return err
	}
	if err := storage.ReadFull(obj, tail, size-endSize); err != nil {
		return err
	}
	eachObject(head[:bytes.LastIndexByte(head, '\n')+1], want, f)
	eachObject(tail[bytes.IndexByte(tail, '\n')+1:], want, f)
	return nil
}

// eachObject calls f for the objects in lines.
func eachObject(lines []byte, want func(line []byte) bool, f func(v rawjson.Value)) {
	for line := range bytes.Lines(lines) {
		if !want(line) {
			continue
		}
		if v := rawjson.Value(bytes.TrimSpace(line)); len(v) > 0 && v[0] == '{' && rawjson.IsValidObject(v) {
			f(v)
		}
	}
}
