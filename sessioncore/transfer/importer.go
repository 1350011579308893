package transfer

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/listing"
	"sessionfs/sessioncore/secrets"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// Importer puts sessions into a store. The files of a session come before it: a killed process
// leaves no session that lacks a part, and the next import completes it.
type Importer struct {
	Files         storage.Files // of the store
	Writer        *writer.Writer
	Listing       *listing.Listing
	Blobs         BlobStores // nil if there is no place for them
	SessionsAlone bool       // there is no place for artifacts that are no sessions
	To            string     // the directory to which all of them go, if it is not ""
	Directory     string     // the working directory of all of them that are new, if it is not ""
	// Rules find the secrets that are masked, nil for none. With rules, blobs and other files beside
	// a session are left out.
	Rules *secrets.Rules
	// Masked are the numbers of masked secrets, by the rules that found them.
	Masked map[string]int

	known map[string][]string // the names of the store's sessions, by id
	dirs  map[workplace]string
	total total
}

// workplace identifies the sessions that lie in one directory.
type workplace struct {
	dialect *sessioncore.Dialect
	cwd     string
}

// ImportOutcome is the outcome of a session.
type ImportOutcome struct {
	Outcome writer.Outcome // or Refused
	Path    string         // of its file in the mount; "" if Err tells why there is none
	Err     error          // why it was refused
	Notes   []string       // remarks about parts that did not come along
	// Partly says that an artifact was refused.
	Partly bool
}

// Refused means that a session was not imported, as it is or where it was to go.
const Refused writer.Outcome = "refused"

// note adds a remark about parts that did not come along.
func (r *ImportOutcome) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Import puts a session into the store, with its files. Only an interrupt is an error of its own.
func (im *Importer) Import(ctx context.Context, f FoundFile) (ImportOutcome, error) {
	var r ImportOutcome
	r.Err = f.Err
	if r.Err == nil {
		r.Err = im.put(ctx, f, &r)
	}
	if r.Err != nil {
		r.Outcome = Refused
	}
	return r, ctx.Err()
}

// put is Import with the reason for a refusal as its error.
func (im *Importer) put(ctx context.Context, f FoundFile, r *ImportOutcome) error {
	c, err := im.open(ctx, &f)
	if err != nil {
		return err
	}
	defer c.Close()
	name, err := im.place(ctx, f, c)
	if err != nil {
		return err
	}
	err = im.setDirectory(ctx, c, name)
	if err != nil {
		return err
	}
	err = im.mask(ctx, c, name)
	if err != nil {
		return err
	}
	_, err = im.Files.Stat(name)
	if storage.IsMissing(err) {
		err := checkName(name)
		if err != nil {
			return err
		}
	}
	r.Path = sessions + "/" + name
	if f.isOrphan {
		r.note("a subagent whose session is gone")
	}
	beside := func() error {
		return im.artifacts(ctx, f, name, r)
	}
	err = im.session(ctx, storedSession{found: f, content: c, name: name, outcome: r}, beside)
	if c.made != nil && errors.Is(err, writer.ErrOther) {
		err = errGoneOn
	}
	id, _ := c.id()
	if err == nil && r.Outcome == writer.Added {
		im.known[id] = append(im.known[id], name)
	}
	return err
}

// open opens a session. One of another agent is made a session of omp, and f becomes the file in that agent's
// directory. The caller must close it.
func (im *Importer) open(ctx context.Context, f *FoundFile) (*openSession, error) {
	c, err := im.total.open(ctx, f.files, f.name)
	if errors.Is(err, errNoSession) {
		err = f.settle(ctx)
		if err != nil {
			return nil, err
		}
		return im.made(ctx, *f, f.name)
	}
	if err == nil && f.entry != "" {
		_ = c.Close()
		return nil, errors.New("only of sessions of other agents a branch can be imported; the file fork makes one of this")
	}
	return c, err
}

// mask masks the secrets in content that is to be stored by a name. It does nothing without Rules.
func (im *Importer) mask(ctx context.Context, c *openSession, name string) (err error) {
	if im.Rules == nil {
		return nil
	}
	if im.Rules.In(name) {
		return errors.New("its name has a secret")
	}
	obj, err := secrets.MaskObject(c.Object, im.Rules)
	if err != nil {
		return err
	}
	c.Object = obj
	c.ReaderAt = &interruptible{ctx: ctx, at: obj}
	for kind, n := range MaskedIn(obj) {
		im.Masked[kind] += n
	}
	return nil
}

var errGoneOn = errors.New("it was imported before, and was gone on with or differs since; with PATH#ID, " +
	"the branch to an entry is a session of its own")

// storedSession is a session on its way into the store.
type storedSession struct {
	found   FoundFile
	content *openSession
	name    string // in the store
	outcome *ImportOutcome
}

// session puts a session into the store: all that beside puts there, its blobs, and itself as the last. It
// sets the outcome, and adds notes about the parts that are left out. A blob that is missing is no error.
func (im *Importer) session(ctx context.Context, s storedSession, beside func() error) (err error) {
	c := s.content
	r := s.outcome
	r.Outcome, err = im.examine(ctx, s.name, c.Copy)
	if err != nil {
		return err
	}
	err = beside()
	if err != nil {
		return err
	}
	if im.Rules != nil && len(c.blobs) > 0 {
		r.note("%d images are left out: they cannot be masked", len(c.blobs))
		c.blobs = nil
	}
	if im.Blobs == nil && len(c.blobs) > 0 {
		r.note("%d blobs are left out: there is no place for them, -o blobs=DIR names one", len(c.blobs))
		c.blobs = nil
	}
	for _, hash := range c.blobs {
		err := im.blob(s.found, c, hash)
		if err != nil && ctx.Err() != nil {
			return err
		}
		if err != nil {
			r.note("blob %s is not to be had: %s", hash, withoutPath(err))
		}
	}
	r.Notes = append(r.Notes, c.notes...)
	if c.torn > 0 {
		r.note("its last line is torn: %d bytes left out", c.torn)
	}
	if r.Outcome == writer.Unchanged {
		return nil
	}
	r.Outcome, err = im.Writer.Import(ctx, s.name, c.Copy)
	return err
}

// place returns the name of a session in the store: the one that it has there; else the one that it had in its
// agent directory; else one for a new session.
func (im *Importer) place(ctx context.Context, f FoundFile, c *openSession) (string, error) {
	err := im.readKnown(ctx)
	if err != nil {
		return "", err
	}
	id, _ := c.id()
	known := im.known[id]
	dir, err := im.dirOf(ctx, f, c)
	isKnown := id != "" && len(known) > 0
	mayGoOn := isKnown && errors.Is(err, writer.ErrNotOwn) // it has a place, although new ones have none
	if err != nil && !mayGoOn {
		return "", err
	}
	base := c.base
	if base == "" {
		base = path.Base(f.name)
	}
	name := path.Join(dir, base)
	if !isKnown || slices.Contains(known, name) {
		return name, nil
	}
	for _, other := range known {
		if path.Base(other) == base {
			return other, nil
		}
	}
	return known[0], nil // with another file name
}

// readKnown reads the names of the store's sessions once.
func (im *Importer) readKnown(ctx context.Context) error {
	if im.known != nil {
		return nil
	}
	list, err := im.Listing.Sessions(ctx)
	if err != nil && !storage.IsMissing(err) {
		return err
	}
	im.known = map[string][]string{}
	im.dirs = map[workplace]string{}
	for _, info := range list.All() {
		im.known[info.ID] = append(im.known[info.ID], info.Name())
	}
	return nil
}

// dirOf returns the directory for a session that the store does not have: the one for all, the one that it
// had in its agent directory, or that of its working directory.
func (im *Importer) dirOf(ctx context.Context, f FoundFile, c *openSession) (string, error) {
	if im.To != "" {
		return im.To, nil
	}
	hadDirectory := strings.Contains(f.place, "/")
	if hadDirectory && c.made == nil {
		own, err := im.Writer.Own()
		return path.Join(own, storage.Dir(f.place)), err
	}
	d := sessioncore.DialectOf(c.header)
	_, cwd := c.id()
	if d.IsOMP() && !IsWorkingDirectory(cwd) {
		return "", noPlaceError(cwd)
	}
	return im.dirFor(ctx, workplace{dialect: d, cwd: CleanDirectory(cwd)})
}

// dirFor is writer.DirFor with its results kept, as it looks through all sessions.
func (im *Importer) dirFor(ctx context.Context, of workplace) (string, error) {
	dir, isKnown := im.dirs[of]
	if isKnown {
		return dir, nil
	}
	dir, err := im.Writer.DirFor(ctx, of.cwd, of.dialect)
	if err != nil {
		return dir, err
	}
	im.dirs[of] = dir
	return dir, nil
}

// examine returns the outcome that an import would have. A row with the copy's size and its time in
// milliseconds counts as equal: to compare all of it, the server would have to send it. With
// Rules it does not: the row may be an unmasked copy.
func (im *Importer) examine(ctx context.Context, name string, c writer.Copy) (writer.Outcome, error) {
	if !im.SessionsAlone || im.Rules != nil {
		return im.Writer.Examine(ctx, name, c)
	}
	st, err := im.Files.Stat(name)
	isSameTime := st.ModTime().UnixMilli() == c.Modified.UnixMilli()
	if err == nil && st.Size == c.Size && isSameTime {
		return writer.Unchanged, nil
	}
	return im.Writer.Examine(ctx, name, c)
}

// blob copies a blob into the store, unless one of the same size is there. A blob that is missing beside the
// session is an error only if the store does not have it, either.
func (im *Importer) blob(f FoundFile, c *openSession, hash string) error {
	if c.made != nil {
		f.files = c.made
		f.agent = ""
	}
	known, err := im.Blobs.Size(hash)
	isKnown := err == nil
	obj, err := f.files.Open(path.Join(f.agent, "blobs", hash))
	if err != nil && isKnown {
		return nil
	}
	if err != nil {
		return err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	if isKnown && known == st.Size {
		return nil
	}
	return im.Blobs.Copy(hash, obj, st.Size)
}

// artifacts copies the files beside a session. The sessions of its subagents are imported as
// sessions. A file that is refused or has no place is a note in r, not an error.
func (im *Importer) artifacts(ctx context.Context, f FoundFile, name string, r *ImportOutcome) error {
	from := strings.TrimSuffix(f.name, sessioncore.FileEnding)
	to := strings.TrimSuffix(name, sessioncore.FileEnding)
	homeless := 0
	err := eachArtifact(f.files, from, "", func(file, rel string) error {
		err := im.artifact(ctx, f, file, path.Join(to, rel), r)
		switch {
		case err == nil || ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errNoPlace):
			homeless++
		default:
			r.Partly = true
			r.note("%s beside it is refused: %s", rel, withoutPath(err))
		}
		return nil
	})
	if homeless > 0 {
		why := "a database has no place for them"
		if im.Rules != nil {
			why = "they cannot be masked"
		}
		r.note("%d files beside it are left out: %s", homeless, why)
	}
	return err
}

var errNoPlace = errors.New("no place")

// artifact copies a file beside a session, or imports it if it is a session. The error is errNoPlace for a file
// that cannot be kept.
func (im *Importer) artifact(ctx context.Context, f FoundFile, from, to string, r *ImportOutcome) error {
	err := checkName(to)
	if err != nil {
		return err
	}
	if sessioncore.IsSessionName(path.Base(from)) {
		err := im.subagent(ctx, f, from, to, r)
		if !errors.Is(err, errNoSession) {
			return err
		}
	}
	if im.SessionsAlone || im.Rules != nil {
		return errNoPlace
	}
	obj, err := f.files.Open(from)
	if err != nil {
		return err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return err
	}
	_, err = im.Writer.Import(ctx, to, writer.Copy{
		ReaderAt: obj,
		Size:     st.Size,
		Modified: st.ModTime(),
		Artifact: true,
	})
	return err
}

// subagent imports the session in a file beside another session, none if it is empty. The error wraps
// errNoSession if the file only has the name of one.
func (im *Importer) subagent(ctx context.Context, f FoundFile, from, to string, r *ImportOutcome) error {
	c, err := im.total.open(ctx, f.files, from)
	if errors.Is(err, errNoSession) && f.how != nil && f.how.IsSession(from) {
		f.entry = ""
		above, isInPath := strings.CutSuffix(f.path, f.name)
		if isInPath { // else only the agent knows the file
			f.path = above + from
		}
		c, err = im.made(ctx, f, from)
	}
	if errors.Is(err, errEmpty) {
		return nil
	}
	if err != nil {
		return err
	}
	defer c.Close()
	err = im.mask(ctx, c, to)
	if err != nil {
		return err
	}
	var own ImportOutcome
	nothing := func() error { return nil } // has its artifacts beside its caller's
	err = im.session(ctx, storedSession{found: f, content: c, name: to, outcome: &own}, nothing)
	for _, note := range own.Notes {
		r.note("%s beside it: %s", path.Base(to), note)
	}
	return err
}
