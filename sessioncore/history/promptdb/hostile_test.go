package promptdb

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest"
)

// numbers begins a statement with a table n(i) of 1 to count.
func numbers(count int) string {
	return fmt.Sprintf("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT %d) ", count)
}

// TestHostileSchema: whatever stands under the client's names, reading ends soon, and with the right error.
func TestHostileSchema(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const table = "CREATE TABLE history(id INTEGER PRIMARY KEY, prompt, created_at, cwd);"
	endless := "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id, i AS prompt, i AS created_at, i AS cwd FROM n"
	for name, c := range map[string]struct {
		sql    []string
		list   error
		search error
	}{
		"a view":           {[]string{"CREATE VIEW history AS " + endless}, history.ErrUnreadable, history.ErrUnreadable},
		"another module":   {[]string{"CREATE VIRTUAL TABLE history USING fts5(id, prompt, created_at, cwd)"}, history.ErrUnreadable, history.ErrUnreadable},
		"an index as view": {[]string{table, "CREATE VIEW history_fts AS " + endless}, history.ErrUnreadable, history.ErrUnreadable},
		"no index":         {[]string{table}, nil, nil}, // words are found without
		"other columns": {[]string{"CREATE TABLE history(a, b);" + strings.Replace(fullText, "new.id, new.prompt", "new.a, new.b", 1)},
			history.ErrUnreadable, history.ErrUnreadable},
		"no content": {[]string{table, "CREATE VIRTUAL TABLE history_fts USING fts5(prompt, content='nowhere')",
			"INSERT INTO history VALUES (1, 'fix', 1, '')"}, nil, nil},
		"a view as content": {[]string{table, "CREATE VIEW v AS " + endless,
			"CREATE VIRTUAL TABLE history_fts USING fts5(prompt, content='v')"}, nil, nil},
		"triggers": {[]string{table + fullText, "CREATE TRIGGER more AFTER INSERT ON history BEGIN UPDATE history SET prompt = 'x'; END",
			"INSERT INTO history VALUES (1, 'fix', 1, '')"}, nil, nil},
		"a generated prompt": {[]string{"CREATE TABLE history(id INTEGER PRIMARY KEY, prompt AS (upper(cwd)), created_at, cwd);" + fullText,
			"INSERT INTO history VALUES (1, 1, 'fix')"}, history.ErrUnreadable, history.ErrUnreadable},
		"a value too long": {[]string{table + fullText, "INSERT INTO history VALUES (1, 'fix', 1, zeroblob(17000000))"}, history.ErrTooBig, history.ErrTooBig},
		"too much": {[]string{table + fullText + "CREATE INDEX idx_history_created_at ON history(created_at DESC)", numbers(12) +
			"INSERT INTO history SELECT i, 'fix', i, replace(hex(zeroblob(500000)), '0', char(1)) FROM n"}, history.ErrTooBig, history.ErrTooBig},
		"in no order": {[]string{"CREATE TABLE history(id, prompt, created_at, cwd);" + fullText, // sorted in memory
			numbers(4) + "INSERT INTO history SELECT i, 'fix', 1, zeroblob(15000000) FROM n"}, budget.ErrNoMemory, budget.ErrNoMemory},
		"deep expressions": {[]string{"CREATE TABLE history(id INTEGER PRIMARY KEY, prompt, created_at, cwd DEFAULT (1" +
			strings.Repeat("+1", 500) + "));" + fullText}, history.ErrUnreadable, history.ErrUnreadable},
	} {
		t.Run(name, func(t *testing.T) {
			h := open(t, database(t, c.sql...))
			began := time.Now()
			for query, want := range map[string]error{"": c.list, "fix": c.search} {
				_, err := h.Render(context.Background(), query, nil)
				isLarge := want == history.ErrTooBig || want == budget.ErrNoMemory
				if isLarge && errors.Is(err, history.ErrTooSlow) {
					continue // on a slow machine the time is over before the answer is too big
				}
				require.ErrorIs(t, err, want)
			}
			require.Less(t, time.Since(began), 3*maxTime)
			require.Empty(t, h.turn, "a read keeps its turn")
		})
	}
}

// TestTooSlow: an answer that takes too long ends with a reason, and a wait for others with that of its caller.
func TestTooSlow(t *testing.T) {
	reads := 0
	slow := func(c storagetest.Call) error {
		if c.Op == "ReadAt" {
			reads++
			time.Sleep(30 * time.Millisecond)
		}
		return nil
	}
	h := New(&storagetest.Hooked{Storage: sessiontest.OpenDir(t, database(t, schema18, fill(500))), Before: slow})
	h.limit = 100 * time.Millisecond
	refuses(t, h, "", history.ErrTooSlow)
	require.Less(t, reads, 10, "none after the limit")

	h = open(t, database(t, schema18, fill(3000)))
	h.limit = 2 * time.Millisecond
	refuses(t, h, "", history.ErrTooSlow)
	require.Empty(t, h.turn, "a read keeps its turn")
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	h.turn <- struct{}{}
	_, err := h.Render(ctx, "", nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// TestNotADatabase: files that are none are said to be none.
func TestNotADatabase(t *testing.T) {
	for _, content := range []string{"x", "SQLite format 3\x00", strings.Repeat("\x00", 5000), strings.Repeat("SQLite format 3\x00", 1000)} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, databaseName), []byte(content), 0o644))
		h := open(t, dir)
		refuses(t, h, "", history.ErrUnreadable, "%.20q", content)
		refuses(t, h, `"`, history.ErrUnreadable, "%.20q", content)
	}
}

// TestNoRoom: an answer that does not fit into the budget is refused, and so is a connection; nothing stays counted.
func TestNoRoom(t *testing.T) {
	sessiontest.NotUnderRace(t)
	dir := database(t, schema18, fill(5000))
	h := open(t, dir)
	b := budget.New(2 * budget.Min)
	hold, other := b.Hold(), b.Hold()
	require.NoError(t, other.Resize(b.Limit()-firstMemory-1<<20))
	before := b.Held()
	_, err := h.Render(t.Context(), "", &hold)
	require.ErrorIs(t, err, budget.ErrNoMemory)
	require.Equal(t, before, b.Held())
	got, err := h.Render(t.Context(), "1999*", &hold)
	require.NoError(t, err)
	require.GreaterOrEqual(t, b.Held(), before+int64(len(got.Text)))
	other.Close()
	require.NoError(t, other.Resize(b.Limit()-b.Held()))
	third := b.Hold()
	_, err = h.Render(t.Context(), "word", &third)
	require.ErrorIs(t, err, budget.ErrNoMemory, "not even a connection")
	hold.Close()
	other.Close()
	require.Zero(t, b.Held())
}
