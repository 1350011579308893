package opencode

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/search"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/sqlite"
	"sessionfs/sessioncore/storage/storagetest"
)

// indexed are the tables with the client's index of events.
const indexed = tables + "CREATE INDEX event_types ON event (aggregate_id, type, seq)"

// hasWord returns a test for a word.
func hasWord(word string) func([]byte) bool {
	return func(text []byte) bool { return bytes.Contains(text, []byte(word)) }
}

// lacking returns the names of sessions that lack a word by a scan of all rows.
func lacking(t *testing.T, h *home, names []string, word string) map[string]bool {
	found := map[string]bool{}
	var lacks func(storage.Object) bool
	for _, name := range names {
		obj, err := h.Open(name)
		require.NoError(t, err)
		if lacks == nil {
			lacks, err = obj.(storage.TabledObject).Table().Lacking(t.Context(), hasWord(word))
			require.NoError(t, err)
		}
		if lacks(obj) {
			found[name] = true
		}
		require.NoError(t, obj.Close())
	}
	return found
}

// TestLacking: a session lacks a word by a scan of the rows only if its text does, and all that lack it are found but those
// with removed messages and with line feeds.
func TestLacking(t *testing.T) {
	d := newDatabase(t, indexed)
	d.insertSamples()
	d.session("ses_title", "Egrets", 9)
	d.session("ses_revert", "Herons", 9)
	d.insert("session", map[string]any{"id": "ses_revert", "directory": "/srv/pond", "title": "Herons", "revert": `{"messageID":"msg_reverted"}`})
	d.session("ses_said", "Herons", 9)
	d.message("ses_said", "msg_said", 1001, "user", "A bittern \"booms\"")
	d.session("ses_info", "Herons", 9)
	d.info("ses_info", "msg_info", 1, `{"role":"user","agent":"spoonbill"}`)
	d.session("ses_lines", "Herons", 9)
	d.info("ses_lines", "msg_lines", 1, "{\"role\":\n\"user\"}")
	d.session("ses_undone", "Herons", 9)
	d.event("ses_undone", 1, "message.updated.1", `{"info":{"id":"msg_u","role":"user","agent":"stork","time":{"created":1}}}`)
	d.event("ses_undone", 2, "message.removed.1", `{"messageID":"msg_u"}`)
	h, _ := d.billedHome()
	names := d.Sessions("")
	texts := map[string]string{}
	for _, name := range names {
		texts[name] = storagetest.Read(t, h, name)
	}
	found := 0 // sessions with a word
	for _, word := range []string{
		"Egrets", "msg_reverted", "bittern", `\"booms`, "msg_said", "prt_msg_said", "spoonbill", "stork", "heron", "absent word",
	} {
		lacking := lacking(t, h, names, word)
		for name, text := range texts {
			hasRemoved := strings.Contains(text, `"removed":true`)
			hasLineFeeds := name == "-srv-pond/ses_lines.jsonl"
			hasWord := strings.Contains(text, word)
			isTold := !hasWord && !hasRemoved && !hasLineFeeds
			require.Equal(t, isTold, lacking[name], "%s in %s", word, name)
			if hasWord {
				found++
			}
		}
	}
	require.Greater(t, found, 9, "each word but the last one is in a session")
	for _, word := range []string{`"removed":`, "}]}", "},{", "after", "damaged", "metadata", "revert"} {
		require.Empty(t, lacking(t, h, names, word), "it is in the texts of all, whatever is in their rows")
	}
}

// TestLackingNow: a scan tells nothing of a session that changed since or that is of another database.
func TestLackingNow(t *testing.T) {
	d := newDatabase(t, indexed)
	d.session("ses_1", "Herons", 9)
	name := "-srv-pond/ses_1.jsonl"
	h, _ := d.billedHome()
	obj, err := h.Open(name)
	require.NoError(t, err)
	defer obj.Close()
	table := obj.(storage.TabledObject).Table()
	lacks, err := table.Lacking(t.Context(), hasWord("bittern"))
	require.NoError(t, err)
	require.True(t, lacks(obj))
	require.False(t, lacks(&billedObject{}), "it is no object of the home")
	other := *obj.(*object).session
	other.database = &sqlite.Database{}
	require.False(t, lacks(&object{home: h, name: name, session: &other}))
	d.message("ses_1", "msg_1", 1001, "user", "A bittern")
	d.session("ses_1", "Herons", 10)
	later, err := h.Open(name)
	require.NoError(t, err)
	defer later.Close()
	require.False(t, lacks(later))
	d.insert("event_sequence", map[string]any{"aggregate_id": "ses_1", "seq": 7})
	counted, err := h.Open(name)
	require.NoError(t, err)
	defer counted.Close()
	require.NotEqual(t, later.(*object).session.state(), counted.(*object).session.state())
}

// TestLackingFails: a scan that ends before its end tells nothing, be it by its context or by a change of the database.
func TestLackingFails(t *testing.T) {
	d := newDatabase(t, indexed)
	d.session("ses_1", "Herons", 9)
	d.message("ses_1", "msg_1", 1001, "user", "A bittern")
	h, _ := d.billedHome()
	obj := storagetest.Open(t, h, "-srv-pond/ses_1.jsonl")
	table := obj.(storage.TabledObject).Table()
	lacks, err := table.Lacking(t.Context(), hasWord("absent"))
	require.NoError(t, err)
	require.True(t, lacks(obj))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	lacks, err = table.Lacking(ctx, hasWord("absent"))
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, lacks(obj))
	isBegun := false
	lacks, err = table.Lacking(t.Context(), func(text []byte) bool {
		if !isBegun && string(text) == "msg_1" {
			isBegun = true
			require.NoError(t, d.conn.Exec("CREATE TABLE other (id TEXT); PRAGMA wal_checkpoint(TRUNCATE)"))
		}
		return false
	})
	require.NoError(t, err)
	require.False(t, lacks(obj), "the database changed meanwhile")
}

// TestLackingOld: a scan tells nothing of a database in which it would take long, or whose sessions have no count of their events.
func TestLackingOld(t *testing.T) {
	name := "-srv-pond/ses_1.jsonl"
	plain := newDatabase(t, tables)
	plain.session("ses_1", "Herons", 9)
	h, _ := plain.billedHome()
	require.Empty(t, lacking(t, h, []string{name}, "absent"), "events have no index")
	old := newDatabase(t, `CREATE TABLE session (id TEXT, directory TEXT, title TEXT, time_created INTEGER, time_updated INTEGER)`)
	old.session("ses_1", "Herons", 9)
	h, _ = old.billedHome()
	obj := storagetest.Open(t, h, name)
	require.Nil(t, obj.(storage.TabledObject).Table())
}

// TestSearchRows: a search in many sessions finds what one in each finds, and makes few texts.
func TestSearchRows(t *testing.T) {
	d := newDatabase(t, indexed)
	require.NoError(t, d.conn.Exec("BEGIN"))
	const many = 560
	for i := range many {
		id := fmt.Sprintf("ses_%03d", i)
		d.session(id, "Herons", many-i)
		d.message(id, "msg_"+id, 1001, "user", "Count the herons")
	}
	d.message("ses_530", "msg_530", 1002, "user", "One \u00f6gret \"here\"")
	d.session("ses_531", "Bitterns", 1)
	d.event("ses_532", 1, "message.updated.1", `{"info":{"id":"msg_u","role":"user","time":{"created":1}}}`)
	d.event("ses_532", 2, "message.part.updated.1", `{"part":{"id":"prt_u","messageID":"msg_u","type":"text","text":"a stork"}}`)
	d.event("ses_532", 3, "message.removed.1", `{"messageID":"msg_u"}`)
	require.NoError(t, d.conn.Exec("COMMIT"))
	for word, want := range map[string][]string{
		"absentword": nil,
		"\u00f6gret": {"ses_530"},
		"bitterns":   {"ses_531"},
		"stork":      {"ses_532"},
	} {
		h, files := d.billedHome()
		searcher := search.New(search.SearchedSessions{Files: files, Agents: func() []string { return []string{"opencode"} }})
		q, err := search.ParseQuery(word)
		require.NoError(t, err)
		found, err := searcher.Search(t.Context(), q)
		require.NoError(t, err)
		var ids []string
		for i := range found.Hits {
			ids = append(ids, found.Hits[i].ID)
		}
		require.Equal(t, want, ids, word)
		require.Less(t, len(h.sizes), many-50, "others were told by a scan of the rows")
		sessions, _, err := searcher.Count(t.Context(), q)
		require.NoError(t, err)
		require.Len(t, sessions, len(want))
	}
}
