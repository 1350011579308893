package writer

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"

	"github.com/stretchr/testify/require"
)

// Reading the operator dialect (docs/format.md, Operator dialect).

const (
	opHeader = `{"type":"session_header","id":"s1","timestamp":1771237230.5,"cwd":"/home/dev/hives"}` + "\n"
	opUser   = `{"type":"message","id":"a","parent_id":null,"timestamp":1771237260.125,"message":{"role":"user","content":"one"}}` + "\n"
	opReply  = `{"type":"message","id":"b","parent_id":"a","timestamp":1771237320.25,"message":{"role":"user","content":"two"}}` + "\n"
	opFile   = opHeader + opUser + opReply
)

// TestHeaders: what makes a session, and of which dialect.
func TestHeaders(t *testing.T) {
	tests := []struct {
		file string
		want *sessioncore.Dialect
	}{
		{plainHeader, sessioncore.OMP},
		{opHeader, sessioncore.Operator},
		{`{"id":"","type":"session_he\u0061der"}`, sessioncore.Operator},
		{"rubbish\n\n" + opHeader, sessioncore.Operator},
		{"\xEF\xBB\xBF" + opHeader, sessioncore.Operator},
		{string(titleSlot("x", titleByUser, plainNow)) + plainHeader, sessioncore.OMP},
		{string(titleSlot("x", titleByUser, plainNow)) + opHeader, nil}, // a slot is omp's
		{`{"type":"session_header"}`, nil},
		{`{"type":"session_header","id":7}`, nil},
		{`{"type":"sessionHeader","id":"x"}`, nil},
		{`"session_header"`, nil},
		{opUser + opHeader, nil},
	}
	for _, test := range tests {
		w := startMemory(t, test.file, Options{})
		_, probeErr := w.session.Probe(context.Background())
		snap, err := w.session.Acquire(context.Background())
		if test.want == nil {
			require.ErrorIs(t, err, sessioncore.ErrNotSession, test.file)
			require.ErrorIs(t, probeErr, sessioncore.ErrNotSession, test.file)
			continue
		}
		require.NoError(t, err, test.file)
		require.NoError(t, probeErr, test.file)
		require.Same(t, test.want, snap.Dialect(), test.file)
		snap.Release()
	}
}

// TestDialectsKeepApart: keys and types of the other dialect mean nothing.
func TestDialectsKeepApart(t *testing.T) {
	w := startMemory(t, opFile+
		`{"type":"message","id":"c","parentId":"a","parent_id":"b","timestamp":1,"message":{"role":"hookMessage","content":"x"}}`+"\n"+
		`{"type":"branch_summary","id":"d","parentId":"c","fromId":"a","summary":"s"}`+"\n"+
		`{"type":"label","id":"e","parent_id":"c","targetId":"a","label":"L"}`+"\n"+
		`{"type":"custom","customType":"sessionfs/leaf","data":{"targetId":"a"},"id":"f","parent_id":"e"}`+"\n", Options{})
	snap := w.snapshot()
	require.Equal(t, "b", w.parentOfID("c"))
	require.Equal(t, "", w.parentOfID("d"))
	require.Equal(t, "f", w.leaf())
	require.Empty(t, snap.Labels())
	require.Equal(t, []sessioncore.EntryType{sessioncore.TypeMessage, sessioncore.TypeUnknown, sessioncore.TypeLabel, sessioncore.TypeUnknown},
		[]sessioncore.EntryType{snap.Kind(2), snap.Kind(3), snap.Kind(4), snap.Kind(5)})
	require.Equal(t, sessioncore.CurrentVersion, snap.Version(), "nothing migrates")

	w = startMemory(t, plainFile+`{"type":"mode_change","id":"o","parentId":"b","mode":"plan"}`+"\n"+ // as only omp writes it
		`{"type":"leaf","id":"c","parentId":"b","parent_id":"a","target_id":"a","targetId":"a"}`+"\n"+
		`{"type":"session_info","id":"d","parentId":"c","name":"N"}`+"\n", Options{})
	require.Equal(t, "b", w.parentOfID("c"))
	require.Equal(t, "d", w.leaf())
	title, err := w.snapshot().Title()
	require.NoError(t, err)
	require.Empty(t, title)
}

// leafLines are operator entries without what is always there: lines of type, or of leaf with a target.
func opLine(n int, kind, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"type":"%s","id":"%c","parent_id":null,"timestamp":%d%s}`, kind, 'c'+n, 1771237400+n, fields) + "\n"
}

// TestOperatorLeaf: the target of the last leaf entry that has one; the entry itself never.
func TestOperatorLeaf(t *testing.T) {
	const info = "custom_info"
	type line struct{ kind, fields string }
	tests := []struct {
		name  string
		lines []line // with the ids c, d, …
		want  string
	}{
		{"none", nil, "b"},
		{"to an entry", []line{{"leaf", `"target_id":"a"`}}, "a"},
		{"to none", []line{{"leaf", `"target_id":null`}}, ""},
		{"unknown", []line{{"leaf", `"target_id":"gone"`}}, "b"},
		{"absent", []line{{"leaf", ``}}, "b"},
		{"no string", []line{{"leaf", `"target_id":7`}}, "b"},
		{"itself", []line{{"leaf", `"target_id":"c"`}}, "b"},
		{"what comes later", []line{{"leaf", `"target_id":"d"`}, {"leaf", `"target_id":"gone"`}}, "b"},
		{"unknown after a move", []line{{"leaf", `"target_id":"a"`}, {"leaf", `"target_id":"gone"`}}, "a"},
		{"absent after none", []line{{"leaf", `"target_id":null`}, {"leaf", ``}}, ""},
		{"twice", []line{{"leaf", `"target_id":null`}, {"leaf", `"target_id":"a"`}}, "a"},
		{"then an entry", []line{{"leaf", `"target_id":"a"`}, {info, ``}}, "d"},
		{"an entry, then absent", []line{{"leaf", `"target_id":"a"`}, {info, ``}, {"leaf", ``}}, "d"},
		{"a label's target is no entry", []line{{"label", `"target_id":"gone","label":"x"`}, {"leaf", `"target_id":"gone"`}}, "c"},
		{"to a leaf entry, as its documentation has it", []line{{"leaf", `"target_id":"a"`}, {"leaf", `"target_id":"c"`}}, "c"},
		{"of repeated keys the last", []line{{"leaf", `"target_id":null,"target_id":"a"`}}, "a"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := opFile
			for i, l := range test.lines {
				file += opLine(i, l.kind, l.fields)
			}
			w := startMemory(t, file, Options{})
			require.Equal(t, test.want, w.leaf())

			w = startMemory(t, opFile, Options{}) // growing, a line at a time
			old := w.snapshot()
			for i, l := range test.lines {
				_, err := w.opts.Journal.Append(plainName, []byte(opLine(i, l.kind, l.fields)))
				require.NoError(t, err)
				w.snapshot()
			}
			require.Equal(t, test.want, w.leaf())
			leaf := sessiontest.Leaf(t, old)
			require.Equal(t, sessioncore.Entry(1), leaf, "an older snapshot's")
		})
	}
}

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

// TestOperatorTimeOfHeader: where no entry tells how times are written the header does.
func TestOperatorTimeOfHeader(t *testing.T) {
	for stamp, now := range map[string]string{
		`,"timestamp":1771237230`: "1772323200", `,"timestamp":1771237230000`: "1772323200000", `,"timestamp":"2026-02-16T10:20:30Z"`: `"` + plainNow + `"`,
		`,"timestamp":null`: `"2026-03-01T00:00:00.000+00:00"`, ``: `"2026-03-01T00:00:00.000+00:00"`,
	} {
		header := `{"type":"session_header","id":"x"` + stamp + "}\n"
		w := startMemory(t, header, Options{})
		w.adds(`{"type":"custom_info","custom_type":"x"}`)
		require.Contains(t, w.added(header)[0], `"timestamp":`+now+`,`, stamp)
	}
}

func TestOperatorTitle(t *testing.T) {
	tests := []struct{ lines, want string }{
		{"", ""},
		{`"name":"one"`, "one"},
		{`"name":"one"|"name":"two"`, "two"},
		{`"name":"one"|"name":""`, ""},
		{`"name":"one"|"name":null`, ""},
		{`"name":"one"|`, ""},
		{`"name":"one"|"name":7`, ""},
		{`"name":"\ud83d\ude00 \ud800"`, "😀 \xed\xa0\x80"},
	}
	for _, test := range tests {
		w := startMemory(t, strings.Replace(opFile, `"cwd"`, `"title":"of no meaning","cwd"`, 1), Options{})
		w.snapshot()
		if test.lines != "" {
			for i, fields := range strings.Split(test.lines, "|") {
				_, err := w.opts.Journal.Append(plainName, []byte(opLine(i, "session_info", fields)))
				require.NoError(t, err)
				w.snapshot() // grown by one
			}
		}
		grown, err := w.snapshot().Title()
		require.NoError(t, err)
		require.Equal(t, test.want, grown, test.lines)
		whole, err := startMemory(t, w.content(), Options{}).snapshot().Title()
		require.NoError(t, err)
		require.Equal(t, test.want, whole, test.lines)
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
