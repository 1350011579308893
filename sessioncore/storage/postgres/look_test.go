package postgres

import (
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// TestLook: changes by others show, also with wrong clocks; with the trigger without a look at the whole table.
func TestLook(t *testing.T) {
	for _, noted := range []bool{false, true} {
		table := postgrestest.Shared(t).NewTable(t)
		table.Write(t, prefix+"old", "was here\n")
		if noted {
			installTrigger(t, table)
			installTrigger(t, table) // a second time changes nothing
		}
		s := open(t, table.Source("&prefix="+prefix), Options{})
		require.Equal(t, 1, s.sent.count(s.sql.changed))
		for _, change := range []string{
			`INSERT INTO TABLE VALUES ('` + prefix + `p/a', 'one', 1), ('` + prefix + `p/b', 'one', 1), ('/home/you/a', 'one', 1)`,
			`UPDATE TABLE SET content = content || 'two' WHERE path LIKE '%/a'`,
			`UPDATE TABLE SET path = '` + prefix + `q/a' WHERE path = '` + prefix + `p/a'`,
			`UPDATE TABLE SET title = 'x'`,
			`DELETE FROM TABLE WHERE path LIKE '%/b'`,
		} {
			table.Do(t, strings.ReplaceAll(change, "TABLE", table.Name))
			want := inTable(t, table)
			delete(want, "/home/you/a")
			require.Equal(t, want, shown(s), change)
		}
		require.ErrorIs(t, storagetest.Reads["Stat"](s, "p"), fs.ErrNotExist, "nothing is in it any more")
		before := storagetest.Stat(t, s, "q/a")
		table.Do(t, `UPDATE `+table.Name+` SET content = content || 'more', mtime_ms = 0`)
		after := storagetest.Stat(t, s, "q/a")
		require.Equal(t, before.Size+4, after.Size, "though its clock is far behind")
		require.True(t, before.SameObject(after.Token))
		require.Greater(t, after.Changed, before.Changed)
		require.Zero(t, after.Modified)
		require.Equal(t, "onetwomore", storagetest.Read(t, s, "q/a"))
		require.Equal(t, noted, s.sent.count(s.sql.changed) == 0)
		table.Do(t, `TRUNCATE `+table.Name)
		require.Empty(t, shown(s))
	}
}

// TestLookDuringTransactions: what a transaction changed that was under way during a look is not missed.
func TestLookDuringTransactions(t *testing.T) {
	for _, noted := range []bool{false, true} {
		table := postgrestest.Shared(t).NewTable(t)
		if noted {
			installTrigger(t, table)
		}
		s := open(t, table.Source("&prefix="+prefix), Options{})
		table.Write(t, prefix+"a.jsonl", "one\n")
		slow := table.Hold(t, `UPDATE `+table.Name+` SET content = content || 'slow'`)
		table.Write(t, prefix+"b.jsonl", "two\n") // a later transaction, which is seen
		require.Equal(t, int64(4), storagetest.Stat(t, s, "a.jsonl").Size)
		require.Equal(t, int64(4), storagetest.Stat(t, s, "b.jsonl").Size)
		require.NoError(t, slow.Commit(t.Context()))
		require.Equal(t, int64(8), storagetest.Stat(t, s, "a.jsonl").Size)
	}
}

// setFresh sets the option Fresh of s when no look is under way: a look reads it at its end.
func setFresh(s opened, fresh time.Duration) {
	for {
		s.look.mu.Lock()
		running := s.look.running
		if running == nil {
			s.opts.Fresh = fresh
			s.look.mu.Unlock()
			return
		}
		s.look.mu.Unlock()
		<-running
	}
}

// TestLookRests: a look at the whole table is valid for a multiple of the time that it took, one at noted changes for a short
// time. After a slow look callers do not wait for the next one.
func TestLookRests(t *testing.T) {
	table, s := openTable(t, Options{Fresh: time.Hour})
	require.Equal(t, time.Hour, s.look.good.Sub(s.look.at))
	setFresh(s, time.Nanosecond)
	began := time.Now()
	require.NoError(t, s.lookNow(t.Context()))
	duration := s.look.good.Sub(s.look.at) / rest
	require.Positive(t, duration)
	require.LessOrEqual(t, duration, time.Since(began))
	setFresh(s, time.Hour)
	installTrigger(t, table)
	require.NoError(t, s.lookNow(t.Context()))
	require.Equal(t, freshNoted, s.look.good.Sub(s.look.at))
	// wait returns the time that a caller waits for a look after one that was slow or not.
	wait := func(slow bool) time.Duration {
		s.look.mu.Lock()
		s.look.at = time.Now()
		s.look.good = time.Time{}
		s.look.slow = slow
		s.look.mu.Unlock()
		asked := time.Now()
		running, until := s.startLook(asked)
		<-running
		return until.Sub(asked)
	}
	require.Zero(t, wait(true))
	require.Positive(t, wait(false))
}

// TestRowsThatAreNotShown: a row with a path that is no usable name is not shown, and logged once.
func TestRowsThatAreNotShown(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	for _, path := range []string{"", "/", "../x.jsonl", "a/../../x.jsonl", "./x", "a//b", "a/"} {
		table.Write(t, prefix+path, "odd")
	}
	table.Write(t, prefix+"a.jsonl", "a file")
	table.Write(t, prefix+"a.jsonl/b.jsonl", "below a file")
	s := open(t, table.Source("&prefix="+prefix), Options{})
	items, err := storage.List(s, "")
	require.NoError(t, err)
	require.Equal(t, []storage.Item{{Name: "a.jsonl", Kind: storage.KindFile}}, items)
	require.Equal(t, 1, strings.Count(s.log.String(), "a row is not shown"))
	_, err = s.Stat("a.jsonl/b.jsonl")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestHostileNames: a name is a parameter, whatever is in it.
func TestHostileNames(t *testing.T) {
	table, s := openTable(t, Options{})
	table.Write(t, prefix+"safe.jsonl", "safe\n")
	for _, name := range []string{
		`'; DROP TABLE ` + table.Name + `; --.jsonl`, `"quoted".jsonl`, `back\slash.jsonl`, `$1.jsonl`, `%s.jsonl`, "new\nline.jsonl", `?.jsonl`,
		`日本.jsonl`, `_%.jsonl`,
	} {
		_, err := s.Replace(name, storage.Replacement{Write: storagetest.Content(`'); DELETE FROM ` + table.Name + `; --` + "\n")})
		require.NoError(t, err, name)
		unlock := storagetest.Lock(t, s, name)
		_, err = s.Append(name, []byte(`$1 '' \' ; --`))
		require.NoError(t, err, name)
		require.NoError(t, unlock())
		want := `'); DELETE FROM ` + table.Name + `; --` + "\n" + `$1 '' \' ; --`
		require.Equal(t, want, storagetest.Read(t, s, name))
		require.Equal(t, want, table.Content(t, prefix+name))
	}
	_, err := s.Replace("not utf8 \xff.jsonl", storage.Replacement{Write: storagetest.Content("x")})
	require.Error(t, err)
	require.Equal(t, "safe\n", storagetest.Read(t, s, "safe.jsonl"))
}

// TestOpen: the prefix comes from the rows of the table, or has to be given. A table that is not one of sessions is refused.
func TestOpen(t *testing.T) {
	table := postgrestest.Shared(t).NewTable(t)
	schema, _, _ := strings.Cut(table.Name, ".")
	table.Do(t, `CREATE TABLE `+schema+`.other (path TEXT, content BYTEA)`)
	table.Do(t, `CREATE TABLE `+schema+`.old (path TEXT PRIMARY KEY, content TEXT NOT NULL, mtime_ms BIGINT NOT NULL)`)
	const a, b = "/home/a/sessions/", "/home/b/sessions/"
	for _, c := range []struct{ row, table, more, prefix, refused string }{
		{"", table.Name, "", "", "give prefix="},
		{a + "p/x.jsonl", table.Name, "", a, ""},
		{a + "q/sub/x.jsonl", table.Name, "", a, ""},
		{b + "p/x.jsonl", table.Name, "&prefix=/home/b/", "/home/b/", ""},
		{"", table.Name, "&prefix=/home/b", "", "has no slash at its end, so it is no directory; there are: " + a + ", " + b},
		{"", table.Name, "&prefix=/c/", "", "begins with that; there are: " + a},
		{"", schema + ".none", "&prefix=x/", "", "there is no table"},
		{"", schema + ".other", "&prefix=x/", "", "not one of sessions"},
		{"", schema + ".old", "&prefix=x/", "", "ADD IF NOT EXISTS title TEXT"},
	} {
		if c.row != "" {
			table.Write(t, c.row, "")
		}
		src, err := ParseSource(strings.Replace(table.Source(c.more), table.Name, c.table, 1))
		require.NoError(t, err)
		s, err := Open(t.Context(), src, Options{})
		if c.refused != "" {
			require.ErrorContains(t, err, c.refused)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.prefix, s.Prefix())
		s.Close()
	}
}
