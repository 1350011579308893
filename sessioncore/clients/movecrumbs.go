package clients

import (
	"fmt"
	"io"
	"log/slog"
	"path"
	"slices"
	"strings"
	"syscall"

	"sessionfs/sessioncore/storage"
)

// MoveBreadcrumbs makes the breadcrumbs that name a session follow it to another file and working directory, as the
// client that moves a session writes that of its terminal: the files are names below root. What cannot be written is
// logged, as the session has moved. A breadcrumb that its client writes at this moment stays as it is then.
func MoveBreadcrumbs(crumbs storage.Storage, root, from, to, cwd string) {
	items, err := storage.List(crumbs, "")
	if err != nil && !storage.IsMissing(err) {
		slog.Warn("breadcrumbs do not follow a session that was moved", "session", from, "err", err)
	}
	for _, item := range items {
		if !isBreadcrumb(item) {
			continue
		}
		if err := moveBreadcrumb(crumbs, item.Name, root, from, to, cwd); err != nil {
			slog.Warn("a breadcrumb does not follow a session that was moved", "breadcrumb", item.Name, "session", from, "err", err)
		}
	}
}

func moveBreadcrumb(crumbs storage.Storage, name, root, from, to, cwd string) error {
	text, token, err := readBreadcrumb(crumbs, name)
	if err != nil {
		return err
	}
	moved, ok := movedBreadcrumb(text, root, from, to, cwd)
	if !ok {
		return nil
	}
	// Clients take no lock for a breadcrumb, and neither does this.
	return storage.Replaced(crumbs.Replace(name, storage.Replacement{Expect: token, Write: func(out io.Writer) error {
		_, err := io.WriteString(out, moved)
		return err
	}}))
}

// freshCrumb and statCrumb begin lines that newer clients write behind the two of every breadcrumb: the session has no
// file yet, and the device and inode of the working directory.
const freshCrumb, statCrumb = "fresh", "cwdstat "

// movedBreadcrumb returns the text of a breadcrumb that named a session, for its new place; ok is false if it names
// another one. Clients come to one session by different paths: what is before its name below root stays.
func movedBreadcrumb(text, root, from, to, cwd string) (moved string, ok bool) {
	lines := strings.Split(text, "\n")
	if len(lines) < 2 {
		return "", false
	}
	above, isBelow := strings.CutSuffix(lines[1], "/"+from)
	if !isBelow || above != root && len(path.Base(from)) < uniqueName {
		return "", false
	}
	lines[0], lines[1] = cwd, above+"/"+to
	lines = slices.DeleteFunc(lines, func(line string) bool { return line == freshCrumb })
	for i, line := range lines {
		if strings.HasPrefix(line, statCrumb) {
			lines[i] = statLine(cwd)
		}
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == statCrumb }), "\n"), true
}

// statLine returns the line with the device and inode of a directory, without them if there is none.
func statLine(dir string) string {
	var st syscall.Stat_t
	if err := syscall.Stat(dir, &st); err != nil {
		return statCrumb
	}
	return fmt.Sprintf("%s%d %d", statCrumb, st.Dev, st.Ino)
}
