package testdata

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

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
