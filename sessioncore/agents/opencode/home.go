package opencode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/budget"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/sqlite"
)

const (
	databaseEnding = ".db"
	documentsDir   = "storage"
	sessionDir     = "session"
	idPrefix       = "ses_"
	ending         = ".jsonl"
	// inMemory bounds a session's text in memory, in bytes. Longer ones go to a nameless file.
	inMemory = 1 << 20
	// small is the largest size of a text that is not worth a file, in bytes.
	small = 16 << 10
)

// home shows the sessions as DIRECTORY/ID.jsonl, where DIRECTORY is the working directory with - for each
// slash, and texts of subagents as DIRECTORY/ID/subagents/ID.jsonl. It implements storage.Files and agents.Format.
type home struct {
	name      string // the agent's
	files     storage.Files
	databases []*sqlite.Database
	documents *documents
	kept      *keptTexts
	texts     budget.Room

	mu    sync.Mutex            // guards the fields below
	last  storage.Cached[*list] // of the databases, the documents and the kept texts together
	owner storage.Stat          // of the agent's directory: all that is shown has its user and group
	sizes map[string]textSize   // of texts that were made, by session
	forks map[string]string     // the origins of forks, by the forks' ids; "" for none
}

// textSize is the size of a session's text in one version, in bytes.
type textSize struct {
	version int64
	size    int64
}

var _ agents.Billed = (*home)(nil)

// Composed implements agents.Composed.
func (h *home) Composed() {}

// session has the facts of a session outside its messages.
type session struct {
	id, parent, directory, title, revert, version string
	metadata                                      string // JSON that the client keeps for others

	created, updated int64            // ms
	count            int64            // of its events: it changes with the session
	unread           int64            // its messages in a table that is not read
	isDamaged        bool             // a part of its rows cannot be read
	database         *sqlite.Database // nil for documents
	tables           *schema          // of the database
	text             string           // the name of a kept text, "" for none
}

// state returns the time in ns at which the session changed. The client's clock counts ms; the ns in one are those of the
// count, which tells two changes in one ms apart. The sum is no time to come, with which each list would read the
// session again.
func (s *session) state() int64 { return s.updated*nanoseconds + s.count%nanoseconds }

// tells reports whether the row of a session changes with all of it, messages and parts included.
func (s *session) tells() bool { return s.database != nil && s.tables.hasCounts }

// nanoseconds is how many ns a ms has.
const nanoseconds = 1_000_000

// list is all sessions at one moment. Sessions are added, and sort is called once, before others have it.
type list struct {
	sessions map[string]*session
	ids      []string            // theirs, as they were read: nearly in order, which sort makes use of
	top      map[string][]string // sessions of no other session, by the names of their directories
	dirs     map[string]string   // the names of their directories, by session
	below    map[string][]string // sessions of subagents, by the session that called each

	byDirectory func() map[string][]*session // all sessions, by their working directories; made at its first call

	mu      sync.Mutex       // guards changes
	changes map[string]int64 // see changeOf; by directory
}

// newList returns a list without sessions.
func newList() *list {
	l := &list{
		sessions: map[string]*session{},
		top:      map[string][]string{},
		dirs:     map[string]string{},
		below:    map[string][]string{},
		changes:  map[string]int64{},
	}
	l.byDirectory = sync.OnceValue(l.groupByDirectory)
	return l
}

// groupByDirectory returns all sessions by their working directories, each one's in no order.
func (l *list) groupByDirectory() map[string][]*session {
	groups := map[string][]*session{}
	for _, s := range l.sessions {
		groups[s.directory] = append(groups[s.directory], s)
	}
	return groups
}

// newHome returns the home of an agent with a name, whose database has a name too. A client of another channel has
// DATABASE-CHANNEL.db in the same place. All databases that are there now are read.
func newHome(source agents.Source, name, database string) *home {
	room := budget.Room{
		Limit:  source.Memory,
		Memory: source.Memory.Kept(),
		Most:   inMemory,
		Free:   small,
		Dir:    source.Temporary,
	}
	h := &home{
		name:      name,
		files:     source.Files,
		documents: &documents{files: source.Files},
		kept:      &keptTexts{files: source.Files},
		texts:     room,
		sizes:     map[string]textSize{},
		forks:     map[string]string{},
	}
	items, _ := storage.List(source.Files, "") // it may be missing
	for _, item := range items {
		base, isDatabase := strings.CutSuffix(item.Name, databaseEnding)
		if isDatabase && (base == database || strings.HasPrefix(base, database+"-")) {
			h.databases = append(h.databases, &sqlite.Database{Files: source.Files, Name: item.Name})
		}
	}
	return h
}

// sessions returns all sessions. It reads them again when a database or the documents changed. Where a
// database cannot be read then, the sessions are the last ones that were.
func (h *home) sessions() (*list, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	readAt := time.Now().UnixNano()
	state, err := h.state()
	if err != nil {
		return nil, err
	}
	if h.last.IsOf(state) {
		return h.last.Value, nil
	}
	l, err := h.readList()
	if errors.Is(err, sqlite.ErrUnreadable) && h.last.Value != nil {
		l = h.last.Value // the database is tried again after the next change
		err = nil
	}
	if err != nil {
		return nil, err
	}
	owner, err := h.files.Stat("")
	if err != nil && !storage.IsMissing(err) {
		return nil, err
	}
	h.owner = owner
	h.last = storage.Cached[*list]{Value: l, Token: state, ReadAt: readAt}
	return l, nil
}

// state returns a token that changes with the list of the sessions.
func (h *home) state() (storage.Token, error) {
	state := h.documents.state().With(h.kept.state())
	for _, d := range h.databases {
		token, err := d.State()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return storage.Token{}, err
		}
		state = state.With(token)
	}
	return state, nil
}

// readList reads all sessions. A session of a database comes before a document or a kept text of the same id.
func (h *home) readList() (*list, error) {
	l := newList()
	for _, d := range h.databases {
		err := readSessions(d, l)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	h.documents.readSessions(l)
	err := h.kept.readSessions(l)
	if err != nil {
		return nil, err
	}
	l.sort()
	return l, nil
}

// add adds a session unless it is known, or its id is none of the client's or no name of a file.
func (l *list) add(s *session) {
	isName := storage.CheckName(s.id) == nil && !strings.Contains(s.id, "/")
	isID := isName && strings.HasPrefix(s.id, idPrefix)
	if isID && l.sessions[s.id] == nil {
		l.sessions[s.id] = s
		l.ids = append(l.ids, s.id)
	}
}

// sort gives each session its place: in the directory of a caller that is there, or in one of its own working directory.
func (l *list) sort() {
	dirs := map[string]string{} // by working directory: many sessions have the same one
	for _, id := range l.ids {
		s := l.sessions[id]
		if l.isCalled(s) {
			l.below[s.parent] = append(l.below[s.parent], id)
			continue
		}
		dir, isKnown := dirs[s.directory]
		if !isKnown {
			dir = nameOfDirectory(s.directory)
			dirs[s.directory] = dir
		}
		l.top[dir] = append(l.top[dir], id)
		l.dirs[id] = dir
	}
	for _, ids := range l.top {
		slices.Sort(ids)
	}
	for _, ids := range l.below {
		slices.Sort(ids)
	}
}

// isCalled reports whether another session that is there called a session. One with a circle of callers, or with too
// many, counts as called by none: else it would be below no directory.
func (l *list) isCalled(s *session) bool {
	caller := l.sessions[s.parent]
	if s.parent == "" || caller == nil {
		return false
	}
	for range maxDepth {
		if caller == nil {
			return true
		}
		caller = l.sessions[caller.parent]
	}
	return false
}

// maxDepth bounds how deep subagents may call each other.
const maxDepth = 32

const (
	// maxName bounds the name of a directory, in bytes: file systems have 255, and copies need some for an ending.
	maxName = 200
	// hashRoom is the number of bytes in maxName for a hash and the hyphens before it.
	hashRoom = 20
)

// pathMarks are the characters of a path that no name of a directory has, or not everywhere.
var pathMarks = strings.NewReplacer("/", "-", `\`, "-", ":", "-", "\x00", "-")

// nameOfDirectory returns the name under which the sessions of a working directory lie. Where the directory itself gives
// no usable name, it has a hash.
func nameOfDirectory(directory string) string {
	name := pathMarks.Replace(directory)
	isUsable := name != "" && len(name) <= maxName && name[0] != '.'
	if isUsable {
		return name
	}
	start := name[:min(len(name), maxName-hashRoom)]
	return fmt.Sprintf("-%s-%x", start, hashOf(directory))
}

// find returns the session of a shown name, nil for the name of none.
func (l *list) find(name string) *session {
	id, isFile := strings.CutSuffix(path.Base(name), ending)
	s := l.sessions[id]
	if !isFile || s == nil {
		return nil
	}
	dir, below, _ := strings.Cut(name, "/")
	caller, rest, isBelow := strings.Cut(below, "/")
	isShown := false
	if isBelow {
		isSubagents := path.Dir(rest) == agents.Subagents && l.isIn(dir, caller)
		isShown = isSubagents && slices.Contains(l.allBelow(caller), id)
	} else {
		isShown = l.isIn(dir, id)
	}
	if !isShown {
		return nil
	}
	return s
}

// isIn reports whether a session lies in a directory at the top. A subagent's lies in none.
func (l *list) isIn(dir, id string) bool {
	own, isTop := l.dirs[id]
	return isTop && own == dir
}

// allBelow returns the sessions of the subagents of a session, of their subagents, and so on. Each is there once, also where
// their callers form a circle.
func (l *list) allBelow(id string) (ids []string) {
	isFound := map[string]bool{id: true}
	waiting := []string{id}
	for len(waiting) > 0 {
		caller := waiting[0]
		waiting = waiting[1:]
		for _, called := range l.below[caller] {
			if isFound[called] {
				continue
			}
			isFound[called] = true
			ids = append(ids, called)
			waiting = append(waiting, called)
		}
	}
	return ids
}

// names returns the names in a directory, and whether it is one that is shown: the root, DIRECTORY, DIRECTORY/ID or
// DIRECTORY/ID/subagents.
func (l *list) names(dir string) (items []storage.Item, ok bool) {
	if dir == "" {
		return l.rootNames(), true
	}
	top, below, isBelow := strings.Cut(dir, "/")
	if !isBelow {
		return l.topNames(top), l.top[top] != nil
	}
	caller, rest, isDeeper := strings.Cut(below, "/")
	hasSubagents := l.isIn(top, caller) && len(l.below[caller]) > 0
	switch {
	case !hasSubagents:
		return nil, false
	case !isDeeper:
		return []storage.Item{{Name: agents.Subagents, Kind: storage.KindDir}}, true
	case rest != agents.Subagents:
		return nil, false
	}
	for _, id := range l.allBelow(caller) {
		items = append(items, fileItem(id))
	}
	return items, true
}

// rootNames returns the names of the directories at the top, in no order.
func (l *list) rootNames() (items []storage.Item) {
	for name := range l.top {
		items = append(items, storage.Item{Name: name, Kind: storage.KindDir})
	}
	return items
}

// topNames returns the names in a directory at the top: each session, and a directory beside one that called subagents.
func (l *list) topNames(dir string) (items []storage.Item) {
	for _, id := range l.top[dir] {
		items = append(items, fileItem(id))
		if len(l.below[id]) > 0 {
			items = append(items, storage.Item{Name: id, Kind: storage.KindDir})
		}
	}
	return items
}

// fileItem returns the item of a session.
func fileItem(id string) storage.Item { return storage.Item{Name: id + ending, Kind: storage.KindFile} }

// List implements storage.Files.
func (h *home) List(dir string, only []string, f func(storage.Item) bool) error {
	if only != nil {
		return storage.ListOnly(h, dir, only, f)
	}
	l, err := h.sessions()
	if err != nil {
		return err
	}
	items, ok := l.names(dir)
	if !ok {
		return agents.Missing(dir)
	}
	for _, item := range items {
		item.State = func() (storage.Stat, error) {
			if item.Kind == storage.KindFile {
				return h.stateOf(l.sessions[strings.TrimSuffix(item.Name, ending)]), nil
			}
			return h.stat(l, path.Join(dir, item.Name))
		}
		if !f(item) {
			break
		}
	}
	return nil
}

// Stat implements storage.Files. The size is the one of the session's text, which is made for it unless it is
// known. The State of an Item has a guess in its place.
func (h *home) Stat(name string) (storage.Stat, error) {
	l, err := h.sessions()
	if err != nil {
		return storage.Stat{}, err
	}
	s := l.find(name)
	if s == nil || h.isMeasured(s) {
		return h.stat(l, name)
	}
	s, text, err := h.textOf(name, s)
	if err != nil {
		return storage.Stat{}, err
	}
	text.Close()
	return h.stateOf(s), nil
}

// isMeasured reports whether the size of a session's text in its state is known.
func (h *home) isMeasured(s *session) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sizes[s.id].version == s.state()
}

// stat returns the state of a name in a list, with a guess as the size of a text that was not made. A directory changes with
// the names in it.
func (h *home) stat(l *list, name string) (storage.Stat, error) {
	s := l.find(name)
	if s != nil {
		return h.stateOf(s), nil
	}
	changed, ok := l.changeOf(name)
	if !ok {
		return storage.Stat{}, agents.Missing(name)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.newStat(storage.KindDir, storage.DirMode)
	st.Inode = hashOf("/" + name)
	st.Changed = changed
	return st, nil
}

// changeOf returns a number that changes with the names in a directory, and whether it is one. As a time it is before all
// clients, so that a directory counts as settled. It is a sum without an order: names comes in any.
func (l *list) changeOf(dir string) (change int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change, isKnown := l.changes[dir]
	if isKnown {
		return change, true
	}
	items, ok := l.names(dir)
	if !ok {
		return 0, false
	}
	sum := uint64(0)
	for _, item := range items {
		sum ^= hashOf(item.Name)
	}
	change = int64(sum % firstClient)
	l.changes[dir] = change
	return change, true
}

// newStat returns a state with the owner of the agent's directory. Callers must hold h.mu.
func (h *home) newStat(kind storage.Kind, mode uint32) storage.Stat {
	return storage.Stat{Kind: kind, Mode: mode, UID: h.owner.UID, GID: h.owner.GID}
}

// firstClient is a time before all clients, in ns. A state below it is settled.
const firstClient = 1_000_000_000 * uint64(time.Second)

// hashOf returns the FNV-1a hash of a text. A list needs three of each session, without memory for a hash.Hash.
func hashOf(text string) uint64 {
	const offset, prime = 14695981039346656037, 1099511628211
	sum := uint64(offset)
	for i := range len(text) {
		sum ^= uint64(text[i])
		sum *= prime
	}
	return sum
}

// guessedSize is the size of a session without a text yet, in bytes.
const guessedSize = 4096

// stateOf returns the state of a session, with guessedSize unless its text was made in this state.
func (h *home) stateOf(s *session) storage.Stat {
	h.mu.Lock()
	defer h.mu.Unlock()
	st := h.newStat(storage.KindFile, storage.FileMode)
	st.Inode = hashOf(s.id)
	st.Modified = s.updated * nanoseconds
	st.Changed = s.state()
	st.Size = guessedSize
	known := h.sizes[s.id]
	if known.version == s.state() {
		st.Size = known.size
	}
	return st
}

// Open implements storage.Files. The object is the text of the session in the state of its first use, as
// a list opens many sessions and needs no text of most.
func (h *home) Open(name string) (storage.Object, error) {
	o, err := h.objectOf(name)
	if err != nil {
		return nil, err
	}
	return o, nil
}

// objectOf returns the object of a session in the present list, without its text.
func (h *home) objectOf(name string) (*object, error) {
	l, err := h.sessions()
	if err != nil {
		return nil, err
	}
	s := l.find(name)
	if s == nil {
		return nil, agents.Missing(name)
	}
	return &object{home: h, name: name, list: l, session: s}, nil
}

// textOf makes the text of a name's session, which was earlier in a list, and returns the session as it is in the text. Only
// where the row of the session is gone, does not tell all, or has another place, the list is read before. Callers must
// close the text.
func (h *home) textOf(name string, earlier *session) (*session, *budget.Text, error) {
	if earlier.tells() {
		now, text, err := h.makeText(earlier)
		if err == nil && now.isPlacedAs(earlier) {
			return now, text, nil
		}
		if err == nil {
			text.Close()
		}
	}
	l, err := h.sessions()
	if err != nil {
		return nil, nil, err
	}
	s := l.find(name)
	if s == nil {
		return nil, nil, agents.Missing(name)
	}
	return h.makeText(s)
}

// isPlacedAs reports whether a session has the same name as in an earlier state, as far as its own row tells.
func (s *session) isPlacedAs(earlier *session) bool {
	return s.directory == earlier.directory && s.parent == earlier.parent
}

// makeText makes the text of a session, notes its size, and returns the session as it is in the text. Callers must close
// the text.
func (h *home) makeText(s *session) (*session, *budget.Text, error) {
	text := h.texts.New()
	var err error
	now := s
	switch {
	case s.database != nil:
		now, err = writeRows(context.Background(), s, text)
	case s.text != "":
		err = h.kept.write(s, text)
	default:
		err = h.documents.write(s, text)
	}
	if err == nil && now == nil {
		err = agents.Missing(s.id)
	}
	if err != nil {
		text.Close()
		return nil, nil, err
	}
	h.mu.Lock()
	h.sizes[s.id] = textSize{version: now.state(), size: text.Size()}
	h.mu.Unlock()
	return now, text, nil
}

// ReadAhead implements storage.Files.
func (h *home) ReadAhead([]string) {}

var _ agents.FactsFormat = (*home)(nil)

// IsSession implements agents.Format.
func (h *home) IsSession(name string) bool {
	return strings.HasPrefix(path.Base(name), idPrefix) && strings.HasSuffix(name, ending)
}

// FactsAbout implements agents.FactsFormat.
func (h *home) FactsAbout(name string) agents.About {
	isSide := path.Base(path.Dir(name)) == agents.Subagents
	return agents.About{ID: strings.TrimSuffix(path.Base(name), ending), Side: isSide}
}

// About implements agents.Format. A text that lies alone, outside of any home, has no list: only its name and its records tell
// of it.
func (h *home) About(name string, obj storage.Object, size int64, listed bool) (agents.About, error) {
	about := h.FactsAbout(name)
	if h.files != nil {
		l, err := h.sessions()
		if err != nil {
			return about, err
		}
		s := l.find(name)
		if s != nil {
			about = h.aboutIn(l, name, s)
		}
	}
	if !listed || about.Title != "" {
		return about, nil
	}
	var err error
	about.Title, err = h.Converter(about, obj).FindTitle(obj, size, func([]byte) bool { return true })
	return about, err
}

// aboutIn returns the facts about a session that its records do not have, as a list tells them.
func (h *home) aboutIn(l *list, name string, s *session) agents.About {
	about := h.FactsAbout(name)
	about.Title = titleOf(s.title)
	about.Parent = h.origin(l, s)
	return about
}

// forkMark is in the title of a fork, behind the title of its origin. Nothing else names the origin.
const forkMark = " (fork #"

// origin returns the id of the session that called a session, was its original before a fork, or was handed over to it; ""
// for none. A caller that is gone is none, as the session is no fork of it. A search for the original reads the database,
// once for each fork.
func (h *home) origin(l *list, s *session) string {
	handed := agents.OriginIn(agents.Read(agents.ObjectIn([]byte(s.metadata))), s.id)
	if handed != "" {
		return handed
	}
	if l.isCalled(s) {
		return s.parent
	}
	mayBeFork := s.parent == "" && s.database != nil && strings.Contains(s.title, forkMark)
	if !mayBeFork {
		return ""
	}
	h.mu.Lock()
	origin, isKnown := h.forks[s.id]
	h.mu.Unlock()
	if isKnown {
		return origin
	}
	origin, err := findOrigin(context.Background(), l, s)
	if err != nil {
		return "" // the text cannot be read either
	}
	h.mu.Lock()
	h.forks[s.id] = origin
	h.mu.Unlock()
	return origin
}

// titleOf returns a title as it is shown, "" for one that the client gives before the first answer.
func titleOf(title string) string {
	if strings.HasPrefix(title, "New session - ") || strings.HasPrefix(title, "Child session - ") {
		return ""
	}
	return agents.FirstLine(title)
}

// Converter implements agents.Format.
func (h *home) Converter(about agents.About, _ storage.Object) *agents.Builder {
	provider := agents.Provider{API: h.name, Name: h.name, Model: "unknown"}
	return agents.NewBuilder(about, provider, newConverter)
}

// byTime orders messages as the client does: by their times, and within a ms by their ids.
func byTime(x, y *messageLine) int {
	order := cmp.Compare(x.created, y.created)
	if order == 0 {
		order = strings.Compare(x.id, y.id)
	}
	return order
}
