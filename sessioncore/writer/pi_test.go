package writer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"
	"sessionfs/sessioncore/storage/storagetest/memory"
)

// startPi starts writing to a session of pi.
func startPi(t testing.TB, content string) *writing {
	w := startMemory(t, content, Options{})
	w.store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByPi })
	return w
}

const (
	piCost = `{"input":1,"output":2,"cacheRead":3,"cacheWrite":4,"totalTokens":10,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0.5}}`
	piUser = `{"type":"message","id":"u","message":{"role":"user","content":"x"}}`
)

// TestPiAppends: what pi writes is taken, what it would pass over or fail on is refused with the reason.
func TestPiAppends(t *testing.T) {
	takes(t, func() *writing { return startPi(t, plainFile) }, "testdata/taken-pi.jsonl")
	refuses(t, func() *writing { return startPi(t, plainFile) }, "testdata/refused-pi.txt")
	require.Same(t, sessioncore.Pi, startPi(t, plainFile).snapshot().Dialect())
}

// TestPiEdits: a context_edit needs a target that pi lets it have.
func TestPiEdits(t *testing.T) {
	edit := func(target, rest string) string {
		return `{"type":"context_edit","targetId":"` + target + `","replacement":null` + rest + `}`
	}
	const other = `{"type":"message","id":"o","parentId":null,"message":{"role":"user","content":"x"}}`
	for _, test := range []struct {
		lines []string
		err   error
	}{
		{[]string{edit("a", "")}, nil},
		{[]string{piUser, edit("u", "")}, nil},
		{[]string{piUser, other, edit("u", `,"parentId":"u"`)}, nil},
		{[]string{`{"type":"custom_message","id":"c","customType":"x","content":"c","display":true}`, edit("c", "")}, nil},
		{[]string{edit("gone", "")}, sessioncore.ErrNotFound},
		{[]string{other, edit("a", "")}, sessioncore.ErrInvalid},
		{[]string{piUser, other, edit("u", "")}, sessioncore.ErrInvalid},
		{[]string{`{"type":"custom","id":"c","customType":"x"}`, edit("c", "")}, sessioncore.ErrInvalid},
		{[]string{`{"type":"message","id":"s","message":{"role":"system","content":"x"}}`, edit("s", "")}, sessioncore.ErrInvalid},
	} {
		_, err := startPi(t, plainFile).append(test.lines...)
		require.ErrorIs(t, err, test.err, test.lines)
	}
}

// TestPiImages: in a session that may be one of pi images stay in the line, whole: pi has no blobs.
func TestPiImages(t *testing.T) {
	sessiontest.NotUnderRace(t)
	const omps = plainFile + `{"type":"model_change","id":"m","parentId":"b","timestamp":"2026-02-16T10:20:30.000Z","model":"openai/gpt"}` + "\n"
	huge := strings.Repeat("QUJD", 500_000/3)
	line := `{"type":"message","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"` + huge +
		`"}],"image_url":"data:image/png;base64,` + huge + `"}}`
	for _, test := range []struct {
		content string
		root    sessioncore.Program
		inline  bool
	}{
		{plainFile, sessioncore.ByPi, true}, {plainFile, sessioncore.ByUnknown, true}, {omps, sessioncore.LikelyByPi, true},
		{plainFile, sessioncore.ByOMP, false}, {omps, sessioncore.ByUnknown, false},
	} {
		w := startMemory(t, test.content, Options{})
		w.store.SetProgram(func(string) sessioncore.Program { return test.root })
		w.adds(line, line)
		added := w.content()[len(test.content):]
		require.Equal(t, test.inline, strings.Count(added, `"data":"`+huge+`"`) == 2)
		require.Equal(t, test.inline, strings.Count(added, `base64,`+huge+`"`) == 2)
		require.Equal(t, test.inline, len(w.blobs.blobs) == 0)
	}
}

// TestPiTypesElsewhere: what omp passes over is not written into its sessions, nor into one that may be omp's.
func TestPiTypesElsewhere(t *testing.T) {
	for _, root := range []sessioncore.Program{sessioncore.ByUnknown, sessioncore.ByOMP, sessioncore.LikelyByPi} {
		w := startMemory(t, plainFile, Options{})
		w.store.SetProgram(func(string) sessioncore.Program { return root })
		for _, line := range []string{
			`{"type":"session_info","name":"N"}`, `{"type":"context_edit","targetId":"a","replacement":null}`,
			`{"type":"usage","kind":"k","provider":"p","model":"m","usage":` + piCost + `}`,
		} {
			_, err := w.append(line)
			require.ErrorContains(t, err, "not known to be one of pi", line)
		}
		require.Equal(t, plainFile, w.content())
	}
}

// TestPiBranchSummary: without a parent it hangs under the leaf: from 0.84.3 on, fromId is the leaf that was left.
func TestPiBranchSummary(t *testing.T) {
	w := startPi(t, plainFile)
	ids := w.adds(`{"type":"branch_summary","fromId":"a","summary":"s"}`)
	require.Equal(t, "b", w.parentOfID(ids[0]))
}

// TestPiNewSession: a new session of pi is one from its first line on, and lies where pi has its sessions.
func TestPiNewSession(t *testing.T) {
	for flat, dir := range map[bool]string{false: "--w--/", true: ""} {
		w := startWriting(t, memory.New(), "", Options{Flat: flat})
		w.store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByPi })
		name, err := w.NewSession(t.Context(), NewSession{Create: true, CWD: "/w", Title: "T"})
		require.NoError(t, err)
		require.Equal(t, dir, name[:strings.LastIndexByte(name, '/')+1])
		snap := sessiontest.Snapshot(t, w.store.Session(name))
		require.Same(t, sessioncore.Pi, snap.Dialect())
		header, _, err := snap.ReadHeader()
		require.NoError(t, err)
		require.Nil(t, header.Member("title"))
		title, err := snap.Title()
		require.NoError(t, err)
		require.Equal(t, "T", title)
	}
}

// TestPiForks: a fork of pi begins with a null as its first entry's parent, also where that was never written.
func TestPiForks(t *testing.T) {
	for _, parent := range []string{`"parentId":null,`, `"parentId":"gone",`, `"parentId":"a",`, ``, `"parentId":5,`} {
		w := startPi(t, sessiontest.Header+`{"type":"message","id":"a",`+parent+`"message":{"role":"user","content":"x"}}`+"\n"+
			`{"type":"message","id":"b","parentId":"a","message":{"role":"user","content":"y"}}`+"\n")
		lines := strings.Split(fileContent(t, w.storage, w.forks("b")), "\n")
		require.Contains(t, lines[1], `"id":"a"`)
		require.Contains(t, lines[1], `"parentId":null`, parent)
		require.NotContains(t, lines[1], "gone")
		require.Contains(t, lines[2], `"parentId":"a"`)
	}
}
