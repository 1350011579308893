package nfs

import "encoding/binary"

// decoder reads XDR from a message. After the first value that is cut or too long, bad is set and
// all values are zero.
type decoder struct {
	b   []byte
	bad bool
}

// fixed reads n bytes and their padding. The result shares the message's memory.
func (d *decoder) fixed(n uint32) []byte {
	padded := (uint64(n) + 3) &^ 3
	if d.bad || padded > uint64(len(d.b)) {
		d.bad = true
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[padded:]
	return v
}

// opaque reads a length and so many bytes, at most limit.
func (d *decoder) opaque(limit uint32) []byte {
	n := d.u32()
	if n > limit {
		d.bad = true
	}
	return d.fixed(n)
}

func (d *decoder) u32() uint32 {
	if v := d.fixed(4); v != nil {
		return binary.BigEndian.Uint32(v)
	}
	return 0
}

func (d *decoder) u64() uint64 { return uint64(d.u32())<<32 | uint64(d.u32()) }

func (d *decoder) bool() bool { return d.u32() != 0 }

// maxName is the longest name or link target that a client may send, in bytes.
const maxName = 4096

func (d *decoder) text() string { return string(d.opaque(maxName)) }

// encoder writes XDR.
type encoder struct{ b []byte }

func (e *encoder) u32(values ...uint32) {
	for _, v := range values {
		e.b = binary.BigEndian.AppendUint32(e.b, v)
	}
}

func (e *encoder) u64(values ...uint64) {
	for _, v := range values {
		e.b = binary.BigEndian.AppendUint64(e.b, v)
	}
}

func (e *encoder) bool(v bool) {
	if v {
		e.u32(1)
	} else {
		e.u32(0)
	}
}

// pad fills the last word of a value of n bytes.
func (e *encoder) pad(n int) { e.b = append(e.b, make([]byte, -n&3)...) }

func (e *encoder) opaque(v []byte) {
	e.u32(uint32(len(v)))
	e.b = append(e.b, v...)
	e.pad(len(v))
}

func (e *encoder) text(v string) { e.opaque([]byte(v)) }
