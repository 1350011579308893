package agents

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file tells the owner of a directory by a record in it, as forks of agents kept the names of
// directories (docs/format.md, Whose directory it is).

const (
	// recordSize is the size of a file's beginning that is searched for records.
	recordSize = 4 << 10
	// maxSamples bounds the files with records of others before an agent is ruled out: one file of
	// another program among an agent's sessions does not make them another agent's.
	maxSamples = 32
	// maxFolders bounds the directories that are listed for a sample.
	maxFolders = 256
	// maxDepth bounds their depth.
	maxDepth = 8
	// maxUnread bounds the count of files that no agent wrote.
	maxUnread = 10000
)

// evidence tells whether files have an agent's records.
type evidence int

const (
	noRecords evidence = iota
	ownRecords
	otherRecords // and none of the agent
)

// omp stands for the agents without a converter: omp, pi, xcsh and operator.
var omp = &Agent{Dirs: []string{"sessions"}, Wrote: isOwn}

// isOwn reports whether a record is of a session file of omp, pi, xcsh or operator: a title slot, a header, or an entry
// that no other agent writes so.
func isOwn(v rawjson.Value) bool {
	typ := v.Member("type")
	if typ.Is("title") {
		return v.Member("pad").IsString()
	}
	if !typ.IsString() || !v.Member("id").IsString() {
		return false
	}
	isHeader := typ.Is("session") || typ.Is("session_header")
	hasParent := v.Member("parentId") != nil || v.Member("parent_id") != nil // also null
	return isHeader || hasParent && WriterOf(v) == nil
}

// IsUnderstood reports whether the beginning of a file has a record that some agent wrote, or no
// record. A text that is not whole may end within a record.
func IsUnderstood(text []byte, whole bool) bool {
	wrote := func(v rawjson.Value) bool {
		return isOwn(v) || WriterOf(v) != nil
	}
	return evidenceOf(text, whole, wrote) != otherRecords
}

// maxBeginning bounds the part of a lone file that is searched for records.
const maxBeginning = 256 << 10

// WriterOfFile returns the agent that wrote a session file, nil for omp and the like, and a record of it. ok is false for
// a file without records of a known agent at its beginning, and for one that cannot be read.
func WriterOfFile(file string) (agent *Agent, record rawjson.Value, ok bool) {
	f, _, err := storage.OpenRegular(file)
	if err != nil {
		return nil, nil, false
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxBeginning))
	if err != nil {
		return nil, nil, false
	}
	wrote := func(v rawjson.Value) bool { // the record that it is true for is the last one
		record = v
		if isOwn(v) {
			return true
		}
		agent = WriterOf(v)
		return agent != nil
	}
	isWhole := len(text) < maxBeginning
	found := evidenceOf(text, isWhole, wrote)
	return agent, record, found == ownRecords
}

// ReadBeginning returns the part of a file with the records for IsUnderstood, and whether that is
// the whole file.
func ReadBeginning(files storage.Files, name string) (text []byte, whole bool, err error) {
	text, err = storage.ReadFile(files, name, recordSize)
	return text, len(text) < recordSize, err
}

// evidenceOf returns the evidence in the beginning of a file, or in a whole one, for the agent that wrote recognizes the
// records of. It calls wrote until that is true. A record that is cut is looked at as far as it is there.
func evidenceOf(text []byte, whole bool, wrote func(rawjson.Value) bool) evidence {
	if isDocument(text) {
		line := bytes.TrimSpace(oneLine(text))
		v := completeMembers(line)
		if len(v) > 0 && wrote(v) {
			return ownRecords
		}
		return noRecords // the rest may tell
	}
	found := noRecords
	isOfAnother := false
	for line := range bytes.Lines(text) {
		v := ObjectIn(line)
		isCut := !whole && line[len(line)-1] != '\n'
		if isCut {
			v = completeMembers(line)
		}
		switch {
		case bytes.IndexByte(v, '"') < 0: // no members
		case isCut && isOfAnother: // the difference may be in the missing part
		case wrote(v):
			return ownRecords
		case v.Member("type").IsString() || ObjectIn(line) != nil: // else its type may follow
			found = otherRecords
			if WriterOf(v) != nil {
				isOfAnother = true
			}
		}
	}
	return found
}

// claimants returns the possible agents of a directory by the names in it, omp for those without a
// converter.
func claimants(dir string) (named []*Agent) {
	if HasScopes(dir) {
		named = append(named, omp)
	}
	for _, a := range registered {
		if a.Detect(dir) {
			named = append(named, a)
		}
	}
	if len(named) == 0 && HasDir(filepath.Join(dir, omp.Dirs[0])) {
		named = append(named, omp)
	}
	return named
}

// ownerOf returns the agent of a directory, nil for omp and for none, and whether records rule out all agents that its
// names tell (unread). The first agent with records of its own is it, or else the first one by the names.
func ownerOf(dir string) (owner *Agent, unread bool) {
	named := claimants(dir)
	for _, a := range named {
		found := evidenceIn(dir, a)
		if found == ownRecords {
			return a.orOMP(), false
		}
		if found == otherRecords {
			unread = true
		}
	}
	if unread || len(named) == 0 {
		return nil, unread
	}
	return named[0].orOMP(), false
}

// orOMP returns the agent, nil for omp.
func (a *Agent) orOMP() *Agent {
	if a == omp {
		return nil
	}
	return a
}

// evidenceIn returns the evidence for an agent in its directories below dir: in its sessions by their
// names, and in other files only if it has none.
func evidenceIn(dir string, agent *Agent) evidence {
	for _, isSession := range []func(dir, below string) bool{agent.names, isAnySession} {
		s := sampler{
			agent:     agent,
			isSession: isSession,
			folders:   maxFolders,
			samples:   maxSamples,
		}
		for _, name := range agent.Dirs {
			s.top = filepath.Join(dir, name)
			s.name = name
			s.search("")
		}
		if s.found != noRecords {
			return s.found
		}
	}
	return noRecords
}

// names reports whether a file in one of the agent's directories is a session, by its name.
func (a *Agent) names(dir, below string) bool {
	if a == omp {
		return isAnySession(dir, below) && strings.Count(below, "/") <= 1
	}
	format, err := a.Alone(nil, nil)
	return err == nil && format.IsSession(a.NameOf(dir, below))
}

// isAnySession reports whether a file has the ending of sessions. It is names for an unknown agent.
func isAnySession(_, below string) bool { return strings.HasSuffix(below, sessionEnding) }

// sampler reads the beginnings of files until one has a record of an agent.
type sampler struct {
	agent            *Agent
	isSession        func(dir, below string) bool
	top, name        string // a directory of the agent: its path, and its name among Agent.Dirs
	folders, samples int    // how many may still be looked at
	found            evidence
}

// search takes samples of the files in a directory of s.top, and then of those below it, until one has a record of the
// agent or enough are looked at.
func (s *sampler) search(below string) {
	items := itemsOf(filepath.Join(s.top, below))
	s.folders--
	for _, item := range items {
		name := path.Join(below, item.Name())
		if s.isDone() {
			return
		}
		if item.Type().IsRegular() && s.isSession(s.name, name) {
			s.sample(filepath.Join(s.top, name))
		}
	}
	for _, item := range items {
		if s.isDone() || s.folders <= 0 {
			return
		}
		name := path.Join(below, item.Name())
		if item.IsDir() && strings.Count(name, "/") < maxDepth {
			s.search(name)
		}
	}
}

// isDone reports whether no further file need be looked at.
func (s *sampler) isDone() bool { return s.found == ownRecords || s.samples <= 0 }

// sample looks at the beginning of a file, and counts it if it has records of others.
func (s *sampler) sample(file string) {
	text, whole := beginnings.read(file)
	switch evidenceOf(text, whole, s.agent.Wrote) {
	case ownRecords:
		s.found = ownRecords
	case otherRecords:
		s.found = otherRecords
		s.samples--
	}
}

// itemsOf returns up to maxNames items of a directory in the order of their names, without hidden
// ones.
func itemsOf(dir string) []fs.DirEntry {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	items, _ := f.ReadDir(maxNames) // those read before an error count
	items = slices.DeleteFunc(items, func(item fs.DirEntry) bool {
		return item.Name()[0] == '.'
	})
	slices.SortFunc(items, func(a, b fs.DirEntry) int {
		return strings.Compare(a.Name(), b.Name())
	})
	return items
}

// beginnings caches the samples of this process, as a command asks several times for the owner of a
// directory.
var beginnings beginningCache

// beginningCache caches beginnings of files by their state.
type beginningCache struct {
	mu    sync.Mutex // guards known
	known map[string]fileBeginning
}

type fileBeginning struct {
	info  fs.FileInfo // when it was read
	text  []byte
	whole bool
}

// maxBeginnings bounds the cached beginnings.
const maxBeginnings = 64

// isOf reports whether a file in a state has the beginning. No file has the zero beginning.
func (b fileBeginning) isOf(info fs.FileInfo) bool {
	if b.info == nil || !os.SameFile(b.info, info) {
		return false
	}
	isSameSize := b.info.Size() == info.Size()
	return isSameSize && b.info.ModTime().Equal(info.ModTime())
}

// read returns the beginning of a regular file, empty if it cannot be read, and whether it is the
// whole file. It follows no link, and waits for no named pipe.
func (c *beginningCache) read(file string) (text []byte, whole bool) {
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	c.mu.Lock()
	known := c.known[file]
	c.mu.Unlock()
	if known.isOf(info) {
		return known.text, known.whole
	}
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	opened, err := f.Stat()
	if err != nil || !os.SameFile(opened, info) { // it was replaced meanwhile
		return nil, false
	}
	text = make([]byte, recordSize)
	n, err := io.ReadFull(f, text)
	whole = err == io.EOF || err == io.ErrUnexpectedEOF
	text = text[:n]
	c.put(file, fileBeginning{info: opened, text: text, whole: whole})
	return text, whole
}

// put caches a beginning. A full cache is emptied before.
func (c *beginningCache) put(file string, b fileBeginning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil || len(c.known) >= maxBeginnings {
		c.known = map[string]fileBeginning{}
	}
	c.known[file] = b
}

// Unread counts the session files in a directory, up to maxUnread, if records rule out all agents that
// its names tell. It returns 0 for the directory of an agent, and for one without records.
func Unread(dir string) (files int) {
	_, isUnread := ownerOf(dir)
	if !isUnread {
		return 0
	}
	count := func(_ string, item fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // the others count
		case files == maxUnread:
			return fs.SkipAll
		case item.Type().IsRegular() && strings.HasSuffix(item.Name(), sessionEnding):
			files++
		}
		return nil
	}
	var tops []string
	for _, a := range claimants(dir) {
		tops = append(tops, a.Dirs...)
	}
	slices.Sort(tops)
	for _, top := range slices.Compact(tops) {
		root, err := filepath.EvalSymlinks(filepath.Join(dir, top))
		if err == nil {
			_ = filepath.WalkDir(root, count)
		}
	}
	return max(files, 1) // records without a session file are in a document
}
