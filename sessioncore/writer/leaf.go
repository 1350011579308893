package writer

import (
	"context"
	"fmt"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// MoveLeaf makes an entry the current position, as the client's branch does: durably, by one appended
// entry, or in memory with the option LeafMemory (docs/design.md, leaf). Where the leaf is there already
// nothing is written. ErrNotFound: no entry has that id.
func (w *Writer) MoveLeaf(ctx context.Context, s *sessioncore.Session, id string) error {
	return w.moveLeaf(ctx, s, &id)
}

// ResetLeaf puts the current position before the first entry: the next append makes a new root.
func (w *Writer) ResetLeaf(ctx context.Context, s *sessioncore.Session) error {
	return w.moveLeaf(ctx, s, nil)
}

func (w *Writer) moveLeaf(ctx context.Context, s *sessioncore.Session, target *string) error {
	if w.opts.LeafMemory {
		return w.moveInMemory(s, target)
	}
	if moved, err := s.MovesTo(target); err == nil && !moved && !w.opts.ReadOnly {
		return nil // without the lock, which would change the directory's times
	}
	written := false
	err := w.change(ctx, s, func(c *change) error {
		written = false
		moved, err := c.snap.Moves(target)
		if err != nil || !moved {
			return err
		}
		b, err := w.batch(c.snap)
		if err != nil {
			return err
		}
		written = true
		return c.commit(b.moveLine(b.newID(), target), false)
	})
	if !written {
		return err
	}
	return w.synced(ctx, s, err)
}

// moveLine is an entry that moves the leaf to a target.
func (b *batch) moveLine(id string, target *string) []byte {
	if b.dialect == sessioncore.Operator {
		return operatorMoveLine(b, id, target)
	}
	return ompMoveLine(b, id, target)
}

// ompMoveLine is a move to a target. It hangs under that: omp, which resumes at the last line, goes on there.
func ompMoveLine(b *batch, id string, target *string) []byte {
	line := rawjson.AppendQuoted([]byte(`{"type":"custom","customType":`), sessioncore.LeafMoveType)
	line = appendReference(append(line, `,"data":{"targetId":`...), target)
	line = rawjson.AppendQuoted(append(line, `},"id":`...), id)
	line = appendReference(append(line, `,"parentId":`...), target)
	line = b.appendNow(append(line, `,"timestamp":`...))
	return append(line, "}\n"...)
}

// operatorMoveLine is a leaf entry. It hangs under the leaf before (docs/format.md, Operator dialect).
func operatorMoveLine(b *batch, id string, target *string) []byte {
	line := b.begin(sessioncore.TypeLeaf, id, b.leaf)
	line = appendReference(append(line, `,"`+b.dialect.TargetKey+`":`...), target)
	return append(line, "}\n"...)
}

// moveInMemory notes the move in the session, and makes a snapshot that knows of it the current one.
func (w *Writer) moveInMemory(s *sessioncore.Session, target *string) error {
	if w.opts.ReadOnly {
		return fmt.Errorf("%w: %s", sessioncore.ErrReadOnly, s.Name())
	}
	for range staleTries {
		if done, err := s.TryMove(target); done || err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: %s changes all the time", storage.ErrStale, s.Name())
}
