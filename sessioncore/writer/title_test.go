package writer

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage/storagetest/every"
)

func TestSetTitleInHeader(t *testing.T) {
	tests := []struct{ name, header, title, want string }{
		{"new", `{"type":"session","version":3,"id":"s","cwd":"/w"}`, " a\x1b[1m\u0085  title\n ",
			`{"type":"session","version":3,"id":"s","cwd":"/w","title":"a [1m title","titleSource":"user"}`},
		{"in its place", `{"type":"session", "title":"old","version":3,"titleSource":"auto","id":"s","n":1.0}`, "new",
			`{"type":"session", "title":"new","version":3,"titleSource":"user","id":"s","n":1.0}`},
		{"cleared", `{"type":"session","title":"old","version":3,"titleSource":"auto","id":"s"}`, "",
			`{"type":"session","version":3,"id":"s"}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rest := "\nnot JSON\n" + plainUser + "{\"torn\":"
			w := startMemory(t, test.header+rest, Options{})
			require.NoError(t, w.SetTitle(context.Background(), w.session, test.title))
			require.Equal(t, test.want+rest, w.content(), "everything else is carried over")
			before := w.snapshot().Stat().Token
			require.NoError(t, w.SetTitle(context.Background(), w.session, test.title))
			require.Equal(t, before, w.snapshot().Stat().Token, "the same title writes nothing")
		})
	}
	w := startMemory(t, plainFile, Options{})
	require.ErrorIs(t, w.SetTitle(context.Background(), w.session, strings.Repeat("x", maxTitle+1)), sessioncore.ErrInvalid)
}

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

func TestSetTitleInSlot(t *testing.T) {
	ctx := context.Background()
	every.Journals(t, func(t *testing.T, s every.Store) {
		s.WriteFile(t, plainName, string(titleSlot("old", titleByUser, plainNow))+plainFile)
		w := startWriting(t, s, "", Options{Sync: true})
		before := w.snapshot().Stat()
		require.NoError(t, w.SetTitle(ctx, w.session, "new"))
		require.Equal(t, string(titleSlot("new", titleByUser, plainNow))+plainFile+
			`{"type":"title_change","id":"00000001","parentId":"b","timestamp":"`+plainNow+`","title":"new","source":"user","previousTitle":"old"}`+"\n", w.content())
		require.True(t, before.SameObject(w.snapshot().Stat().Token), "in place")
		title, err := w.snapshot().Title()
		require.NoError(t, err)
		require.Equal(t, "new", title)
		require.Equal(t, "00000001", w.leaf())
		require.NoError(t, w.SetTitle(ctx, w.session, ""))
		require.Equal(t, string(titleSlot("", titleByUser, plainNow)), w.content()[:slotSize])
	})
}

// TestSetTitleInOddSlot: a slot that does not have 256 bytes cannot be overwritten.
func TestSetTitleInOddSlot(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, `{"type":"title","v":1,"title":"old","updatedAt":"","pad":""}`+"\n"+plainFile, Options{})
	require.NoError(t, w.SetTitle(ctx, w.session, "new"))
	require.Equal(t, string(titleSlot("new", titleByUser, plainNow)), w.content()[:slotSize])
	snap := w.snapshot()
	require.Equal(t, 3, snap.Len())
	title, err := snap.Title()
	require.NoError(t, err)
	require.Equal(t, "new", title)
	before := snap.Stat()
	require.NoError(t, w.SetTitle(ctx, w.session, "newer"))
	require.True(t, before.SameObject(w.snapshot().Stat().Token), "now it can")
}

// TestSetTitleOfOldFile: a file that has to be migrated is rewritten; both the header and the slot then have the title.
func TestSetTitleOfOldFile(t *testing.T) {
	w := startMemory(t, string(titleSlot("old", titleByUser, plainNow))+strings.Replace(plainFile, `"version":3`, `"version":2`, 1), Options{})
	require.NoError(t, w.SetTitle(t.Context(), w.session, "new"))
	snap := w.snapshot()
	header, slot, err := snap.ReadHeader()
	require.NoError(t, err)
	require.Equal(t, string(titleSlot("new", titleByUser, plainNow)[:slotSize-1]), string(slot))
	require.True(t, header.Member("title").Is("new"))
	require.Equal(t, 3, snap.Version())
	require.Equal(t, 3, snap.Len())
	require.Equal(t, "b", w.parentOfID("00000001"))
	require.Empty(t, problemsOf(t, snap))
}
