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
// stat'ed every time.
type breadcrumbs struct {
	storage storage.Files
	list    []breadcrumb
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

// look brings b up to date: it lists the directory and reads the breadcrumbs that have changed.
func (b *breadcrumbs) look() {
	now := time.Now().UnixNano()
	known := map[string]breadcrumb{}
	for _, crumb := range b.list {
		known[crumb.terminal] = crumb
	}
	items, _ := storage.ListStat(b.storage, "", func(item storage.Item) bool { // on an error: those that were found
		return item.Kind == storage.KindFile && !storage.IsOwnName(item.Name)
	})
	b.list = b.list[:0]
	for _, item := range items {
		crumb := known[item.Name]
		crumb.terminal = item.Name
		crumb.look(b.storage, item.Stat, now)
		b.list = append(b.list, crumb)
	}
}

// look reads the breadcrumb if its file has changed.
func (b *breadcrumb) look(crumbs storage.Files, st storage.Stat, now int64) {
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
