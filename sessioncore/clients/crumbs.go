package clients

import (
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// maxBreadcrumb bounds the size of a breadcrumb in bytes: two paths, and the additions of newer
// clients.
const maxBreadcrumb = 16 << 10

// ReadBreadcrumb returns the path of the session file in the breadcrumb name: its second line,
// after the working directory (docs/format.md, Breadcrumbs). The error wraps ErrNotFound if the
// file is not a breadcrumb; errors of the storage are returned unchanged.
func ReadBreadcrumb(files storage.Files, name string) (file string, err error) {
	text, _, err := readBreadcrumb(files, name)
	if err != nil {
		return "", err
	}
	const byteOrderMark = "\xEF\xBB\xBF"
	trimmed := rawjson.TrimSpace(strings.TrimPrefix(text, byteOrderMark))
	lines := strings.Split(trimmed, "\n")
	if len(lines) < 2 {
		return "", fmt.Errorf("%w: a breadcrumb without a second line", sessioncore.ErrNotFound)
	}
	return lines[1], nil
}

// readBreadcrumb returns the content of the file of a breadcrumb, and its token. The error wraps ErrNotFound
// if the file is too large for one.
func readBreadcrumb(files storage.Files, name string) (string, storage.Token, error) {
	obj, err := files.Open(name)
	if err != nil {
		return "", storage.Token{}, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return "", storage.Token{}, err
	}
	if st.Size > maxBreadcrumb {
		return "", storage.Token{}, fmt.Errorf("%w: a breadcrumb of %d bytes", sessioncore.ErrNotFound, st.Size)
	}
	text := make([]byte, st.Size)
	err = storage.ReadFull(obj, text, 0)
	return string(text), st.Token, err
}

// breadcrumb is the cached content of a breadcrumb file.
type breadcrumb struct {
	terminal string                 // file name of the breadcrumb: a terminal id
	session  storage.Cached[string] // path of the session file that it names; "" if none
}

// names reports whether the breadcrumb names a session or one of its subagents (sessioncore.OutermostOf).
// Its path is absolute and may differ from ours: a link may lead to the agent directory, and a
// client sometimes renames a directory of sessions that other clients use.
func (b *breadcrumb) names(session string) bool {
	dir := "/" + strings.TrimSuffix(session, sessioncore.FileEnding)
	file := b.session.Value
	isSession := strings.HasSuffix(file, dir+sessioncore.FileEnding)
	isSubagent := strings.Contains(session, "/") && strings.Contains(file, dir+"/")
	if isSession || isSubagent {
		return true
	}
	return isUnique(session) && path.Base(file) == path.Base(session)
}

// isUnique reports whether no other session file has the base name of a session file.
func isUnique(session string) bool {
	return len(path.Base(session)) >= sessioncore.MinClientName+len(sessioncore.FileEnding)
}

// breadcrumbs caches the contents of all breadcrumbs. Clients overwrite a breadcrumb in place, so a
// query stats each file.
type breadcrumbs struct {
	storage storage.Files
	list    []breadcrumb
}

// naming returns the breadcrumbs that name a session or one of its subagents.
func (b *breadcrumbs) naming(session string) (crumbs []breadcrumb) {
	b.readChanged()
	for _, crumb := range b.list {
		if crumb.names(session) {
			crumbs = append(crumbs, crumb)
		}
	}
	return crumbs
}

// hasAny reports whether one of these terminals has a breadcrumb that names a session.
func (b *breadcrumbs) hasAny(terminals []string) bool {
	return slices.ContainsFunc(b.list, func(c breadcrumb) bool {
		return c.session.Value != "" && slices.Contains(terminals, c.terminal)
	})
}

// readChanged refreshes the cache: it lists the directory and reads the changed breadcrumbs. One that cannot
// be read names no session.
func (b *breadcrumbs) readChanged() {
	now := time.Now().UnixNano()
	known := map[string]storage.Cached[string]{}
	for _, crumb := range b.list {
		known[crumb.terminal] = crumb.session
	}
	items, _ := storage.ListStat(b.storage, "", isBreadcrumb) // on an error, the items before it
	b.list = b.list[:0]
	for _, item := range items {
		crumb := breadcrumb{terminal: item.Name, session: known[item.Name]}
		if !crumb.session.IsOf(item.Token) {
			file, _ := ReadBreadcrumb(b.storage, item.Name)
			crumb.session = storage.Cached[string]{
				Value:  file,
				Token:  item.Token,
				ReadAt: now,
			}
		}
		b.list = append(b.list, crumb)
	}
}

// isBreadcrumb reports whether a name in the directory of breadcrumbs is one.
func isBreadcrumb(item storage.Item) bool {
	return item.Kind == storage.KindFile && !storage.IsOwnName(item.Name)
}

// MoveBreadcrumbs updates the breadcrumbs that name a moved session to its new file and working
// directory, as the client does that moves a session. from and to are names below root. Failures
// are logged, as the session has moved. A breadcrumb that its client writes at this moment stays as
// the client wrote it.
func MoveBreadcrumbs(crumbs storage.Storage, root, from, to, cwd string) {
	items, err := storage.List(crumbs, "")
	if err != nil && !storage.IsMissing(err) {
		slog.Warn("breadcrumbs do not follow a session that was moved", "session", from, "err", err)
	}
	for _, item := range items {
		if !isBreadcrumb(item) {
			continue
		}
		err := moveBreadcrumb(crumbs, item.Name, root, from, to, cwd)
		if err != nil {
			slog.Warn("a breadcrumb does not follow a session that was moved",
				"breadcrumb", item.Name, "session", from, "err", err)
		}
	}
}

// moveBreadcrumb makes a breadcrumb name the session's new place, unless it names another session.
func moveBreadcrumb(crumbs storage.Storage, name, root, from, to, cwd string) error {
	text, token, err := readBreadcrumb(crumbs, name)
	if err != nil {
		return err
	}
	moved, isOfSession := movedBreadcrumb(text, root, from, to, cwd)
	if !isOfSession {
		return nil
	}
	write := func(out io.Writer) error {
		_, err := io.WriteString(out, moved)
		return err
	}
	// Clients take no lock for a breadcrumb, and neither does this.
	return storage.Replaced(crumbs.Replace(name, storage.Replacement{Expect: token, Write: write}))
}

// freshCrumb and statCrumb begin lines that newer clients add to a breadcrumb: the session has no
// file yet, and the device and inode of the working directory.
const freshCrumb, statCrumb = "fresh", "cwdstat "

// movedBreadcrumb returns the text of a breadcrumb with the session's new place; ok is false if it
// names another session. Clients reach one session by different paths, so the part before its name
// below root stays.
func movedBreadcrumb(text, root, from, to, cwd string) (moved string, ok bool) {
	lines := strings.Split(text, "\n")
	if len(lines) < 2 {
		return "", false
	}
	above, hasName := strings.CutSuffix(lines[1], "/"+from)
	isHere := above == root || isUnique(from)
	if !hasName || !isHere {
		return "", false
	}
	lines[0] = cwd
	lines[1] = above + "/" + to
	for i, line := range lines {
		if strings.HasPrefix(line, statCrumb) {
			lines[i] = statLine(cwd)
		}
	}
	lines = slices.DeleteFunc(lines, func(line string) bool {
		hasFile := line == freshCrumb // which says that there is none, and is not true any more
		isUnknown := line == statCrumb
		return hasFile || isUnknown
	})
	return strings.Join(lines, "\n"), true
}

// statLine returns the statCrumb line of a directory, or statCrumb alone if it does not exist.
func statLine(dir string) string {
	var st syscall.Stat_t
	err := syscall.Stat(dir, &st)
	if err != nil {
		return statCrumb
	}
	return fmt.Sprintf("%s%d %d", statCrumb, st.Dev, st.Ino)
}
