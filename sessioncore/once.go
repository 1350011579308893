package sessioncore

import (
	"bytes"
	"context"

	"sessionfs/sessioncore/storage"
)

// Passing is an open session, converted from another agent's file, that can be read without being kept.
type Passing interface {
	// ConvertOnce returns the session and its state, in the memory of dst if that is large enough. It keeps
	// nothing of the session. With words, the session may lack the parts that no search reads: usages, and
	// details of results without calls. The text is nil, without an error, for a session that is long or
	// converted already.
	ConvertOnce(ctx context.Context, dst []byte, words bool) ([]byte, storage.Stat, error)
}

// ConversionBuffer is memory for sessions that are read once each, one after the other. It is not safe for
// concurrent use.
type ConversionBuffer struct {
	// Words reports whether the sessions are only searched: see Passing.
	Words bool

	text []byte // of the last session; the next one takes its memory
}

// Convert returns the session of an open file, converted for the caller alone. It is valid until the next
// call. It is nil, without an error, for a session that is to be read as usual. file stays open.
func (b *ConversionBuffer) Convert(ctx context.Context, file storage.Object) (storage.Object, error) {
	passing, isPassing := file.(Passing)
	if !isPassing {
		return nil, nil
	}
	text, st, err := passing.ConvertOnce(ctx, b.text[:0], b.Words)
	if err != nil || text == nil {
		return nil, err
	}
	b.text = text
	return &passingText{Reader: bytes.NewReader(text), stat: st}, nil
}

// passingText is the text of a session of a ConversionBuffer, as an open file.
type passingText struct {
	*bytes.Reader
	stat storage.Stat
}

// Stat implements storage.Object.
func (t *passingText) Stat() (storage.Stat, error) { return t.stat, nil }

// Close implements storage.Object.
func (t *passingText) Close() error { return nil }

// Index returns a snapshot of an open session file, which its session does not keep, for a caller that reads
// the file once. name is the file's name. Callers must release the snapshot, which closes the file; an error
// closes it, too.
func (st *Store) Index(ctx context.Context, name string, file storage.Object) (*Snapshot, error) {
	x, f, err := indexOf(ctx, file)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	s := st.Session(name)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshotOf(x, f), nil
}

// IndexOnce is Index for a session that may be converted for the caller alone. The snapshot is valid until the
// next call with the buffer.
func (st *Store) IndexOnce(ctx context.Context, name string, file storage.Object, buffer *ConversionBuffer) (*Snapshot, error) {
	converted, err := buffer.Convert(ctx, file)
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	if converted == nil {
		return st.Index(ctx, name, file)
	}
	_ = file.Close()
	return st.Index(ctx, name, converted)
}
