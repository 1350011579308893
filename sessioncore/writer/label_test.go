package writer

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
	"sessionfs/sessioncore/storage/storagetest/every"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// TestParseLabelLine: a line is an id, a tab or a blank, and a label, with escapes.
func TestParseLabelLine(t *testing.T) {
	tests := []struct{ line, id, label string }{
		{"a", "a", ""}, {"a L", "a", "L"}, {"a\tL", "a", "L"}, {"a  L ", "a", " L "}, {"a b\tL M", "a b", "L M"},
		{`a\tb c\n\\d\r`, "a\tb", "c\n\\d\r"}, {"\tL", "", "L"}, {`a \ud800`, "a", "\xed\xa0\x80"},
		{`a \ud83d\ude00`, "a", "😀"}, {"a \xff", "a", "�"}, {"a\t", "a", ""}, {`a \u202e\u061c`, "a", "\u202e\u061c"},
	}
	for _, test := range tests {
		id, label, err := ParseLabelLine(test.line)
		require.NoError(t, err, test.line)
		require.Equal(t, test.id, id, test.line)
		require.Equal(t, test.label, label, test.line)
	}
	for _, line := range []string{`a \`, `a \x`, `a \u0041`, `a \ud80`, `\q a`} {
		_, _, err := ParseLabelLine(line)
		require.ErrorIs(t, err, sessioncore.ErrInvalid, line)
	}
}

// TestMoveLeafInMemory: nothing is written and every reader sees the move; an appended entry gets the leaf as parent
// and ends the move.
func TestMoveLeafInMemory(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, plainFile, Options{LeafMemory: true})
	old := w.snapshot()
	require.NoError(t, w.MoveLeaf(ctx, w.session, new("a")))
	require.NotEqual(t, old.Serial(), w.snapshot().Serial())
	require.Equal(t, sessioncore.Entry(1), sessiontest.Leaf(t, old), "a snapshot never changes")
	w.store.Close()
	require.Equal(t, "a", w.leaf(), "it is the session's, not the cache's")
	_, err := w.opts.Journal.Append(plainName, []byte("text that is no entry\n"))
	require.NoError(t, err)
	require.Equal(t, "a", w.leaf())
	require.NoError(t, w.SetTitle(ctx, w.session, "T"))
	require.Equal(t, "a", w.leaf(), "a rewrite adds nothing")

	ids := w.adds(`{"type":"mode_change","mode":"plan"}`)
	require.Equal(t, "a", w.parentOfID(ids[0]))
	require.Equal(t, ids[0], w.leaf())

	require.NoError(t, w.MoveLeaf(ctx, w.session, nil))
	require.Equal(t, "", w.leaf())
	_, err = w.opts.Journal.Append(plainName, []byte(`{"type":"mode_change","id":"client","parentId":"b","mode":"x"}`+"\n"))
	require.NoError(t, err)
	require.Equal(t, "client", w.leaf(), "a client's append ends it")
	require.ErrorIs(t, New(w.store, Options{LeafMemory: true, ReadOnly: true}).MoveLeaf(ctx, w.session, nil), sessioncore.ErrReadOnly)
}

// TestTitleSlotLine: the line of a title slot, as clients write it.
func TestTitleSlotLine(t *testing.T) {
	for _, title := range []string{"", "x", strings.Repeat("x", 300), strings.Repeat("é", 200), strings.Repeat("€", 200),
		strings.Repeat("😀", 200), strings.Repeat("\"", 200), strings.Repeat("\xed\xa0\x80", 90), "x" + strings.Repeat("€", 99)} {
		slot := titleSlot(title, titleByUser, plainNow)
		require.Len(t, slot, slotSize)
		require.Equal(t, byte('\n'), slot[slotSize-1])
		line := rawjson.Value(slot[:slotSize-1])
		require.True(t, rawjson.IsValidObject(line))
		require.True(t, sessioncore.IsTitleSlot(line))
		require.True(t, json.Valid(line))
		got, _ := line.Member("title").Text()
		require.True(t, strings.HasPrefix(title, got))
		pad, _ := line.Member("pad").Text()
		require.True(t, got == title || len(pad) < 6, "cut no more than need be")
	}
}

// TestSetTitleInSlot: in each storage, a title goes into the slot in place, and a title_change is appended.
func TestSetTitleInSlot(t *testing.T) {
	ctx := context.Background()
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, plainName, string(titleSlot("old", titleByUser, plainNow))+plainFile)
		w := startWriting(t, s, "", Options{Sync: true})
		before := w.snapshot().Stat()
		require.NoError(t, w.SetTitle(ctx, w.session, "new"))
		require.Equal(t, string(titleSlot("new", titleByUser, plainNow))+plainFile+
			`{"type":"title_change","id":"00000001","parentId":"b","timestamp":"`+plainNow+`","title":"new","source":"user","previousTitle":"old"}`+
			"\n", w.content())
		require.True(t, before.SameObject(w.snapshot().Stat().Token), "in place")
		title, err := w.snapshot().Title()
		require.NoError(t, err)
		require.Equal(t, "new", title)
		require.Equal(t, "00000001", w.leaf())
		require.NoError(t, w.SetTitle(ctx, w.session, ""))
		require.Equal(t, string(titleSlot("", titleByUser, plainNow)), w.content()[:slotSize])
	})
}

// TestReadOnlyPinsNothing: a label and a move of the leaf that are refused keep no file open.
func TestReadOnlyPinsNothing(t *testing.T) {
	open := 0
	files := &storagetest.Hooked{Storage: memory.New(), After: func(c storagetest.Call, err error) error {
		switch {
		case c.Op == "Open" && err == nil:
			open++
		case c.Op == "Close":
			open--
		}
		return err
	}}
	w := startWriting(t, files, plainFile, Options{ReadOnly: true})
	for what, write := range everyWrite {
		if what != "import" { // it reads the session here
			require.ErrorIs(t, write(w.Writer, w.session), sessioncore.ErrReadOnly, what)
		}
	}
	require.ErrorIs(t, w.SetCWD(t.Context(), w.session, "/"), sessioncore.ErrReadOnly)
	w.store.Close()
	require.Zero(t, open)
}

// TestLongLabel: a label that is cut where it is shown is whole in its entry and in a fork, and a line of labels that has it cut
// sets nothing.
func TestLongLabel(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, plainFile, Options{})
	long := strings.Repeat("é", 4000)
	require.NoError(t, w.SetLabel(ctx, w.session, "a", long+"1"))
	shown := w.snapshot().LabelOf("a")
	require.Equal(t, strings.Repeat("é", 2048)+"…", shown)
	whole, err := w.snapshot().WholeLabelOf("a")
	require.NoError(t, err)
	require.Equal(t, long+"1", whole)

	before := w.content()
	require.Contains(t, before, long+"1")
	require.NoError(t, w.SetLabel(ctx, w.session, "a", long+"1"))
	require.NoError(t, w.SetLabel(ctx, w.session, "a", shown))
	require.Equal(t, before, w.content())

	fork, err := w.Fork(ctx, w.session, "b", "")
	require.NoError(t, err)
	require.Contains(t, fileContent(t, w.storage, fork), long+"1")

	require.NoError(t, w.SetLabel(ctx, w.session, "a", long+"2"))
	require.Len(t, w.added(before), 1)
	require.NoError(t, w.SetLabel(ctx, w.session, "a", ""))
	require.Empty(t, w.snapshot().LabelOf("a"))
}
