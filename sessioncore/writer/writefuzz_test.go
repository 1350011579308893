package writer

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
)

// FuzzAppend: whatever is appended to whatever session, either nothing changes and the error is a
// documented one, or there is one line more, which reads as one more entry, and every earlier byte is
// as it was.
func FuzzAppend(f *testing.F) {
	for _, seed := range []string{
		`{"type":"message","message":{"role":"user","content":"hi"}}`, testAnswer, `{"type":"custom","customType":"x","data":{"partialJson":1,"a":[]}}`,
		"{\"type\":\"mode_change\",\"mode\":\"\xff\"}", `{"type":"label","targetId":"a","label":"\ud800"}`, `{"type":"mode_change",` + "\n" + `"mode":"x","id":"y"}`,
		`{"type":"custom","customType":"x","content":[{"type":"image","data":"` + longBase64 + `"}]}`, `{"type":"branch_summary","fromId":"root","summary":""}`,
		`{"type":"mode_change","mode":"x","type":"mode_change","id":"q","id":"\ud800"}`, `{"parentId":"a","type":"mode_change","mode":"x"} `, `{}`, `{"type":"session"}`,
		`{"type":"leaf","target_id":"a"}`, `{"type":"leaf","target_id":null}`, `{"type":"branch","from_id":null,"summary":""}`, `{"type":"custom_info","custom_type":"x","parent_id":"a","timestamp":1e9}`,
		`{"type":"compaction","summary":"s","first_kept_entry_id":"a"}`, `{"type":"label","target_id":"b","label":null}`, `{"type":"session_info","name":"\ud800"}`,
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
			require.True(t, errors.Is(err, sessioncore.ErrInvalid) || errors.Is(err, sessioncore.ErrExists) || errors.Is(err, sessioncore.ErrNotFound) || errors.Is(err, sessioncore.ErrTooBig), "%v", err)
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
