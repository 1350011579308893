package writer

import (
	"testing"
	"time"

	"sessionfs/sessioncore/internal/sessiontest"

	"github.com/stretchr/testify/require"
)

// TestOperatorTimes: a time in each form is read, and an appended entry has one in the form of the last entry.
func TestOperatorTimes(t *testing.T) {
	was := time.Local
	time.Local = time.FixedZone("", 2*3600)
	defer func() { time.Local = was }()
	const ms = 1771237230123
	tests := []struct {
		text string
		ms   int64 // 0: none, so that the header's counts
		now  string
	}{
		{`1771237230.123`, ms, "1772323200.000"},
		{`1771237230.1234567`, ms, "1772323200.000"},
		{`1771237230.1229999`, ms, "1772323200.000"},
		{`1771237230`, ms - 123, "1772323200"},
		{`1.771237230123e9`, ms, "1772323200.000"},
		{`1771237230123`, ms, "1772323200000"},
		{`1771237230123.4`, ms, "1772323200000"},
		{`99999999999`, 99999999999000, "1772323200"},
		{`100000000000`, 100000000000, "1772323200000"},
		{`-1.5`, -1500, "1772323200.000"},
		{`-100000000000`, -100000000000, "1772323200000"},
		{`"2026-02-16T10:20:30.123Z"`, ms, `"2026-03-01T00:00:00.000Z"`},
		{`"2026-02-16T10:20:30.123456+00:00"`, ms, `"2026-03-01T00:00:00.000+00:00"`},
		{`"2026-02-16T11:20:30.123456+01:00"`, ms, `"2026-03-01T00:00:00.000+00:00"`},
		{`"2026-02-16T12:20:30.123456"`, ms, `"2026-03-01T02:00:00.000"`},
		{`"noon"`, 0, "1772323200.000"}, {`true`, 0, "1772323200.000"}, {`null`, 0, "1772323200.000"}, {`[1]`, 0, "1772323200.000"},
		{`1e400`, 0, "1772323200.000"}, {`1e300`, 0, "1772323200.000"},
	}
	for _, test := range tests {
		w := startMemory(t, opHeader+`{"type":"message","id":"a","parent_id":null,"timestamp":`+test.text+`}`+"\n", Options{})
		want := test.ms
		if want == 0 {
			want = 1771237230500
		}
		before := w.content()
		require.Equal(t, want, w.snapshot().Time(0).UnixMilli(), test.text)
		w.adds(`{"type":"custom_info","custom_type":"x"}`)
		require.Equal(t, []string{`{"type":"custom_info","id":"00000001","parent_id":"a","timestamp":` + test.now + `,"custom_type":"x"}`},
			w.added(before), test.text)
	}
}

// TestOperatorContext: the context at the leaf.
func TestOperatorContext(t *testing.T) {
	sessiontest.Page(t, "testdata/context-operator.txt", func(t *testing.T, name, lines, want string) {
		snap := startMemory(t, opHeader+lines, Options{}).snapshot()
		doc, err := snap.Context(t.Context(), sessiontest.Leaf(t, snap), nil)
		require.NoError(t, err)
		require.Equal(t, want, string(sessiontest.ReadObject(t, doc))+"\n", name)
	})
}
