package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
	"sessionfs/sessioncore/writer"
)

// This file makes sessions of omp from sessions of other agents (docs/design.md section 2, Import).

// maxLook bounds the records of a file that are read to find the agent that wrote it.
const maxLook = 64

// writtenBy returns the agent that wrote a file and the first record that tells it, or
// errNoSession.
func writtenBy(ctx context.Context, files storage.Files, name string) (agent *agents.Agent, record rawjson.Value, err error) {
	obj, err := files.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil, nil, err
	}
	records := 0
	readRecord := func(u *jsonl.Unit) error {
		if u.Kind == jsonl.ObjectUnit {
			agent = agents.WriterOf(u.Text)
		}
		records++
		if agent != nil || records == maxLook {
			record = bytes.Clone(u.Text)
			return jsonl.ErrStop
		}
		return nil
	}
	err = jsonl.LoadFirst(ctx, obj, st.Size, readRecord)
	if err == nil && agent == nil { // one object over many lines may be too long to be read whole
		none := func([]byte) bool { return false }
		err = agents.Ends(obj, st.Size, none, func(v rawjson.Value, isHead bool) {
			if isHead {
				agent = agents.WriterOf(v)
				record = v
			}
		})
	}
	if err == nil && agent == nil {
		err = errNoSession
	}
	return agent, record, err
}

// named is a Format that takes each file for a session, whatever its name.
type named struct{ agents.Format }

// IsSession implements agents.Format.
func (named) IsSession(string) bool { return true }

// Join implements agents.Joiner.
func (n named) Join(name string, obj storage.Object) storage.Object {
	j, ok := n.Format.(agents.Joiner)
	if ok {
		return j.Join(name, obj)
	}
	return obj
}

// settle makes f the session in the directory of the agent that wrote it, with the files that it may need.
// If the file does not lie in such a directory, it stands alone. The error is errNoSession if no agent wrote
// the file.
func (f *FoundFile) settle(ctx context.Context) error {
	if f.how != nil { // it is composed
		return nil
	}
	agent, record, err := writtenBy(ctx, f.files, f.name)
	if err != nil {
		return err
	}
	f.source = agent.Name
	f.path = "/" + f.name
	store, name, isSession := f.from.home(agent, f.name)
	orphan, isOrphan := orphanIn(store, name)
	if isOrphan {
		name = orphan
		f.isOrphan = true
	}
	isNamed := isSession || isOrphan
	if !isNamed || !canStat(store.Files, name) {
		f.how, err = agent.Alone(f.files, record)
		return err
	}
	f.files = store.Files
	f.how = store.Format
	f.name = name
	return nil
}

// canStat reports whether a file can be stat.
func canStat(files storage.Files, name string) bool {
	_, err := files.Stat(name)
	return err == nil
}

// home returns the sessions of the agent's directory that has a file, and the file's name there. isSession is
// false if it has none, or the name is no session's.
func (s *Sources) home(agent *agents.Agent, file string) (store agents.Store, name string, isSession bool) {
	home, name, isInHome := splitHome(agent, file)
	if !isInHome {
		return store, "", false
	}
	key := home + "\x00" + agent.Name
	store, isOpen := s.homes[key]
	if !isOpen {
		store, _ = openHome(agent, home, s.temporary)
		s.homes[key] = store
	}
	return store, name, store.Files != nil && store.Format.IsSession(name)
}

// addComposed adds the sessions in the directory of an agent that keeps them in a database. isComposed is false
// for another directory.
func (s *Sources) addComposed(given, dir string) (isComposed bool, err error) {
	agent := agents.Of("/" + dir)
	store, names, err := composedIn(agent, "/"+dir, s.temporary)
	for _, name := range names {
		s.Found = append(s.Found, FoundFile{
			Path:   filepath.Join(given, name),
			files:  store.Files,
			name:   name,
			source: agent.Name,
			how:    store.Format,
			path:   path.Join("/", dir, name),
			from:   s,
		})
	}
	return store.Files != nil, err
}

// composedIn returns the names of the sessions in the directory of an agent that has no file for each. The
// store has no files for another agent, which may be nil.
func composedIn(agent *agents.Agent, at, temporary string) (store agents.Store, names []string, err error) {
	if agent == nil {
		return store, nil, nil
	}
	store, err = openHome(agent, at, temporary)
	files, ok := store.Files.(agents.Composed)
	if err != nil || !ok {
		return agents.Store{}, nil, err
	}
	scopes, err := storage.List(files, "")
	for _, scope := range scopes {
		items, failed := storage.List(files, scope.Name)
		if failed != nil {
			return store, names, failed
		}
		for _, item := range items {
			if item.Kind == storage.KindFile {
				names = append(names, path.Join(scope.Name, item.Name))
			}
		}
	}
	return store, names, err
}

// orphanIn returns the name in a store for the session of a subagent that lost its caller's session. ok is
// false if the file is none.
func orphanIn(store agents.Store, name string) (shown string, ok bool) {
	files, hasOrphans := store.Files.(agents.Orphans)
	if !hasOrphans {
		return "", false
	}
	return files.Orphan(name)
}

// isOrphan reports whether a file has the session of a subagent, and the calling session is gone.
func (s *Sources) isOrphan(file string) bool {
	return slices.ContainsFunc(agents.All(), func(a *agents.Agent) bool {
		store, name, _ := s.home(a, file)
		_, ok := orphanIn(store, name)
		return ok
	})
}

// openHome opens the sessions in an agent's directory, at a path. The store has no files if the directory
// cannot be opened.
func openHome(agent *agents.Agent, home, temporary string) (agents.Store, error) {
	disk, err := dir.Open(home)
	if err != nil {
		return agents.Store{}, err
	}
	below := func(name string) (storage.Files, string, error) {
		sub, err := disk.Sub(name)
		if err != nil {
			return nil, "", err
		}
		return sub, sub.Path(), nil
	}
	return agent.Open(agents.Source{
		Files:     disk,
		Path:      disk.Path(),
		Temporary: temporary,
		Sub:       below,
	})
}

// hides reports whether a file is one of an agent's sessions that the agent's directory does not
// show, since another file has the conversation.
func (s *Sources) hides(file string) bool {
	return slices.ContainsFunc(agents.All(), func(a *agents.Agent) bool {
		store, name, ok := s.home(a, file)
		if !ok {
			return false
		}
		_, err := store.Files.Stat(name)
		return storage.IsMissing(err)
	})
}

// splitHome splits a file's path, which has no first slash, into the path of an agent's directory and the name
// in its store. For home/a/.codex/sessions/2026/x.jsonl the directory is /home/a/.codex.
func splitHome(agent *agents.Agent, file string) (home, name string, ok bool) {
	last := 0
	for _, d := range agent.Dirs {
		mark := "/" + d + "/"
		at := strings.LastIndex(file, mark)
		if at > last { // of several the innermost one counts
			last = at
			home = "/" + file[:at]
			name = agent.NameOf(d, file[at+len(mark):])
		}
	}
	return home, name, last > 0
}

// isDocument reports whether a file is in an agent's directory a session that is one JSON object.
func isDocument(file string) bool {
	return strings.HasSuffix(file, documentEnding) && slices.ContainsFunc(agents.All(), func(a *agents.Agent) bool {
		_, name, ok := splitHome(a, file)
		return ok && sessioncore.IsSessionName(path.Base(name))
	})
}

const documentEnding = ".json"

// made makes a session of one of another agent, in a temporary directory. Callers must close it. The error
// is errEmpty for a session without a conversation, and errBomb for one that is too large.
func (im *Importer) made(ctx context.Context, f FoundFile, name string) (c *openSession, err error) {
	m := maker{Importer: im, found: f}
	store := f.store(name)
	defer store.Close()
	m.at, err = os.MkdirTemp(f.from.temporary, "sessionfs-import-")
	if err != nil {
		return nil, err
	}
	c, err = m.make(ctx, store.Session(name))
	if err != nil {
		_ = os.RemoveAll(m.at)
		return nil, err
	}
	return im.total.weigh(c, f.files, name)
}

// store returns the store with a session of another agent in the form of omp. pi's is in that already.
func (f *FoundFile) store(name string) *sessioncore.Store {
	how := f.how
	if how == nil {
		store := sessioncore.NewStore(f.files)
		store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByPi })
		return store
	}
	if !how.IsSession(name) {
		how = named{how}
	}
	store := sessioncore.NewStore(agents.NewFiles(f.files, how, nil, f.from.temporary))
	store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
	return store
}

var errEmpty = errors.New("there is no conversation in it")

// maker makes a session in a directory, which is laid out as an agent directory is.
type maker struct {
	*Importer
	found FoundFile
	at    string
	odd   int // blocks that omp does not know
}

const madeName = "made" + sessioncore.FileEnding

// make makes the session of an agent's session, with notes about the parts that changed.
func (m *maker) make(ctx context.Context, session *sessioncore.Session) (*openSession, error) {
	made, err := dir.Open(m.at)
	if err != nil {
		return nil, err
	}
	snap, err := session.Acquire(ctx)
	if errors.Is(err, sessioncore.ErrNotSession) {
		return nil, errEmpty
	}
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	if snap.Len() == 0 {
		return nil, errEmpty
	}
	base, err := m.write(ctx, snap)
	if err != nil {
		return nil, err
	}
	c, err := openContent(ctx, made, madeName)
	if err != nil {
		return nil, err
	}
	c.made = made
	c.base = base
	c.Modified = snap.Stat().ModTime()
	c.torn = 0
	if m.odd > 0 {
		c.notes = append(c.notes, fmt.Sprintf("blocks that were neither text nor image and are text now: %d", m.odd))
	}
	skipped := skippedLines(snap)
	if skipped > 0 {
		c.notes = append(c.notes, fmt.Sprintf("lines that are no records and left out: %d", skipped))
	}
	return c, nil
}

// skippedLines returns the number of lines of an agent's file that are no records.
func skippedLines(snap *sessioncore.Snapshot) (count int) {
	problems, _ := snap.Problems()
	for _, p := range problems {
		p = p.InOwnFile()
		if p.What == sessioncore.ProblemNoObject || p.What == sessioncore.ProblemSkipped {
			count++
		}
	}
	return count
}

// write writes the session: the branch to the entry that was named, else all of it. It returns its
// file's name.
func (m *maker) write(ctx context.Context, snap *sessioncore.Snapshot) (base string, err error) {
	header, _, err := snap.ReadHeader()
	if err != nil {
		return "", err
	}
	entries, leaf, err := m.entries(snap)
	if err != nil {
		return "", err
	}
	file, err := os.Create(filepath.Join(m.at, madeName))
	if err != nil {
		return "", err
	}
	defer file.Close()
	out := bufio.NewWriterSize(file, jsonl.ChunkSize)
	s := writer.ImportedSession{
		Origin: writer.ImportOrigin{
			Source:   m.found.source,
			Path:     m.found.path,
			Entry:    m.found.entry,
			Handover: m.found.handover,
		},
		Start: snap.HeaderTime(),
		End:   snap.HeaderTime(),
	}
	s.Origin.ID, _ = header.Member("id").Text()
	s.Origin.CWD, _ = header.Member("cwd").Text()
	s.Title, _ = header.Member("title").Text()
	if leaf != sessioncore.NoEntry {
		s.End = snap.Time(leaf)
		s.Leaf, _ = snap.ID(leaf)
	}
	s.WriteEntries = func() error {
		for _, e := range entries {
			err := m.entry(ctx, out, snap, e)
			if err != nil {
				return err
			}
		}
		return nil
	}
	base, err = m.Writer.WriteImported(ctx, out, s)
	if err != nil {
		return base, err
	}
	return base, out.Flush()
}

// entries returns the entries of the session to make, and its leaf: the branch to the named entry, else all.
// It completes the id of that entry.
func (m *maker) entries(snap *sessioncore.Snapshot) (entries []sessioncore.Entry, leaf sessioncore.Entry, err error) {
	if m.found.entry != "" {
		leaf, err = snap.FindBeginning(m.found.entry)
		if err != nil {
			return nil, leaf, err
		}
		m.found.entry, _ = snap.ID(leaf)
		return snap.Path(leaf), leaf, nil
	}
	leaf, err = snap.Leaf()
	for e := range sessioncore.Entry(snap.Len()) {
		entries = append(entries, e)
	}
	return entries, leaf, err
}

// entry writes an entry as omp keeps it, and the images in it as blobs. It leaves out moves of the leaf: the last
// entry of the session says where the conversation stands.
func (m *maker) entry(ctx context.Context, out io.Writer, snap *sessioncore.Snapshot, e sessioncore.Entry) error {
	text, err := snap.EntryText(e)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return err
	}
	_, isMove := snap.Dialect().MoveTarget(text)
	if isMove {
		return nil
	}
	kept, err := writer.Persist(m.adapted(text), writer.PersistRules{
		Blobs: m.Blobs != nil || m.Importer.Rules != nil,
		Newer: true,
		Whole: true,
	})
	if err != nil {
		return err
	}
	blobs := filepath.Join(m.at, "blobs")
	for _, blob := range kept.Blobs {
		err := os.MkdirAll(blobs, storage.DirMode)
		if err != nil {
			return err
		}
		err = os.WriteFile(filepath.Join(blobs, writer.BlobName(blob.Data)), blob.Data, storage.FileMode)
		if err != nil {
			return err
		}
	}
	_, err = out.Write(append(kept.Text, '\n'))
	return err
}

const (
	// noCost is the cost of a usage without a recorded one, and noUsage the usage of an answer without
	// any. omp's client fails without the numbers.
	noCost  = `"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0,"unrecorded":true}`
	noUsage = `"usage":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"totalTokens":0,` + noCost + `}`
	// maxOdd is the largest block, in bytes, that becomes a text as a whole.
	maxOdd = 4 << 10
)

// adapted returns an entry with the members that omp's client needs, and without those that it
// misreads. It counts the blocks that become texts.
func (m *maker) adapted(text rawjson.Value) rawjson.Value {
	e := &entryEditor{text: text}
	message := text.Member("message")
	switch {
	case text.Member("type").Is("compaction"): // it keeps nothing, unless it names an entry
		e.addMissing(text, "firstKeptEntryId", `"firstKeptEntryId":`+string(text.Member("id")))
		e.addMissing(text, "tokensBefore", `"tokensBefore":0`)
	case message.Member("role").Is("assistant"):
		usage := message.Member("usage")
		if usage.IsObject() {
			e.addMissing(usage, "cost", noCost)
		} else {
			e.addMissing(message, "usage", noUsage)
		}
	case text.Member("excludeFromContext").Truthy(): // omp would send it
		e.replace(text.Member("type"), `"custom"`)
	default:
		content := message.Member("content")
		if content == nil {
			content = text.Member("content") // of a custom_message
		}
		for block := range content.EachElement {
			if !isKnownBlock(block) {
				e.replace(block, textBlockOf(block))
				m.odd++
			}
		}
	}
	return e.edits.Apply(text)
}

// entryEditor collects the edits of an entry's text.
type entryEditor struct {
	text  rawjson.Value
	edits rawjson.Edits
}

// addMissing adds a member, which is JSON with its key, to an object in the text, unless that has the key.
func (e *entryEditor) addMissing(object rawjson.Value, key, member string) {
	if !object.Member(key).Missing() {
		return
	}
	isKey := func(m rawjson.Member) bool { return m.KeyIs(key) } // one that is null is replaced
	e.edits = e.edits.Object(object, object.OffsetIn(e.text), member, isKey)
}

// replace replaces a value in the text by JSON.
func (e *entryEditor) replace(value rawjson.Value, by string) {
	start := value.OffsetIn(e.text)
	e.edits = append(e.edits, rawjson.TextEdit{
		Start: start,
		End:   start + len(value),
		Text:  by,
	})
}

// isKnownBlock reports whether omp reads a block of a content: a text, or an image with its type.
func isKnownBlock(block rawjson.Value) bool {
	typ := block.Member("type")
	isText := typ.Is("text") && block.Member("text").IsString()
	isImage := typ.Is("image") && block.Member("data").IsString() && block.Member("mimeType").IsString()
	return isText || isImage
}

// textBlockOf returns a block with the JSON of another one as its text, or, for a long one, its type and size.
func textBlockOf(block rawjson.Value) string {
	text := string(block)
	if len(block) > maxOdd {
		typ, _ := block.Member("type").Text()
		text = fmt.Sprintf("[%s, %d bytes]", typ, len(block))
	}
	return `{"type":"text","text":` + string(rawjson.AppendQuoted(nil, text)) + `}`
}
