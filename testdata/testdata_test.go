package testdata

import (
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The files of the demo by what they are, as patterns.
const (
	elderly = "sessions/*/2026-01-04*.jsonl" // version 1
	rich    = "sessions/*/2026-03-30*.jsonl" // everything in it
	task    = "sessions/*/*/Task-1.jsonl"    // its subagent
	forked  = "sessions/*/2026-03-31*.jsonl"
	outside = "sessions/-tmp-*/*.jsonl" // another project
	slotted = "sessions/*/2026-05-11*.jsonl"
)

func TestDemoIsIntact(t *testing.T) {
	assert.Empty(t, check(Demo()).problems)
	require.NoError(t, fstest.TestFS(Demo(), "sessions", "blobs", "terminal-sessions/pts-3"))
}

// find returns the one file that a pattern matches.
func find(t *testing.T, fsys fs.FS, pattern string) string {
	t.Helper()
	found, err := fs.Glob(fsys, pattern)
	require.NoError(t, err)
	require.Len(t, found, 1, pattern)
	return found[0]
}

func TestDemoShowsTheFormat(t *testing.T) {
	store := check(Demo())
	s := store.sessions[find(t, Demo(), rich)]
	require.NotNil(t, s)

	types, parents, labels, roles := map[string]int{}, map[string]bool{}, map[string]string{}, map[string]int{}
	for _, e := range s.entries {
		types[e.Type]++
		roles[e.Message.Role+" "+e.Message.ToolName]++
		if e.ParentID != nil {
			parents[*e.ParentID] = true
		}
		if e.Type == "label" {
			labels[e.TargetID] = e.Label
		}
	}
	for _, want := range []string{"message", "model_change", "thinking_level_change", "branch_summary", "compaction",
		"mode_change", "custom", "custom_message", "label"} {
		assert.Positive(t, types[want], want)
	}
	for _, want := range []string{"toolResult read", "toolResult bash", "toolResult edit", "toolResult task"} {
		assert.Positive(t, roles[want], want)
	}
	tips := 0
	for _, e := range s.entries {
		if !parents[e.ID] {
			tips++
		}
	}
	assert.Equal(t, 3, tips, "branches")
	assert.Len(t, labels, 4)

	assert.True(t, store.sessions[find(t, Demo(), slotted)].slot)
	assert.NotEmpty(t, store.sessions[find(t, Demo(), forked)].header.ParentSession)
	assert.Zero(t, store.sessions[find(t, Demo(), elderly)].header.Version)
	assert.Equal(t, "/tmp/gauge-csv", store.sessions[find(t, Demo(), outside)].header.Cwd)
}

// A spoiler does one kind of damage to a copy of the store.
type spoiler func(*testing.T, fstest.MapFS)

// in replaces one text in the file that a pattern matches.
func in(pattern, old, new string) spoiler {
	return func(t *testing.T, m fstest.MapFS) {
		name := find(t, m, pattern)
		before, after, found := strings.Cut(string(m[name].Data), old)
		require.True(t, found, old)
		m[name].Data = []byte(before + new + after)
	}
}

// without removes the one file that a pattern matches.
func without(pattern string) spoiler {
	return func(t *testing.T, m fstest.MapFS) { delete(m, find(t, m, pattern)) }
}

// torn takes the last byte of the file that a pattern matches.
func torn(pattern string) spoiler {
	return func(t *testing.T, m fstest.MapFS) {
		f := m[find(t, m, pattern)]
		f.Data = f.Data[:len(f.Data)-1]
	}
}

// with adds an empty file.
func with(name string) spoiler {
	return func(_ *testing.T, m fstest.MapFS) { m[name] = &fstest.MapFile{} }
}

// flip changes a byte of a file.
func flip(name string) spoiler {
	return func(_ *testing.T, m fstest.MapFS) { m[name].Data[1] ^= 1 }
}

// TestDamageIsSeen spoils the store in one place at a time: a check that finds
// nothing there finds nothing at all.
func TestDamageIsSeen(t *testing.T) {
	store := check(Demo())
	first := store.sessions[find(t, Demo(), rich)].entries[0].ID
	var blob string
	for name := range store.blobs {
		blob = name
	}
	cases := []struct {
		name  string
		spoil spoiler
		want  string
	}{
		{"parent", in(rich, `"parentId":"`+first, `"parentId":"00000000`), "is missing"},
		{"root", in(rich, `"parentId":"`+first+`"`, `"parentId":null`), "a second root"},
		{"odd id", in(rich, `"id":"`+first, `"id":"1`), "is no new one"},
		{"label", in(rich, `"targetId":"`, `"targetId":"f`), "is missing"},
		{"kept", in(rich, `"firstKeptEntryId":"`, `"firstKeptEntryId":"0`), "is missing"},
		{"blank", in(rich, `"type":"message",`, `"type": "message",`), "JSON.stringify"},
		{"escape", in(rich, "−", `\u2212`), "JSON.stringify"},
		{"no JSON", in(rich, `{"type":"message"`, `{"type":"message`), "JSON.stringify"},
		{"tokens", in(rich, `"output":`, `"output":1`), "tokens do not add up"},
		{"cost", in(elderly, `"total":0.`, `"total":1.`), "costs do not add up"},
		{"no usage", in(rich, `"usage":`, `"used":`), "without usage"},
		{"call", in(rich, `"toolCallId":"`, `"toolCallId":"x`), "without its call"},
		{"no result", in(rich, `"role":"toolResult"`, `"role":"tool"`), "has no result"},
		{"time", in(rich, `T07:13:41`, `T07:03:41`), "time goes back"},
		{"year", in(elderly, `2026-`, `2016-`), "is not the client's"},
		{"session id", in(rich, `"id":"019d`, `"id":"019c`), "is no UUIDv7"},
		{"artifact", in(rich, `"artifactId":"0"`, `"artifactId":"7"`), "artifact 7 is missing"},
		{"task", in(task, `"usage":{"input":`, `"usage":{"input":1`), "usage of Task-1"},
		{"fork", in(forked, "/2026-03-30T", "/2026-03-29T"), "parent session"},
		{"slot", in(slotted, ` "}`, `"}`), "title slot has 255 bytes"},
		{"empty line", in(elderly, "\n", "\n\n"), "JSON.stringify"},
		{"newline", torn(rich), "has no newline"},
		{"old ids", in(elderly, `"type":"message"`, `"type":"message","id":"a"`), "version 1 has no ids"},
		{"lost blob", without("blobs/*"), "blob " + blob + " is missing"},
		{"lost artifact", without("sessions/*/*/0.bash.log"), "artifact 0 is missing"},
		{"lost output", without("sessions/*/*/Task-1.md"), "output of Task-1"},
		{"lost subagent", without("sessions/*/*/Task-1.jsonl"), "session of Task-1 is missing"},
		{"blob", flip("blobs/" + blob), "is not named after its content"},
		{"idle blob", with("blobs/0"), "no session refers to this blob"},
		{"stranger", with("auth.json"), "is nothing that the client writes"},
		{"history", flip(historyName), "cannot be read"},
		{"lost history", without(historyName), "does not exist"},
		{"prompt", in(elderly, "six harmonic", "five harmonic"), "nobody asked"},
		{"lost prompt", in(elderly, "six harmonic", "five harmonic"), "does not know"},
		{"prompt's time", in(outside, "T18:03:54", "T18:03:55"), "at another time"},
		{"prompt's directory", in(outside, `"cwd":"/tmp/gauge-csv"`, `"cwd":"/tmp/gauges"`), "in another session"},
		{"breadcrumb", flip("terminal-sessions/pts-3"), "leads to no session"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := copyOf(t, Demo())
			c.spoil(t, m)
			assert.Contains(t, strings.Join(check(m).problems, "\n"), c.want)
		})
	}
}

func copyOf(t *testing.T, fsys fs.FS) fstest.MapFS {
	t.Helper()
	m := fstest.MapFS{}
	require.NoError(t, fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		m[name] = &fstest.MapFile{Data: data}
		return err
	}))
	return m
}
