package writer

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/report"
)

func TestSetLabel(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, plainFile, Options{})
	require.NoError(t, w.SetLabel(ctx, w.session, "a", ""))
	require.Empty(t, w.added(plainFile), "nothing to clear")
	require.NoError(t, w.SetLabel(ctx, w.session, "a", "L\tx\ud7ff"))
	require.NoError(t, w.SetLabel(ctx, w.session, "a", "L\tx\ud7ff"))
	require.Equal(t, []string{
		`{"type":"label","id":"00000001","parentId":"b","timestamp":"` + plainNow + `","targetId":"a","label":"L\tx` + "\ud7ff" + `"}`,
	}, w.added(plainFile))
	require.Equal(t, "00000001", w.leaf())
	require.Equal(t, "L\tx\ud7ff", w.snapshot().LabelOf("a"))

	before := w.content()
	require.NoError(t, w.SetLabel(ctx, w.session, "a", ""))
	require.Equal(t, []string{
		`{"type":"label","id":"00000002","parentId":"00000001","timestamp":"` + plainNow + `","targetId":"a"}`,
	}, w.added(before))
	require.Empty(t, w.snapshot().Labels())
	require.ErrorIs(t, w.SetLabel(ctx, w.session, "gone", "L"), sessioncore.ErrNotFound)
	require.ErrorIs(t, w.SetLabel(ctx, w.session, "gone", ""), sessioncore.ErrNotFound)
}

// TestLabelOfNoEntry: a label of a missing entry, which the file labels shows, can be written back and removed.
func TestLabelOfNoEntry(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, plainFile+`{"type":"label","id":"l","parentId":"b","timestamp":"`+plainNow+`","targetId":"gone","label":"L"}`+"\n", Options{})
	before := w.content()
	require.NoError(t, w.SetLabel(ctx, w.session, "gone", "L"))
	require.Empty(t, w.added(before))
	require.ErrorIs(t, w.SetLabel(ctx, w.session, "gone", "M"), sessioncore.ErrNotFound)
	require.NoError(t, w.SetLabel(ctx, w.session, "gone", ""))
	require.Empty(t, w.snapshot().Labels())
}

func TestParseLabelLine(t *testing.T) {
	tests := []struct{ line, id, label string }{
		{"a", "a", ""}, {"a L", "a", "L"}, {"a\tL", "a", "L"}, {"a  L ", "a", " L "}, {"a b\tL M", "a b", "L M"},
		{`a\tb c\n\\d\r`, "a\tb", "c\n\\d\r"}, {"\tL", "", "L"}, {`a \ud800`, "a", "\xed\xa0\x80"},
		{`a \ud83d\ude00`, "a", "😀"}, {"a \xff", "a", "�"}, {"a\t", "a", ""},
	}
	for _, test := range tests {
		id, label, err := ParseLabelLine(test.line)
		require.NoError(t, err, test.line)
		require.Equal(t, test.id, id, test.line)
		require.Equal(t, test.label, label, test.line)
	}
	for _, line := range []string{`a \`, `a \x`, `a \u0041`, `a \ud80`, `\q a`} {
		_, _, err := ParseLabelLine(line)
		require.ErrorIs(t, err, sessioncore.ErrInvalid, line)
	}
}

// TestLabelsRoundTrip: writing back what the file labels shows writes nothing; in an empty session it sets the same
// labels.
func TestLabelsRoundTrip(t *testing.T) {
	ctx := context.Background()
	ids := []string{"plain", "with blank", "tab\there", `back\slash`, "line\nbreak", "\xed\xa0\x80", "\xed\xa0\x80x\xed\xb0\x80", " ", "é😀"}
	var file strings.Builder
	file.WriteString(plainHeader)
	for _, id := range ids {
		file.Write(append(rawjson.AppendQuoted([]byte(`{"type":"custom","customType":"x","parentId":null,"id":`), id), "}\n"...))
	}
	w := startMemory(t, file.String(), Options{})
	for i, id := range ids {
		require.NoError(t, w.SetLabel(ctx, w.session, id, ids[len(ids)-1-i]+" "+id))
	}
	read := labelsOf(t, w.snapshot())
	require.Equal(t, len(ids), strings.Count(read, "\n"))
	before := w.content()
	w.writeLabels(read)
	require.Equal(t, before, w.content())

	other := startMemory(t, file.String(), Options{})
	other.writeLabels(read)
	require.Equal(t, read, labelsOf(t, other.snapshot()))
}

func labelsOf(t *testing.T, s *sessioncore.Snapshot) string {
	d, err := report.Labels(s)
	require.NoError(t, err)
	defer d.Close()
	b, err := io.ReadAll(io.NewSectionReader(d, 0, d.Size()))
	require.NoError(t, err)
	return string(b)
}

func (w *writing) writeLabels(lines string) {
	for line := range strings.Lines(lines) {
		id, label, err := ParseLabelLine(strings.TrimSuffix(line, "\n"))
		require.NoError(w.t, err)
		require.NoError(w.t, w.SetLabel(context.Background(), w.session, id, label), "%q", line)
	}
}
