package gemini

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

const (
	projectsDir, projectsName = "tmp", "projects.json"
	chatsDir, subagentsDir    = "chats", "subagents"

	prefix, ending = "session-", ".jsonl"
	oldEnding      = ".json" // of clients that rewrite all of a session at each change
	// shortID is how many characters of a session's id end the name of its file.
	shortID = 8
	// maxSmall is how much is read of a file that names projects, and of a session that may have no
	// conversation.
	maxSmall = 64 << 10
)

// home shows ~/.gemini as directories of sessions: PROJECT/session-X.jsonl for
// tmp/PROJECT/chats/session-X.jsonl or, without that, session-X.json, and PROJECT/session-X/subagents for
// tmp/PROJECT/chats/ID.
type home struct {
	foreign.Renamed // Raw is ~/.gemini, nil for a file that lies elsewhere
	projects        foreign.Cached[map[string]*session]
	stubs           foreign.Cached[bool]
	small           foreign.Cached[[]byte]
}

// session is the place of a session.
type session struct {
	file  string
	side  string     // the directory of its subagents, "" for none
	twins []*session // those with the same beginning of an id, itself too
}

func newHome(files storage.Files) *home {
	h := &home{}
	h.Renamed = foreign.Renamed{Raw: files, Names: h.names, Real: h.real}
	return h
}

func missing(name string) error { return fmt.Errorf("%w: %q", fs.ErrNotExist, name) }

// sessions returns the sessions in a project's directory, by their names without the ending.
func (h *home) sessions(project string) (map[string]*session, error) {
	dir := path.Join(projectsDir, project, chatsDir)
	return h.projects.Get(h.Raw, dir, func(storage.Stat) (map[string]*session, error) {
		all, sides, twins := map[string]*session{}, map[string]string{}, map[string][]*session{}
		err := h.Raw.List(dir, nil, func(item storage.Item) bool {
			base, isNew := strings.CutSuffix(item.Name, ending)
			if !isNew {
				base = strings.TrimSuffix(item.Name, oldEnding)
			}
			at := path.Join(dir, item.Name)
			switch {
			case item.Kind == storage.KindDir:
				sides[item.Name[:min(len(item.Name), shortID)]] = at
			case item.Kind != storage.KindFile, !strings.HasPrefix(base, prefix), base == item.Name:
			case isNew || all[base] == nil: // a client that resumes an old file copies it into a new one
				all[base] = &session{file: at}
			}
			return true
		})
		for base, s := range all {
			id := base[max(0, len(base)-shortID):]
			s.side, twins[id] = sides[id], append(twins[id], s)
		}
		for base, s := range all {
			s.twins = twins[base[max(0, len(base)-shortID):]]
		}
		return all, err
	})
}

// session returns a session that is shown, nil for none. A resume leaves a second file of the same id that
// has no conversation, and a client that renames a project a copy in the old directory.
func (h *home) session(project, base string) *session {
	all, err := h.sessions(project)
	s := all[base]
	if err != nil || s == nil {
		return nil
	}
	isTalk := func(s *session) bool { return !h.isStub(s.file) }
	if len(s.twins) > 1 && !isTalk(s) && slices.ContainsFunc(s.twins, isTalk) {
		return nil
	}
	moved := func(dir, to string) bool {
		copied, _ := h.sessions(to)
		return to != project && hashOf(dir) == project && copied[base] != nil
	}
	if len(project) == hex.EncodedLen(sha256.Size) && h.findProject(moved) != "" {
		return nil
	}
	return s
}

// isStub reports whether a session has no conversation.
func (h *home) isStub(file string) bool {
	is, _ := h.stubs.Get(h.Raw, file, func(st storage.Stat) (bool, error) {
		if st.Size > maxSmall {
			return false, nil
		}
		text, err := foreign.ReadFile(h.Raw, file, maxSmall)
		is := err == nil
		for line := range bytes.Lines(text) {
			v := rawjson.Value(bytes.TrimSpace(line))
			is = is && (len(v) == 0 || rawjson.IsValidObject(v) && v[0] == '{')
			if is && len(v) > 0 {
				eachMessage(v, func(m rawjson.Value) { is = is && !isTalk(m) })
			}
		}
		return is, err
	})
	return is
}

// real returns the file or directory in ~/.gemini that is shown under a name.
func (h *home) real(name string) (at string, kind storage.Kind, err error) {
	parts := strings.Split(name, "/")
	if len(parts) == 1 && name == "" {
		return projectsDir, storage.KindDir, nil
	} else if len(parts) == 1 {
		return path.Join(projectsDir, name, chatsDir), storage.KindDir, nil
	}
	base, isFile := strings.CutSuffix(parts[1], ending)
	s := h.session(parts[0], base)
	switch {
	case s == nil:
	case len(parts) == 2 && isFile:
		return s.file, storage.KindFile, nil
	case isFile || s.side == "" || len(parts) > 2 && parts[2] != subagentsDir:
	case len(parts) < 4:
		return s.side, storage.KindDir, nil
	case len(parts) == 4 && strings.HasSuffix(name, ending):
		return path.Join(s.side, parts[3]), storage.KindFile, nil
	}
	return "", 0, missing(name)
}

// names returns the names in a directory: projects, sessions and their directories, subagents' sessions.
func (h *home) names(dir string) (items []storage.Item, err error) {
	add := func(name string, kind storage.Kind) { items = append(items, storage.Item{Name: name, Kind: kind}) }
	depth := strings.Count(dir, "/")
	at, _, err := h.real(dir)
	switch {
	case err != nil:
	case dir == "":
		for _, project := range h.withSessions() {
			add(project, storage.KindDir)
		}
	case depth == 0:
		var all map[string]*session
		all, err = h.sessions(dir)
		for base := range all {
			if s := h.session(dir, base); s != nil {
				add(base+ending, storage.KindFile)
				if s.side != "" {
					add(base, storage.KindDir)
				}
			}
		}
	case depth == 1:
		add(subagentsDir, storage.KindDir)
	default:
		err = h.Raw.List(at, nil, func(item storage.Item) bool {
			if item.Kind == storage.KindFile && strings.HasSuffix(item.Name, ending) {
				add(item.Name, item.Kind)
			}
			return true
		})
	}
	return items, err
}

// directories returns the directories of projects, in order.
func (h *home) directories() (names []string) {
	_ = h.Raw.List(projectsDir, nil, func(item storage.Item) bool {
		if item.Kind == storage.KindDir {
			names = append(names, item.Name)
		}
		return true
	})
	slices.Sort(names)
	return names
}

// withSessions returns the projects that have sessions.
func (h *home) withSessions() []string {
	return slices.DeleteFunc(h.directories(), func(name string) bool {
		st, err := h.Raw.Stat(path.Join(projectsDir, name, chatsDir))
		return err != nil || st.Kind != storage.KindDir
	})
}

// Stat implements storage.Files. The state of the root changes with the projects that have sessions.
func (h *home) Stat(name string) (storage.Stat, error) {
	st, err := h.Renamed.Stat(name)
	if err == nil && name == "" {
		sum := fnv.New64a()
		fmt.Fprint(sum, h.withSessions())
		st.Inode ^= sum.Sum64()
	}
	return st, err
}

// text returns the text of a small file, without the blanks around it.
func (h *home) text(name string) []byte {
	text, _ := h.small.Get(h.Raw, name, func(storage.Stat) ([]byte, error) {
		text, err := foreign.ReadFile(h.Raw, name, maxSmall)
		return bytes.TrimSpace(text), err
	})
	return text
}

// findProject returns the directory of the first project for which f returns true, "" for none.
func (h *home) findProject(f func(dir, name string) bool) (found string) {
	v := rawjson.Value(h.text(projectsName))
	if len(v) == 0 || !rawjson.IsValidObject(v) {
		return ""
	}
	v.Member("projects").EachMember(func(m rawjson.Member) bool {
		dir, _ := m.Key.Text()
		if name, ok := m.Value.Text(); ok && f(dir, name) {
			found = dir
		}
		return found == ""
	})
	return found
}

// cwd returns the working directory of a project, "" if no file names it.
func (h *home) cwd(project string) string {
	if root := h.text(path.Join(projectsDir, project, ".project_root")); len(root) > 0 {
		return string(root)
	}
	return h.findProject(func(dir, name string) bool { return name == project || hashOf(dir) == project })
}

// hashOf returns the name of a directory's project in older clients.
func hashOf(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return hex.EncodeToString(sum[:])
}
