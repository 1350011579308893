package clients

import (
	"path"
	"strings"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/storage"
)

// breadcrumb is what is known of one breadcrumb file.
type breadcrumb struct {
	terminal string // file name of the breadcrumb: a terminal id
	file     string // path of the session file that it names; "" if none
	token    storage.Token
	readAt   int64 // nanoseconds since the epoch
}

// isOf reports whether the breadcrumb names a session of a family (see familyOf). Its path is absolute and may differ
// from ours: a link may lead to the agent directory, and a client sometimes renames a directory of sessions while
// other clients use it.
func (b *breadcrumb) isOf(family string) bool {
	dir := "/" + strings.TrimSuffix(family, sessioncore.FileEnding)
	return strings.HasSuffix(b.file, dir+sessioncore.FileEnding) ||
		strings.Contains(family, "/") && strings.Contains(b.file, dir+"/") ||
		len(path.Base(family)) >= uniqueName && path.Base(b.file) == path.Base(family)
}

// uniqueName is the minimum length of a session file name that a client made: a time of 24 characters, an underscore,
// an id of at least 16 characters, and the ending.
const uniqueName = 24 + 1 + 16 + len(sessioncore.FileEnding)

// breadcrumbs caches the contents of all breadcrumbs. Clients overwrite a breadcrumb in place, so each file is
// stat'ed every time; the directory is read only when it changed.
type breadcrumbs struct {
	storage storage.Storage
	dir     storage.Token
	readAt  int64 // of dir, nanoseconds since the epoch; 0: never
	list    []breadcrumb
	names   []string // of list, in the same order
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

// any reports whether one of these terminals has a breadcrumb that names a session.
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

// look brings b up to date.
func (b *breadcrumbs) look() {
	now := time.Now().UnixNano()
	if st, err := b.storage.Stat(""); err != nil || b.readAt == 0 || st.Token != b.dir || st.Token.Racy(b.readAt) {
		b.dir, b.readAt = st.Token, now
		b.relist()
	}
	b.each(func(i int, st storage.Stat) { b.list[i].look(b.storage, st, now) })
}

// each calls f with the state of each breadcrumb; the Stat is zero for one that is gone.
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

// relist reads the names in the directory and keeps the entries of those already known.
func (b *breadcrumbs) relist() {
	known := map[string]breadcrumb{}
	for _, crumb := range b.list {
		known[crumb.terminal] = crumb
	}
	items, _ := b.storage.List("") // on an error: no breadcrumbs
	b.list, b.names = b.list[:0], b.names[:0]
	for _, item := range items {
		if item.Kind == storage.KindFile && !storage.IsOwnName(item.Name) {
			crumb := known[item.Name]
			crumb.terminal = item.Name
			b.list, b.names = append(b.list, crumb), append(b.names, item.Name)
		}
	}
}

// look reads the breadcrumb if its file has changed.
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
