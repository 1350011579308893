package codex

import (
	"cmp"
	"path"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

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
	Days
	root string // its absolute path

	titles agents.Cached[map[string]string] // in the program's list, by thread
	days   agents.Cached[map[string]string] // rollouts by id, by directory

	mu      sync.Mutex        // guards the fields below
	places  map[string]string // of rollouts, by id
	daysAt  time.Time         // the last scan of all days
	prompts map[string]string // titles from first prompts, by the name of a rollout that others continue

	beginnings *lru.Cache[string, beginning] // of opened rollouts, by name

	parents parents
}

var (
	_ agents.Format = (*Home)(nil)
	_ agents.Joiner = (*Home)(nil)
)

// New returns a Home of files, whose absolute path is root.
func New(files storage.Files, root string) *Home {
	h := &Home{Days: Days{files}, root: root, prompts: map[string]string{}}
	h.beginnings, _ = lru.New[string, beginning](maxBeginnings)
	h.parents.init(h.Days)
	return h
}

// IsSession implements agents.Format.
func (*Home) IsSession(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, prefix) && strings.HasSuffix(base, ending)
}

// idOf returns the id of a rollout, which may differ from its thread's.
func idOf(name string) string {
	base := strings.TrimSuffix(path.Base(name), ending)
	return base[max(0, len(base)-uuidSize):]
}

// Converter implements agents.Format.
func (h *Home) Converter(about agents.About, obj storage.Object) agents.Converter {
	begin := func(about agents.About) *converter {
		if j, ok := obj.(*joined); ok {
			return newConverter(about, j.chain, nil)
		}
		return newConverter(about, nil, h.parentLines(about))
	}
	return &titleFinder{converter: begin(about), begin: begin, home: h, listTitle: h.title(about.ID)}
}

// parentLines returns the lines of the rollout from which one may have copies, or nil.
func (h *Home) parentLines(about agents.About) *lines {
	if about.Parent == "" || about.Listed {
		return nil
	}
	name, _, ok := h.find(about.Parent)
	if !ok {
		return nil
	}
	return newLines(func() (storage.Object, error) {
		obj, err := h.Open(name)
		if err == nil {
			obj = h.Join(name, obj)
		}
		return obj, err
	})
}

// About implements agents.Format. The title is from the program's list; for a list of sessions also
// from the rollout (titles).
func (h *Home) About(name string, obj storage.Object, size int64, listed bool) (agents.About, error) {
	about := agents.About{ID: idOf(name), Title: h.title(idOf(name))}
	if j, ok := obj.(*joined); ok {
		about.Before = j.identity()
	}
	var titles titles
	err := agents.Ends(obj, size, mayHaveFacts, func(v rawjson.Value, isHead bool) {
		before := titles.metas
		if titles.add(v, isHead); titles.metas > before && titles.metas <= 2 {
			about.Parent, about.Side = parentOf(payloadOf(v), about, titles.metas)
		}
	})
	if about.Title == "" && titles.metas > 0 {
		about.Title = h.title(titles.thread) // a reverted thread continues in another file
	}
	if err != nil || !listed || about.Title != "" {
		return about, err
	}
	if about.Title = titles.name; about.Title == "" && titles.base != "" && about.Before == "" {
		about.Title = h.titleOf(titles.base)
	}
	if about.Title == "" && titles.prompt == "" {
		err = agents.Beyond(obj, size, mayHaveFacts, func(v rawjson.Value) bool {
			titles.add(v, true)
			return titles.prompt == ""
		})
	}
	about.Title = cmp.Or(about.Title, titles.prompt)
	return about, err
}

// parentOf returns the parent thread of a fork or subagent, from its first or second session_meta.
func parentOf(meta rawjson.Value, about agents.About, nth int) (parent string, side bool) {
	if nth == 2 {
		if id, ok := meta.Member("id").Text(); ok && about.Parent == "" && id != about.ID {
			return id, about.Side
		}
		return about.Parent, about.Side
	}
	kind := subagentOf(meta.Member("source"), meta.Member("thread_source"))
	ids := []rawjson.Value{
		meta.Member("history_base").Member("thread_id"), meta.Member("forked_from_id"), meta.Member("parent_thread_id"),
		kind.Member("parent_thread_id"),
	}
	kind.EachMember(func(m rawjson.Member) bool { // thread_spawn and others
		ids = append(ids, m.Value.Member("parent_thread_id"))
		return true
	})
	for _, v := range ids {
		if id, ok := v.Text(); ok && id != about.ID && parent == "" {
			parent = id
		}
	}
	return parent, len(kind) > 0
}

// subagentOf returns the subagent or reviewer that owns a session_meta.
func subagentOf(source, thread rawjson.Value) rawjson.Value {
	switch kind := source.Member("subagent"); {
	case !kind.Missing():
		return kind
	case source.Is("subagent"), thread.Is("subagent"):
		return rawjson.Value(`"subagent"`)
	}
	return nil
}

// Beside returns the title of a rollout in the program's list.
func (h *Home) Beside(name string) string { return h.title(idOf(name)) }

// title returns the title of a thread in the program's list, or "".
func (h *Home) title(id string) string {
	titles, _ := h.titles.Get(h.Home, titlesName, func(st storage.Stat) (map[string]string, error) {
		titles := map[string]string{}
		if st.Kind != storage.KindFile || st.Size > maxTitles {
			return titles, nil
		}
		text, err := storage.ReadFile(h.Home, titlesName, st.Size)
		for line := range strings.Lines(string(text)) {
			if v := rawjson.Value(rawjson.TrimSpace(line)); err == nil && rawjson.IsValidObject(v) {
				id, _ := v.Member("id").Text()
				titles[id], _ = v.Member("thread_name").Text()
			}
		}
		return titles, err
	})
	return titles[id]
}

// rescanAfter is how long a rollout that was not found counts as missing: many sessions name
// parents that were removed, and a search scans all days.
const rescanAfter = 250 * time.Millisecond

// find returns the name of a thread's rollout in Days, and its state.
func (h *Home) find(id string) (name string, st storage.Stat, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if name, st, ok = h.locate(id); ok || time.Since(h.daysAt) < rescanAfter {
		return name, st, ok
	}
	days, err := storage.List(h, "")
	if err != nil {
		return "", st, false
	}
	h.places = map[string]string{}
	for _, day := range days {
		for id, name := range h.rolloutsOf(day.Name) {
			h.places[id] = path.Join(day.Name, name)
		}
	}
	h.daysAt = time.Now()
	return h.locate(id)
}

// locate is find without a scan. Callers must hold h.mu.
func (h *Home) locate(id string) (name string, st storage.Stat, ok bool) {
	if name = h.places[id]; name == "" {
		return "", st, false
	}
	st, err := h.Stat(name)
	return name, st, err == nil
}

// rolloutsOf returns the rollouts of a day by their ids, as far as they can be read.
func (h *Home) rolloutsOf(day string) map[string]string {
	names, _ := h.days.Get(h, day, func(storage.Stat) (map[string]string, error) {
		names := map[string]string{}
		err := h.List(day, nil, func(item storage.Item) bool {
			if item.Kind == storage.KindFile && h.IsSession(item.Name) {
				names[idOf(item.Name)] = item.Name
			}
			return true
		})
		return names, err
	})
	return names
}
