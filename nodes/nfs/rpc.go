package nfs

import (
	"encoding/binary"
	"errors"
	"io"
)

// Numbers of RFC 5531.
const (
	rpcCall, rpcReply           = 0, 1
	rpcVersion                  = 2
	replyAccepted, replyDenied  = 0, 1
	rpcMismatch, authError      = 0, 1
	authNone, authSys           = 0, 1
	authRejected, authTooWeak   = 2, 5
	success, programUnavailable = 0, 1
	programMismatch             = 2
	procedureUnavailable        = 3
	garbageArguments, systemErr = 4, 5
)

// maxRecord is the longest message of a client: a WRITE of maxWrite, and what stands before its data.
const maxRecord = maxWrite + 2048

var errTooLong = errors.New("a record of a client is too long")

// readRecord reads a message, which may come in fragments.
func readRecord(r io.Reader) (message []byte, err error) {
	var head [4]byte
	for last := false; !last; {
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return nil, err
		}
		mark := binary.BigEndian.Uint32(head[:])
		last = mark&(1<<31) != 0
		n := int(mark &^ (1 << 31))
		if n > maxRecord-len(message) || n == 0 && !last {
			return nil, errTooLong
		}
		start := len(message)
		message = append(message, make([]byte, n)...)
		if _, err := io.ReadFull(r, message[start:]); err != nil {
			return nil, err
		}
	}
	return message, nil
}

// call is a request of a client.
type call struct {
	xid                         uint32
	version                     uint32 // of RPC
	program, programVersion, no uint32
	flavor                      uint32 // of the credential
	uid                         uint32 // with authSys
	gids                        []uint32
	arguments                   decoder
}

// parseCall parses a message. ok is false if it is no call, or cut.
func parseCall(message []byte) (c call, ok bool) {
	d := decoder{b: message}
	c.xid = d.u32()
	kind := d.u32()
	c.version, c.program, c.programVersion, c.no = d.u32(), d.u32(), d.u32(), d.u32()
	c.flavor = d.u32()
	credential := decoder{b: d.opaque(400)}
	d.u32() // flavor of the verifier
	d.opaque(400)
	if c.flavor == authSys {
		credential.u32() // stamp
		credential.opaque(255)
		c.uid = credential.u32()
		c.gids = append(c.gids, credential.u32())
		for n := min(credential.u32(), 16); n > 0; n-- {
			c.gids = append(c.gids, credential.u32())
		}
	}
	c.arguments = d
	return c, kind == rpcCall && !d.bad && !credential.bad
}

// newReply begins a reply with room for the mark of its record.
func newReply(xid uint32) *encoder {
	e := &encoder{b: make([]byte, 4, 512)}
	e.u32(xid, rpcReply)
	return e
}

// accepted begins an accepted reply.
func accepted(xid uint32, status uint32) *encoder {
	e := newReply(xid)
	e.u32(replyAccepted, authNone, 0, status)
	return e
}

// denied makes a reply to a call whose caller may not come in.
func denied(xid uint32, why uint32) *encoder {
	e := newReply(xid)
	e.u32(replyDenied, authError, why)
	return e
}

// record returns the reply as one record.
func (e *encoder) record() []byte {
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4)|1<<31)
	return e.b
}
