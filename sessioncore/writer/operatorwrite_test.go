package writer

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage/dir/dirtest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// Moving, naming, forking and making sessions of the operator dialect (docs/design.md sections 2, 4 and 9).

func TestOperatorMoveLeaf(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, opFile, Options{})
	require.NoError(t, w.MoveLeaf(ctx, w.session, "b"))
	require.Empty(t, w.added(opFile), "it is there already")
	require.NoError(t, w.MoveLeaf(ctx, w.session, "a"))
	require.NoError(t, w.MoveLeaf(ctx, w.session, "a"))
	require.NoError(t, w.ResetLeaf(ctx, w.session))
	require.NoError(t, w.ResetLeaf(ctx, w.session))
	require.Equal(t, "", w.leaf())
	require.NoError(t, w.MoveLeaf(ctx, w.session, "b"))
	require.Equal(t, []string{
		`{"type":"leaf","id":"00000001","parent_id":"b","timestamp":` + opNow + `,"target_id":"a"}`,
		`{"type":"leaf","id":"00000002","parent_id":"a","timestamp":` + opNow + `,"target_id":null}`,
		`{"type":"leaf","id":"00000003","parent_id":null,"timestamp":` + opNow + `,"target_id":"b"}`,
	}, w.added(opFile))
	require.ErrorIs(t, w.MoveLeaf(ctx, w.session, "gone"), sessioncore.ErrNotFound)
	ids, err := w.append(`{"type":"custom_info","custom_type":"x"}`)
	require.NoError(t, err)
	require.Equal(t, "b", w.parentOfID(ids[0]))
	checkAsDocumented(t, w.content(), w.snapshot())

	w = startMemory(t, opFile, Options{LeafMemory: true})
	require.NoError(t, w.MoveLeaf(ctx, w.session, "a"))
	require.Equal(t, "a", w.leaf())
	require.Empty(t, w.added(opFile))
}

func TestOperatorSetLabel(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, opFile, Options{})
	require.NoError(t, w.SetLabel(ctx, w.session, "a", "L"))
	require.NoError(t, w.SetLabel(ctx, w.session, "a", "L"))
	require.NoError(t, w.SetLabel(ctx, w.session, "a", ""))
	require.Equal(t, []string{
		`{"type":"label","id":"00000001","parent_id":"b","timestamp":` + opNow + `,"target_id":"a","label":"L"}`,
		`{"type":"label","id":"00000002","parent_id":"00000001","timestamp":` + opNow + `,"target_id":"a","label":null}`,
	}, w.added(opFile))
	require.ErrorIs(t, w.SetLabel(ctx, w.session, "gone", "L"), sessioncore.ErrNotFound)
}

func TestOperatorSetTitle(t *testing.T) {
	ctx := context.Background()
	w := startMemory(t, opFile, Options{})
	require.NoError(t, w.SetTitle(ctx, w.session, ""))
	require.Empty(t, w.added(opFile))
	for _, title := range []string{" a\ttitle ", "a title", "", ""} {
		require.NoError(t, w.SetTitle(ctx, w.session, title))
	}
	require.Equal(t, []string{
		`{"type":"session_info","id":"00000001","parent_id":"b","timestamp":` + opNow + `,"name":"a title"}`,
		`{"type":"session_info","id":"00000002","parent_id":"00000001","timestamp":` + opNow + `,"name":""}`,
	}, w.added(opFile))
	require.ErrorIs(t, w.SetTitle(ctx, w.session, strings.Repeat("x", maxTitle+1)), sessioncore.ErrInvalid)
	require.NoError(t, w.SetTitle(ctx, w.session, "\xed\xa0\x80"))
	require.Contains(t, w.content(), `"name":"\ud800"`)
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
	forked, err := w.Fork(ctx, w.session, "c")
	require.NoError(t, err)
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
	snap, err := w.store.Session(forked).Acquire(context.Background())
	require.NoError(t, err)
	defer snap.Release()
	checkAsDocumented(t, fileContent(t, w.storage, forked), snap)
	_, err = w.Fork(ctx, w.session, "gone")
	require.ErrorIs(t, err, sessioncore.ErrNotFound)
	forked, err = w.Fork(ctx, w.session, "m")
	require.NoError(t, err)
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
		{"nothing, of operator", "/home/u/.operator/profiles/p/sessions", nil, nil, `{"type":"session_header","id":"ID","timestamp":"2026-03-01T00:00:00.000+00:00"`},
		{"a name that is like it", "/home/u/x.operator/sessions", nil, nil, ""},
		{"scope directories in operator's", "/home/u/.operator/profiles/p/sessions", nil, []string{"--w--"}, ""},
		{"flat", "/data/sessions", map[string]string{later: opHeader}, nil, `{"type":"session_header","id":"ID","timestamp":1772323200.000`},
		{"flat, with artifacts", "", map[string]string{later: strings.Replace(opHeader, "1771237230.5", "1771237230500", 1)}, []string{"2026-02-16T10-20-30-500000_s"}, `{"type":"session_header","id":"ID","timestamp":1772323200000`},
		{"flat, and what is no session", "", map[string]string{earlier: strings.Replace(opHeader, "1771237230.5", `"2026-02-16T10:20:30Z"`, 1), later: "x\n", ".x.jsonl": plainHeader}, nil, `{"type":"session_header","id":"ID","timestamp":"2026-03-01T00:00:00.000Z"`},
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
			w := startWaiting(t, files, "", Options{Root: test.root})
			name, err := w.NewSession(context.Background(), NewSession{CWD: "/w"})
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

// TestOperatorNewSession: in memory until the first answer, with all that the line asks for.
func TestOperatorNewSession(t *testing.T) {
	ctx := context.Background()
	disk := dirtest.New(t)
	w := startWaiting(t, disk, "", Options{Root: "/home/u/.operator/profiles/p/sessions"})
	name, err := w.NewSession(ctx, NewSession{CWD: "/w/", Title: " the\ttitle", Parent: "p"})
	require.NoError(t, err)
	w.session = w.store.Session(name)
	lines := strings.Split(w.content(), "\n")
	require.Contains(t, lines[0], `"cwd":"/w","parent_session":"p"}`)
	require.Equal(t, `{"type":"session_info","id":"00000001","parent_id":null,"timestamp":"2026-03-01T00:00:00.000+00:00","name":"the title"}`, lines[1])
	title, err := w.snapshot().Title()
	require.NoError(t, err)
	require.Equal(t, "the title", title)

	ids, err := w.append(`{"type":"message","message":{"role":"user","content":"hi"}}`)
	require.NoError(t, err)
	forked, err := w.Fork(ctx, w.session, ids[0])
	require.NoError(t, err)
	require.Equal(t, ".", path.Dir(forked))
	second, err := w.NewSession(ctx, NewSession{CWD: "/other"})
	require.NoError(t, err)
	require.Equal(t, ".", path.Dir(second), "beside the one in memory")
	_, err = w.append(`{"type":"message","message":{"role":"assistant","content":[]}}`)
	require.NoError(t, err)
	require.Equal(t, w.content(), fileContent(t, disk, name))
	checkAsDocumented(t, w.content(), w.snapshot())
}

// TestOperatorRoundTrips: whatever is done to a session, a reader by operator's documentation sees the same in the file.
func TestOperatorRoundTrips(t *testing.T) {
	ctx := context.Background()
	headers := []string{opHeader, strings.Replace(opHeader, "1771237230.5", "1771237230500", 1), strings.Replace(opHeader, "1771237230.5", `"2026-02-16T10:20:30.000001+00:00"`, 1)}
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		w := startMemory(t, headers[seed%3], Options{})
		now := time.Unix(1772323200, 0)
		w.opts.Now = func() time.Time { now = now.Add(time.Duration(rnd.IntN(1500)) * time.Millisecond); return now }
		ids := []string{}
		pick := func() string { return ids[rnd.IntN(len(ids))] }
		for range 40 {
			added, err := w.append(operatorLine(rnd, ids))
			require.NoError(t, err)
			ids = append(ids, added...)
			switch rnd.IntN(6) {
			case 0:
				require.NoError(t, w.MoveLeaf(ctx, w.session, pick()))
			case 1:
				require.NoError(t, w.SetLabel(ctx, w.session, pick(), []string{"", "x", "y z", `"`}[rnd.IntN(4)]))
			case 2:
				require.NoError(t, w.SetTitle(ctx, w.session, []string{"", "one", "two", "ü"}[rnd.IntN(4)]))
			case 3:
				if rnd.IntN(4) == 0 {
					require.NoError(t, w.ResetLeaf(ctx, w.session))
				}
			}
		}
		snap := w.snapshot()
		checkAsDocumented(t, w.content(), snap)
		require.Empty(t, problemsOf(t, snap))
		id := pick()
		forked, err := w.Fork(ctx, w.session, id)
		require.NoError(t, err)
		fork, err := w.store.Session(forked).Acquire(context.Background())
		require.NoError(t, err)
		checkAsDocumented(t, fileContent(t, w.storage, forked), fork)
		require.Empty(t, problemsOf(t, fork))
		fork.Release()
		for line := range strings.Lines(w.content()) {
			require.True(t, json.Valid([]byte(line)))
		}
	}
}

// operatorLine is any entry that can be appended to a session with those ids.
func operatorLine(rnd *rand.Rand, ids []string) string {
	lines := []string{
		`{"type":"message","message":{"role":"user","content":"x"}}`, `{"type":"message","message":{"role":"assistant","content":[{"type":"text","text":"y"}]}}`,
		`{"type":"thinking_level_change","thinking_level":"high"}`, `{"type":"thinking_level_change","thinking_level":null}`,
		`{"type":"model_change","provider":"p","model_id":"m"}`, `{"type":"custom_info","custom_type":"x","parent_id":null}`,
		`{"type":"custom_message","custom_type":"x","content":"c","display":true}`, `{"type":"branch","from_id":"root","summary":"s"}`,
	}
	if len(ids) > 0 {
		id := ids[rnd.IntN(len(ids))]
		for _, format := range []string{
			`{"type":"compaction","summary":"s","first_kept_entry_id":"%s","tokens_before":7}`, `{"type":"branch","from_id":"%s","summary":"s"}`,
			`{"type":"branch","from_id":"%s","summary":""}`, `{"type":"leaf","target_id":"%s"}`, `{"type":"label","target_id":"%s","label":"l"}`,
			`{"type":"message","parent_id":"%s","message":{"role":"user","content":"z"}}`,
		} {
			lines = append(lines, fmt.Sprintf(format, id))
		}
	}
	slices.Sort(lines)
	return lines[rnd.IntN(len(lines))]
}
