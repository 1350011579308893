package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestAppendOnlyToWhatWasRead: a row that others wrote to since it was locked is left alone.
func TestAppendOnlyToWhatWasRead(t *testing.T) {
	table, s := openTable(t, Options{Fresh: time.Hour})
	table.Write(t, prefix+"a", "one\n")
	require.NoError(t, s.lookNow(t.Context()))
	table.Append(t, prefix+"a", "theirs\n")
	_, err := s.Append("a", []byte("lost?\n"))
	require.ErrorIs(t, err, storage.ErrStale)
	require.Equal(t, "one\ntheirs\n", table.Content(t, prefix+"a"))
	_, err = s.Append("a", []byte("ours\n"))
	require.NoError(t, err, "the refusal told what is there")
	require.Equal(t, "one\ntheirs\nours\n", table.Content(t, prefix+"a"))

	table.Do(t, `UPDATE `+table.Name+` SET content = 'ONE'||substring(content from 4)`) // of the same size
	_, err = s.Append("a", []byte("lost?\n"))
	require.ErrorIs(t, err, storage.ErrStale)
	require.Equal(t, "ONE\ntheirs\nours\n", storagetest.Read(t, s, "a"))
}

// TestLockKnowsTheRow: after a lock the storage has the row's state under the lock, also if a look that ended during the wait
// saw an earlier one.
func TestLockKnowsTheRow(t *testing.T) {
	table, s := openTable(t, Options{Fresh: time.Hour})
	table.Write(t, prefix+"a", "one\n")
	require.NoError(t, s.lookNow(t.Context()))
	for locked := false; !locked; { // it may take longer than a lock is waited for
		var batch pgx.Batch
		s.beginWrite(&batch, prefix+"a")
		before := table.Hold(t, `SELECT pg_advisory_xact_lock($1)`, batch.QueuedQueries[1].Arguments[0])
		done := make(chan error)
		var unlock func() error
		go func() {
			var err error
			unlock, err = s.Lock(t.Context(), "a")
			done <- err
		}()
		time.Sleep(20 * time.Millisecond) // so that it most likely waits
		table.Append(t, prefix+"a", "seen\n")
		require.NoError(t, s.lookNow(t.Context()))
		table.Append(t, prefix+"a", "not seen\n")
		require.NoError(t, before.Rollback(t.Context()))
		if err := <-done; err != nil {
			require.ErrorIs(t, err, storage.ErrLocked)
			continue
		}
		locked = true
		size := storagetest.Stat(t, s, "a").Size
		require.NoError(t, unlock())
		require.Equal(t, int64(len(table.Content(t, prefix+"a"))), size)
	}
}

// TestClientWaits: a client that appends while a mount writes waits for that, and loses nothing.
func TestClientWaits(t *testing.T) {
	table, s := openTable(t, Options{})
	table.Write(t, prefix+"a", "one\n")
	unlock := storagetest.Lock(t, s, "a")
	done := make(chan struct{})
	go func() {
		defer close(done)
		table.Append(t, prefix+"a", "client\n")
	}()
	require.Eventually(t, func() bool {
		var n int
		err := table.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%'||$1||'%'`,
			table.Name).Scan(&n)
		return err == nil && n > 0
	}, storagetest.Generous, time.Millisecond)
	_, err := s.Append("a", []byte("mount\n"))
	require.NoError(t, err, "the row was the mount's")
	<-done
	require.NoError(t, unlock())
	require.Equal(t, "one\nmount\nclient\n", table.Content(t, prefix+"a"))
}

// TestTitleIsWrittenAsByTheClient: into the columns alone, where the content has a slot; and a full write takes the
// columns from the slot of the new content.
func TestTitleIsWrittenAsByTheClient(t *testing.T) {
	const at = "2026-02-16T10:20:30.000Z"
	table, s := openTable(t, Options{})
	slot := func(text string) string { return string(title{ptr(text), ptr("user"), ptr(at)}.line()) }
	columns := func() (all string) {
		require.NoError(t, table.QueryRow(t.Context(), `SELECT concat_ws('|', title, title_source, title_updated_at) FROM `+table.Name).Scan(&all))
		return all
	}
	made, err := s.Replace("a", storage.Replacement{Write: storagetest.Content(slot("first") + "body\n")})
	require.NoError(t, err)
	require.Equal(t, "first|user|"+at, columns())
	after, err := s.Replace("a", storage.Replacement{Expect: made.Token, Head: []byte(slot("second"))})
	require.NoError(t, err)
	require.Equal(t, "second|user|"+at, columns())
	require.Equal(t, slot("first")+"body\n", table.Content(t, prefix+"a"), "as the client leaves it")
	require.Equal(t, slot("second")+"body\n", storagetest.Read(t, s, "a"))
	other := open(t, table.Source("&prefix="+prefix), Options{})
	require.Equal(t, slot("second")+"body\n", storagetest.Read(t, other, "a"))

	_, err = s.Replace("a", storage.Replacement{Expect: after.Token, Write: storagetest.Content("no slot\n")})
	require.NoError(t, err)
	require.Empty(t, columns())
	require.Equal(t, "no slot\n", storagetest.Read(t, s, "a"))
}

// TestWhatADatabaseCannotStore: text that is not UTF-8 or has a NUL is refused before it is sent.
func TestWhatADatabaseCannotStore(t *testing.T) {
	table, s := openTable(t, Options{})
	table.Write(t, prefix+"a", "one\n")
	for _, text := range []string{"\xff\n", "a\x00b\n", "\xed\xa0\x80\n"} {
		_, err := s.Append("a", []byte(text))
		require.ErrorContains(t, err, "a database stores no")
		_, err = s.Replace("b", storage.Replacement{Write: storagetest.Content(text)})
		require.ErrorContains(t, err, "a database stores no")
	}
	require.Equal(t, "one\n", table.Content(t, prefix+"a"))
}

// ptr returns a pointer to a text, for a column that is not null.
func ptr(s string) *string { return &s }

// TestSlotLine: the line of a title slot is made of the columns as the client makes it, and parsed back. Lines of another form
// are no slots.
func TestSlotLine(t *testing.T) {
	const at = "2026-02-16T10:20:30.000Z"
	for _, c := range []struct{ text, source, want string }{
		{"A title", "user", `{"type":"title","v":1,"title":"A title","source":"user","updatedAt":"` + at + `","pad":"`},
		{"", "", `{"type":"title","v":1,"title":"","updatedAt":"` + at + `","pad":"`},
		{"a\"b\\c\n<é日本\u2028", "auto",
			`{"type":"title","v":1,"title":"a\"b\\c\n<é日本` + "\u2028" + `","source":"auto","updatedAt":"` + at + `","pad":"`},
		{"x", "somebody", `{"type":"title","v":1,"title":"x","updatedAt":"` + at + `","pad":"`},
	} {
		line := title{ptr(c.text), ptr(c.source), ptr(at)}.line()
		require.Len(t, line, slotSize)
		require.Equal(t, c.want, strings.TrimRight(strings.TrimSuffix(string(line), "\"}\n"), " "))
		back, ok := parseSlot(append(line, "more"...))
		require.True(t, ok)
		require.Equal(t, c.text, *back.text)
		require.Equal(t, line, back.line())
	}
	require.Nil(t, title{text: ptr("x")}.line(), "no time: no title to lay over")
	require.Nil(t, title{text: ptr("x"), updated: ptr(strings.Repeat("9", 250))}.line())
	good := string(title{ptr("x"), ptr("user"), ptr(at)}.line())
	for _, body := range []string{
		"", "short\n", strings.Repeat("x", 300), good[:slotSize-1] + " {}\n", strings.Replace(good, `"v":1`, `"v":2`, 1),
		strings.Replace(good, `"user"`, `"you."`, 1), strings.Replace(good, `"updatedAt"`, `"updatedBy"`, 1),
		strings.Repeat("\n", slotSize),
	} {
		_, ok := parseSlot([]byte(body))
		require.False(t, ok, body)
	}
}
