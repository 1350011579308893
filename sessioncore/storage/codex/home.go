package codex

import (
	"path"
	"strings"
	"sync"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	prefix, ending = "rollout-", ".jsonl"
	uuidSize       = 36
	// titlesName is where the program keeps the titles of sessions. Of several for one the last counts.
	titlesName = "session_index.jsonl"
	// maxTitles is how large that file may be, and maxTitle how many bytes of a first message are a title.
	maxTitles, maxTitle = 16 << 20, 200
)

// Home is ~/.codex: its rollouts, as Days shows them, and what is known of them.
type Home struct {
	Days
	root string // its absolute path

	mu       sync.Mutex // guards what follows
	titles   map[string]string
	titlesAt storage.Token
	places   map[string]string // of rollouts, by id
	placesAt storage.Stat
	// beginnings has the rollouts that were opened, by name.
	beginnings map[string]beginning

	parents parents
}

var (
	_ foreign.Agent  = (*Home)(nil)
	_ foreign.Joiner = (*Home)(nil)
)

// New returns the Home that files are, whose absolute path is root.
func New(files storage.Files, root string) *Home {
	h := &Home{Days: Days{files}, root: root, beginnings: map[string]beginning{}}
	h.parents.init(h.Days)
	return h
}

// IsSession implements foreign.Agent.
func (*Home) IsSession(name string) bool {
	base := path.Base(name)
	return strings.HasPrefix(base, prefix) && strings.HasSuffix(base, ending)
}

// idOf returns the id of a rollout: that of its thread, or another one where the thread has several.
func idOf(name string) string {
	base := strings.TrimSuffix(path.Base(name), ending)
	return base[max(0, len(base)-uuidSize):]
}

// Converter implements foreign.Agent.
func (h *Home) Converter(about foreign.About, obj storage.Object) foreign.Converter {
	if j, ok := obj.(*joined); ok {
		return newConverter(about, j.chain, nil)
	}
	var parent *lines
	if about.Parent != "" {
		if name, _, ok := h.find(about.Parent); ok {
			parent = &lines{open: func() (storage.Object, error) {
				obj, err := h.Open(name)
				if err == nil {
					obj = h.Join(name, obj)
				}
				return obj, err
			}}
		}
	}
	return newConverter(about, nil, parent)
}

// About implements foreign.Agent. The title is the one that the person gave, else what the person said first, which the
// program takes for it too.
func (h *Home) About(name string, obj storage.Object, size int64) (foreign.About, error) {
	about := foreign.About{ID: idOf(name), Title: h.title(idOf(name))}
	if j, ok := obj.(*joined); ok {
		about.Before = j.identity()
	}
	var named, asked string
	metas := 0
	err := foreign.Ends(obj, size, tells, func(v rawjson.Value) {
		payload := v.Member("payload")
		switch typ := v.Member("type"); {
		case typ.Is("session_meta"):
			if metas++; metas <= 2 {
				about.Parent, about.Side = parentOf(payload, about, metas)
			}
			if thread, _ := payload.Member("id").Text(); metas == 1 && about.Title == "" {
				about.Title = h.title(thread) // a thread that was reverted goes on in another file
			}
		case payload.Member("type").Is("thread_name_updated"):
			named, _ = payload.Member("thread_name").Text()
		case asked == "":
			asked = firstLine(payload)
		}
	})
	for _, title := range [...]string{named, asked} {
		if about.Title == "" {
			about.Title = title
		}
	}
	return about, err
}

// parentOf returns the thread that a session was forked from or is a subagent of, as its first or its second session_meta
// says.
func parentOf(meta rawjson.Value, about foreign.About, nth int) (parent string, side bool) {
	if nth == 2 {
		if id, ok := meta.Member("id").Text(); ok && about.Parent == "" && id != about.ID {
			return id, about.Side
		}
		return about.Parent, about.Side
	}
	spawned := meta.Member("source").Member("subagent")
	for _, v := range [...]rawjson.Value{
		meta.Member("history_base").Member("thread_id"), meta.Member("forked_from_id"),
		spawned.Member("thread_spawn").Member("parent_thread_id"), meta.Member("parent_thread_id"),
	} {
		if id, ok := v.Text(); ok && id != about.ID && parent == "" {
			parent = id
		}
	}
	return parent, len(spawned) > 0
}

// firstLine returns the first line of what the person says in an item, "" if it is something else.
func firstLine(payload rawjson.Value) string {
	var text string
	switch typ := payload.Member("type"); {
	case typ.Is("user_message"):
		text, _ = payload.Member("message").Text()
	case typ.Is("message") && payload.Member("role").Is("user") && !isContext(payload.Member("content")):
		payload.Member("content").EachElement(func(block rawjson.Value, _ int) bool {
			text, _ = block.Member("text").Text()
			return text == ""
		})
	}
	text, _, _ = strings.Cut(rawjson.TrimSpace(text), "\n")
	if len(text) > maxTitle {
		text = strings.ToValidUTF8(text[:maxTitle], "") + "…"
	}
	return text
}

// tells reports whether a line may say something about the session.
func tells(line []byte) bool {
	line = line[:min(len(line), 400)]
	for _, word := range [...]string{`"session_meta"`, `"thread_name_updated"`, `"user_message"`, `"user"`} {
		if strings.Contains(string(line), word) {
			return true
		}
	}
	return false
}

// Beside returns what is shown of a rollout that is not in it: its title in the program's list.
func (h *Home) Beside(name string) string { return h.title(idOf(name)) }

// title returns the title of a thread in the program's list, "" if it has none there.
func (h *Home) title(id string) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	st, err := h.Home.Stat(titlesName)
	if err != nil || st.Kind != storage.KindFile || st.Size > maxTitles {
		return ""
	}
	if st.Token != h.titlesAt {
		titles, err := h.readTitles(st.Size)
		if err != nil {
			return ""
		}
		h.titles, h.titlesAt = titles, st.Token
	}
	return h.titles[id]
}

func (h *Home) readTitles(size int64) (map[string]string, error) {
	obj, err := h.Home.Open(titlesName)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	text := make([]byte, size)
	if err := storage.ReadFull(obj, text, 0); err != nil {
		return nil, err
	}
	titles := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if v := rawjson.Value(rawjson.TrimSpace(line)); rawjson.IsValidObject(v) {
			id, _ := v.Member("id").Text()
			titles[id], _ = v.Member("thread_name").Text()
		}
	}
	return titles, nil
}

// find returns the name of a thread's rollout, as Days shows it, and its state.
func (h *Home) find(id string) (name string, st storage.Stat, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, known := h.places[id]
	if name != "" {
		if st, err := h.Stat(name); err == nil {
			return name, st, true
		}
	}
	all, err := h.Stat("")
	if err != nil || known && name == "" && all == h.placesAt {
		return "", st, false
	}
	h.places, h.placesAt = map[string]string{id: ""}, all
	days, _ := storage.List(h, "")
	for _, day := range days {
		_ = h.List(day.Name, nil, func(item storage.Item) bool {
			if item.Kind == storage.KindFile && h.IsSession(item.Name) {
				h.places[idOf(item.Name)] = path.Join(day.Name, item.Name)
			}
			return true
		})
	}
	if name = h.places[id]; name == "" {
		return "", st, false
	}
	st, err = h.Stat(name)
	return name, st, err == nil
}
