package foreign

import (
	"bytes"
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"slices"
	"sync"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/spill"
	"sessionfs/sessioncore/storage"
)

const (
	// checked is how many bytes before what is new in a file must be what they were, for it to have grown.
	checked = 4 << 10
	// chunk is how much converted text is written at once: all of it, where it stays in memory.
	chunk = inMemory
	// ofLine is about how many bytes of memory a converter takes for a line of the file.
	ofLine = 256
	// maxEarly is how many bytes of problems are kept until there is a record.
	maxEarly = 64 << 10
)

var seed = maphash.MakeSeed()

// outBuffers holds the memory of converted text for the next conversion.
var outBuffers = sync.Pool{New: func() any { return new([]byte) }}

// conversion is what was made of a file so far.
type conversion struct {
	about     About
	converter Converter      // nil if its memory was given back: then growth has the file converted anew
	at        jsonl.Position // in the file
	raw       storage.Token  // the state up to which it was converted
	own       storage.Token  // that of the session's own file, where others are joined with it
	check     uint64         // of the bytes before at
	texts     *spill.Room    // of text
	text      text
	early     []byte // lines that are no records and stand before the first one
	// taken counts how often something was taken back that had been shown.
	taken uint64
}

// ownState returns the state of a session's own file, of which obj in the state to may be joined with others.
func ownState(obj storage.Object, to storage.Token) storage.Token {
	if joined, ok := obj.(interface{ Joined() int64 }); ok {
		to.Size -= joined.Joined()
	}
	return to
}

// token returns what tells the state of the converted session from others. One that has only grown is the same object.
func (c *conversion) token() storage.Token {
	t := c.raw
	t.Inode ^= c.taken * 0x9E3779B97F4A7C15
	t.Size = c.text.size()
	return t
}

// toConvert returns how many bytes of a file have to be converted if it is in the state st. c may
// be nil.
func (c *conversion) toConvert(st storage.Stat) int64 {
	if c == nil || c.converter == nil || !c.raw.SameObject(st.Token) || st.Size < c.at.Off {
		return st.Size
	}
	return st.Size - c.at.Off
}

// extend converts what a file has more than before. ok is false if it is not the file that it was.
func (c *conversion) extend(ctx context.Context, obj storage.Object, to storage.Token) (ok bool, err error) {
	if c.converter == nil || to.Size < c.at.Off || c.at.Guessed {
		return false, nil
	}
	if sum, err := sumBefore(obj, c.at.Off); err != nil || sum != c.check {
		return false, err
	}
	if c.at.MidLine {
		var next [1]byte
		if err := storage.ReadFull(obj, next[:], c.at.Off); err != nil || next[0] != '\n' {
			return false, err
		}
		c.at = jsonl.Position{Off: c.at.Off + 1, Lines: c.at.Lines + 1}
	}
	before := c.text
	before.tail.Retain()
	defer before.tail.Close()
	if err := c.convert(ctx, obj, to); err != nil {
		return false, err
	}
	if !c.text.continues(&before) {
		c.taken++
	}
	return true, nil
}

// convert converts the file from where it stopped.
func (c *conversion) convert(ctx context.Context, obj storage.Object, to storage.Token) error {
	buffer := outBuffers.Get().(*[]byte)
	out := (*buffer)[:0]
	defer func() {
		if cap(out) <= 2*chunk {
			*buffer = out
			outBuffers.Put(buffer)
		}
	}()
	last, whole := slices.Clone(c.early), len(c.early)                // last has whole bytes of lines that cannot become records
	lastAt, written := int64(-1), int64(-1)                           // where the last of them is, and that of those that are written
	begun := func() bool { return c.text.stable+int64(len(out)) > 0 } // with a header, which comes first
	write := func() error {
		_, err := c.text.begin.Write(out)
		c.text.stable += int64(len(out))
		out = out[:0]
		return err
	}
	records, _ := c.converter.(RecordConverter)
	inner := ""
	if records != nil {
		inner = records.Inner()
	}
	at, err := jsonl.LoadRecords(ctx, obj, c.at, to.Size, maxLine, inner, func(u *jsonl.Unit) error {
		if begun() && len(last) > 0 {
			out, last, whole, written = append(out, last...), last[:0], 0, lastAt
		}
		text := OneLine(u)
		if u.Kind != jsonl.ObjectUnit {
			why := u.Reason
			if why == jsonl.ReasonTooLong {
				why = reasonTooLong
				if text = shortened(obj, u); text != nil {
					why = reasonShortened
				}
			}
			if whole = len(last); whole < maxEarly {
				last, lastAt = appendSkipped(last, u, why), u.Off
			}
			if text == nil {
				return nil
			}
		}
		if records != nil && len(u.Members) > 0 {
			out = records.AddRecord(out, text, u.Members, u.Inner, u.Line)
		} else {
			out = c.converter.Add(out, text, u.Line)
		}
		if len(out) < chunk {
			return nil
		}
		return write()
	})
	if err != nil {
		return err
	}
	if lastAt < at.Off { // otherwise it may become a record yet
		whole = len(last)
	}
	c.early = last[:whole]
	if begun() {
		out, c.early = append(out, c.early...), nil
	}
	if err := write(); err != nil {
		return err
	}
	c.at, c.raw, c.own = at, to, ownState(obj, to)
	c.at.Guessed = at.Guessed || written >= at.Off
	tail := c.converter.Tail(nil)
	if c.text.stable > 0 {
		tail = append(tail, last[whole:]...)
	}
	if err := c.setTail(tail); err != nil {
		return err
	}
	c.check, err = sumBefore(obj, at.Off)
	return err
}

// setTail sets the lines that may still change. Versions that readers saw keep their own.
func (c *conversion) setTail(tail []byte) error {
	c.text.tail.Close()
	c.text.tail, c.text.end = nil, int64(len(tail))
	if len(tail) == 0 {
		return nil
	}
	c.text.tail = c.texts.New()
	_, err := c.text.tail.Write(tail)
	return err
}

// state returns about how many bytes of memory the converter takes: a place for each line, and the
// answer that may still get more, which is in the tail too.
func (c *conversion) state() int64 {
	if c.converter == nil {
		return 0
	}
	return c.at.Lines*ofLine + c.text.end
}

// again returns what must convert the file once more, nil if nothing must.
func (c *conversion) again() Converter {
	if r, ok := c.converter.(Rereader); ok {
		return r.Again()
	}
	return nil
}

// OneLine returns the text of a value without the line breaks between its parts.
func OneLine(u *jsonl.Unit) []byte {
	if !u.Loose {
		return u.Text
	}
	return bytes.ReplaceAll(u.Text, []byte{'\n'}, []byte{' '})
}

// appendSkipped appends a line that is no entry, for what is no record or is left out: problems.jsonl says so.
func appendSkipped(dst []byte, u *jsonl.Unit, why string) []byte {
	if why == "" {
		why = "a JSON value that is no object"
	}
	dst = rawjson.AppendQuoted(dst, fmt.Sprintf("line %d, %d bytes: %s", u.Line, u.Size, why))
	return append(dst, '\n')
}

// sumBefore returns a hash of the bytes before an offset.
func sumBefore(obj io.ReaderAt, off int64) (uint64, error) {
	p := make([]byte, min(off, checked))
	err := storage.ReadFull(obj, p, off-int64(len(p)))
	return maphash.Bytes(seed, p), err
}
