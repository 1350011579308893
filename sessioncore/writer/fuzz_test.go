package writer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"path"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/clients"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// FuzzNewSession: a line makes a session whose header says what the line said, in a directory directly below the root, or
// nothing and a documented error.
func FuzzNewSession(f *testing.F) {
	for _, line := range []string{
		"/home/dev/pi", "/with blank ", "relative", "/", "/..//x/.", `{"cwd":"/w","title":"T","parentSession":"p"}`, ` {"cwd":"/w","title":null} `,
		`{"cwd":"/w","cwd":"/x"}`, `{"cwd":"\/\u0077","title":" a\u001b[1m "}`, `{"cwd":7}`, `{`, "/a\x00b", "/a\xff", "/" + strings.Repeat("x", 300),
		`{"cwd":"/\ud800"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if strings.IndexByte(string(line), '\n') >= 0 {
			return // two lines
		}
		spec, err := ParseNewSession(line)
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrInvalid)
			return
		}
		require.True(t, path.IsAbs(spec.CWD) && utf8.ValidString(spec.CWD) && !strings.ContainsAny(spec.CWD, "\x00\n"), "%q", spec.CWD)
		spec.Create = true
		files := memory.New()
		store := sessioncore.NewStore(files)
		defer store.Close()
		name, err := New(store, Options{Journal: files}).NewSession(context.Background(), spec)
		if err != nil {
			require.True(t, len(clients.AbsoluteScope(path.Clean(spec.CWD))) > 200 || errors.Is(err, syscall.ENOTDIR), "%q: %v", spec.CWD, err)
			return
		}
		require.Equal(t, 1, strings.Count(name, "/"), name)
		var header struct{ Type, CWD, Title, ParentSession string }
		text := fileContent(t, files, name)
		first, _, err := bufio.NewReader(strings.NewReader(text)).ReadLine()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(first, &header), text)
		if header.Type == "title" { // the slot
			require.Equal(t, byte('\n'), text[slotSize-1])
			require.NoError(t, json.Unmarshal([]byte(strings.SplitN(text, "\n", 3)[1]), &header))
		}
		require.Equal(t, path.Clean(spec.CWD), header.CWD)
		snap := sessiontest.Snapshot(t, store.Session(name))
		require.Zero(t, snap.Len())
		title, err := snap.Title()
		require.NoError(t, err)
		require.Equal(t, cleanTitle(spec.Title), title)
	})
}

// FuzzSetTitle: a title is set cleaned, or cut to fit the slot, and nothing else of the file changes; again it writes
// nothing.
func FuzzSetTitle(f *testing.F) {
	slotted := string(titleSlot("old", titleByUser, plainNow)) + plainFile
	for _, title := range []string{"", "x", " a\x1b[1m\u0085  title\n ", "\xff\xed\xa0\x80\u2028", strings.Repeat("€", 99), strings.Repeat("\"\\", 150)} {
		for _, file := range []string{plainFile, slotted, opFile, oldFile} {
			f.Add(file, title)
		}
	}
	f.Fuzz(func(t *testing.T, file, title string) {
		if file == "" {
			return
		}
		w := startMemory(t, file, Options{})
		before, err := w.session.Acquire(context.Background())
		if err != nil {
			return
		}
		defer before.Release()
		if err := w.SetTitle(context.Background(), w.session, title); err != nil {
			require.True(t, errors.Is(err, sessioncore.ErrInvalid) || errors.Is(err, sessioncore.ErrTooBig), "%v", err)
			require.Equal(t, file, w.content())
			return
		}
		after := w.snapshot()
		got, err := after.Title()
		require.NoError(t, err)
		want := cleanTitle(title)
		_, hasSlot := after.SlotRange()
		require.True(t, got == want || hasSlot && strings.HasPrefix(want, got), "%q became %q", title, got)
		require.False(t, strings.ContainsFunc(got, func(r rune) bool { return r < 0x20 || r >= 0x7F && r < 0xA0 }), "%q", got)
		require.Equal(t, shownEntries(t, before), shownEntries(t, after)[:before.Len()])
		if got == want {
			text := w.content()
			require.NoError(t, w.SetTitle(context.Background(), w.session, title))
			require.Equal(t, text, w.content(), "the same title writes nothing")
		}
	})
}

// FuzzParseLabelLine: a line that is accepted is shown as a line that says the same.
func FuzzParseLabelLine(f *testing.F) {
	for _, line := range []string{"a b", "a\tb c", "a", "", "\t", `a\tb	c\\\n`, `a	\u001b\ud800`, `a \q`, "\xff \xfe", `a	\u00`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		id, label, err := ParseLabelLine(line)
		if err != nil {
			require.ErrorIs(t, err, sessioncore.ErrInvalid)
			return
		}
		shown := names.AppendLabelField(append(names.AppendLabelField(nil, id), '\t'), label)
		require.True(t, utf8.Valid(shown), "%q", shown)
		require.False(t, strings.ContainsFunc(string(shown), func(r rune) bool { return r < 0x20 && r != '\t' || r == 0x7F }), "%q", shown)
		id2, label2, err := ParseLabelLine(string(shown))
		require.NoError(t, err)
		require.Equal(t, [2]string{id, label}, [2]string{id2, label2})
	})
}

// FuzzAppend: whatever is appended to whatever session, either nothing changes and the error is a
// documented one, or there is one line more, which reads as one more entry, and every earlier byte is
// as it was.
func FuzzAppend(f *testing.F) {
	for _, seed := range []string{
		`{"type":"message","message":{"role":"user","content":"hi"}}`, testAnswer, `{"type":"custom","customType":"x","data":{"partialJson":1,"a":[]}}`,
		"{\"type\":\"mode_change\",\"mode\":\"\xff\"}", `{"type":"label","targetId":"a","label":"\ud800"}`,
		`{"type":"mode_change",` + "\n" + `"mode":"x","id":"y"}`,
		`{"type":"custom","customType":"x","content":[{"type":"image","data":"` + longBase64 + `"}]}`, `{"type":"branch_summary","fromId":"root","summary":""}`,
		`{"type":"mode_change","mode":"x","type":"mode_change","id":"q","id":"\ud800"}`, `{"parentId":"a","type":"mode_change","mode":"x"} `, `{}`,
		`{"type":"session"}`,
		`{"type":"leaf","target_id":"a"}`, `{"type":"leaf","target_id":null}`, `{"type":"branch","from_id":null,"summary":""}`,
		`{"type":"custom_info","custom_type":"x","parent_id":"a","timestamp":1e9}`,
		`{"type":"compaction","summary":"s","first_kept_entry_id":"a"}`, `{"type":"label","target_id":"b","label":null}`,
		`{"type":"session_info","name":"\ud800"}`,
	} {
		f.Add(plainFile, seed)
		f.Add(opFile, seed)
		f.Add(opHeader+`{"torn":`, seed)
		f.Add(plainHeader+`{"torn":`, seed)
		f.Add(oldFile, seed)
	}
	f.Fuzz(func(t *testing.T, file, line string) {
		if file == "" {
			return
		}
		w := startMemory(t, file, Options{})
		before, err := w.session.Acquire(context.Background())
		if err != nil {
			return
		}
		defer before.Release()
		ids, err := w.append(line)
		after := w.snapshot()
		if err != nil {
			require.Empty(t, ids)
			require.Equal(t, file, w.content())
			require.True(t, errors.Is(err, sessioncore.ErrInvalid) || errors.Is(err, sessioncore.ErrExists) ||
				errors.Is(err, sessioncore.ErrNotFound) || errors.Is(err, sessioncore.ErrTooBig), "%v", err)
			return
		}
		require.Len(t, ids, 1)
		require.Equal(t, before.Len()+1, after.Len())
		e, err := after.Find(ids[0])
		require.NoError(t, err)
		require.Equal(t, sessioncore.Entry(before.Len()), e)
		text, err := after.ShownText(e)
		require.NoError(t, err)
		require.True(t, json.Valid(text) && utf8.Valid(text), "%q", text)
		require.True(t, strings.HasSuffix(w.content(), string(text)+"\n"))
		if before.Version() < sessioncore.CurrentVersion {
			require.Equal(t, sessioncore.CurrentVersion, after.Version())
			require.Equal(t, shownEntries(t, before), shownEntries(t, after)[:before.Len()])
			return
		}
		require.True(t, strings.HasPrefix(w.content(), file))
		require.Equal(t, shownEntries(t, before), shownEntries(t, after)[:before.Len()])
	})
}
