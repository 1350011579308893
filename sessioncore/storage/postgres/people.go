package postgres

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sys/unix"
)

// people are the directories of sessions of those who share a table (docs/design.md section 1, A database as SOURCE). Each is
// shown by a name, which it keeps as long as the storage is open.
type people struct {
	mu       sync.RWMutex      // guards the fields below
	nameOf   map[string]string // by the beginning of the paths: /home/ann/.omp/agent/sessions/
	prefixOf map[string]string // by name
}

// usualDirs are what the directory of a person's sessions is called, and those above it.
var usualDirs = []string{"sessions", "agent", ".omp", "omp", "share", ".local"}

// namesFor returns the names that a directory of sessions may have, short ones first. The last one is its alone.
func namesFor(prefix string) (names []string) {
	dir := path.Clean("/" + prefix)
	for path.Dir(dir) != "/" && slices.Contains(usualDirs, path.Base(dir)) {
		dir = path.Dir(dir)
	}
	who := strings.TrimLeft(path.Base(dir), ".") // a hidden directory would not be listed
	if who != "" {
		names = []string{who}
	}
	if above := path.Base(path.Dir(dir)); above != "/" {
		names = append(names, who+"@"+above)
	}
	return append(names, fmt.Sprintf("%s@%08x", who, uint32(xxhash.Sum64String(prefix))))
}

// meet gives names to directories of sessions that have none yet. No name depends on the order in which they come, nor is
// one ever given to another directory because a third one came or went: where two would have the same, both have a longer one.
func (p *people) meet(prefixes ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := map[string]int{}
	for _, prefix := range prefixes {
		for _, name := range namesFor(prefix) {
			count[name]++
		}
	}
	for _, prefix := range prefixes {
		if p.nameOf[prefix] != "" {
			continue
		}
		names := namesFor(prefix)
		name := names[len(names)-1]
		for _, shorter := range slices.Backward(names[:len(names)-1]) {
			if count[shorter] == 1 && p.prefixOf[shorter] == "" {
				name = shorter
			}
		}
		p.nameOf[prefix], p.prefixOf[name] = name, prefix
	}
}

// name returns the name by which a row is shown, "" if its path does not tell whose it is. mayMeet says that there is such a row.
func (p *people) name(path string, mayMeet bool) string {
	at := strings.LastIndex(path, inSessions)
	if at < 0 {
		return ""
	}
	prefix, rest := path[:at+len(inSessions)], path[at+len(inSessions):]
	p.mu.RLock()
	who := p.nameOf[prefix]
	p.mu.RUnlock()
	switch {
	case who != "":
		return who + "/" + rest
	case mayMeet:
		p.meet(prefix)
		return p.name(path, false)
	}
	return ""
}

// path is the reverse of name, "" for a name of nobody.
func (p *people) path(name string) string {
	who, rest, _ := strings.Cut(name, "/")
	p.mu.RLock()
	defer p.mu.RUnlock()
	if prefix := p.prefixOf[who]; prefix != "" {
		return prefix + rest
	}
	return ""
}

const inSessions = "/sessions/"

// Several reports whether the sessions are those of several people, each below a name of its own.
func (s *Storage) Several() bool { return s.people != nil }

// Prefix returns what the paths of all rows begin with that are shown.
func (s *Storage) Prefix() string { return s.prefix }

// NameOf returns the name of a row with a path, whether it is there or not; "" if none could be.
func (s *Storage) NameOf(path string) string {
	if s.people != nil {
		return s.people.name(path, false)
	}
	if name, ok := strings.CutPrefix(path, s.prefix); ok {
		return name
	}
	return ""
}

// PathOf returns the path of the row with a name, "" if the name is that of nobody.
func (s *Storage) PathOf(name string) string {
	if s.people != nil {
		return s.people.path(name)
	}
	return s.prefix + name
}

// checkPath returns an error if a name is that of nobody.
func (s *Storage) checkPath(name string) error {
	if s.PathOf(name) == "" {
		return fmt.Errorf("%w: %s: nobody of that name has sessions in the table; to begin with them, give prefix=, the path of the directory that they are in", unix.EPERM, name)
	}
	return nil
}

// findPlace finds out where the sessions are, if no prefix was given.
func (s *Storage) findPlace(ctx context.Context, src *Source) error {
	if src.HasPrefix {
		return nil
	}
	found, err := s.prefixes(ctx)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return fmt.Errorf("the table %s is empty, so it does not tell where the sessions are: give prefix=, what their paths begin with, such as prefix=/home/me/.omp/agent/sessions/", src.Table)
	case len(found) == 1:
		s.prefix = found[0]
	default:
		s.people = &people{nameOf: map[string]string{}, prefixOf: map[string]string{}}
		s.people.meet(slices.DeleteFunc(found, func(p string) bool { return !strings.HasSuffix(p, inSessions) })...)
	}
	return nil
}

// prefixes returns the directories of sessions that there are.
func (s *Storage) prefixes(ctx context.Context) (found []string, err error) {
	err = s.read(ctx, readLimit, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, `SELECT array(SELECT DISTINCT coalesce(substring(path from '^(.*/sessions/)'), substring(path from '^(/|sessions/)'), '') FROM `+
			s.quoted+` ORDER BY 1)`).Scan(&found)
	})
	return found, err
}

// maxNamed is how many prefixes an error names.
const maxNamed = 10

// checkPrefix returns an error if a prefix is certainly not the one that is meant: it is the beginning of a name, or nothing
// begins with it while there is something else.
func (s *Storage) checkPrefix(ctx context.Context, src *Source) error {
	odd := src.Prefix != "" && !strings.HasSuffix(src.Prefix, "/")
	if !src.HasPrefix || !odd && (len(s.rows) > 0 || s.opts.Empty) {
		return nil
	}
	found, err := s.prefixes(ctx)
	if err != nil || len(found) == 0 && !odd {
		return err
	}
	if more := len(found) - maxNamed; more > 0 {
		found = append(found[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	why := "nothing in the table " + src.Table + " begins with that"
	if odd {
		why = "it has no slash at its end, so it is no directory"
	}
	return fmt.Errorf("prefix=%s: %s; there are: %s (without prefix=: all of them)", src.Prefix, why, strings.Join(found, ", "))
}
