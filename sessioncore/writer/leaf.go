package writer

import (
	"context"
	"fmt"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// MoveLeaf makes the entry with the id target the leaf, like the client's branch: durably by
// appending one entry, or in memory with the option LeafMemory (docs/design.md, leaf). nil is the
// place before the first entry. An unchanged leaf writes nothing. ErrNotFound: no entry has that id.
func (w *Writer) MoveLeaf(ctx context.Context, s *sessioncore.Session, target *string) error {
	if w.opts.LeafMemory {
		return w.moveInMemory(ctx, s, target)
	}
	moves := func(snap *sessioncore.Snapshot) (bool, error) {
		return snap.Moves(target)
	}
	return w.addLineIf(ctx, s, moves, func(b *batch) []byte {
		return b.moveLine(b.newID(), target)
	})
}

// moveLine returns an entry that moves the leaf to target, nil for the place before the first entry. Its
// parent is the target in omp, which resumes at the last line, and the previous leaf in operator
// (docs/format.md, Operator dialect).
func (b *batch) moveLine(id string, target *string) []byte {
	if b.dialect == sessioncore.Operator {
		line := b.entryPrefix(sessioncore.TypeLeaf, id, b.leaf)
		line = append(line, `,"`+b.dialect.TargetKey+`":`...)
		line = appendReference(line, target)
		return append(line, "}\n"...)
	}
	line := rawjson.AppendQuoted([]byte(`{"type":"custom","customType":`), sessioncore.LeafMoveType)
	line = append(line, `,"data":{"targetId":`...)
	line = appendReference(line, target)
	line = append(line, `},"id":`...)
	line = rawjson.AppendQuoted(line, id)
	line = append(line, `,"parentId":`...)
	line = appendReference(line, target)
	line = b.appendNow(append(line, `,"timestamp":`...))
	return append(line, "}\n"...)
}

// moveInMemory records the move in the session, and makes a snapshot with it the current one. The error
// wraps storage.ErrStale if entries are added all the time.
func (w *Writer) moveInMemory(ctx context.Context, s *sessioncore.Session, target *string) error {
	err := w.writable(s.Name())
	if err != nil {
		return err
	}
	return whileStale(func(int) error {
		done, err := s.TryMove(ctx, target)
		if !done && err == nil {
			err = fmt.Errorf("%w: %s changes all the time", storage.ErrStale, s.Name())
		}
		return err
	})
}
