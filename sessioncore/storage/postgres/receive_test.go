package postgres

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/postgres/postgrestest"
	"sessionfs/sessioncore/storage/storagetest"
)

// receive returns a file into which content has come in pieces, the last one first.
func receive(t *testing.T, s *Storage, content string) storage.Incoming {
	t.Helper()
	in, err := s.Receive("")
	require.NoError(t, err)
	t.Cleanup(func() { _ = in.Close() })
	const piece = 100_000
	for at := len(content) / piece * piece; at >= 0; at -= piece {
		_, err := in.WriteAt([]byte(content[at:min(at+piece, len(content))]), int64(at))
		require.NoError(t, err)
	}
	return in
}

// longLines is a text that is not inserted at once, with letters of several bytes.
func longLines() string { return strings.Repeat(lines(50)+"ä€😀\n", insertAtOnce/4000) }

// TestReceive: what is received is no row until it is published, then as a whole and with its time; one that is not
// published leaves nothing.
func TestReceive(t *testing.T) {
	table, s := openTable(t, Options{Temporary: t.TempDir()})
	modified := time.Unix(1_700_000_000, 123456789).UnixNano()
	for name, content := range map[string]string{"empty": "", "short": "ä\n", "slot": slotLine("A title") + "{}\n", "long": longLines(), "long slot": slotLine("T") + longLines()} {
		in := receive(t, s.Storage, content)
		left, err := os.ReadDir(s.opts.Temporary)
		require.NoError(t, err)
		require.Empty(t, left, "it has no name")
		require.Equal(t, content, storagetest.ReadObject(t, in))
		require.NoError(t, in.SetAttributes(storage.Attributes{Modified: &modified}))
		require.Zero(t, rowsOf(t, table))
		unlock := storagetest.Lock(t, s, name)
		st, err := in.Publish(name)
		require.NoError(t, err)
		require.NoError(t, unlock())
		require.Equal(t, storagetest.Stat(t, s, name), st)
		require.Equal(t, modified/1e6*1e6, st.Modified)
		require.Equal(t, content, table.Content(t, prefix+name))
		require.Equal(t, content, storagetest.Read(t, s, name))
		require.Equal(t, strings.Contains(name, "slot"), titled(t, table, prefix+name))
		require.Equal(t, content, storagetest.ReadObject(t, in), "it can still be read")
		other := open(t, table.Source("&prefix="+prefix), Options{})
		require.Equal(t, content, storagetest.Read(t, other, name))

		later := modified + int64(time.Hour)
		require.NoError(t, s.SetAttributes(name, storage.Attributes{Modified: &later}))
		require.Equal(t, later/1e6*1e6, storagetest.Stat(t, s, name).Modified)
		require.True(t, st.SameObject(storagetest.Stat(t, s, name).Token))
		s.sent.count(s.sql.setTime)
		mode := uint32(0o644)
		require.NoError(t, s.SetAttributes(name, storage.Attributes{Modified: &later, Mode: &mode}))
		require.Zero(t, s.sent.count(s.sql.setTime), "it has that time")
		require.Equal(t, content, storagetest.Read(t, s, name))
		table.Remove(t, prefix+name)

		in = receive(t, s.Storage, content)
		require.NoError(t, in.Truncate(0))
		require.NoError(t, in.Close())
		require.Zero(t, rowsOf(t, table))
	}
}

func slotLine(text string) string {
	at := "2026-02-16T11:00:00.000Z"
	return string(title{text: &text, updated: &at}.line())
}

func rowsOf(t *testing.T, table *postgrestest.Table) (n int) {
	t.Helper()
	require.NoError(t, table.QueryRow(context.Background(), `SELECT count(*) FROM `+table.Name).Scan(&n))
	return n
}

// titled reports whether the title columns of a row are set.
func titled(t *testing.T, table *postgrestest.Table, path string) (is bool) {
	t.Helper()
	require.NoError(t, table.QueryRow(context.Background(), `SELECT title IS NOT NULL AND title_updated_at IS NOT NULL FROM `+table.Name+` WHERE path = $1`, path).Scan(&is))
	return is
}

// TestReceiveStrangeSlot: a slot that the client would write otherwise is shown as it is.
func TestReceiveStrangeSlot(t *testing.T) {
	table, s := openTable(t, Options{})
	slot := slotLine("A title")
	strange := strings.Replace(strings.Replace(slot, `"v":1,`, `"v": 1,`, 1), `  "}`, ` "}`, 1)
	_, ok := parseSlot([]byte(strange))
	require.True(t, ok)
	in := receive(t, s.Storage, strange+"{}\n")
	_, err := in.Publish("a")
	require.NoError(t, err)
	require.Equal(t, strange+"{}\n", storagetest.Read(t, s, "a"))
	require.False(t, titled(t, table, prefix+"a"))
}

// TestPublishReplacesNothing: what has the name is kept, also what came since anybody looked, and the file can still be
// published as another one. What a row cannot hold is refused.
func TestPublishReplacesNothing(t *testing.T) {
	table, s := openTable(t, Options{Fresh: time.Hour})
	for _, content := range []string{"new\n", longLines()} {
		in := receive(t, s.Storage, content)
		storagetest.Stat(t, s, "")
		table.Write(t, prefix+"a", "there\n")
		_, err := in.Publish("a") // nothing is locked
		require.ErrorIs(t, err, fs.ErrExist)
		require.ErrorIs(t, err, storage.ErrStale)
		require.Equal(t, "there\n", table.Content(t, prefix+"a"))
		_, err = in.Publish("../x")
		require.ErrorIs(t, err, storage.ErrBadName)
		_, err = in.Publish("none/x")
		require.ErrorIs(t, err, fs.ErrNotExist)
		unlock := storagetest.Lock(t, s, "b")
		_, err = in.Publish("b")
		require.NoError(t, err)
		require.NoError(t, unlock())
		require.Equal(t, content, table.Content(t, prefix+"b"))
		for _, bad := range []string{"\xff", "\x00", "\xe2\x82"} {
			for _, at := range []int{len(content) / 2, len(content)} {
				_, err := receive(t, s.Storage, content[:at]+bad).Publish("c")
				require.ErrorIs(t, err, unix.EINVAL, "%q", bad)
			}
		}
		table.Remove(t, prefix+"a")
		table.Remove(t, prefix+"b")
		require.NoError(t, s.lookNow(t.Context()))
	}
	require.Zero(t, rowsOf(t, table))
	in := receive(t, s.Storage, "")
	_, err := in.WriteAt([]byte("x"), maxContent)
	require.ErrorIs(t, err, unix.EFBIG)
	require.ErrorIs(t, in.Truncate(maxContent+1), unix.EFBIG)
}

// TestPublishTakesNoMemory: a large file passes through, and the whole of it is in memory at no time.
func TestPublishTakesNoMemory(t *testing.T) {
	table, s := openTable(t, Options{})
	in, err := s.Receive("")
	require.NoError(t, err)
	defer in.Close()
	piece, sum := []byte(strings.Repeat(lines(50), 1000)), sha256.New()
	for at := int64(0); at < 64<<20; at += int64(len(piece)) {
		_, err := in.WriteAt(piece, at)
		require.NoError(t, err)
		sum.Write(piece)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = in.Publish("a")
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(4<<20))
	var same bool
	require.NoError(t, table.QueryRow(t.Context(), `SELECT sha256(convert_to(content, 'UTF8')) = $1 FROM `+table.Name, sum.Sum(nil)).Scan(&same))
	require.True(t, same)
}

// TestRowSecurity: where COPY is not allowed, a row is made in one statement if it is not too large, and otherwise refused
// with PostgreSQL's reason.
func TestRowSecurity(t *testing.T) {
	table, _ := openTable(t, Options{})
	schema, _, _ := strings.Cut(table.Name, ".")
	table.Do(t, `CREATE ROLE `+schema+`_one LOGIN`)
	t.Cleanup(func() { table.Do(t, `DROP OWNED BY `+schema+`_one; DROP ROLE `+schema+`_one`) })
	table.Do(t, `GRANT USAGE ON SCHEMA `+schema+` TO `+schema+`_one`)
	table.Do(t, `GRANT SELECT, INSERT, UPDATE ON `+table.Name+` TO `+schema+`_one`)
	table.Do(t, `ALTER TABLE `+table.Name+` ENABLE ROW LEVEL SECURITY`)
	table.Do(t, `CREATE POLICY mine ON `+table.Name+` USING (starts_with(path, '`+prefix+`'))`)
	s := open(t, strings.Replace(table.Source("&prefix="+prefix), "tester@", schema+"_one@", 1), Options{})
	_, err := receive(t, s.Storage, "one\n").Publish("a")
	require.NoError(t, err)
	require.Equal(t, "one\n", table.Content(t, prefix+"a"))
	_, err = receive(t, s.Storage, longLines()).Publish("b")
	require.ErrorIs(t, err, unix.EPERM)
	require.ErrorContains(t, err, "row-level security")
	require.Equal(t, 1, rowsOf(t, table))
}

// TestMadeDirs: a directory that was made is there without a row, and goes when it is removed empty.
func TestMadeDirs(t *testing.T) {
	table, s := openTable(t, Options{})
	require.NoError(t, s.Mkdir("p", 0o755))
	require.ErrorIs(t, s.Mkdir("p", 0o755), fs.ErrExist)
	require.ErrorIs(t, s.Mkdir("q/r", 0o755), fs.ErrNotExist)
	require.ErrorIs(t, s.Mkdir("\xff", 0o755), unix.EINVAL)
	at := int64(1_700_000_000_123456789)
	require.NoError(t, s.SetAttributes("p", storage.Attributes{Modified: &at}))
	st := storagetest.Stat(t, s, "p")
	require.Equal(t, at, st.Modified)
	table.Write(t, prefix+"p/a", "x\n")
	require.ErrorIs(t, s.RemoveIf("p", storagetest.Stat(t, s, "p").Token), unix.ENOTEMPTY)
	table.Remove(t, prefix+"p/a")
	require.True(t, st.SameObject(storagetest.Stat(t, s, "p").Token))
	require.ErrorIs(t, s.RemoveIf("p", storage.Token{}), storage.ErrStale)
	require.NoError(t, s.RemoveIf("p", st.Token))
	_, err := s.Stat("p")
	require.ErrorIs(t, err, fs.ErrNotExist)
}
