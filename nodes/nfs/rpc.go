package nfs

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// Numbers of RFC 5531, and of the programs.
const (
	// msg_type
	rpcCall  = 0
	rpcReply = 1

	rpcVersion     = 2
	programVersion = 3 // of both programs
	nfsProgram     = 100003
	mountProgram   = 100005

	// reply_stat
	replyAccepted = 0
	replyDenied   = 1

	// reject_stat
	rpcMismatch = 0
	authError   = 1

	// auth_flavor
	authNone = 0
	authSys  = 1

	// auth_stat
	authRejected = 2
	authTooWeak  = 5

	// accept_stat
	success      = 0
	noProgram    = 1
	noVersion    = 2
	noProcedure  = 3
	badArguments = 4
)

// maxAuth bounds a credential and a verifier in bytes, by RFC 5531.
const maxAuth = 400

// Statuses of RFC 1813, nfsstat3.
const (
	nfsOK          = 0
	nfsIO          = 5
	nfsAccess      = 13
	nfsBadHandle   = 10001
	nfsTooSmall    = 10005
	nfsServerFault = 10006
)

// statuses has the status of each errno. A client would wait for ever for a file that is busy (JUKEBOX), so
// EBUSY is no access, as are errnos without a number in the protocol.
var statuses = map[syscall.Errno]uint32{
	syscall.EPERM: 1, syscall.ENOENT: 2, syscall.EACCES: nfsAccess, syscall.EEXIST: 17, syscall.EXDEV: 18,
	syscall.ENOTDIR: 20, syscall.EISDIR: 21, syscall.EINVAL: 22, syscall.EFBIG: 27, syscall.ENOSPC: 28,
	syscall.EROFS: 30, syscall.ENAMETOOLONG: 63, syscall.ENOTEMPTY: 66, syscall.EDQUOT: 69, syscall.ESTALE: 70,
	syscall.EBUSY: nfsAccess, syscall.ENOMEM: nfsAccess, syscall.EOPNOTSUPP: nfsAccess,
}

// xdrMessage is XDR. Its first values are decoded and taken off; values are encoded at its end.
type xdrMessage []byte

// fixed decodes n bytes and their padding. A message that is too short ends the request.
func (m *xdrMessage) fixed(n uint32) []byte {
	padded := (uint64(n) + 3) &^ 3 // to a multiple of four
	if padded > uint64(len(*m)) {
		panic(accepted(badArguments))
	}
	v := (*m)[:n:n]
	*m = (*m)[padded:]
	return v
}

// opaque decodes a length and so many bytes, at most limit.
func (m *xdrMessage) opaque(limit uint32) []byte {
	n := m.u32()
	if n > limit {
		panic(accepted(badArguments))
	}
	return m.fixed(n)
}

// maxName is the longest name or link target that a client may send, in bytes.
const maxName = 4096

func (m *xdrMessage) text() string { return string(m.opaque(maxName)) }
func (m *xdrMessage) u32() uint32  { return binary.BigEndian.Uint32(m.fixed(4)) }
func (m *xdrMessage) u64() uint64  { return binary.BigEndian.Uint64(m.fixed(8)) }
func (m *xdrMessage) bool() bool   { return m.u32() != 0 }

// put32 encodes a word.
func (m *xdrMessage) put32(v uint32) { *m = binary.BigEndian.AppendUint32(*m, v) }

// put64 encodes a number of two words.
func (m *xdrMessage) put64(v uint64) { *m = binary.BigEndian.AppendUint64(*m, v) }

// putBool encodes a truth value, a word.
func (m *xdrMessage) putBool(v bool) {
	if v {
		m.put32(1)
	} else {
		m.put32(0)
	}
}

// putOpaque encodes bytes, with their length before them and padding behind them.
func (m *xdrMessage) putOpaque(v []byte) {
	m.put32(uint32(len(v)))
	*m = append(*m, v...)
	padding := -len(v) & 3 // up to a multiple of four
	*m = append(*m, make([]byte, padding)...)
}

// noAttributes encodes that optional attributes are left out.
func (m *xdrMessage) noAttributes() { m.putBool(false) }

// noChange encodes that the attributes before and after a change are left out: wcc_data.
func (m *xdrMessage) noChange() {
	m.noAttributes()
	m.noAttributes()
}

// maxRecord is the longest message of a client: a WRITE of maxWrite, and the words before its data.
const maxRecord = maxWrite + 2048

const (
	recordMark   = 4       // the size of a fragment's mark, in bytes
	lastFragment = 1 << 31 // the bit of the last one in it
)

var errTooLong = errors.New("a record of a client is too long")

// readRecord reads a message, which may come in fragments. Each has a mark of four bytes before it: a bit for
// the last one, and its length. The error is errTooLong for more than maxRecord bytes.
func readRecord(r io.Reader) (m xdrMessage, err error) {
	isLast := false
	for !isLast {
		var mark [recordMark]byte
		_, err := io.ReadFull(r, mark[:])
		if err != nil {
			return nil, err
		}
		word := binary.BigEndian.Uint32(mark[:])
		isLast = word&lastFragment != 0
		length := int(word &^ lastFragment)
		isEndless := length == 0 && !isLast // a client could send such fragments for ever
		start := len(m)
		if length > maxRecord-start || isEndless {
			return nil, errTooLong
		}
		m = append(m, make([]byte, length)...)
		_, err = io.ReadFull(r, m[start:])
		if err != nil {
			return nil, err
		}
	}
	return m, nil
}

// request is a call of a client.
type request struct {
	*Door
	ctx       context.Context
	from      *clientConnection
	xid       uint32
	procedure procedure
	resolving bool // errnos are about a handle
	in, out   xdrMessage
}

// answer returns the reply to a message, nil if it is no call. A call that changes something is not
// interrupted, and if it comes again, as after a lost answer, it is not carried out twice: its
// caller, number and arguments are the same.
func (d *Door) answer(ctx context.Context, from *clientConnection, in xdrMessage) []byte {
	const xidAndType = 8 // bytes
	if len(in) < xidAndType {
		return nil
	}
	rest := in
	xid := rest.u32()
	messageType := rest.u32()
	if messageType != rpcCall {
		return nil
	}
	r := &request{
		Door: d,
		ctx:  ctx,
		from: from,
		xid:  xid,
		in:   rest,
	}
	denied := r.reply(r.header)
	if r.procedure.do == nil {
		return denied // or it is one that does nothing
	}
	carryOut := func() []byte {
		return r.reply(func() {
			r.out.put32(nfsOK)
			r.procedure.do(r)
		})
	}
	if !r.procedure.changes {
		return carryOut()
	}
	r.ctx = context.WithoutCancel(ctx)
	once := sync.OnceValue(func() []byte {
		reply := carryOut()
		d.changed.Store(time.Now().UnixNano())
		return reply
	})
	earlier, isRepeated, _ := d.replies.PeekOrAdd(sha256.Sum256(in), once)
	if isRepeated {
		return earlier() // it may be carried out still
	}
	return once()
}

// header decodes the header of a call behind its xid and type, by the names of RFC 5531, and sets the
// request's procedure. It ends a call of another program, version, procedure or user. Procedure 0, which does
// nothing, needs no credential, and leaves the procedure unset.
func (r *request) header() {
	version := r.in.u32()
	programNumber := r.in.u32()
	ofVersion := r.in.u32()
	number := r.in.u32()
	flavor := r.in.u32()
	credential := xdrMessage(r.in.opaque(maxAuth))
	r.in.u32()           // flavor of the verifier
	r.in.opaque(maxAuth) // the verifier
	if version != rpcVersion {
		panic(failure{replyDenied, rpcMismatch, rpcVersion, rpcVersion})
	}
	procedures, isKnown := programs[programNumber]
	if !isKnown {
		panic(accepted(noProgram))
	}
	if ofVersion != programVersion {
		panic(accepted(noVersion, programVersion, programVersion))
	}
	if number >= uint32(len(procedures)) {
		panic(accepted(noProcedure))
	}
	procedure := procedures[number]
	if procedure.do == nil {
		return
	}
	if flavor != authSys {
		panic(failure{replyDenied, authError, authTooWeak})
	}
	credential.u32()       // stamp
	credential.opaque(255) // name of the client's machine
	uid := credential.u32()
	if uid != r.uid && uid != 0 {
		panic(failure{replyDenied, authError, authRejected})
	}
	r.procedure = procedure
}

// failure is the reply to a request that failed: the words behind rpcReply.
type failure []uint32

// accepted returns the words of a reply to a call that was accepted.
func accepted(words ...uint32) failure { return append(failure{replyAccepted, authNone, 0}, words...) }

// failed returns the reply of a status, with the procedure's optional values left out.
func (r *request) failed(status uint32) failure {
	words := accepted(success, status)
	return append(words, make([]uint32, r.procedure.zeros)...)
}

// check ends the request where errno is not 0. A handle that leads nowhere is stale.
func (r *request) check(errno syscall.Errno) {
	if errno == 0 {
		return
	}
	isMissing := errno == syscall.ENOENT || errno == syscall.ENOTDIR
	if r.resolving && isMissing {
		errno = syscall.ESTALE
	}
	status, isKnown := statuses[errno]
	if !isKnown {
		status = nfsIO
	}
	panic(r.failed(status)) // reply recovers
}

// require ends the request with errno unless ok is true.
func (r *request) require(ok bool, errno syscall.Errno) {
	if !ok {
		r.check(errno)
	}
}

// reply returns the reply that do makes in r.out, or the failure that do panics with. A panic of another kind
// is a bug, which is logged and ends no other request. The reply is a whole record, with its mark.
func (r *request) reply(do func()) (reply []byte) {
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case failure:
			r.beginReply(reason)
		default:
			r.log.Error("a bug: a request panicked and was answered with EIO",
				"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			r.beginReply(r.failed(nfsServerFault))
		}
		length := uint32(len(r.out) - recordMark)
		binary.BigEndian.PutUint32(r.out, length|lastFragment)
		reply = r.out
	}()
	r.beginReply(accepted(success))
	do()
	return nil // the deferred function returns the reply
}

// beginReply makes r.out a reply of words behind rpcReply, in place of its content before. The mark of the record is
// empty.
func (r *request) beginReply(words failure) {
	r.out = append(r.out[:0], make([]byte, recordMark)...)
	r.out.put32(r.xid)
	r.out.put32(rpcReply)
	for _, word := range words {
		r.out.put32(word)
	}
}
