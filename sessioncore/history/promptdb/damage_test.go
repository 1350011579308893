package promptdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore/history"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// memoryFiles are the contents of files.
type memoryFiles map[string][]byte

// sound returns the files of a database: a part of the prompts is in the log alone.
func sound(t testing.TB) memoryFiles {
	dir := database(t, schema18, fill(40))
	conn := connect(t, dir)
	defer conn.Close()
	run(t, conn, "PRAGMA wal_autocheckpoint=0; INSERT INTO history(prompt) VALUES ('fix what is in the log'); INSERT INTO history(prompt) VALUES ('fix it')")
	files := memoryFiles{}
	for _, name := range []string{databaseName, walName} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		files[name] = content
	}
	return files
}

// searches go through the index in different ways; the first lists all.
var searches = []string{"", "fix", "w*", `"fix it" OR word`, "NEAR(word 1) NOT fix", "^word"}

// check reads files of any content: it ends, soon, with JSON lines or with a reason. It returns how many lines each
// answer had, for those that were lines.
func check(t testing.TB, files memoryFiles, searches ...string) (lines []int) {
	stored := memory.New()
	for name, content := range files {
		require.NoError(t, stored.WriteFile(name, content))
	}
	h := New(stored)
	for _, match := range searches {
		got, err := h.Render(context.Background(), match, nil)
		if err != nil {
			known := errors.Is(err, history.ErrUnreadable) || errors.Is(err, history.ErrTooBig) || errors.Is(err, history.ErrQuery) && match != ""
			require.True(t, known, "%q: %v", match, err)
			continue
		}
		lines = append(lines, bytes.Count(got.Text, []byte("\n")))
		for line := range strings.Lines(string(got.Text)) {
			require.True(t, json.Valid([]byte(line)), line)
		}
	}
	require.Empty(t, h.turn, "a read keeps its turn")
	return lines
}

// damaged returns a copy of files with a few bytes changed, most of them where the structure is.
func damaged(files memoryFiles, seed int64) memoryFiles {
	r := rand.New(rand.NewSource(seed))
	files = maps.Clone(files)
	for _, name := range [][]string{{databaseName}, {walName}, {databaseName, walName}}[r.Intn(3)] {
		b := bytes.Clone(files[name])
		for range 1 + r.Intn(30) {
			at := r.Intn(len(b))
			if r.Intn(2) == 0 {
				at = at&^4095 + r.Intn(200) // the head of a page
			}
			at = min(at, len(b)-1)
			switch r.Intn(4) {
			case 0:
				b[at] ^= 1 << r.Intn(8)
			case 1:
				b[at] = byte(r.Intn(256))
			case 2:
				b[at] = []byte{0, 0xff, 0x7f, 0x80, 1}[r.Intn(5)]
			case 3:
				copy(b[at:], b[r.Intn(len(b)):][:1]) // what is right elsewhere
			}
		}
		if r.Intn(10) == 0 {
			b = b[:r.Intn(len(b))]
		}
		if name == walName && r.Intn(2) == 0 {
			resum(b)
		}
		files[name] = b
	}
	return files
}

// resum makes the checksums of a log right again, so that what it has is read (SQLite's file format, section 4.2).
func resum(wal []byte) {
	const header, frameHeader, page = 32, 24, 4096
	if len(wal) < header {
		return
	}
	var sum [2]uint32
	add := func(b []byte) {
		for ; len(b) >= 8; b = b[8:] {
			sum[0] += le(b) + sum[1]
			sum[1] += le(b[4:]) + sum[0]
		}
	}
	put := func(b []byte) {
		for i, s := range sum {
			b[4*i], b[4*i+1], b[4*i+2], b[4*i+3] = byte(s>>24), byte(s>>16), byte(s>>8), byte(s)
		}
	}
	copy(wal, []byte{0x37, 0x7f, 0x06, 0x82, 0, 0x2d, 0xe2, 0x18, 0, 0, page >> 8, 0})
	add(wal[:24])
	put(wal[24:])
	for frame := wal[header:]; len(frame) >= frameHeader+page; frame = frame[frameHeader+page:] {
		copy(frame[8:16], wal[16:24])
		add(frame[:8])
		add(frame[frameHeader:][:page])
		put(frame[16:])
	}
}

func le(b []byte) uint32 {
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// FuzzSearch: any text with a word in it has an answer of JSON lines, any other that or a reason.
func FuzzSearch(f *testing.F) {
	for _, text := range append(searches, "README.md", "git-commit", "*", "\"", "a AND", "prompt:x", "- NOT", "{a b}:c", "\x00", "\xff", "ſ\u0301",
		"NEAR(a b, 99999999999)", "fix)") {
		f.Add(text)
	}
	files := sound(f)
	f.Fuzz(func(t *testing.T, text string) {
		if answers := check(t, files, text); len(history.WordsOf(text)) > 0 && len(answers) != 1 {
			t.Fatalf("%q has words and no answer", text)
		}
	})
}

// FuzzDamage: files of any damage are read with an answer, or refused with a reason.
func FuzzDamage(f *testing.F) {
	for seed := range int64(40) {
		f.Add(seed, "fix")
	}
	good := sound(f)
	require.Equal(f, []int{42, 2, 41, 41, 0, 40}, check(f, good, searches...), "lines in each answer")
	f.Fuzz(func(t *testing.T, seed int64, text string) { check(t, damaged(good, seed), "", text) })
}
