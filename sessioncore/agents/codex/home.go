package codex

import (
	"path"
	"strings"
	"sync"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

const (
	prefix, ending = "rollout-", ".jsonl"
	uuidSize       = 36
	// titlesName is the program's list of titles. The last title of a session counts.
	titlesName = "session_index.jsonl"
	// maxTitles bounds the size of that file.
	maxTitles = 16 << 20
)

// Home is ~/.codex: its rollouts, as in Days, and cached facts about them.
type Home struct {
	*Days
	root string // its absolute path

	titles     agents.Cached[map[string]string] // in the program's list, by thread
	beginnings agents.Cached[rolloutHead]       // of opened rollouts

	mu        sync.Mutex        // guards the fields below
	places    map[string]string // of rollouts, by id
	scannedAt time.Time         // the last scan for places
}

var (
	_ agents.FactsFormat = (*Home)(nil)
	_ agents.Joiner      = (*Home)(nil)
)

// New returns a Home of the files in root, an absolute path.
func New(files storage.Files, root string) *Home {
	h := &Home{Days: newDays(files), root: root}
	h.beginnings.OfBeginning = true
	return h
}

// IsSession implements agents.Format.
func (*Home) IsSession(name string) bool { return isRollout(path.Base(name)) }

// isRollout reports whether a file is a rollout, by its name.
func isRollout(base string) bool {
	return strings.HasPrefix(base, prefix) && strings.HasSuffix(base, ending)
}

// idOf returns the id of a rollout, the UUID at the end of its name, which may differ from its thread's. Of a short
// name it is all.
func idOf(name string) string {
	base := strings.TrimSuffix(path.Base(name), ending)
	return base[max(0, len(base)-uuidSize):]
}

// Converter implements agents.Format.
func (h *Home) Converter(about agents.About, obj storage.Object) *agents.Builder {
	b, _ := newConverter(h, about, obj, func() *lineReader { return h.originalOf(about, obj, maxForks) })
	return b
}

// maxForks bounds the depth of copies that are compared.
const maxForks = 32

// originalOf returns the lines of the rollout that obj, or the first rollout of its chain, may have copies of. It returns
// nil if there is none, for a list, and where depth, the number of rollouts that may follow, is 0.
func (h *Home) originalOf(about agents.About, obj storage.Object, depth int) *lineReader {
	if about.Listed || depth == 0 {
		return nil
	}
	j, isJoined := obj.(*joined)
	if isJoined && len(j.parts) > 0 {
		first := j.parts[0]
		about = h.FactsAbout(first.name)
	}
	name, _, ok := h.find(about.Parent)
	if !ok {
		return nil
	}
	open := func() (storage.Object, error) {
		return h.openJoined(name)
	}
	original := func() *lineReader {
		return h.originalOf(h.FactsAbout(name), nil, depth-1)
	}
	return newLines(open, original)
}

// About implements agents.Format. The title is from the program's list; for a list of sessions also
// from the rollout (titles.go).
func (h *Home) About(name string, obj storage.Object, size int64, listed bool) (about agents.About, err error) {
	about = agents.About{ID: idOf(name)}
	j, isJoined := obj.(*joined)
	if isJoined {
		about.Before = j.identity()
	}
	b, c := newConverter(h, about, obj, nil)
	about.Title = b.Title()
	add := func(v rawjson.Value) { b.Add(nil, v, 1) } // no fact depends on the line
	isTitleNeeded := listed && about.Title == ""
	switch {
	case !isTitleNeeded:
		err = agents.Head(obj, size, hasFacts, add)
		if c.isTitled { // by the list's title for the thread that the records name
			about.Title = b.Title()
		}
	case isJoined:
		about.Title, err = b.FindTitle(obj, size, hasFacts)
	default:
		err = h.promptOf(name, obj, size, add)
		if err == nil {
			about.Title, err = b.FindTitle(obj, size, hasFacts)
		}
	}
	about.Parent = c.parent
	about.Side = c.side
	return about, err
}

// FactsAbout implements agents.FactsFormat. Of a rollout that cannot be read only the id is known.
func (h *Home) FactsAbout(name string) agents.About {
	about := agents.About{ID: idOf(name)}
	obj, err := h.openJoined(name)
	if err != nil {
		return about
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err == nil {
		about, _ = h.About(name, obj, st.Size, false)
	}
	return about
}

// openJoined opens a rollout with its chain.
func (h *Home) openJoined(name string) (storage.Object, error) {
	obj, err := h.Open(name)
	if err == nil {
		obj = h.Join(name, obj)
	}
	return obj, err
}

// promptOf calls add for the records with the first prompt of a rollout that continues others. It does nothing for other
// rollouts. obj, of size bytes, is the rollout itself.
func (h *Home) promptOf(name string, obj storage.Object, size int64, add func(rawjson.Value)) error {
	j, isJoined := h.Join(name, obj).(*joined)
	if !isJoined || len(j.parts) == 0 {
		return nil
	}
	defer j.closePart() // obj remains open
	return agents.Head(j, size+j.size, hasFacts, add)
}

// Beside returns the title of a rollout in the program's list.
func (h *Home) Beside(name string) string { return h.title(idOf(name)) }

// title returns the title of a thread in the program's list, or "".
func (h *Home) title(id string) string {
	titles, _ := h.titles.Get(h.Raw, titlesName, func(st storage.Stat) (map[string]string, error) {
		if st.Kind != storage.KindFile || st.Size > maxTitles {
			return map[string]string{}, nil
		}
		text, err := storage.ReadFile(h.Raw, titlesName, st.Size)
		if err != nil {
			return map[string]string{}, err
		}
		return titlesIn(string(text)), nil
	})
	return titles[id]
}

// titlesIn returns the titles in the program's list by the ids of threads. The last title that is not empty counts.
func titlesIn(text string) map[string]string {
	titles := map[string]string{}
	for line := range strings.Lines(text) {
		v := rawjson.Value(rawjson.TrimSpace(line))
		if !rawjson.IsValidObject(v) {
			continue
		}
		id, _ := v.Member("id").Text()
		name, _ := v.Member("thread_name").Text()
		name = agents.Name(strings.TrimSpace(name))
		if name == "" {
			name = titles[id]
		}
		titles[id] = name
	}
	return titles
}

// rescanAfter is how long a rollout that was not found counts as missing: many sessions name
// parents that were removed, and a search scans all days.
const rescanAfter = 250 * time.Millisecond

// find returns the name of a thread's rollout in Days, and its state. ok is false if there is none. It scans all days for
// a rollout that it does not know, at most once in rescanAfter.
func (h *Home) find(id string) (name string, st storage.Stat, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, st, ok = h.locate(id)
	wasScanned := time.Since(h.scannedAt) < rescanAfter
	if ok || id == "" || wasScanned {
		return name, st, ok
	}
	err := h.scanPlaces()
	if err != nil {
		return "", st, false
	}
	return h.locate(id)
}

// scanPlaces sets the places of all rollouts, as far as days can be read. It changes nothing with an error. Callers must
// hold h.mu.
func (h *Home) scanPlaces() error {
	days, err := storage.List(h, "")
	if err != nil {
		return err
	}
	h.places = map[string]string{}
	for _, day := range days {
		_ = h.List(day.Name, nil, func(item storage.Item) bool {
			if item.Kind == storage.KindFile && isRollout(item.Name) {
				h.places[idOf(item.Name)] = path.Join(day.Name, item.Name)
			}
			return true
		})
	}
	h.scannedAt = time.Now()
	return nil
}

// locate is find without a scan. Callers must hold h.mu.
func (h *Home) locate(id string) (name string, st storage.Stat, ok bool) {
	name = h.places[id]
	if name == "" {
		return "", st, false
	}
	st, err := h.Stat(name)
	return name, st, err == nil
}
