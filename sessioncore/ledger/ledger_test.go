package ledger

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// session is a session with charges, which counts how often they are read.
type session struct {
	charges []agents.Charge
	reads   int
	isText  bool // only its text tells them
	err     error
}

// Charge implements agents.Charging.
func (s *session) Charge(_ context.Context, to agents.Ledger) (isWhole bool, err error) {
	s.reads++
	to.Begin()
	if len(s.charges) > 1 { // as of a session that is reread
		to.Charge(&s.charges[1])
		to.Begin()
	}
	for i := range s.charges {
		to.Charge(&s.charges[i])
	}
	return !s.isText, s.err
}

// collector collects charges. It implements agents.Ledger.
type collector []agents.Charge

// Begin implements agents.Ledger.
func (c *collector) Begin() { *c = nil }

// Charge implements agents.Ledger.
func (c *collector) Charge(of *agents.Charge) {
	one := *of
	one.Model = append(rawjson.Value(nil), of.Model...)
	*c = append(*c, one)
}

// randomCharges returns charges with anything in them that a file keeps.
func randomCharges(rng *rand.Rand, n int) []agents.Charge {
	charges := make([]agents.Charge, n)
	for i := range charges {
		c := &charges[i]
		c.ID = fmt.Sprintf("id-%x", rng.Uint64N(1<<rng.UintN(64)))
		c.At = int64(rng.Uint64())
		c.Provider = []string{"anthropic", "openai", ""}[rng.IntN(3)]
		c.Model = rawjson.Value(fmt.Sprintf(`"model-%d"`, rng.IntN(3)))
		c.Usage.Input = rng.Int64N(1 << 40)
		c.Usage.Output = rng.Int64N(1000)
		c.Usage.CacheRead = -rng.Int64N(1000)
		c.Usage.Total = rng.Int64()
		c.Usage.Fast = rng.IntN(2) == 0
		if rng.IntN(3) == 0 {
			c.Usage.CacheWrite = rng.Int64()
			c.Usage.CacheWrite1h = rng.Int64()
			c.Usage.Premium = rng.Float64()
			c.Usage.Ended = rng.Int64()
		}
	}
	return charges
}

// oldToken is a token of a file that changed long ago.
func oldToken(inode uint64) storage.Token {
	return storage.Token{
		Device:   7,
		Inode:    inode,
		Size:     worthwhile,
		Modified: 1_700_000_000_000_000_001,
		Changed:  1_700_000_000_000_000_002,
	}
}

// bill returns the charges of a session through a file.
func bill(t *testing.T, b *Book, token storage.Token, s *session) []agents.Charge {
	return billNamed(t, b, "s", token, s)
}

// billNamed is bill for a session with a name.
func billNamed(t *testing.T, b *Book, name string, token storage.Token, s *session) []agents.Charge {
	found := collector{{ID: "of an earlier try"}}
	isWhole, err := b.Charge(t.Context(), name, token, s, &found)
	require.NoError(t, err)
	require.Equal(t, !s.isText, isWhole)
	return found
}

// pathOf returns the path of a test's file.
func pathOf(t *testing.T) string { return filepath.Join(t.TempDir(), "cache", "charges") }

// saved returns the path of a file with the charges of a session in the file with inode 1.
func saved(t *testing.T, s *session) string {
	path := pathOf(t)
	b := Open(path, "maker")
	bill(t, b, oldToken(1), s)
	require.NoError(t, b.Save())
	require.FileExists(t, path)
	return path
}

// TestKept: charges are those of the session, read once, also by a later command.
func TestKept(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	path := pathOf(t)
	sessions := make([]session, 50)
	for i := range sessions {
		sessions[i].charges = randomCharges(rng, rng.IntN(30))
	}
	for range 3 {
		b := Open(path, "maker")
		for range 2 {
			for i := range sessions {
				found := bill(t, b, oldToken(uint64(i)), &sessions[i])
				require.Equal(t, len(sessions[i].charges), len(found))
				for n := range found {
					require.Equal(t, sessions[i].charges[n], found[n])
				}
				require.Equal(t, 1, sessions[i].reads)
			}
		}
		require.NoError(t, b.Save())
	}
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), dir.Mode().Perm())
	var none *Book
	bill(t, none, oldToken(1), &sessions[1])
	require.Equal(t, 2, sessions[1].reads)
	require.NoError(t, none.Save())
}

// TestNotKept: what may change without a sign, and what a client recorded in money, is read each time.
func TestNotKept(t *testing.T) {
	one := []agents.Charge{{ID: "a", At: 1, Model: rawjson.Value(`"m"`)}}
	young := oldToken(1)
	young.Changed = time.Now().UnixNano()
	ofRows := oldToken(1)
	ofRows.Device = 0
	withCost := []agents.Charge{{ID: "a", Cost: []byte(`"sessionCost":{}`)}, {ID: "b"}}
	withCalls := []agents.Charge{{ID: "a", Calls: []byte(`{"model":"x"}`)}}
	for _, c := range []struct {
		name  string
		token storage.Token
		of    session
	}{
		{"young", young, session{charges: one}},
		{"rows", ofRows, session{charges: one}},
		{"money", oldToken(1), session{charges: withCost}},
		{"calls", oldToken(1), session{charges: withCalls}},
		{"text", oldToken(1), session{charges: one, isText: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := Open(pathOf(t), "maker")
			bill(t, b, c.token, &c.of)
			bill(t, b, c.token, &c.of)
			require.Equal(t, 2, c.of.reads)
			require.Empty(t, b.sessions)
		})
	}
	t.Run("error", func(t *testing.T) {
		b := Open(pathOf(t), "maker")
		s := &session{charges: one, err: errors.New("read error")}
		_, err := b.Charge(t.Context(), "s", oldToken(1), s, &collector{})
		require.ErrorIs(t, err, s.err)
		require.Empty(t, b.sessions)
	})
}

// TestChanged: a session whose file is in another state is read again, and its old charges are forgotten.
func TestChanged(t *testing.T) {
	s := &session{charges: randomCharges(rand.New(rand.NewPCG(3, 4)), 5)}
	b := Open(saved(t, s), "maker")
	changed := oldToken(1)
	for n, change := range []func(){
		func() { changed.Modified++ },
		func() { changed.Changed++ },
		func() { changed.Inode++ },
		func() { changed.Device++ },
	} {
		change()
		bill(t, b, changed, s)
		bill(t, b, changed, s)
		require.Equal(t, n+2, s.reads)
	}
	require.Len(t, b.sessions, 3) // of three objects
	changed.Size++                // which is known only once a session was converted
	bill(t, b, changed, s)
	require.Equal(t, 5, s.reads)
}

// TestDamaged: of a file that is damaged anywhere, cut, or of another maker nothing wrong is told, and the
// session is read instead.
func TestDamaged(t *testing.T) {
	s := &session{charges: randomCharges(rand.New(rand.NewPCG(5, 6)), 6)}
	path := saved(t, s)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	check := func(text []byte, maker string, isKnown bool) {
		require.NoError(t, os.WriteFile(path, text, 0o600))
		s.reads = 0
		require.Equal(t, s.charges, bill(t, Open(path, maker), oldToken(1), s))
		require.Equal(t, isKnown, s.reads == 0)
	}
	check(whole, "maker", true)
	check(whole, "another", false)
	check(nil, "maker", false)
	for i := range whole {
		check(whole[:i], "maker", false)
		for _, bit := range []byte{1, 0x80} {
			text := append([]byte(nil), whole...)
			text[i] ^= bit
			check(text, "maker", false)
		}
	}
	check(append(whole, 0xff), "maker", true) // the rows before
}

// TestUnsafe: a file that others may write, or that is no file, is not read, and never followed.
func TestUnsafe(t *testing.T) {
	s := &session{charges: randomCharges(rand.New(rand.NewPCG(7, 8)), 6)}
	path := saved(t, s)
	isKnown := func() bool {
		s.reads = 0
		bill(t, Open(path, "maker"), oldToken(1), s)
		return s.reads == 0
	}
	require.True(t, isKnown())
	require.NoError(t, os.Chmod(path, 0o620))
	require.False(t, isKnown())
	require.NoError(t, os.Chmod(path, 0o600))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(path, 1234, -1))
		require.False(t, isKnown())
		require.NoError(t, os.Chown(path, 0, -1))
	}
	require.NoError(t, os.Truncate(path, maxFile+1))
	require.False(t, isKnown())
	target := path + ".target"
	require.NoError(t, os.Rename(path, target))
	require.NoError(t, os.Symlink(target, path))
	require.False(t, isKnown())
	require.NoError(t, os.Remove(path))
	require.NoError(t, unix.Mkfifo(path, 0o600))
	require.False(t, isKnown())

	dir := filepath.Dir(path)
	require.NoError(t, os.Rename(dir, dir+".real"))
	require.NoError(t, os.Symlink(dir+".real", dir))
	b := Open(path, "maker")
	bill(t, b, oldToken(1), s)
	require.ErrorIs(t, b.Save(), errNotOurs)
}

// TestSave: the file is written where that is worth it, by one command at a time, and a killed one hinders none.
func TestSave(t *testing.T) {
	s := &session{charges: randomCharges(rand.New(rand.NewPCG(9, 1)), 6)}
	path := pathOf(t)
	b := Open(path, "maker")
	small := oldToken(1)
	small.Size = worthwhile - 1
	bill(t, b, small, s)
	require.NoError(t, b.Save())
	require.NoDirExists(t, filepath.Dir(path))
	bill(t, b, oldToken(2), s)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	other := path + ".new"
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	require.NoError(t, b.Save())
	require.NoFileExists(t, path, "another command writes it")
	long := time.Now().Add(-2 * abandoned)
	require.NoError(t, os.Chtimes(other, long, long))
	require.NoError(t, b.Save())
	require.FileExists(t, path)
	require.NoFileExists(t, other)
	require.NoError(t, os.Remove(path))
	require.NoError(t, b.Save())
	require.NoFileExists(t, path, "it is written")
	b.saved = 3 * worthwhile
	bill(t, b, oldToken(3), s)
	require.NoError(t, b.Save())
	require.NoFileExists(t, path, "it takes longer than to read the session")

	for of, one := range b.sessions {
		one.used = today() - maxIdle - int64(of.inode%2) // 1 and 3 are one day too old
		b.sessions[of] = one
	}
	b.saved = 0
	require.NoError(t, b.Save())
	b = Open(path, "maker")
	require.Len(t, b.sessions, 1)
	for of, one := range b.sessions {
		one.used--
		b.sessions[of] = one
	}
	bill(t, b, oldToken(2), s) // it is in use
	b.saved = 0
	b.unsaved = worthwhile
	require.NoError(t, b.Save())
	require.Len(t, Open(path, "maker").sessions, 1)

	large := &session{charges: []agents.Charge{{ID: string(make([]byte, maxFile))}}}
	bill(t, b, oldToken(4), large)
	require.NoError(t, b.Save())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(worthwhile))
}

// TestSeveralInFile: the sessions in one file, which has one token, have charges of their own.
func TestSeveralInFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 3))
	path := pathOf(t)
	own := session{charges: randomCharges(rng, 5)}
	subagents := session{charges: randomCharges(rng, 7)}
	for range 2 {
		b := Open(path, "maker")
		for range 2 {
			require.Equal(t, own.charges, billNamed(t, b, "own", oldToken(1), &own))
			require.Equal(t, subagents.charges, billNamed(t, b, "agent-1", oldToken(1), &subagents))
		}
		require.NoError(t, b.Save())
	}
	require.Equal(t, 1, own.reads)
	require.Equal(t, 1, subagents.reads)
}
