package agents

import (
	"bytes"
	"fmt"
	"io"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
)

const (
	// maxLine is the longest line that is converted unchanged, in bytes. Clients write images and
	// conversations into lines of 100 MB, which do not fit into memory.
	maxLine = 32 << 20
	// maxText is the longest text that is kept of a longer line.
	maxText = 64 << 10

	reasonTooLong   = "the line is longer than 32 MiB"
	reasonShortened = reasonTooLong + ": its long texts are left out"
)

// shortened returns a line that is too long with a note in the place of each long text. It returns
// nil for other values than objects, for a line that is still too long, and for an incomplete one.
func shortened(obj io.ReaderAt, u *jsonl.Unit) rawjson.Value {
	var out []byte
	var end [1]byte
	_, err := obj.ReadAt(end[:], u.Off+u.Size-1)
	if err != nil || end[0] != '\n' {
		return nil
	}
	start := -1
	size := 0 // of the current text: its place in out, and its bytes
	escaped := false
	buf := make([]byte, jsonl.ChunkSize)
	r := io.NewSectionReader(obj, u.Off, u.Size)
	for {
		n, err := r.Read(buf)
		for b := buf[:n]; len(b) > 0; {
			if start < 0 { // between texts
				at := bytes.IndexByte(b, '"') + 1
				if at == 0 {
					at = len(b)
				} else {
					start = len(out) + at
					size = 0
				}
				out = append(out, b[:at]...)
				b = b[at:]
				continue
			}
			at := 0
			for ; at < len(b) && (escaped || b[at] != '"'); at++ {
				escaped = !escaped && b[at] == '\\'
			}
			size += at
			if size <= maxText {
				out = append(out, b[:at]...)
			} else {
				out = out[:start]
			}
			b = b[at:]
			if len(b) > 0 {
				if size > maxText {
					out = fmt.Appendf(out, "[%d bytes, in line %d of the agent's own file]", size, u.Line)
				}
				out = append(out, '"')
				b = b[1:]
				start = -1
			}
		}
		if len(out) > maxLine {
			return nil
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil
		}
	}
	return ObjectIn(out)
}
