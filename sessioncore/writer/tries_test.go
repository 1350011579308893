package writer

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// raced is a storage in which a program without the lock replaces the file while the first append is under way, by
// what it makes of the content with that append.
type raced struct {
	brokenStorage
	mem   *memory.Storage
	makes func(content string) string
	err   error // what that append fails with
	times int
}

func (r *raced) Append(name string, data []byte) (storage.Stat, error) {
	st, err := r.mem.Append(name, data)
	if r.times++; r.times > 1 || err != nil {
		return st, err
	}
	b := make([]byte, st.Size)
	obj, err := r.mem.Open(name)
	if err != nil {
		return storage.Stat{}, err
	}
	defer obj.Close()
	if err := storage.ReadFull(obj, b, 0); err != nil {
		return storage.Stat{}, err
	}
	if err := r.mem.WriteFile(name, []byte(r.makes(string(b)))); err != nil {
		return storage.Stat{}, err
	}
	return storage.Stat{}, r.err
}

func startRaced(t *testing.T, makes func(content string) string, err error) *writing {
	mem := memory.New()
	putFile(t, mem, plainName, plainFile)
	r := &raced{brokenStorage: brokenStorage{Storage: mem}, mem: mem, makes: makes, err: err}
	return startWriting(t, r, "", Options{})
}

// TestAppendBesideRewriter: a program without the lock replaces the file while we append. What it has taken over is
// not written again, what it has not is written with the same id, and what it added stays.
func TestAppendBesideRewriter(t *testing.T) {
	const (
		mode    = `{"type":"mode_change","mode":"plan"}`
		none    = `{"type":"mode_change","mode":"none"}`
		mine    = `{"type":"mode_change","id":"mine","parentId":"b","mode":"plan"}`
		foreign = `{"type":"mode_change","id":"foreign","parentId":"b","timestamp":"` + plainNow + `","mode":"x"}` + "\n"
	)
	whole := func(s string) string { return s }
	before := func(string) string { return plainFile }
	first := func(s string) string { return s[:strings.Index(s[len(plainFile):], "\n")+len(plainFile)+1] }
	for name, test := range map[string]struct {
		makes func(string) string
		lines []string
		ids   []string
		file  string // the ids in the file in the end
		leaf  string
		err   error
	}{
		"taken over":            {whole, []string{mode}, []string{"00000001"}, "a b 00000001", "00000001", nil},
		"not taken over":        {before, []string{mode}, []string{"00000001"}, "a b 00000001", "00000001", nil},
		"both taken over":       {whole, []string{mode, none}, []string{"00000001", "00000002"}, "a b 00000001 00000002", "00000002", nil},
		"the first taken over":  {first, []string{mode, none}, []string{"00000001", "00000002"}, "a b 00000001 00000002", "00000002", nil},
		"something was added":   {func(s string) string { return s + foreign }, []string{mode}, []string{"00000001"}, "a b 00000001 foreign", "foreign", nil},
		"something else":        {func(string) string { return plainFile + foreign }, []string{mode}, []string{"00000001"}, "a b foreign 00000001", "00000001", nil},
		"written in other ways": {func(s string) string { return strings.ReplaceAll(s, `"plan"`, ` "pl\u0061n" `) }, []string{mode}, []string{"00000001"}, "a b 00000001", "00000001", nil},
		"in another format": {func(s string) string { return string(titleSlot("T", titleByUser, plainNow)) + s }, []string{mode},
			[]string{"00000001"}, "a b 00000001", "00000001", nil},
		"with an id":                   {whole, []string{mine}, []string{"mine"}, "a b mine", "mine", nil},
		"with an id, in other ways":    {func(s string) string { return strings.ReplaceAll(s, `"plan"`, ` "pl\u0061n" `) }, []string{mine}, []string{"mine"}, "a b mine", "mine", nil},
		"with an id, not taken over":   {before, []string{mine}, []string{"mine"}, "a b mine", "mine", nil},
		"with an id, before another":   {first, []string{mine, mode}, []string{"mine", "00000001"}, "a b mine 00000001", "00000001", nil},
		"the id of something else":     {func(string) string { return plainFile + strings.Replace(foreign, "foreign", "mine", 1) }, []string{mine}, nil, "a b mine", "mine", sessioncore.ErrExists},
		"with something that is wrong": {whole, []string{mode, "{}"}, []string{"00000001"}, "a b 00000001", "00000001", sessioncore.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			w := startRaced(t, test.makes, storage.ErrStale)
			ids, err := w.append(test.lines...)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.ids, ids)
			snap := w.snapshot()
			var got []string
			for e := range sessioncore.Entry(snap.Len()) {
				id, _ := snap.ID(e)
				got = append(got, id)
			}
			require.Equal(t, test.file, strings.Join(got, " "))
			require.Equal(t, test.leaf, w.leaf())
		})
	}
}

// TestLabelAndLeafBesideRewriter: the same for writes of which one line says all.
func TestLabelAndLeafBesideRewriter(t *testing.T) {
	for name, do := range map[string]func(w *writing) error{
		"label": func(w *writing) error { return w.SetLabel(context.Background(), w.session, "a", "L") },
		"leaf":  func(w *writing) error { return w.MoveLeaf(context.Background(), w.session, "a") },
	} {
		for carried, makes := range map[string]func(string) string{
			"taken over":     func(s string) string { return s },
			"not taken over": func(string) string { return plainFile },
		} {
			t.Run(name+", "+carried, func(t *testing.T) {
				w := startRaced(t, makes, storage.ErrStale)
				require.NoError(t, do(w))
				require.Equal(t, 3, w.snapshot().Len())
			})
		}
	}
}

// TestAppendLeftInPart: a program without the lock wrote behind an append that failed, which thus cannot be taken back.
// The lines that are whole took effect, and the error is that of the next one.
func TestAppendLeftInPart(t *testing.T) {
	const (
		mode    = `{"type":"mode_change","mode":"plan"}`
		foreign = "\n" + `{"type":"mode_change","id":"foreign","parentId":"b","timestamp":"` + plainNow + `","mode":"x"}` + "\n"
	)
	upTo := func(lines, bytes int) func(string) string { // so many of our lines, and a part of the next one
		return func(s string) string {
			at := len(plainFile)
			for range lines {
				at += strings.Index(s[at:], "\n") + 1
			}
			return s[:at+bytes] + foreign
		}
	}
	for name, test := range map[string]struct {
		left func(string) string
		ids  []string
		err  error
	}{
		"a torn line":         {upTo(0, 20), nil, unix.ENOSPC},
		"a line":              {upTo(1, 0), []string{"00000001"}, unix.ENOSPC},
		"a line and a half":   {upTo(1, 20), []string{"00000001"}, unix.ENOSPC},
		"two lines":           {upTo(2, 0), []string{"00000001", "00000002"}, unix.ENOSPC},
		"all, with a newline": {upTo(3, 0), []string{"00000001", "00000002", "00000003"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := startRaced(t, test.left, unix.ENOSPC)
			ids, err := w.append(mode, mode, mode)
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.ids, ids)
			require.Equal(t, 3+len(ids), w.snapshot().Len())
			more, err := w.append([]string{mode, mode, mode}[len(ids):]...) // as a program does after a short write
			require.NoError(t, err)
			require.Len(t, more, 3-len(ids))
			require.Equal(t, 6, w.snapshot().Len())
		})
	}
}
