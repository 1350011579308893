package writer

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/sessiontest"

	"github.com/stretchr/testify/require"
)

// documentedSession reads an operator session as docs/format.md, Operator dialect, describes it. It is independent of
// the reader under test and follows operator's documentation line by line.
type documentedSession struct {
	header  map[string]any
	entries []map[string]any
	byID    map[string]map[string]any
	leaf    string // "" for None
	labels  map[string]string
	title   string
}

func readAsDocumented(t testing.TB, file string) *documentedSession {
	s := &documentedSession{byID: map[string]map[string]any{}, labels: map[string]string{}}
	for line := range strings.Lines(file) {
		var v map[string]any
		d := json.NewDecoder(strings.NewReader(line))
		d.UseNumber()
		if d.Decode(&v) != nil {
			continue
		}
		switch {
		case v["type"] != "session_header" && v["type"] != "session":
			s.add(v)
		case s.header == nil:
			s.header = v
		}
	}
	require.NotNil(t, s.header)
	return s
}

// add is operator's _build_index for one entry.
func (s *documentedSession) add(e map[string]any) {
	id := e["id"].(string)
	switch target, known := e["target_id"]; {
	case e["type"] != "leaf":
		s.leaf = id
	case known && target == nil:
		s.leaf = ""
	case s.byID[str(target)] != nil:
		s.leaf = str(target)
	}
	s.byID[id] = e
	s.entries = append(s.entries, e)
	switch label := str(e["label"]); {
	case e["type"] == "label" && label == "":
		delete(s.labels, str(e["target_id"]))
	case e["type"] == "label":
		s.labels[str(e["target_id"])] = label
	case e["type"] == "session_info":
		s.title = str(e["name"])
	}
}

func str(v any) string {
	s, _ := v.(string)
	return s
}

// branch is operator's get_branch.
func (s *documentedSession) branch(id string) (path []map[string]any) {
	for e := s.byID[id]; e != nil; e = s.byID[str(e["parent_id"])] {
		path = append([]map[string]any{e}, path...)
	}
	return path
}

// messages returns the messages of entries.
func (s *documentedSession) messages(entries []map[string]any) (list []any) {
	for _, e := range entries {
		switch {
		case e["type"] == "message":
			list = append(list, e["message"])
		case e["type"] == "branch" && e["summary"] != "":
			list = append(list, s.summary(e, "branch_summary", "summary", "from_id"))
		}
	}
	return list
}

func (s *documentedSession) summary(e map[string]any, role string, keys ...string) map[string]any {
	m := map[string]any{"role": role, "timestamp": seedMillis(e["timestamp"])}
	for _, key := range keys {
		if v, ok := e[key]; ok {
			m[key] = v
		}
	}
	return m
}

// seedMillis returns a time in milliseconds since the epoch.
func seedMillis(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, _ := v.Float64()
		if math.Abs(f) < 1e11 {
			f *= 1000
		}
		return int64(math.Round(f))
	case string:
		at, err := time.Parse(time.RFC3339Nano, v)
		if err != nil {
			at, err = time.ParseInLocation("2006-01-02T15:04:05.999999999", v, time.Local)
		}
		if err == nil {
			return at.UnixMilli()
		}
	}
	return nil
}

// context is operator's build_session_context.
func (s *documentedSession) context(id string) map[string]any {
	path := s.branch(id)
	out := map[string]any{"thinking_level": "off"}
	last := -1
	for i, e := range path {
		switch e["type"] {
		case "thinking_level_change":
			if out["thinking_level"] = e["thinking_level"]; e["thinking_level"] == nil {
				out["thinking_level"] = "off"
			}
		case "model_change":
			out["model_id"] = e["model_id"]
		case "compaction":
			last = i
		}
	}
	list := []any{}
	after := path
	if last >= 0 {
		list = append(list, s.summary(path[last], "compaction_summary", "summary", "tokens_before"))
		for i, e := range path[:last] {
			if e["id"] == path[last]["first_kept_entry_id"] {
				list = append(list, s.messages(path[i:last])...)
				break
			}
		}
		after = path[last+1:]
	}
	out["messages"] = append(list, s.messages(after)...)
	return out
}

// checkAsDocumented requires that a snapshot and documentedSession agree about the same file.
func checkAsDocumented(t testing.TB, file string, snap *sessioncore.Snapshot) {
	t.Helper()
	s := readAsDocumented(t, file)
	id := func(e sessioncore.Entry) string {
		if e == sessioncore.NoEntry {
			return ""
		}
		text, ok := snap.ID(e)
		require.True(t, ok)
		return text
	}
	require.Equal(t, len(s.entries), snap.Len())
	leaf, err := snap.Leaf()
	require.NoError(t, err)
	require.Equal(t, s.leaf, id(leaf), "leaf")
	labels := map[string]string{}
	for _, l := range snap.Labels() {
		labels[l.Target] = l.Label
	}
	require.Equal(t, s.labels, labels)
	title, err := snap.Title()
	require.NoError(t, err)
	require.Equal(t, s.title, title)
	for _, e := range append([]sessioncore.Entry{leaf}, snap.Tree().Roots()...) {
		var path []sessioncore.Entry
		if e != sessioncore.NoEntry {
			path = snap.Path(e)
		}
		branch := s.branch(id(e))
		require.Len(t, path, len(branch))
		for i := range path {
			require.Equal(t, branch[i]["id"], id(path[i]))
		}
		doc, err := snap.Context(context.Background(), e, nil)
		require.NoError(t, err)
		want, err := json.Marshal(s.context(id(e)))
		require.NoError(t, err)
		got := sessiontest.ReadObject(t, doc)
		require.Equal(t, sessiontest.Canonical(bytes.TrimSpace(want)), sessiontest.Canonical(got), "context at %q", id(e))
	}
}
