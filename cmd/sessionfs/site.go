package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"maps"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/names"
	reports "sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/transfer"
	"sessionfs/sessioncore/view"
)

const (
	// siteFile describes a site, in its directory; siteIndex is its first page.
	siteFile  = ".sessionfs.json"
	siteIndex = "index.html"
	// siteFormat is the format of siteFile.
	siteFormat = 1
)

// site is a directory of pages that export --all writes. No link in it is followed, and files
// appear whole.
type site struct {
	*source
	dir  *os.Root
	lock *os.File // the directory, locked
	path string

	mu     sync.Mutex // guards the fields below while pages are written
	state  siteState
	masked map[string]int // secrets in the pages that were written
	failed int            // pages that could not be written
}

// siteState is the content of siteFile.
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
	view.Linked
}

// exportAll writes the pages of all sessions into a directory.
func (src *source) exportAll(cmd *cobra.Command, path string) (err error) {
	s, err := openSite(src, path)
	if err != nil {
		return err
	}
	defer s.close()
	sessions, err := src.Sessions(cmd.Context())
	if err != nil {
		return err
	}
	key, err := siteKey(src)
	if err != nil {
		return err
	}
	stale, removed, err := s.plan(sessions, key)
	if err != nil {
		return err
	}
	same := len(s.state.Pages) - len(stale)
	if len(stale)+removed > 0 || !s.has(siteIndex) {
		err = s.write(cmd, stale)
	}
	if err != nil {
		return err
	}
	if src.Redact {
		sayMasked(cmd, "in the pages that were written", s.masked)
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d pages written, %d as they were, %d removed: %s\n",
		len(stale)-s.failed, same, removed, names.Visible(path+"/"+siteIndex))
	if err == nil && s.failed > 0 {
		err = ended(exitFailure)
	}
	return err
}

// openSite opens the directory of a site, which must be empty or one that export --all made, with
// the same masks.
func openSite(src *source, path string) (*site, error) {
	refused := func(format string, args ...any) (*site, error) {
		return nil, refuse(exitUsage, "export: "+format, args...)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return refused("%s cannot be made: %s; choose another directory", path, reasonOf(err))
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return refused("%s cannot be opened: %s; choose another directory", path, reasonOf(err))
	}
	s := &site{source: src, dir: dir, path: path, masked: map[string]int{}}
	var items []iofs.DirEntry
	if s.lock, err = dir.Open("."); err == nil {
		if unix.Flock(int(s.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
			s.close()
			return refused("another run writes into %s; wait for its end", path)
		}
		items, err = s.lock.ReadDir(-1)
	}
	switch {
	case err == nil && len(items) == 0:
		s.state = siteState{Format: siteFormat, Masked: src.Redact}
		err = dir.Chmod(".", 0o700)
	case err == nil && !s.has(siteFile):
		s.close()
		return refused("%s is not empty, and not a site of this program; choose an empty directory", path)
	case err == nil:
		var text []byte
		if text, err = dir.ReadFile(siteFile); err == nil {
			err = s.state.parse(text)
		}
	}
	if err != nil {
		s.close()
		return refused("%s/%s cannot be used: %s; choose another directory", path, siteFile, reasonOf(err))
	}
	if s.state.Masked != src.Redact {
		s.close()
		return refused("the pages in %s are %s; choose another directory for pages that are %s",
			path, maskedWord(s.state.Masked), maskedWord(src.Redact))
	}
	return s, nil
}

// close ends the lock.
func (s *site) close() {
	_ = s.dir.Close()
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

func maskedWord(masked bool) string {
	return map[bool]string{true: "masked", false: "not masked"}[masked]
}

// pageName is the form of the names of pages. None of them leads out of the directory.
var pageName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9._-]*-[0-9a-f]{16}\.html$`)

// parse reads the content of siteFile.
func (s *siteState) parse(text []byte) error {
	if err := json.Unmarshal(text, s); err != nil {
		return err
	}
	for name, page := range s.Pages {
		if !pageName.MatchString(name) || page == nil {
			return fmt.Errorf("%q is not the name of a page", name)
		}
		page.File = name
	}
	if s.Format != siteFormat {
		return fmt.Errorf("it has format %d; this program knows format %d", s.Format, siteFormat)
	}
	return nil
}

// has reports whether a name is that of a regular file in the directory.
func (s *site) has(name string) bool {
	info, err := s.dir.Lstat(name)
	return err == nil && info.Mode().IsRegular()
}

// siteKey returns a hash of all that pages depend on beside their sessions: the program, the
// options with the files that they name, and the time zone.
func siteKey(src *source) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, siteFormat, version(), src.flags.options, src.Prices(), sessioncore.ZoneName())
	for _, file := range []string{src.RedactRules, src.Options.Prices} {
		if file == "" || file == mountopts.NoPrices {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(hash, "%d\n%s", len(text), text)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// stalePage is a page that is to be written.
type stalePage struct {
	name  string
	info  *listing.Info
	state string // of the session
	page  *sitePage
}

// plan brings the list of pages up to date, removes those whose sessions are gone, and returns
// those to be written.
func (s *site) plan(sessions []*listing.Info, key string) (stale []stalePage, removed int, err error) {
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
		name, state := nameOfPage(info), s.StateOf(info)+" "+info.Title
		page := s.state.Pages[name]
		if page == nil {
			page = &sitePage{Linked: view.Linked{File: name}}
		}
		if pages[name] = page; page.State != state || !s.has(name) {
			page.State = ""
			stale = append(stale, stalePage{name, info, state, page})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.state.Pages)) {
		if pages[name] == nil {
			if err := s.remove(name); err != nil {
				return nil, 0, err
			}
			removed++
		}
	}
	s.state.Pages = pages
	return stale, removed, nil
}

// maxPageName is how much of a session's name the name of its page has.
const maxPageName = 80

// nameOfPage returns the name of the page of a session: the session's, and a hash of its path.
func nameOfPage(info *listing.Info) string {
	plain := strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, info.BaseName())
	sum := sha256.Sum256([]byte(info.Path()))
	return fmt.Sprintf("%s-%x.html", plain[:min(len(plain), maxPageName)], sum[:8])
}

// write writes pages, the index, and siteFile before and after them: a run that is ended early goes
// on where it was.
func (s *site) write(cmd *cobra.Command, stale []stalePage) error {
	if err := s.save(); err != nil {
		return err
	}
	running, ctx := errgroup.WithContext(cmd.Context())
	running.SetLimit(runtime.GOMAXPROCS(0))
	done := 0
	for _, at := range stale {
		running.Go(func() error {
			err := s.page(ctx, at)
			s.mu.Lock()
			defer s.mu.Unlock()
			done++
			showProgress(cmd.ErrOrStderr(), progressText(done, len(stale)))
			switch {
			case err == nil || ctx.Err() != nil:
				return ctx.Err()
			case storage.IsGone(err):
				delete(s.state.Pages, at.name)
				return s.remove(at.name)
			}
			showProgress(cmd.ErrOrStderr(), "")
			sayError(cmd, fmt.Errorf("%s: %w", at.info.Path(), err))
			s.failed++
			return nil
		})
	}
	err := running.Wait()
	showProgress(cmd.ErrOrStderr(), "")
	if err == nil {
		err = withProgress(cmd, s.addUp)
	}
	if err == nil {
		err = s.file(siteIndex, func(w io.Writer) error { return view.Index(w, s.index()) })
	}
	if saved := s.save(); err == nil {
		err = saved
	}
	return err
}

// page writes the page of a session.
func (s *site) page(ctx context.Context, at stalePage) error {
	snap, of, err := s.subject(ctx, named{dir: at.info.Path()})
	if err != nil {
		return err
	}
	defer snap.Release()
	of.Index = siteIndex
	if err := s.file(at.name, func(w io.Writer) error { return view.Page(ctx, w, of) }); err != nil {
		return err
	}
	title, _ := listing.DisplayName(snap, at.info.Name())
	s.mu.Lock()
	defer s.mu.Unlock()
	at.page.State = at.state
	at.page.Title, at.page.Agent, at.page.Project = names.Visible(title), of.Agent, names.Visible(at.info.CWD)
	began := at.info.Modified()
	if ms, ok := at.info.Created(); ok {
		began = time.UnixMilli(ms)
	}
	at.page.Began = began.UTC()
	for rule, n := range transfer.MaskedIn(snap.File()) {
		s.masked[rule] += n
	}
	return nil
}

// addUp adds up the costs of all sessions, as stats does.
func (s *site) addUp(ctx context.Context) error {
	sums, days := map[*sitePage]*reports.Sum{}, map[string]float64{}
	for _, page := range s.state.Pages {
		page.Cost, page.Dollars = "", 0
	}
	var total reports.Sum
	err := s.Costs(ctx, fs.Count{}, func(r reports.Row, _ string) {
		total.Add(r.Sum)
		days[r.Day.Format(time.DateOnly)] += float64(r.Sum.Cost.Total)
		if page := s.state.Pages[nameOfPage(r.Session)]; page != nil {
			if sums[page] == nil {
				sums[page] = &reports.Sum{}
			}
			sums[page].Add(r.Sum)
		}
	})
	for page, sum := range sums {
		page.Cost, page.Dollars = sum.Dollars(), float64(sum.Cost.Total)
	}
	s.state.Days, s.state.Total = days, total.Dollars()
	return err
}

// index returns the content of the first page.
func (s *site) index() view.Site {
	of := view.Site{Days: s.state.Days, Total: s.state.Total}
	for _, page := range s.state.Pages {
		if page.State != "" || page.Title != "" { // of a failed one there may be an earlier page
			of.Sessions = append(of.Sessions, page.Linked)
		}
	}
	return of
}

// save writes siteFile.
func (s *site) save() error {
	text, err := json.MarshalIndent(&s.state, "", " ")
	if err != nil {
		return err
	}
	return s.file(siteFile, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(text))
		return err
	})
}

// remove removes a file in the directory, which need not be there.
func (s *site) remove(name string) error {
	err := s.dir.Remove(name)
	if errors.Is(err, iofs.ErrNotExist) {
		err = nil
	}
	return err
}

// file replaces a file in the directory as a whole.
func (s *site) file(name string, write func(io.Writer) error) error {
	temporary := "." + strings.TrimPrefix(name, ".") + ".tmp"
	if err := s.remove(temporary); err != nil {
		return err
	}
	f, err := s.dir.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Close())
	if err == nil {
		err = s.dir.Rename(temporary, name)
	}
	if err != nil {
		_ = s.dir.Remove(temporary)
	}
	return err
}
