package clients

import (
	"path"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// breadcrumb is what a client wrote of its terminal.
type breadcrumb struct {
	terminal string // its name
	file     string // the session file that it names; "" for none
	token    storage.Token
	readAt   int64 // nanoseconds since the epoch
}

// isOf reports whether the breadcrumb names a session of a family (Clients.On). It names it by an absolute path,
// which may be another one than ours where a link leads to the agent directory; and the client itself
// renames the directories of sessions sometimes, beside others that are on them.
func (b *breadcrumb) isOf(family string) bool {
	dir := "/" + strings.TrimSuffix(family, sessioncore.FileEnding)
	return strings.HasSuffix(b.file, dir+sessioncore.FileEnding) ||
		strings.Contains(family, "/") && strings.Contains(b.file, dir+"/") ||
		len(path.Base(family)) >= uniqueName && path.Base(b.file) == path.Base(family)
}

// uniqueName is the least length of the names that clients give their session files: a time of 24 characters,
// an underscore, an id of 16 or more, and the ending.
const uniqueName = 24 + 1 + 16 + len(sessioncore.FileEnding)

// breadcrumbs remembers what stands in the breadcrumbs. A breadcrumb is written over in place, so that each is
// looked at each time; the directory is read only when it changed.
type breadcrumbs struct {
	storage storage.Storage
	dir     storage.Token
	readAt  int64 // of dir, nanoseconds since the epoch; 0: never
	list    []breadcrumb
	names   []string // of list
}

// naming returns the breadcrumbs that name a session of a family.
func (b *breadcrumbs) naming(family string) (named []breadcrumb) {
	b.look()
	for i := range b.list {
		if b.list[i].isOf(family) {
			named = append(named, b.list[i])
		}
	}
	return named
}

// any reports whether there is a breadcrumb of one of these terminals.
func (b *breadcrumbs) any(terminals []string) bool {
	for i := range b.list {
		for _, id := range terminals {
			if b.list[i].terminal == id && b.list[i].file != "" {
				return true
			}
		}
	}
	return false
}

// look reads what changed.
func (b *breadcrumbs) look() {
	now := time.Now().UnixNano()
	if st, err := b.storage.Stat(""); err != nil || b.readAt == 0 || st.Token != b.dir || st.Token.Racy(b.readAt) {
		b.dir, b.readAt = st.Token, now
		b.relist()
	}
	b.each(func(i int, st storage.Stat) { b.list[i].look(b.storage, st, now) })
}

// each calls f with the state of each breadcrumb, the zero Stat for one that is gone.
func (b *breadcrumbs) each(f func(i int, st storage.Stat)) {
	if b.storage.StatNames("", b.names, f) == nil {
		return
	}
	for i, name := range b.names {
		st, err := b.storage.Stat(name)
		if err != nil {
			st = storage.Stat{}
		}
		f(i, st)
	}
}

// relist takes up the names in the directory.
func (b *breadcrumbs) relist() {
	known := map[string]breadcrumb{}
	for _, crumb := range b.list {
		known[crumb.terminal] = crumb
	}
	items, _ := b.storage.List("") // none: there are no breadcrumbs
	b.list, b.names = b.list[:0], b.names[:0]
	for _, item := range items {
		if item.Kind == storage.KindFile {
			crumb := known[item.Name]
			crumb.terminal = item.Name
			b.list, b.names = append(b.list, crumb), append(b.names, item.Name)
		}
	}
}

// look reads the breadcrumb, where it is not what it was.
func (b *breadcrumb) look(crumbs storage.Storage, st storage.Stat, now int64) {
	if st.Kind != storage.KindFile {
		*b = breadcrumb{terminal: b.terminal}
		return
	}
	if st.Token == b.token && !st.Token.Racy(b.readAt) {
		return
	}
	b.token, b.readAt = st.Token, now
	b.file, _ = ReadBreadcrumb(crumbs, b.terminal)
}
