package writer

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// Moving, naming, forking and making sessions of the operator dialect (docs/design.md sections 2, 4 and 9).

// TestLines: the lines that moves, labels and titles add in each dialect; one that is there already adds nothing.
func TestLines(t *testing.T) {
	ctx := t.Context()
	label := func(w *writing, label string) error { return w.SetLabel(ctx, w.session, "a", label) }
	title := func(w *writing, title string) error { return w.SetTitle(ctx, w.session, title) }
	move := func(w *writing, id string) error {
		if id == "" {
			return w.ResetLeaf(ctx, w.session)
		}
		return w.MoveLeaf(ctx, w.session, id)
	}
	const stamp, opStamp = `,"timestamp":"` + plainNow + `"`, `,"timestamp":` + opNow + `,`
	omp := func() *writing { return startMemory(t, plainFile, Options{}) }
	operator := func() *writing { return startMemory(t, opFile, Options{}) }
	for name, test := range map[string]struct {
		start func() *writing
		do    func(w *writing, arg string) error
		args  []string
		want  []string // behind the type
	}{
		"leaf": {omp, move, []string{"b", "a", "a", "", ""}, []string{
			`"custom","customType":"sessionfs/leaf","data":{"targetId":"a"},"id":"00000001","parentId":"a"` + stamp + `}`,
			`"custom","customType":"sessionfs/leaf","data":{"targetId":null},"id":"00000002","parentId":null` + stamp + `}`,
		}},
		"label": {omp, label, []string{"", "L\tx\ud7ff", "L\tx\ud7ff", ""}, []string{
			`"label","id":"00000001","parentId":"b"` + stamp + `,"targetId":"a","label":"L\tx` + "\ud7ff" + `"}`,
			`"label","id":"00000002","parentId":"00000001"` + stamp + `,"targetId":"a"}`,
		}},
		"pi's title": {func() *writing { return startPi(t, plainFile) }, title, []string{"A  name", "A name", "Two\nlines", "", ""}, []string{
			`"session_info","id":"00000001","parentId":"b"` + stamp + `,"name":"A name"}`,
			`"session_info","id":"00000002","parentId":"00000001"` + stamp + `,"name":"Two lines"}`,
			`"session_info","id":"00000003","parentId":"00000002"` + stamp + `,"name":""}`,
		}},
		"operator's leaf": {operator, move, []string{"b", "a", "a", "", "", "b"}, []string{
			`"leaf","id":"00000001","parent_id":"b"` + opStamp + `"target_id":"a"}`,
			`"leaf","id":"00000002","parent_id":"a"` + opStamp + `"target_id":null}`,
			`"leaf","id":"00000003","parent_id":null` + opStamp + `"target_id":"b"}`,
		}},
		"operator's label": {operator, label, []string{"L", "L", ""}, []string{
			`"label","id":"00000001","parent_id":"b"` + opStamp + `"target_id":"a","label":"L"}`,
			`"label","id":"00000002","parent_id":"00000001"` + opStamp + `"target_id":"a","label":null}`,
		}},
		"operator's title": {operator, title, []string{"", " a\ttitle ", "a title", "", "", "\xed\xa0\x80"}, []string{
			`"session_info","id":"00000001","parent_id":"b"` + opStamp + `"name":"a title"}`,
			`"session_info","id":"00000002","parent_id":"00000001"` + opStamp + `"name":""}`,
			`"session_info","id":"00000003","parent_id":"00000002"` + opStamp + `"name":"\ud800"}`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := test.start()
			before := w.content()
			for _, arg := range test.args {
				require.NoError(t, test.do(w, arg))
			}
			for i := range test.want {
				test.want[i] = `{"type":` + test.want[i]
			}
			require.Equal(t, test.want, w.added(before))
			require.ErrorIs(t, w.MoveLeaf(ctx, w.session, "gone"), sessioncore.ErrNotFound)
			require.ErrorIs(t, w.SetLabel(ctx, w.session, "gone", "L"), sessioncore.ErrNotFound)
			require.ErrorIs(t, w.SetLabel(ctx, w.session, "gone", ""), sessioncore.ErrNotFound)
		})
	}
}

// TestOperatorFork: the path without what only points elsewhere, and the labels anew.
func TestOperatorFork(t *testing.T) {
	ctx := context.Background()
	const name = "2026-02-16T10-20-30-500000_s1.jsonl"
	file := opFile +
		`{"type":"label","id":"l","parent_id":"b","timestamp":1771237400,"target_id":"a","label":"A"}` + "\n" +
		`{"type":"session_info","id":"n","parent_id":"l","timestamp":1771237401,"name":"N"}` + "\n" +
		`{"type":"leaf","id":"m","parent_id":"n","timestamp":1771237402,"target_id":"a"}` + "\n" +
		`{"type":"custom_info","id":"c", "parent_id":"m","timestamp":"2026-02-16T10:30:00","custom_type":"under a leaf entry"}` + "\n" +
		`{"type":"label","id":"l2","parent_id":"c","timestamp":1771237403000,"target_id":"c","label":"C"}` + "\n"
	w := startMemory(t, "", Options{Root: "/agent/sessions"})
	putFile(t, w.storage, name, file)
	w.session = w.store.Session(name)
	forked := w.forks("c")
	require.Equal(t, file, w.content())
	require.Regexp(t, `^2026-03-01T00-00-00-000000_[0-9a-f-]{36}\.jsonl$`, forked)
	id := strings.TrimSuffix(forked[len("2026-03-01T00-00-00-000000_"):], ".jsonl")
	const now = `1772323200000`
	require.Equal(t, `{"type":"session_header","id":"`+id+`","timestamp":`+now+`,"cwd":"/home/dev/hives","parent_session":"/agent/sessions/`+name+`"}`+"\n"+
		opUser+opReply+
		`{"type":"session_info","id":"n","parent_id":"b","timestamp":1771237401,"name":"N"}`+"\n"+
		`{"type":"custom_info","id":"c", "parent_id":"n","timestamp":"2026-02-16T10:30:00","custom_type":"under a leaf entry"}`+"\n"+
		`{"type":"label","id":"00000001","parent_id":"c","timestamp":`+now+`,"target_id":"a","label":"A"}`+"\n"+
		`{"type":"label","id":"00000002","parent_id":"00000001","timestamp":`+now+`,"target_id":"c","label":"C"}`+"\n",
		fileContent(t, w.storage, forked))
	sessiontest.Snapshot(t, w.store.Session(forked))
	_, err := w.Fork(ctx, w.session, "gone")
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
	forked = w.forks("m")
	require.Equal(t, 4, strings.Count(fileContent(t, w.storage, forked), "\n")-1, "of a leaf entry what is above it")
}

// TestStoreDialect: where a new session goes, and what it is.
func TestStoreDialect(t *testing.T) {
	const later, earlier = "2026-02-16T10-20-30-500000_s.jsonl", "2026-02-15T10-20-30-500000_s.jsonl"
	tests := []struct {
		name  string
		root  string
		files map[string]string
		dirs  []string
		want  string // the header, with ID, up to the cwd; "" for omp's
	}{
		{"nothing", "/home/u/.omp/agent/sessions", nil, nil, ""},
		{"nothing, of operator", "/home/u/.operator/profiles/p/sessions", nil, nil,
			`{"type":"session_header","id":"ID","timestamp":"2026-03-01T00:00:00.000+00:00"`},
		{"a name that is like it", "/home/u/x.operator/sessions", nil, nil, ""},
		{"scope directories in operator's", "/home/u/.operator/profiles/p/sessions", nil, []string{"--w--"}, ""},
		{"flat", "/data/sessions", map[string]string{later: opHeader}, nil, `{"type":"session_header","id":"ID","timestamp":1772323200.000`},
		{"flat, with artifacts", "", map[string]string{later: strings.Replace(opHeader, "1771237230.5", "1771237230500", 1)},
			[]string{"2026-02-16T10-20-30-500000_s"}, `{"type":"session_header","id":"ID","timestamp":1772323200000`},
		{"flat, and what is no session", "",
			map[string]string{earlier: strings.Replace(opHeader, "1771237230.5", `"2026-02-16T10:20:30Z"`, 1), later: "x\n", ".x.jsonl": plainHeader},
			nil, `{"type":"session_header","id":"ID","timestamp":"2026-03-01T00:00:00.000Z"`},
		{"the latest tells", "", map[string]string{earlier: opHeader, later: plainHeader}, nil, ""},
		{"nested is omp's", "/x/.operator/sessions", map[string]string{"p/" + later: opHeader}, nil, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			files := memory.New()
			for name, content := range test.files {
				putFile(t, files, name, content)
			}
			for _, dir := range test.dirs {
				putFile(t, files, dir+"/x", "")
			}
			w := startWriting(t, files, "", Options{Root: test.root})
			name, err := w.NewSession(context.Background(), NewSession{Create: true, CWD: "/w"})
			require.NoError(t, err)
			text := fileContent(t, w.storage, name)
			if test.want == "" {
				require.Regexp(t, `^--w--/2026-03-01T00-00-00-000Z_[0-9a-f-]{36}\.jsonl$`, name)
				require.True(t, strings.HasPrefix(text, `{"type":"session","version":3,`))
				return
			}
			require.Regexp(t, `^2026-03-01T00-00-00-000000_[0-9a-f-]{36}\.jsonl$`, name)
			id := strings.TrimSuffix(name[len("2026-03-01T00-00-00-000000_"):], ".jsonl")
			require.Equal(t, strings.Replace(test.want, "ID", id, 1)+`,"cwd":"/w"}`+"\n", text)
		})
	}
}

// Appending to sessions of the operator dialect (docs/design.md sections 2 and 9).

// opNow is the tests' clock as opFile writes times.
const opNow = `1772323200.000`

// TestOperatorAppendFillsIn: members that a line leaves out are filled in, as the session has it.
func TestOperatorAppendFillsIn(t *testing.T) {
	sessiontest.Page(t, "testdata/filled-operator.txt", func(t *testing.T, name, give, want string) {
		w := startMemory(t, opFile, Options{})
		ids := w.adds(give)
		require.Equal(t, want, strings.Join(append(w.added(opFile), w.leaf(), ""), "\n"), name)
		require.Len(t, ids, 1, name)
		require.Empty(t, problemsOf(t, w.snapshot()), name)
	})
}

// TestOperatorValidEntries: every type of docs/format.md, Operator dialect, and its documentation's own example.
func TestOperatorValidEntries(t *testing.T) {
	takes(t, starting(t, opFile), "testdata/taken-operator.jsonl")
}

// TestOperatorFieldAtFault: the error names the field; a key of the other dialect, the right one.
func TestOperatorFieldAtFault(t *testing.T) {
	refuses(t, starting(t, opFile), "testdata/refused-operator.txt")
	for _, line := range []string{
		`{"type":"custom_info","custom_type":"x","parent_id":"gone"}`, `{"type":"custom_info","custom_type":"x","parent_id":""}`,
		`{"type":"leaf","target_id":"gone"}`, `{"type":"leaf","target_id":""}`, `{"type":"label","target_id":"gone"}`,
		`{"type":"branch","from_id":"gone","summary":"s"}`,
	} {
		w := startMemory(t, opFile, Options{})
		_, err := w.append(line)
		require.ErrorIs(t, err, sessioncore.ErrNotFound, line)
		require.Equal(t, opFile, w.content())
	}
	for _, line := range []string{`{"type":"leaf","target_id":"a"}`, `{"type":"session_info","name":"n"}`, `{"type":"branch","from_id":"a","summary":""}`} {
		w := startMemory(t, plainFile, Options{})
		_, err := w.append(line)
		require.ErrorIs(t, err, sessioncore.ErrInvalid, "of an omp session: %s", line)
	}
}
