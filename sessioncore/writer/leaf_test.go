package writer

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

func TestMoveLeaf(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, plainFile, Options{})
	require.NoError(t, w.MoveLeaf(ctx, w.session, "b"))
	require.Empty(t, w.added(plainFile), "it is there already")

	require.NoError(t, w.MoveLeaf(ctx, w.session, "a"))
	require.Equal(t, []string{
		`{"type":"custom","customType":"sessionfs/leaf","data":{"targetId":"a"},"id":"00000001","parentId":"a","timestamp":"` + plainNow + `"}`,
	}, w.added(plainFile))
	require.Equal(t, "a", w.leaf())
	before := w.content()
	require.NoError(t, w.MoveLeaf(ctx, w.session, "a"))
	require.Empty(t, w.added(before))
	require.ErrorIs(t, w.MoveLeaf(ctx, w.session, "gone"), sessioncore.ErrNotFound)

	ids, err := w.append(`{"type":"mode_change","mode":"plan"}`)
	require.NoError(t, err)
	require.Equal(t, "a", w.parentOfID(ids[0]))

	require.NoError(t, w.ResetLeaf(ctx, w.session))
	require.Equal(t, "", w.leaf())
	before = w.content()
	require.NoError(t, w.ResetLeaf(ctx, w.session))
	require.Empty(t, w.added(before))
	ids, err = w.append(`{"type":"mode_change","mode":"plan"}`)
	require.NoError(t, err)
	require.Equal(t, "", w.parentOfID(ids[0]))
}

// TestMoveLeafInMemory: nothing is written and every reader sees the move; an appended entry gets the leaf as parent
// and ends the move.
func TestMoveLeafInMemory(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, plainFile, Options{LeafMemory: true})
	old := w.snapshot()
	require.NoError(t, w.MoveLeaf(ctx, w.session, "a"))
	require.Equal(t, plainFile, w.content())
	require.Equal(t, "a", w.leaf())
	require.NotEqual(t, old.Serial(), w.snapshot().Serial())
	leaf, err := old.Leaf()
	require.NoError(t, err)
	require.Equal(t, sessioncore.Entry(1), leaf, "a snapshot never changes")
	require.ErrorIs(t, w.MoveLeaf(ctx, w.session, "gone"), sessioncore.ErrNotFound)

	w.store.Close()
	require.Equal(t, "a", w.leaf(), "it is the session's, not the cache's")
	_, err = w.opts.Journal.Append(plainName, []byte("text that is no entry\n"))
	require.NoError(t, err)
	require.Equal(t, "a", w.leaf())
	require.NoError(t, w.SetTitle(ctx, w.session, "T"))
	require.Equal(t, "a", w.leaf(), "a rewrite adds nothing")

	ids, err := w.append(`{"type":"mode_change","mode":"plan"}`)
	require.NoError(t, err)
	require.Equal(t, "a", w.parentOfID(ids[0]))
	require.Equal(t, ids[0], w.leaf())

	require.NoError(t, w.ResetLeaf(ctx, w.session))
	require.Equal(t, "", w.leaf())
	_, err = w.opts.Journal.Append(plainName, []byte(`{"type":"mode_change","id":"client","parentId":"b","mode":"x"}`+"\n"))
	require.NoError(t, err)
	require.Equal(t, "client", w.leaf(), "a client's append ends it")
	require.ErrorIs(t, New(w.store, Options{LeafMemory: true, ReadOnly: true}).ResetLeaf(ctx, w.session), sessioncore.ErrReadOnly)
}
