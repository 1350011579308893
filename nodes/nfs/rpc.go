package nfs

import (
	"encoding/binary"
	"errors"
	"io"
)

// Numbers of RFC 5531.
const (
	rpcCall, rpcReply          = 0, 1
	rpcVersion                 = 2
	replyAccepted, replyDenied = 0, 1
	rpcMismatch, authError     = 0, 1
	authNone, authSys          = 0, 1
	authRejected, authTooWeak  = 2, 5
)

// Results of a call that was accepted.
const (
	success = iota
	noProgram
	noVersion
	noProcedure
	badArguments
)

// maxRecord is the longest message of a client: a WRITE of maxWrite, and the words before its data.
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
		n, start := int(mark&^(1<<31)), len(message)
		if n > maxRecord-start || n == 0 && !last {
			return nil, errTooLong
		}
		message = append(message, make([]byte, n)...)
		if _, err := io.ReadFull(r, message[start:]); err != nil {
			return nil, err
		}
	}
	return message, nil
}

// call is a request of a client.
type call struct {
	xid, version                       uint32 // version is that of RPC
	program, programVersion, procedure uint32
	flavor, uid                        uint32 // the credential; uid is there with authSys
	gids                               []uint32
	arguments                          decoder
}

// parseCall parses a message. ok is false if it is no call, or cut.
func parseCall(message []byte) (c call, ok bool) {
	d := decoder{b: message}
	c.xid = d.u32()
	kind := d.u32()
	c.version, c.program, c.programVersion, c.procedure, c.flavor = d.u32(), d.u32(), d.u32(), d.u32(), d.u32()
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

// reply returns a reply of some words, with its record mark, and the body.
func (c *call) reply(body []byte, words ...uint32) []byte {
	e := encoder{make([]byte, 4, 64+len(body))}
	e.u32(c.xid, rpcReply)
	e.u32(words...)
	e.b = append(e.b, body...)
	binary.BigEndian.PutUint32(e.b, uint32(len(e.b)-4)|1<<31)
	return e.b
}

func (c *call) accepted(result uint32, body ...byte) []byte {
	return c.reply(body, replyAccepted, authNone, 0, result)
}
