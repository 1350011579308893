package fs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/access/accesstest"
)

// Other users, with -o allow_other: they get what they could read themselves, and nothing else (docs/design.md section 8).

// The users of these tests. SOURCE is owner's; friend is in the group shared, in which stranger is not.
const (
	owner    = 2001
	friend   = 2002
	stranger = 2003
	shared   = 2100
)

var userGroups = map[int][]uint32{owner: {owner}, friend: {friend, shared}, stranger: {stranger}}

// sharedStore is an agent directory of owner's that everybody may read, with something at each path of the table in
// nodes/doc.go.
type sharedStore struct {
	t    *testing.T
	top  string // holds the others
	dir  string // the agent directory
	blob string // that the session s refers to
}

func newSharedStore(t *testing.T) *sharedStore {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root to become other users")
	}
	top, err := os.MkdirTemp("", "shared-") // t.TempDir is closed to others
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(top) })
	top, err = filepath.EvalSymlinks(top)
	require.NoError(t, err)
	s := &sharedStore{t: t, top: top, dir: filepath.Join(top, "home/agent")}
	picture := []byte("a picture")
	sum := sha256.Sum256(picture)
	s.blob = hex.EncodeToString(sum[:])
	image := `{"type":"message","id":"e1","parentId":"e0","timestamp":"2026-02-16T11:00:01.000Z","message":{"role":"user","content":[{"type":"image","mimeType":"image/png","data":"blob:sha256:` + s.blob + `"}]}}` + "\n"
	label := `{"type":"label","id":"e2","parentId":"e1","timestamp":"2026-02-16T11:00:02.000Z","targetId":"e0","label":"here"}` + "\n"
	child := strings.Replace(header("child"), `"cwd"`, `"parentSession":"`+s.dir+`/sessions/p/s.jsonl","cwd"`, 1)
	for name, content := range map[string]string{
		"sessions/p/s.jsonl":                header("s") + entry(0, "e0", "", "x") + image + label,
		"sessions/p/child.jsonl":            child + entry(0, "c0", "", "x"),
		"archive/sessions/p/old.jsonl.gz":   string(gzipped(strings.Replace(child, `"child"`, `"old"`, 1) + entry(0, "a0", "", "x"))),
		"archive/sessions/p/old/1.bash.log": "output",
		"sessions/p/s/3.bash.log":           "output",
		"sessions/p/s/local/plan":           "plan",
		"sessions/p/s/Task.jsonl":           header("t") + entry(0, "t0", "", "x"),
		"sessions/p/notes.txt":              "notes",
		"sessions/q/other.jsonl":            header("other") + entry(0, "o0", "", "x"),
		"blobs/" + s.blob:                   string(picture),
		"terminal-sessions/pts-9":           "/home/dev/project\n" + s.dir + "/sessions/p/s.jsonl\n",
		"history.db":                        string(read(t, "../testdata/demo/history.db")),
		"credentials/of-no-matter":          "SECRET",
	} {
		file := filepath.Join(s.dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	require.NoError(t, os.Symlink("notes.txt", filepath.Join(s.dir, "sessions/p/link")))
	require.NoError(t, filepath.WalkDir(top, func(file string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(file, owner, owner)
	}))
	for _, dir := range []string{top, filepath.Dir(s.dir), s.dir} {
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	return s
}

func read(t *testing.T, file string) []byte {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return text
}

// path is the path of a file below top: of the agent directory, or with a leading / of what is above.
func (s *sharedStore) path(name string) string {
	if above, ok := strings.CutPrefix(name, "/"); ok {
		return filepath.Join(s.top, above)
	}
	return filepath.Join(s.dir, name)
}

func (s *sharedStore) chmod(name string, mode os.FileMode) {
	require.NoError(s.t, os.Chmod(s.path(name), mode))
}

func (s *sharedStore) share(name string, mode os.FileMode) {
	require.NoError(s.t, os.Lchown(s.path(name), owner, shared))
	s.chmod(name, mode)
}

func (s *sharedStore) acl(name, entries string) { run(s.t, "setfacl", "-m", entries, s.path(name)) }

func allowOther(c *mountConfig) { c.options.AllowOther = true }

// mount mounts the store where everybody may go.
func (s *sharedStore) mount(opts ...mountOption) *mount {
	s.t.Helper()
	dir, err := os.MkdirTemp(s.top, "mnt-")
	require.NoError(s.t, err)
	return mountForTest(s.t, s.dir, append([]mountOption{at(dir), allowOther}, opts...)...)
}

// as calls f with the rights of a user.
func as(t *testing.T, uid int, f func()) {
	t.Helper()
	accesstest.As(t, uint32(uid), userGroups[uid], func(uint32) { f() })
}

// source is a file or directory behind something in the mount, and what a user needs on it.
type source struct {
	file   string
	rights uint32
}

// behind returns what a path of the mount shows: from which files its content is made, and from which its name. joined
// says that it is made of all sessions.
func (s *sharedStore) behind(name string) (content, names []source, joined bool) {
	part, _, _ := strings.Cut(name, "/")
	at := []source{{s.dir, unix.X_OK}}
	switch part {
	case "":
		return []source{{s.dir, unix.R_OK}}, nil, false
	case "search", "by-file": // it is as open as what is searched
		part, name = "sessions", "sessions"
	case "by-id", "by-cwd", "recent", "continue", "history", "index.jsonl", "last-error", "usage.jsonl":
		if part == name {
			return nil, at, true
		}
		return nil, nil, true
	}
	if part == "archive" {
		if name == "archive/index.jsonl" {
			return nil, []source{{s.path("archive/sessions"), unix.X_OK}}, true
		}
		part, name = "archive/sessions", strings.Replace(name, "archive", "archive/sessions", 1)
	}
	top, err := filepath.EvalSymlinks(filepath.Join(s.dir, part))
	require.NoError(s.t, err)
	if part == name {
		return []source{{top, unix.R_OK}}, at, false
	}
	return s.behindPlain(top, strings.TrimPrefix(name, part+"/"))
}

// behindPlain is behind for what lies in a directory of SOURCE, or in a session there.
func (s *sharedStore) behindPlain(dir, name string) (content, names []source, joined bool) {
	parts := strings.Split(name, "/")
	for i := range parts {
		at := filepath.Join(dir, filepath.Join(parts[:i+1]...))
		file := at + ".jsonl"
		info, err := os.Lstat(file)
		if err != nil {
			file += ".gz"
			info, err = os.Lstat(file)
		}
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		session := source{file, unix.R_OK}
		rest := parts[i+1:]
		if len(rest) == 0 {
			return []source{session}, []source{{filepath.Dir(at), unix.X_OK}}, false
		}
		content, names = []source{session}, []source{session}
		if rest[0] == "artifacts" {
			rest = rest[1:]
		} else if found, _ := filepath.Glob(filepath.Join(at, rest[0]) + "*"); len(found) == 0 { // generated
			switch last := rest[len(rest)-1]; {
			case last == "context.json" && filepath.Base(at) == "s":
				content = append(content, source{s.path("blobs/" + s.blob), unix.R_OK})
			case last == "problems.jsonl" && filepath.Base(at) == "s":
				content = append(content, source{s.path("blobs"), unix.X_OK})
			case rest[0] == "children" && len(rest) == 2:
				child := source{s.path(map[string]string{"child": "sessions/p/child.jsonl", "old": "archive/sessions/p/old.jsonl.gz"}[last]), unix.R_OK}
				content, names = append(content, child), append(names, child)
			case last == "parent":
				parent := source{s.path("sessions/p/s.jsonl"), unix.R_OK}
				content, names = append(content, parent), append(names, parent)
			}
			return content, names, false
		}
		if len(rest) == 0 {
			return append(content, source{at, unix.R_OK}), names, false
		}
		moreContent, moreNames, _ := s.behindPlain(at, path.Join(rest...))
		return append(content, moreContent...), append(names, moreNames...), false
	}
	at := filepath.Join(dir, name)
	names = []source{{filepath.Dir(at), unix.X_OK}}
	if info, err := os.Lstat(at); err == nil && info.Mode().Type() == fs.ModeSymlink {
		return names, names, false
	}
	return []source{{at, unix.R_OK}}, names, false
}

// paths lists everything in a mount, unlisted paths too.
func (s *sharedStore) paths(m *mount) []string {
	found := strings.Split(strings.TrimSuffix(run(s.t, "find", m.dir, "-printf", `%P\n`), "\n"), "\n")
	found = append(found, "archive/p/old/1.bash.log", "archive/p/old/secrets.jsonl", "by-id/old", "by-id/oth", "history/search/tides", "usage.jsonl")
	for _, session := range []string{"sessions/p/s", "sessions/p/child", "sessions/p/s/Task", "sessions/p/s/artifacts/Task", "sessions/q/other", "archive/p/old"} {
		current, err := os.Readlink(m.path(session, "branches/current"))
		require.NoError(s.t, err)
		branch := path.Join(session, "branches", current)
		for line := range strings.Lines(run(s.t, "find", m.path(branch), "-printf", `%P\n`)) {
			found = append(found, path.Join(branch, strings.TrimSuffix(line, "\n")))
		}
	}
	for _, name := range []string{"3.bash.log", "local", "local/plan", "Task.jsonl", "Task", "Task/entries/t0.json", "Task/context.json"} {
		found = append(found, "sessions/p/s/"+name)
	}
	slices.Sort(found)
	found = slices.DeleteFunc(found, func(name string) bool { return name == "new-session" }) // reading it gives nothing
	return slices.Compact(found)
}

// look reads a file, directory or link, and reports whether it was there and whether it could be read.
func look(file string) (seen, got bool) {
	info, err := os.Lstat(file)
	if err != nil {
		return false, false
	}
	switch info.Mode().Type() {
	case fs.ModeSymlink:
		_, err = os.Readlink(file)
	case fs.ModeDir:
		_, err = os.ReadDir(file)
	default:
		_, err = os.ReadFile(file)
	}
	return true, err == nil
}

func mayAll(sources []source) bool {
	return !slices.ContainsFunc(sources, func(s source) bool { return !accesstest.May(s.file, s.rights) })
}

// check compares, for each path of the mount, what a user gets with what he could read himself. exactly says that he gets
// all of that.
func (s *sharedStore) check(m *mount, paths []string, uid int, exactly bool) (gets int) {
	s.t.Helper()
	type answer struct{ seen, got, maySee, mayGet bool }
	answers := make([]answer, len(paths))
	for i, name := range paths { // the owner looks first: what the kernel then knows is for nobody else
		content, names, joined := s.behind(name)
		as(s.t, owner, func() { look(m.path(name)) })
		as(s.t, uid, func() {
			a := &answers[i]
			a.seen, a.got = look(m.path(name))
			owns := !joined || uid == owner
			a.mayGet, a.maySee = owns && mayAll(content), mayAll(names) && (owns || names != nil)
		})
	}
	for i, a := range answers {
		if a.got {
			gets++
		}
		if a.got && !a.mayGet || a.seen && !a.maySee || exactly && (a.got != a.mayGet || a.seen != a.maySee && a.mayGet) {
			s.t.Errorf("user %d, %q: sees it %v, should %v; reads it %v, should %v", uid, paths[i], a.seen, a.maySee, a.got, a.mayGet)
		}
	}
	return gets
}

// TestOtherUsersGetWhatTheyMayRead walks every path of a mount as other users, for many settings of modes, owners and
// access control lists, and compares with what the kernel lets them read of the files behind it.
func TestOtherUsersGetWhatTheyMayRead(t *testing.T) {
	for i, c := range []struct {
		name string
		set  func(s *sharedStore)
		// less says that users may get less than they could read: modes cannot tell what lists allow.
		less bool
	}{
		{"all open", func(*sharedStore) {}, false},
		{"a private session", func(s *sharedStore) { s.chmod("sessions/p/s.jsonl", 0o600) }, false},
		{"a session for a group", func(s *sharedStore) { s.share("sessions/p/s.jsonl", 0o640) }, false},
		{"a session with a group shut out", func(s *sharedStore) { s.share("sessions/p/s.jsonl", 0o604) }, false},
		{"a session of another owner", func(s *sharedStore) {
			require.NoError(s.t, os.Chown(s.path("sessions/q/other.jsonl"), friend, friend))
			s.chmod("sessions/q/other.jsonl", 0o600)
		}, false},
		{"a private child", func(s *sharedStore) { s.chmod("sessions/p/child.jsonl", 0o600) }, false},
		{"a private archived session", func(s *sharedStore) { s.chmod("archive/sessions/p/old.jsonl.gz", 0o600) }, false},
		{"an archive for a group", func(s *sharedStore) { s.share("archive/sessions", 0o750) }, false},
		{"closed above the archive", func(s *sharedStore) { s.chmod("archive", 0o700) }, false},
		{"the list of an archived session", func(s *sharedStore) { s.acl("archive/sessions/p/old.jsonl.gz", "u:2003:---,g:2100:---") }, true},
		{"a closed project", func(s *sharedStore) { s.chmod("sessions/p", 0o700) }, false},
		{"a project that lists nothing", func(s *sharedStore) { s.chmod("sessions/p", 0o711) }, false},
		{"a project that finds nothing", func(s *sharedStore) { s.chmod("sessions/p", 0o744) }, false},
		{"SOURCE for a group", func(s *sharedStore) { s.share("", 0o750) }, false},
		{"a closed directory above SOURCE", func(s *sharedStore) { s.chmod("/home", 0o700) }, false},
		{"a directory for a group above SOURCE", func(s *sharedStore) { s.share("/home", 0o750) }, false},
		{"a group shut out above SOURCE", func(s *sharedStore) { s.share("/home", 0o705) }, false},
		{"a private blob", func(s *sharedStore) { s.chmod("blobs/"+s.blob, 0o600) }, false},
		{"closed blobs", func(s *sharedStore) { s.chmod("blobs", 0o700) }, false},
		{"closed artifacts", func(s *sharedStore) { s.chmod("sessions/p/s", 0o700) }, false},
		{"artifacts that are not listed", func(s *sharedStore) { s.chmod("sessions/p/s", 0o711) }, false},
		{"a private artifact", func(s *sharedStore) { s.chmod("sessions/p/s/3.bash.log", 0o600) }, false},
		{"closed sessions", func(s *sharedStore) { s.chmod("sessions", 0o700) }, false},
		{"the list of a session shuts a user out", func(s *sharedStore) { s.acl("sessions/p/s.jsonl", "u:2003:---") }, true},
		{"the list of a session shuts its group out", func(s *sharedStore) {
			s.share("sessions/p/s.jsonl", 0o640)
			s.acl("sessions/p/s.jsonl", "g::---,u:2003:r--,m::r--")
		}, true},
		{"the list of a directory above", func(s *sharedStore) { s.acl("/home", "u:2003:---,g:2100:---") }, true},
		{"the list of SOURCE", func(s *sharedStore) { s.acl("", "u:2003:---,g:2100:---") }, true},
		{"the list of a project", func(s *sharedStore) { s.acl("sessions/p", "u:2003:---,g:2100:---") }, true},
		{"the list of artifacts", func(s *sharedStore) { s.acl("sessions/p/s", "u:2003:---,g:2100:---") }, true},
		{"the list of blobs", func(s *sharedStore) { s.acl("blobs", "u:2003:---") }, true},
		{"the list of a blob", func(s *sharedStore) { s.acl("blobs/"+s.blob, "u:2003:---") }, true},
		{"sessions elsewhere, closed above", func(s *sharedStore) {
			require.NoError(s.t, os.Mkdir(s.path("/elsewhere"), 0o755))
			require.NoError(s.t, os.Lchown(s.path("/elsewhere"), owner, shared))
			require.NoError(s.t, os.Rename(s.path("sessions"), s.path("/elsewhere/sessions")))
			require.NoError(s.t, os.Symlink("../../elsewhere/sessions", s.path("sessions")))
			s.chmod("/elsewhere", 0o750)
		}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if raceEnabled && i%16 != 0 {
				t.Skip("two of them under the race detector")
			}
			s := newSharedStore(t)
			c.set(s)
			m := s.mount()
			paths := s.paths(m)
			require.Greater(t, len(paths), 100)
			for uid := range userGroups {
				gets := s.check(m, paths, uid, !c.less)
				if uid == owner {
					require.Greater(t, gets, len(paths)/2, "the owner")
				}
			}
		})
	}
}
