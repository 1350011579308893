package testdata

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

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

// agentDir is where the sessions say that their store lies.
const agentDir = "/home/dev/.omp/agent/"

// maxStore keeps the embedded store from growing the binary unnoticed.
const maxStore = 250_000

var (
	blobRef     = regexp.MustCompile(`blob:sha256:([0-9a-f]{64})`)
	artifactRef = regexp.MustCompile(`"artifactId":"(\d+)"`)
)

// A store is an agent directory that is being checked.
type store struct {
	fsys     fs.FS
	sessions map[string]*session // by path
	blobs    map[string]bool     // name → referred to by a session
	problems []string
}

func (s *store) report(file, format string, args ...any) {
	s.problems = append(s.problems, path.Base(file)+": "+fmt.Sprintf(format, args...))
}

// check reads a whole store and tells what is wrong with it.
func check(fsys fs.FS) *store {
	s := &store{fsys: fsys, sessions: map[string]*session{}, blobs: map[string]bool{}}
	var total int
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		if err != nil {
			return err
		}
		total += len(data)
		s.file(name, data)
		return nil
	})
	if err != nil {
		s.report("store", "%v", err)
	}
	if total > maxStore {
		s.report("store", "%d bytes are too many", total)
	}
	for name, session := range s.sessions {
		s.links(name, session)
	}
	for name, used := range s.blobs {
		if !used {
			s.report(name, "no session refers to this blob")
		}
	}
	s.breadcrumbs()
	return s
}

// gunzip returns what is in an archived session.
func gunzip(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}

// file checks one file by itself, according to where it lies.
func (s *store) file(name string, data []byte) {
	switch {
	case strings.HasPrefix(name, "blobs/"):
		sum := sha256.Sum256(data)
		if path.Base(name) != hex.EncodeToString(sum[:]) {
			s.report(name, "is not named after its content")
		}
		s.blobs[path.Base(name)] = false
	case path.Ext(name) == ".gz" && strings.HasPrefix(name, "archive/sessions/"):
		text, err := gunzip(data)
		if err != nil {
			s.report(name, "%v", err)
		}
		parseSession(text, func(line int, format string, args ...any) {
			s.report(name, "line %d: %s", line, fmt.Sprintf(format, args...))
		})
	case path.Ext(name) == ".jsonl" && strings.HasPrefix(name, "sessions/"):
		session := parseSession(data, func(line int, format string, args ...any) {
			s.report(name, "line %d: %s", line, fmt.Sprintf(format, args...))
		})
		s.sessions[name] = session
	case strings.HasPrefix(name, "sessions/"), strings.HasPrefix(name, "archive/sessions/"), strings.HasPrefix(name, "terminal-sessions/"):
		// artifacts; breadcrumbs are followed at the end
	case name == "history.db": // read by the tests of package history
	default:
		s.report(name, "is nothing that the client writes")
	}
}

// links checks what a session refers to outside its file.
func (s *store) links(name string, session *session) {
	for _, ref := range blobRef.FindAllStringSubmatch(session.text, -1) {
		if _, ok := s.blobs[ref[1]]; !ok {
			s.report(name, "blob %s is missing", ref[1])
		} else {
			s.blobs[ref[1]] = true
		}
	}
	// The client leaves the artifacts with the session that a fork came from.
	artifacts := strings.TrimSuffix(name, ".jsonl")
	if parent := session.header.ParentSession; parent != "" {
		parent = strings.TrimPrefix(parent, agentDir)
		artifacts = strings.TrimSuffix(parent, ".jsonl")
		s.fork(name, session, parent)
	}
	for _, ref := range artifactRef.FindAllStringSubmatch(session.text, -1) {
		if found, _ := fs.Glob(s.fsys, artifacts+"/"+ref[1]+".*.log"); len(found) != 1 {
			s.report(name, "artifact %s is missing", ref[1])
		}
	}
	for _, e := range session.entries {
		for _, result := range e.Message.Details.Results {
			s.subagent(name, artifacts+"/"+result.ID, result)
		}
	}
}

// fork checks that a forked session begins with entries of its parent.
func (s *store) fork(name string, session *session, parent string) {
	from := s.sessions[parent]
	if from == nil {
		s.report(name, "parent session %s is missing", parent)
		return
	}
	shared := 0
	for id, line := range session.lines {
		if from.lines[id] == line {
			shared++
		}
	}
	if shared == 0 {
		s.report(name, "shares no entry with its parent")
	}
}

// subagent checks the session of a task against the result of the task.
func (s *store) subagent(name, artifact string, result taskResult) {
	if result.OutputPath != agentDir+artifact+".md" {
		s.report(name, "output path %s is not beside the session", result.OutputPath)
	}
	output, err := fs.ReadFile(s.fsys, artifact+".md")
	if err != nil || string(output) != result.Output {
		s.report(name, "output of %s is not that of the task", result.ID)
	}
	sub := s.sessions[artifact+".jsonl"]
	if sub == nil {
		s.report(name, "session of %s is missing", result.ID)
		return
	}
	var sum usage
	for _, e := range sub.entries {
		sum.add(e.Message.Usage)
	}
	if result.Usage == nil || *result.Usage != sum {
		s.report(name, "usage of %s is not that of its session", result.ID)
	}
}

// breadcrumbs checks that every terminal's last session is there.
func (s *store) breadcrumbs() {
	crumbs, err := fs.ReadDir(s.fsys, "terminal-sessions")
	if err != nil {
		s.report("terminal-sessions", "%v", err)
	}
	for _, d := range crumbs {
		name := "terminal-sessions/" + d.Name()
		data, err := fs.ReadFile(s.fsys, name)
		lines := strings.Split(string(data), "\n")
		if err != nil || len(lines) != 3 || lines[2] != "" {
			s.report(name, "is not two lines")
			continue
		}
		session := s.sessions[strings.TrimPrefix(lines[1], agentDir)]
		if session == nil || session.header.Cwd != lines[0] {
			s.report(name, "leads to no session of %s", lines[0])
		}
	}
}

// slotBytes is what the client reserves for the title, newline included.
const slotBytes = 256

// isoTime is how JavaScript writes a time.
const isoTime = "2006-01-02T15:04:05.000Z"

var entryID = regexp.MustCompile(`^[0-9a-f]{8}$`)

type header struct {
	Type, ID, Timestamp, Cwd, Title, ParentSession string
	Version                                        int
}

type entry struct {
	Type, ID, Timestamp, TargetID, FirstKeptEntryID, FromID, Label string
	FirstKeptEntryIndex                                            int
	ParentID                                                       *string
	Message                                                        struct {
		Role, ToolCallID, ToolName string
		Content                    any // a list of blocks, or text
		Usage                      *usage
		Details                    struct {
			Results []taskResult
		}
	}
}

type taskResult struct {
	ID, Output, OutputPath string
	Usage                  *usage
}

type usage struct {
	Input, Output, CacheRead, CacheWrite, TotalTokens int
	Cost                                              struct{ Input, Output, CacheRead, CacheWrite, Total float64 }
}

func (u *usage) add(v *usage) {
	if v == nil {
		return
	}
	u.Input += v.Input
	u.Output += v.Output
	u.CacheRead += v.CacheRead
	u.CacheWrite += v.CacheWrite
	u.TotalTokens += v.TotalTokens
	u.Cost.Input += v.Cost.Input
	u.Cost.Output += v.Cost.Output
	u.Cost.CacheRead += v.Cost.CacheRead
	u.Cost.CacheWrite += v.Cost.CacheWrite
	u.Cost.Total += v.Cost.Total
}

// A session is a file whose lines have been checked one by one.
type session struct {
	text    string
	slot    bool
	header  header
	entries []*entry
	byID    map[string]*entry
	lines   map[string]string // id → line
	calls   map[string]string // open tool calls, id → tool
	last    string            // time of the last line
	report  func(line int, format string, args ...any)
}

// parseSession reads a session as the client writes it: no damage is allowed.
func parseSession(data []byte, report func(int, string, ...any)) *session {
	s := &session{text: string(data), report: report,
		byID: map[string]*entry{}, lines: map[string]string{}, calls: map[string]string{}}
	body, whole := strings.CutSuffix(s.text, "\n")
	if !whole {
		report(0, "the last line has no newline")
	}
	for i, line := range strings.Split(body, "\n") {
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(line)); err != nil || compact.String() != line {
			report(i+1, "is not as JSON.stringify writes it: %v", err)
			continue
		}
		switch {
		case i == 0 && strings.HasPrefix(line, `{"type":"title"`):
			s.slot = true
			if len(line)+1 != slotBytes {
				report(1, "the title slot has %d bytes", len(line)+1)
			}
		case s.header.Type == "":
			s.readHeader(i+1, line)
		default:
			s.readEntry(i+1, line)
		}
	}
	for id, tool := range s.calls {
		report(0, "call %s of %s has no result", id, tool)
	}
	return s
}

func (s *session) readHeader(n int, line string) {
	if err := json.Unmarshal([]byte(line), &s.header); err != nil || s.header.Type != "session" {
		s.report(n, "is no header: %v", err)
		s.header.Type = "session"
	}
	s.time(n, s.header.Timestamp)
	if s.header.ParentSession != "" {
		s.last = "" // a fork is younger than the entries that it begins with
	}
	if v := s.header.Version; v == 3 {
		at, _ := time.Parse(isoTime, s.header.Timestamp)
		hex := fmt.Sprintf("%012x", at.UnixMilli())
		if want := hex[:8] + "-" + hex[8:] + "-7"; !strings.HasPrefix(s.header.ID, want) {
			s.report(n, "id %s is no UUIDv7 of the header's time", s.header.ID)
		}
	} else if v != 0 {
		s.report(n, "version is %d", v)
	}
}

func (s *session) readEntry(n int, line string) {
	e := new(entry)
	if err := json.Unmarshal([]byte(line), e); err != nil || e.Type == "" {
		s.report(n, "is no entry: %v", err)
		return
	}
	s.time(n, e.Timestamp)
	if s.header.Version == 3 {
		s.place(n, e)
		s.lines[e.ID] = line
		s.byID[e.ID] = e
	} else if e.ID != "" || e.ParentID != nil {
		s.report(n, "version 1 has no ids")
	}
	s.entries = append(s.entries, e)
	s.tools(n, e)
	if u := e.Message.Usage; u != nil {
		s.usage(n, u)
	}
	if e.Message.Role == "assistant" && e.Message.Usage == nil {
		s.report(n, "an assistant message without usage")
	}
}

// place checks the ids of an entry: its own and those that it names.
func (s *session) place(n int, e *entry) {
	if !entryID.MatchString(e.ID) || s.byID[e.ID] != nil {
		s.report(n, "id %q is no new one", e.ID)
	}
	if e.ParentID == nil {
		if len(s.entries) > 0 {
			s.report(n, "a second root")
		}
	} else if s.byID[*e.ParentID] == nil {
		s.report(n, "parent %s is missing", *e.ParentID)
	}
	for _, id := range []string{e.TargetID, e.FromID, e.FirstKeptEntryID} {
		if id != "" && s.byID[id] == nil {
			s.report(n, "entry %s is missing", id)
		}
	}
	if id := e.FirstKeptEntryID; id != "" && !s.above(e, id) {
		s.report(n, "kept entry %s is not on the path", id)
	}
}

// above tells whether an entry is on the path from the root to e.
func (s *session) above(e *entry, id string) bool {
	for e.ParentID != nil {
		if *e.ParentID == id {
			return true
		}
		if e = s.byID[*e.ParentID]; e == nil {
			return false
		}
	}
	return false
}

// tools matches tool calls and their results.
func (s *session) tools(n int, e *entry) {
	if m := e.Message; m.Role == "toolResult" {
		if s.calls[m.ToolCallID] != m.ToolName {
			s.report(n, "result of %s %s without its call", m.ToolName, m.ToolCallID)
		}
		delete(s.calls, m.ToolCallID)
		return
	}
	blocks, _ := e.Message.Content.([]any)
	for _, b := range blocks {
		if b, ok := b.(map[string]any); ok && b["type"] == "toolCall" {
			s.calls[fmt.Sprint(b["id"])] = fmt.Sprint(b["name"])
		}
	}
}

func (s *session) usage(n int, u *usage) {
	if u.TotalTokens == 0 || u.Input+u.Output+u.CacheRead+u.CacheWrite != u.TotalTokens {
		s.report(n, "tokens do not add up")
	}
	if u.Cost.Input+u.Cost.Output+u.Cost.CacheRead+u.Cost.CacheWrite != u.Cost.Total {
		s.report(n, "costs do not add up")
	}
}

// time checks that lines follow each other in time, within 2026.
func (s *session) time(n int, stamp string) {
	if at, err := time.Parse(isoTime, stamp); err != nil || at.Year() != 2026 || at.Format(isoTime) != stamp {
		s.report(n, "time %q is not the client's", stamp)
	}
	if stamp < s.last {
		s.report(n, "time goes back to %s", stamp)
	}
	s.last = stamp
}
