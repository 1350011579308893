package view

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
)

const (
	// SiteFile describes a site, in its directory; SiteIndex is its first page.
	SiteFile  = ".sessionfs.json"
	SiteIndex = "index.html"
	// SiteFormat is the format of SiteFile.
	SiteFormat = 1
)

// SiteSource has the sessions of a site.
type SiteSource interface {
	// StateOf returns a text that changes when a session or one of its subagents' sessions does.
	StateOf(info *listing.Info) string
	// Subject returns the subject of a session's page. Callers must release the session.
	Subject(ctx context.Context, info *listing.Info) (*sessioncore.Snapshot, Subject, error)
	// EachCost calls each with the costs of all sessions.
	EachCost(ctx context.Context, each func(report.Row)) error
}

// SiteDir is a directory of pages, one for each session. No link in it is followed, and files appear
// whole.
type SiteDir struct {
	// Done is called when so many of all pages are written, Fail with the error of a page, Wrote with
	// the session of one. There is one call at a time.
	Done  func(done, of int)
	Fail  func(error)
	Wrote func(*sessioncore.Snapshot)
	// Since is the time before which sessions that did not change since get no new page; zero for none.
	Since time.Time

	Written, Unchanged, Removed, Failed int // pages

	source SiteSource
	dir    *os.Root
	lock   *os.File // the directory, locked

	mu    sync.Mutex // guards state, Failed and the calls while pages are written
	state siteState
}

// siteState is the content of SiteFile.
type siteState struct {
	Format int                  `json:"format"`
	Masked bool                 `json:"masked"`
	Key    string               `json:"key"` // of all that pages depend on beside their sessions
	Days   map[string]float64   `json:"days"`
	Total  string               `json:"total"`
	Pages  map[string]*sitePage `json:"pages"` // by the names of their files
}

// sitePage is the page of a session.
type sitePage struct {
	State string `json:"state"` // of the session; "" for a page that is not written yet
	Linked
}

// OpenSite opens the directory of a site, which must be empty or one that a SiteDir made, with the
// same masks. Its errors say which other directory to choose. Callers must close it.
func OpenSite(source SiteSource, path string, masked bool) (*SiteDir, error) {
	var dir *os.Root
	err := os.MkdirAll(path, 0o700)
	if err == nil {
		dir, err = os.OpenRoot(path)
	}
	if err != nil {
		return nil, unusable(path, err)
	}
	s := &SiteDir{source: source, dir: dir}
	err = s.open(path, masked)
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// isInterrupted reports whether a directory has only files that a killed first run leaves.
func isInterrupted(items []fs.DirEntry) bool {
	return len(items) == 1 && items[0].Name() == temporaryOf(SiteFile)
}

// open locks the directory and reads SiteFile, or makes the state of a new site. path is for errors.
func (s *SiteDir) open(path string, masked bool) (err error) {
	s.lock, err = s.dir.Open(".")
	if err != nil {
		return unusable(path+"/"+SiteFile, err)
	}
	err = unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		return fmt.Errorf("another run writes into %s; wait for its end", path)
	}
	items, err := s.lock.ReadDir(-1)
	if err != nil {
		return unusable(path+"/"+SiteFile, err)
	}
	isNew := len(items) == 0 || isInterrupted(items)
	switch {
	case isNew:
		s.state = siteState{Format: SiteFormat, Masked: masked}
		err = s.dir.Chmod(".", 0o700)
	case !s.has(SiteFile):
		return fmt.Errorf("%s is not empty, and not a site of this program; choose an empty directory", path)
	default:
		err = s.readState()
	}
	if err != nil {
		return unusable(path+"/"+SiteFile, err)
	}
	if s.state.Masked != masked {
		return fmt.Errorf("the pages in %s are %s; choose another directory for pages that are %s",
			path, maskWord(s.state.Masked), maskWord(masked))
	}
	return nil
}

// maskWord returns the words for pages with or without masked secrets.
func maskWord(masked bool) string {
	if masked {
		return "masked"
	}
	return "not masked"
}

// maxState bounds the size of SiteFile, in bytes: a million pages take less.
const maxState = 512 << 20

// readState reads SiteFile into s.state.
func (s *SiteDir) readState() error {
	file, err := s.dir.OpenFile(SiteFile, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe must not make the open wait
	if err != nil {
		return err
	}
	defer file.Close()
	text, err := storage.ReadOpened(file, maxState)
	if err != nil {
		return err
	}
	return s.state.parse(text)
}

// unusable returns the error of a path, with the reason of err alone.
func unusable(path string, err error) error {
	atPath, hasPath := err.(*fs.PathError)
	if hasPath {
		err = atPath.Err
	}
	return fmt.Errorf("%s cannot be used: %w; choose another directory", path, err)
}

// Close ends the lock.
func (s *SiteDir) Close() {
	_ = s.dir.Close()
	_ = s.lock.Close() // also nil
}

// pageName is the form of the names of pages. None of them leads out of the directory.
var pageName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*-[0-9a-f]{16}\.html$`)

// parse reads the content of SiteFile. It refuses names that could lead out of the directory, and another format.
func (s *siteState) parse(text []byte) error {
	err := json.Unmarshal(text, s)
	if err != nil {
		return err
	}
	for name, page := range s.Pages {
		if !pageName.MatchString(name) || page == nil {
			return fmt.Errorf("%q is not the name of a page", name)
		}
		page.File = name
	}
	if s.Format != SiteFormat {
		return fmt.Errorf("it has format %d; this program knows format %d", s.Format, SiteFormat)
	}
	return nil
}

// has reports whether the directory has a regular file of a name.
func (s *SiteDir) has(name string) bool {
	info, err := s.dir.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// stalePage is a page that is to be written.
type stalePage struct {
	*sitePage
	info  *listing.Info
	state string // of the session now
}

// Write writes the pages of changed sessions, and removes the pages of sessions that are gone. All
// pages are written when key changes, which has all that they depend on beside their sessions.
func (s *SiteDir) Write(ctx context.Context, sessions []*listing.Info, key string) error {
	stale, err := s.plan(sessions, key)
	if err != nil {
		return err
	}
	s.Unchanged = len(s.state.Pages) - len(stale)
	isChanged := len(stale)+s.Removed > 0
	if isChanged || !s.has(SiteIndex) {
		err = s.write(ctx, stale)
	}
	s.Written = len(stale) - s.Failed
	return err
}

// plan brings s.state up to date, removes the pages of sessions that are gone, and returns the pages to be written.
// Subagents' sessions have no pages.
func (s *SiteDir) plan(sessions []*listing.Info, key string) (stale []stalePage, err error) {
	if s.state.Key != key {
		s.state.Key = key
		for _, page := range s.state.Pages {
			page.State = ""
		}
	}
	pages := make(map[string]*sitePage, len(sessions))
	for _, info := range sessions {
		if info.IsSubagent() {
			continue
		}
		name := nameOfPage(info)
		state := s.source.StateOf(info) + " " + info.Title
		page := s.state.Pages[name]
		if page == nil && info.Modified().Before(s.Since) {
			continue
		}
		if page == nil {
			page = &sitePage{Linked: Linked{File: name}}
		}
		pages[name] = page
		isCurrent := page.State == state && s.has(name)
		if isCurrent {
			continue
		}
		page.State = "" // until it is written
		stale = append(stale, stalePage{
			sitePage: page,
			info:     info,
			state:    state,
		})
	}
	err = s.removeOthers(pages)
	if err != nil {
		return nil, err
	}
	s.state.Pages = pages
	return stale, nil
}

// removeOthers removes the files of the pages before that are not among these, and counts them in s.Removed.
func (s *SiteDir) removeOthers(pages map[string]*sitePage) error {
	before := slices.Sorted(maps.Keys(s.state.Pages))
	for _, name := range before {
		if pages[name] != nil {
			continue
		}
		for _, file := range []string{name, temporaryOf(name)} {
			err := s.remove(file)
			if err != nil {
				return err
			}
		}
		s.Removed++
	}
	return nil
}

// maxPageName is how much of a session's name the name of its page has.
const maxPageName = 80

// nameOfPage returns the name of the page of a session: the session's, and a hash of its path.
func nameOfPage(info *listing.Info) string {
	makePlain := func(r rune) rune {
		if isPlainRune(r) {
			return r
		}
		return '_'
	}
	plain := strings.Map(makePlain, info.BaseName())
	plain = plain[:min(len(plain), maxPageName)]
	sum := sha256.Sum256([]byte(info.Path()))
	const hashBytes = 8 // see pageName
	return fmt.Sprintf("%s-%x.html", plain, sum[:hashBytes])
}

// write writes pages, the index, and SiteFile before and after them: a run that is ended early goes
// on where it was.
func (s *SiteDir) write(ctx context.Context, stale []stalePage) error {
	err := s.save()
	if err != nil {
		return err
	}
	running, pages := errgroup.WithContext(ctx)
	running.SetLimit(runtime.GOMAXPROCS(0))
	done := 0
	for _, page := range stale {
		running.Go(func() error {
			err := s.page(pages, page)
			s.mu.Lock()
			defer s.mu.Unlock()
			done++
			s.Done(done, len(stale))
			if pages.Err() != nil {
				return pages.Err()
			}
			return s.settle(page, err)
		})
	}
	err = running.Wait()
	if err == nil {
		err = s.addUp(ctx)
	}
	if err == nil {
		err = s.file(SiteIndex, func(w io.Writer) error {
			return Index(w, s.index())
		})
	}
	saveErr := s.save() // also after an error, with the pages that were written
	if err == nil {
		err = saveErr
	}
	return err
}

// settle handles the error of a page, which ends the run only if it is one of the directory: a session that is gone
// has no page any more, and another failed page is reported and counted. Callers must hold s.mu.
func (s *SiteDir) settle(page stalePage, err error) error {
	if err == nil {
		return nil
	}
	if storage.IsGone(err) {
		delete(s.state.Pages, page.File)
		return s.remove(page.File)
	}
	s.Fail(fmt.Errorf("%s: %w", page.info.Path(), err))
	s.Failed++
	return nil
}

// page writes the page of a session, and sets its entry in s.state.
func (s *SiteDir) page(ctx context.Context, page stalePage) error {
	snap, subject, err := s.source.Subject(ctx, page.info)
	if err != nil {
		return err
	}
	defer snap.Release()
	subject.Index = SiteIndex
	err = s.file(page.File, func(w io.Writer) error {
		return Page(ctx, w, subject)
	})
	if err != nil {
		return err
	}
	title, _ := listing.DisplayName(snap, page.info.Name())
	began := page.info.Modified()
	created, isKnown := page.info.Created()
	if isKnown {
		began = time.UnixMilli(created)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	page.State = page.state
	page.Title = names.Visible(title)
	page.Agent = subject.Agent
	page.Project = names.Visible(page.info.CWD)
	page.Began = began.UTC()
	s.Wrote(snap)
	return nil
}

// addUp adds up the costs of the sessions that have a page, as stats does, and sets them in s.state: by page, by day
// and in all.
func (s *SiteDir) addUp(ctx context.Context) error {
	sums := map[string]report.Sum{} // by the names of the pages
	days := map[string]report.Decimal{}
	total := report.Sum{}
	err := s.source.EachCost(ctx, func(r report.Row) {
		name := nameOfPage(r.Session)
		if s.state.Pages[name] == nil {
			return
		}
		total.Add(r.Sum)
		day := r.Day.Format(time.DateOnly)
		days[day] = days[day].Add(r.Sum.Cost.Total)
		sum := sums[name]
		sum.Add(r.Sum)
		sums[name] = sum
	})
	for name, page := range s.state.Pages {
		page.Cost = ""
		page.Dollars = 0
		sum, hasCost := sums[name]
		if hasCost {
			page.Cost = sum.Dollars()
			page.Dollars = sum.Cost.Total.Float()
		}
	}
	s.state.Days = make(map[string]float64, len(days))
	for day, sum := range days {
		s.state.Days[day] = sum.Float()
	}
	s.state.Total = total.Dollars()
	return err
}

// index returns the content of the first page.
func (s *SiteDir) index() Site {
	site := Site{Days: s.state.Days, Total: s.state.Total}
	for _, page := range s.state.Pages {
		isWritten := page.State != ""
		hasEarlier := page.Title != "" // the page of an earlier run, if this one has failed
		if isWritten || hasEarlier {
			site.Sessions = append(site.Sessions, page.Linked)
		}
	}
	return site
}

// save writes SiteFile.
func (s *SiteDir) save() error {
	text, err := json.MarshalIndent(&s.state, "", " ")
	if err != nil {
		return err
	}
	return s.file(SiteFile, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// remove removes a file in the directory, which need not be there.
func (s *SiteDir) remove(name string) error {
	err := s.dir.Remove(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// temporaryOf names an unfinished file, which a killed run leaves.
func temporaryOf(name string) string { return "." + strings.TrimPrefix(name, ".") + ".tmp" }

// file replaces a file in the directory as a whole, by the content that write writes. After an error the old one
// stays.
func (s *SiteDir) file(name string, write func(io.Writer) error) error {
	temporary := temporaryOf(name)
	err := s.remove(temporary)
	if err != nil {
		return err
	}
	f, err := s.dir.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	writeErr := write(f)
	closeErr := f.Close()
	err = errors.Join(writeErr, closeErr)
	if err == nil {
		err = s.dir.Rename(temporary, name)
	}
	if err != nil {
		_ = s.dir.Remove(temporary)
	}
	return err
}
