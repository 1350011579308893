package ledger

import (
	"encoding/binary"
	"hash/crc32"
	"math"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// This file has the form of a charge in the file: a byte of flags; where it has them, provider and model, each
// with its size; the id with its size; the time, and the tokens; and more where the flags say so.

// Flags of a charge.
const (
	isOfOther  = 1 << iota // of another provider or model than the one before
	isFast                 // Usage.Fast
	hasHour                // CacheWrite1h follows
	hasPremium             // Premium follows, as the bits of a float64
	hasEnd                 // Ended follows
)

// recorder passes charges on to a ledger, and writes them down.
type recorder struct {
	to       agents.Ledger
	text     []byte
	provider string // of the charge before
	model    []byte
	hasMoney bool // a client recorded costs, which are not kept
}

// Begin implements agents.Ledger.
func (r *recorder) Begin() {
	*r = recorder{to: r.to, text: r.text[:0]}
	r.to.Begin()
}

// Charge implements agents.Ledger.
func (r *recorder) Charge(of *agents.Charge) {
	r.to.Charge(of)
	r.hasMoney = r.hasMoney || len(of.Cost) > 0 || len(of.Calls) > 0
	u := &of.Usage
	flags := byte(0)
	set := func(flag byte, isSet bool) {
		if isSet {
			flags |= flag
		}
	}
	isOfSame := of.Provider == r.provider && string(of.Model) == string(r.model)
	set(isOfOther, !isOfSame)
	set(isFast, u.Fast)
	set(hasHour, u.CacheWrite1h != 0)
	set(hasPremium, u.Premium != 0)
	set(hasEnd, u.Ended != 0)
	text := append(r.text, flags)
	if flags&isOfOther != 0 {
		r.provider = of.Provider
		r.model = append(r.model[:0], of.Model...)
		text = appendText(text, of.Provider)
		text = appendText(text, string(of.Model))
	}
	text = appendText(text, of.ID)
	for _, n := range [...]int64{of.At, u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Total} {
		text = binary.AppendVarint(text, n)
	}
	if flags&hasHour != 0 {
		text = binary.AppendVarint(text, u.CacheWrite1h)
	}
	if flags&hasPremium != 0 {
		text = binary.BigEndian.AppendUint64(text, math.Float64bits(u.Premium))
	}
	if flags&hasEnd != 0 {
		text = binary.AppendVarint(text, u.Ended)
	}
	r.text = text
}

// appendText appends a text with its size.
func appendText(dst []byte, text string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(text)))
	return append(dst, text...)
}

// decoder reads the values of a text one after the other. Of one that ends too early, or is none, it returns
// zeros.
type decoder struct {
	text  []byte // the rest
	isBad bool
}

// charge reads a charge into c, which is the one before, or the zero Charge: one of the same provider and model
// has neither in the text. Cost and Calls stay nil, as none with them are kept. c is of no use if d is bad then.
func (d *decoder) charge(c *agents.Charge) {
	flags := d.byte()
	if flags&isOfOther != 0 {
		c.Provider = string(d.sized())
		c.Model = rawjson.Value(d.sized())
	}
	c.ID = string(d.sized())
	c.At = d.varint()
	c.Usage = agents.Usage{
		Input:      d.varint(),
		Output:     d.varint(),
		CacheRead:  d.varint(),
		CacheWrite: d.varint(),
		Total:      d.varint(),
		Fast:       flags&isFast != 0,
	}
	if flags&hasHour != 0 {
		c.Usage.CacheWrite1h = d.varint()
	}
	if flags&hasPremium != 0 {
		bits := d.bytes(8)
		if !d.isBad {
			c.Usage.Premium = math.Float64frombits(binary.BigEndian.Uint64(bits))
		}
	}
	if flags&hasEnd != 0 {
		c.Usage.Ended = d.varint()
	}
}

// row reads a row of the file, as appendRow writes it, without its size and sum. A row with a wrong sum is bad, and
// nil is returned.
func (d *decoder) row() []byte {
	size := d.uvarint()
	sum := d.bytes(crc32.Size)
	if d.isBad || size > uint64(len(d.text)) {
		d.fail()
		return nil
	}
	row := d.bytes(int(size))
	if crc32.Checksum(row, castagnoli) != binary.BigEndian.Uint32(sum) {
		d.fail()
		return nil
	}
	return row
}

// fail ends the text: nothing behind a bad value can be read.
func (d *decoder) fail() {
	d.isBad = true
	d.text = nil
}

// bytes reads n bytes, nil if there are fewer. They are a part of the text.
func (d *decoder) bytes(n int) []byte {
	if n > len(d.text) {
		d.fail()
		return nil
	}
	read := d.text[:n]
	d.text = d.text[n:]
	return read
}

// byte reads a byte.
func (d *decoder) byte() byte {
	read := d.bytes(1)
	if d.isBad {
		return 0
	}
	return read[0]
}

// sized reads a text behind its size.
func (d *decoder) sized() []byte {
	size := d.uvarint()
	if size > uint64(len(d.text)) {
		d.fail()
		return nil
	}
	return d.bytes(int(size))
}

// uvarint reads a number that is not negative.
func (d *decoder) uvarint() uint64 {
	n, size := binary.Uvarint(d.text)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.bytes(size)
	return n
}

// varint reads a number.
func (d *decoder) varint() int64 {
	n, size := binary.Varint(d.text)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.bytes(size)
	return n
}
