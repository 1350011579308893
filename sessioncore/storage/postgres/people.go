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

// people are the session directories of the users of one table (docs/design.md section 1, A
// database as SOURCE). Each is shown by a name, which it keeps as long as the storage is open.
type people struct {
	mu       sync.RWMutex      // guards the fields below
	nameOf   map[string]string // by the prefix of the paths: /home/ann/.omp/agent/sessions/
	prefixOf map[string]string // by name
}

// usualDirs are the usual names of a directory of sessions and of those above it.
var usualDirs = []string{"sessions", "agent", ".omp", "omp", "share", ".local"}

// namesFor returns the names that a directory of sessions may get, short ones first. The last one
// has a hash of 32 bits. For the prefix /home/ann/.omp/agent/sessions/ they are ann, ann@home, and ann@ with a hash.
func namesFor(prefix string) (names []string) {
	dir := path.Clean("/" + prefix)
	for path.Dir(dir) != "/" && slices.Contains(usualDirs, path.Base(dir)) {
		dir = path.Dir(dir)
	}
	who := strings.TrimLeft(path.Base(dir), ".") // a hidden directory would not be listed
	if who != "" {
		names = []string{who}
	}
	above := path.Base(path.Dir(dir))
	if above != "/" {
		names = append(names, who+"@"+above)
	}
	hash := uint32(xxhash.Sum64String(prefix))
	return append(names, fmt.Sprintf("%s@%08x", who, hash))
}

// assignNames gives names to directories of sessions that have none. A name depends neither on
// their order nor on directories that come or go later: two that would share a name both get a
// longer one.
func (p *people) assignNames(prefixes ...string) {
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
		last := len(names) - 1
		name := names[last]
		for _, shorter := range slices.Backward(names[:last]) {
			isUnique := count[shorter] == 1 && p.prefixOf[shorter] == ""
			if isUnique {
				name = shorter
			}
		}
		p.nameOf[prefix] = name
		p.prefixOf[name] = prefix
	}
}

// name returns the shown name of a row, "" if its path names no owner. isRow says that
// there is such a row, so that a new owner gets a name.
func (p *people) name(path string, isRow bool) string {
	at := strings.LastIndex(path, inSessions)
	if at < 0 {
		return ""
	}
	end := at + len(inSessions)
	prefix := path[:end]
	rest := path[end:]
	p.mu.RLock()
	who := p.nameOf[prefix]
	p.mu.RUnlock()
	switch {
	case who != "":
		return who + "/" + rest
	case isRow:
		p.assignNames(prefix)
		return p.name(path, false)
	}
	return ""
}

// path returns the path of the row with a name, "" if the name has no known owner.
func (p *people) path(name string) string {
	who, rest, _ := strings.Cut(name, "/")
	p.mu.RLock()
	defer p.mu.RUnlock()
	prefix := p.prefixOf[who]
	if prefix != "" {
		return prefix + rest
	}
	return ""
}

// inSessions ends the prefix of the paths of a person's sessions.
const inSessions = "/sessions/"

// Several reports whether several people share the table, each with a directory of their own.
func (s *Storage) Several() bool { return s.people != nil }

// Prefix returns the common prefix of the paths of the rows that are shown.
func (s *Storage) Prefix() string { return s.prefix }

// NameOf returns the name of a row with a path, "" if a row of that path would not be shown.
func (s *Storage) NameOf(path string) string {
	if s.people != nil {
		return s.people.name(path, false)
	}
	name, ok := strings.CutPrefix(path, s.prefix)
	if ok {
		return name
	}
	return ""
}

// PathOf returns the path of the row with a name, "" if the name has no known owner.
func (s *Storage) PathOf(name string) string {
	if s.people != nil {
		return s.people.path(name)
	}
	return s.prefix + name
}

// checkPath returns an error if a name has no known owner.
func (s *Storage) checkPath(name string) error {
	if s.PathOf(name) == "" {
		return fmt.Errorf("%w: %s: nobody of that name has sessions in the table; "+
			"to begin with them, give prefix=, the path of the directory that they are in", unix.EPERM, name)
	}
	return nil
}

// findPlace finds the prefixes of the sessions, if none was given: one becomes s.prefix, several become
// s.people. It is an error if the table is empty.
func (s *Storage) findPlace(ctx context.Context, src *TableSource) error {
	if src.HasPrefix {
		return nil
	}
	found, err := s.prefixes(ctx)
	switch {
	case err != nil:
		return err
	case len(found) == 0:
		return fmt.Errorf("the table %s is empty, so it does not tell where the sessions are: "+
			"give prefix=, what their paths begin with, such as prefix=/home/me/.omp/agent/sessions/", src.Table)
	case len(found) == 1:
		s.prefix = found[0]
	default:
		s.people = &people{nameOf: map[string]string{}, prefixOf: map[string]string{}}
		isOther := func(prefix string) bool { return !strings.HasSuffix(prefix, inSessions) }
		s.people.assignNames(slices.DeleteFunc(found, isOther)...)
	}
	return nil
}

// prefixes returns the directories of sessions in the table.
func (s *Storage) prefixes(ctx context.Context) (found []string, err error) {
	err = s.read(ctx, readLimit, func(ctx context.Context, c conn) error {
		return c.QueryRow(ctx, `SELECT array(SELECT DISTINCT coalesce(
			substring(path from '^(.*/sessions/)'), substring(path from '^(/|sessions/)'), '')
			FROM `+s.quoted+` ORDER BY 1)`).Scan(&found)
	})
	return found, err
}

// maxNamed bounds the prefixes that an error names.
const maxNamed = 10

// checkPrefix returns an error if a prefix is certainly a mistake: it ends within a name, or no row
// begins with it while there are others.
func (s *Storage) checkPrefix(ctx context.Context, src *TableSource) error {
	endsInName := src.Prefix != "" && !strings.HasSuffix(src.Prefix, "/")
	hasRows := len(s.rows) > 0 || s.opts.Empty // or needs none
	isRight := hasRows && !endsInName
	if isRight || !src.HasPrefix {
		return nil
	}
	found, err := s.prefixes(ctx)
	if err != nil {
		return err
	}
	if !endsInName && len(found) == 0 {
		return nil // the table is empty
	}
	more := len(found) - maxNamed
	if more > 0 {
		found = append(found[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	reason := "nothing in the table " + src.Table + " begins with that"
	if endsInName {
		reason = "it has no slash at its end, so it is no directory"
	}
	return fmt.Errorf("prefix=%s: %s; there are: %s (without prefix=: all of them)",
		src.Prefix, reason, strings.Join(found, ", "))
}
