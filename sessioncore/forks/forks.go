package forks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Home is an agent's directory that forks are made in.
type Home struct {
	// Agent is the agent, and Format its form.
	Agent  *agents.Agent
	Format agents.Forker
	// Files are the sessions in the agent's form, as in agents.Store.
	Files storage.Files
	// Journal returns the writer of one of Agent.Dirs.
	Journal func(dir string) (storage.Journal, error)
	// Memory bounds the texts in memory, and Temporary is the directory for longer ones.
	Memory    *budget.Budget
	Temporary string
	// Closed is the reason against all forks (-o ro, -o redact); nil if there is none.
	Closed error
	// Run runs a command of the agent in a working directory, for agents that take new sessions by one.
	// It is nil where no program is started.
	Run func(ctx context.Context, cwd string, command []string) error
	// Now is the clock.
	Now func() time.Time
}

// forkRefusal is a reason not to make a fork. It wraps sessioncore.ErrInvalid and its cause.
type forkRefusal struct{ cause error }

func (r *forkRefusal) Error() string   { return r.cause.Error() }
func (r *forkRefusal) Unwrap() []error { return []error{sessioncore.ErrInvalid, r.cause} }

// Fork makes a session that ends at the entry id of s, and returns its name in Files. The file appears
// when it is complete and its conversation begins with the one at the entry. title is the new session's,
// "" for none.
//
// The error wraps sessioncore.ErrNotFound for an unknown entry, sessioncore.ErrInvalid for one at
// which no fork can end, or an error of the storage.
func (h *Home) Fork(ctx context.Context, s *sessioncore.Session, id, title string) (name string, err error) {
	err = h.closed()
	if err != nil {
		return "", err
	}
	request := &agents.ForkRequest{
		Name:  s.Name(),
		ID:    agents.NewUUID(),
		Title: title,
		Time:  h.Now(),
	}
	want, err := h.readPath(ctx, s, id, request)
	if err != nil {
		return "", err
	}
	defer want.Close()
	room := budget.Room{
		Limit:  h.Memory,
		Memory: h.Memory.Kept(),
		Most:   inMemory,
		Dir:    h.Temporary,
	}
	text := room.New()
	defer text.Close()
	place, err := h.write(request, text)
	if err != nil {
		return "", err
	}
	name = place.Name(h.Agent)
	compare := func(got *document.Document) error {
		return compareMessages(want, got)
	}
	err = h.inFork(ctx, name, text, compare)
	if err != nil {
		return "", err
	}
	return name, h.place(ctx, place, text)
}

// largeFork is the size of a session from which on its fork evicts caches: its conversions take several
// times the memory of others.
const largeFork = 16 << 20

// readPath adds the path to the entry id to a request, and returns the context at the entry, which callers must
// close. It releases the session before the fork is converted, which takes as much memory again.
func (h *Home) readPath(
	ctx context.Context, s *sessioncore.Session, id string, request *agents.ForkRequest,
) (*document.Document, error) {
	snap, err := s.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	isLarge := snap.Stat().Size >= largeFork
	defer func() {
		snap.Release()
		if isLarge {
			h.Memory.Evict()
		}
	}()
	entry, err := snap.Find(id)
	if err != nil {
		return nil, err
	}
	entry, err = wholeLine(snap, entry)
	if err != nil {
		return nil, err
	}
	request.Path, err = pathLines(ctx, snap, entry)
	if err != nil {
		return nil, err
	}
	return snap.Context(ctx, entry, nil)
}

// closed returns the reason against all forks, nil if there is none.
func (h *Home) closed() error {
	byImport, isByImport := h.Format.(agents.ByImport)
	if h.Closed == nil && isByImport && h.Run == nil {
		return &forkRefusal{fmt.Errorf("%s takes a new session by the command %s, which sessionfs fork and sessionfs resume run",
			h.Agent.Title, strings.Join(byImport.ImportCommand(), " "))}
	}
	return h.Closed
}

// place puts a checked text where the agent finds it: into a new file, or by the agent's own command. The
// session's own file comes last, so that the session appears with all that is beside it.
func (h *Home) place(ctx context.Context, place agents.ForkPlace, text *budget.Text) error {
	byImport, isByImport := h.Format.(agents.ByImport)
	if isByImport {
		return h.importText(ctx, byImport, place, text)
	}
	journal, err := h.Journal(place.Dir)
	if err != nil {
		return err
	}
	for file, content := range place.Beside {
		err := create(journal, file, content)
		if err != nil {
			return err
		}
	}
	return create(journal, place.File, func(out io.Writer) error {
		_, err := io.Copy(out, io.NewSectionReader(text, 0, text.Size()))
		return err
	})
}

// importText has the agent take the text of a new session by its command. The error says so if the session is
// not in the agent's directory afterwards.
func (h *Home) importText(ctx context.Context, to agents.ByImport, place agents.ForkPlace, text *budget.Text) error {
	file, err := os.CreateTemp(h.Temporary, "sessionfs-import-*.json")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	out := bufio.NewWriterSize(file, 64<<10)
	name := place.Name(h.Agent)
	session := stagedFile{of: &staged{Files: h.Files, name: name, text: text}}
	cwd, err := to.Export(session, out)
	err = errors.Join(err, out.Flush(), file.Close())
	if err != nil {
		return err
	}
	err = h.Run(ctx, cwd, append(to.ImportCommand(), file.Name()))
	if err != nil {
		return err
	}
	_, err = h.Files.Stat(name)
	if storage.IsMissing(err) {
		return fmt.Errorf("%s took the new session, and keeps it elsewhere than in the directory of the original", h.Agent.Title)
	}
	return err
}

// create makes a file with a content, completely or not at all.
func create(journal storage.Journal, file string, content agents.Content) error {
	return storage.Replaced(journal.Replace(file, storage.Replacement{Write: content}))
}

// inMemory bounds the text of a fork in memory, in bytes. A longer one is in a nameless file until
// it is checked.
const inMemory = 1 << 20

// write writes the text of a fork, and returns its place. A reason of the agent's form against the fork
// becomes a refusal.
func (h *Home) write(request *agents.ForkRequest, text io.Writer) (agents.ForkPlace, error) {
	out := bufio.NewWriterSize(text, 64<<10)
	place, err := h.Format.Fork(request, out)
	if err == nil {
		err = out.Flush()
	}
	_, isRefused := errors.AsType[*agents.ForkError](err)
	if isRefused {
		err = &forkRefusal{err}
	}
	return place, err
}

// pathLines returns the lines of the records of the entries on the path to one.
func pathLines(ctx context.Context, snap *sessioncore.Snapshot, entry sessioncore.Entry) ([]agents.EntryLines, error) {
	var lines []agents.EntryLines
	for _, e := range snap.Path(entry) {
		err := ctx.Err()
		if err != nil {
			return nil, err
		}
		entryLines, err := linesOf(snap, e)
		if err != nil {
			return nil, err
		}
		lines = append(lines, entryLines)
	}
	return lines, nil
}

// linesOf returns the lines of the records of an entry, at least one.
func linesOf(snap *sessioncore.Snapshot, e sessioncore.Entry) (lines agents.EntryLines, err error) {
	origin, err := originOf(snap, e)
	if err != nil {
		return lines, err
	}
	lines.File, _ = origin.Member("path").Text()
	for line := range origin.Member("lines").EachElement {
		lines.Lines = append(lines.Lines, agents.Count(line))
	}
	if len(lines.Lines) == 0 { // an entry of one record has its line alone
		lines.Lines = []int64{agents.Count(origin.Member("line"))}
	}
	return lines, nil
}

// originSize is the size of the end of an entry that is searched for its member origin, in bytes.
const originSize = 512

// originOf returns the member origin of an entry, nil if it has none. Converters write it last, so that the end of
// most entries is enough.
func originOf(snap *sessioncore.Snapshot, e sessioncore.Entry) (rawjson.Value, error) {
	at, isRange := snap.EntryRange(e)
	if isRange {
		size := min(at.Size, originSize)
		end := make([]byte, size)
		err := storage.ReadFull(snap, end, at.Offset+at.Size-size)
		if err != nil {
			return nil, err
		}
		origin := lastOrigin(bytes.TrimSuffix(end, []byte("\n")))
		if origin != nil {
			return origin, nil
		}
	}
	text, err := snap.EntryText(e)
	return text.Member("origin"), err
}

// lastOrigin returns the member origin of an object with this end, nil if it begins before the end, or is not the
// last member.
func lastOrigin(end []byte) rawjson.Value {
	const key = `,"origin":`
	at := bytes.LastIndex(end, []byte(key+"{"))
	if at < 0 {
		return nil
	}
	origin := bytes.TrimSuffix(end[at+len(key):], []byte("}"))
	if !rawjson.IsValidObject(origin) {
		return nil
	}
	return origin
}

// wholeLine returns the last one of the entries that follow an entry and end with the same line: a line is
// copied whole. It is the entry itself if there are none.
func wholeLine(snap *sessioncore.Snapshot, entry sessioncore.Entry) (last sessioncore.Entry, err error) {
	own, err := linesOf(snap, entry)
	if err != nil {
		return entry, err
	}
	last = entry
	for e := entry + 1; int(e) < snap.Len(); e++ {
		if snap.Parent(e) != last {
			continue
		}
		next, err := linesOf(snap, e)
		if err != nil {
			return entry, err
		}
		endsAlike := slices.Max(next.Lines) == slices.Max(own.Lines)
		if next.File == own.File && endsAlike {
			last = e
		}
	}
	return last, nil
}

// inFork converts a fork that has no file yet, and calls f with the context at its leaf, which it closes
// afterwards. The error comes from f or the conversion.
func (h *Home) inFork(ctx context.Context, name string, text *budget.Text, f func(got *document.Document) error) error {
	withFork := &staged{
		Files: h.Files,
		name:  name,
		text:  text,
	}
	files := agents.NewFiles(withFork, h.Format, h.Memory, h.Temporary)
	store := sessioncore.NewStore(files)
	defer store.Close()
	store.SetProgram(func(string) sessioncore.Program { return sessioncore.ByOMP })
	forked, err := store.Session(name).Acquire(ctx)
	if err != nil {
		return err
	}
	defer forked.Release()
	leaf, err := forked.Leaf()
	if err != nil {
		return err
	}
	got, err := forked.Context(ctx, leaf, nil)
	if err != nil {
		return err
	}
	defer got.Close()
	return f(got)
}

// staged is the files of an agent with a fork that has no file yet.
type staged struct {
	storage.Files
	name string
	text *budget.Text
}

// stat returns the state of the fork.
func (s *staged) stat() storage.Stat {
	return storage.Stat{Kind: storage.KindFile, Mode: storage.FileMode, Token: storage.Token{Size: s.text.Size()}}
}

// Stat implements storage.Files.
func (s *staged) Stat(name string) (storage.Stat, error) {
	if path.Clean(name) == s.name {
		return s.stat(), nil
	}
	return s.Files.Stat(name)
}

// Open implements storage.Files.
func (s *staged) Open(name string) (storage.Object, error) {
	if path.Clean(name) == s.name {
		return stagedFile{of: s}, nil
	}
	return s.Files.Open(name)
}

// stagedFile is the open fork. Its text belongs to the caller of Fork.
type stagedFile struct{ of *staged }

// ReadAt implements storage.Object.
func (f stagedFile) ReadAt(p []byte, off int64) (int, error) {
	return io.NewSectionReader(f.of.text, 0, f.of.text.Size()).ReadAt(p, off)
}
func (f stagedFile) Close() error                { return nil }
func (f stagedFile) Stat() (storage.Stat, error) { return f.of.stat(), nil }
