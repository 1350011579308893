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
	// Masked is how many secrets are masked, by the rules that found them.
	Masked map[string]int

	known map[string][]string // the names of the store's sessions, by id
	dirs  map[workplace]string
	total total
}

// workplace is whose sessions lie in one directory.
type workplace struct {
	dialect *sessioncore.Dialect
	cwd     string
}

// ImportOutcome is the outcome of a session.
type ImportOutcome struct {
	Outcome writer.Outcome // or Refused
	Path    string         // of its file in the mount; "" if Err tells why there is none
	Err     error          // why it was refused
	Notes   []string       // what did not come along
	// Partly says that an artifact was refused.
	Partly bool
}

// Refused means that a session was not imported, as it is or where it was to go.
const Refused writer.Outcome = "refused"

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

func (im *Importer) put(ctx context.Context, f FoundFile, r *ImportOutcome) error {
	c, err := im.total.open(ctx, f.files, f.name)
	switch {
	case errors.Is(err, errNoSession):
		if err = f.settle(ctx); err == nil {
			c, err = im.made(ctx, f, f.name)
		}
	case err == nil && f.entry != "":
		defer c.Close()
		return errors.New("only of sessions of other agents a branch can be imported; the file fork makes one of this")
	}
	if err != nil {
		return err
	}
	defer c.Close()
	name, err := im.place(ctx, f, c)
	if err == nil {
		err = im.setDirectory(ctx, c, name)
	}
	if err == nil {
		err = im.mask(ctx, c, name)
	}
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
	err = im.session(ctx, f, c, name, r, func() error { return im.artifacts(ctx, f, name, r) })
	if c.made != nil && errors.Is(err, writer.ErrOther) {
		err = errGoneOn
	}
	id, _ := c.id()
	if err == nil && r.Outcome == writer.Added {
		im.known[id] = append(im.known[id], name)
	}
	return err
}

// mask masks the secrets in content that is to have a name.
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

// session puts a session into the store by a name: all that beside puts there, its blobs, and itself.
func (im *Importer) session(
	ctx context.Context, f FoundFile, c *openSession, name string, r *ImportOutcome, beside func() error,
) (err error) {
	r.Outcome, err = im.examine(ctx, name, c.Copy)
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
		err := im.blob(f, c, hash)
		if err != nil {
			if ctx.Err() != nil {
				return err
			}
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
	r.Outcome, err = im.Writer.Import(ctx, name, c.Copy)
	return err
}

// place returns where a session belongs: where the store has it, else where it lay, else where a
// new one would lie.
func (im *Importer) place(ctx context.Context, f FoundFile, c *openSession) (string, error) {
	if im.known == nil {
		list, err := im.Listing.Sessions(ctx)
		if err != nil && !storage.IsMissing(err) {
			return "", err
		}
		im.known = map[string][]string{}
		im.dirs = map[workplace]string{}
		for _, info := range list.All() {
			im.known[info.ID] = append(im.known[info.ID], info.Name())
		}
	}
	d := sessioncore.DialectOf(c.header)
	dir := ""
	err := error(nil)
	id, cwd := c.id()
	there := im.known[id]
	switch {
	case im.To != "":
		dir = im.To
	case strings.Contains(f.place, "/") && c.made == nil:
		dir, err = im.Writer.Own()
		dir = path.Join(dir, storage.Dir(f.place))
	case d.IsOMP() && !IsWorkingDirectory(cwd):
		return "", noPlaceError(cwd)
	default:
		dir, err = im.dirFor(ctx, workplace{d, CleanDirectory(cwd)})
	}
	if err != nil && !(errors.Is(err, writer.ErrNotOwn) && id != "" && len(there) > 0) {
		return "", err
	}
	base := c.base
	if base == "" {
		base = path.Base(f.name)
	}
	name := path.Join(dir, base)
	if id == "" || slices.Contains(there, name) {
		return name, nil
	}
	for _, other := range there {
		if path.Base(other) == path.Base(name) {
			return other, nil
		}
	}
	if len(there) > 0 {
		return there[0], nil
	}
	return name, nil
}

// dirFor is writer.DirFor, asked once: it looks through all sessions that there are.
func (im *Importer) dirFor(ctx context.Context, of workplace) (dir string, err error) {
	dir, ok := im.dirs[of]
	if !ok {
		dir, err = im.Writer.DirFor(ctx, of.cwd, of.dialect)
		if err == nil {
			im.dirs[of] = dir
		}
	}
	return dir, err
}

// examine returns the outcome that an import would have. A row with the copy's size and its time in
// milliseconds counts as equal: to compare all of it, the server would have to send it. With
// Rules it does not: the row may be an unmasked copy.
func (im *Importer) examine(ctx context.Context, name string, c writer.Copy) (writer.Outcome, error) {
	st, err := im.Files.Stat(name)
	if im.SessionsAlone && im.Rules == nil && err == nil && st.Size == c.Size && st.ModTime().UnixMilli() == c.Modified.UnixMilli() {
		return writer.Unchanged, nil
	}
	return im.Writer.Examine(ctx, name, c)
}

// blob brings a blob along.
func (im *Importer) blob(f FoundFile, c *openSession, hash string) error {
	if c.made != nil {
		f.files = c.made
		f.agent = ""
	}
	size, err := im.Blobs.Size(hash)
	obj, missing := f.files.Open(path.Join(f.agent, "blobs", hash))
	if missing != nil {
		if err == nil {
			return nil
		}
		return missing
	}
	defer obj.Close()
	st, missing := obj.Stat()
	if missing != nil || err == nil && size == st.Size {
		return missing
	}
	return im.Blobs.Copy(hash, obj, st.Size)
}

// artifacts copies the files beside a session. The sessions of its subagents are imported as
// sessions.
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

func (im *Importer) artifact(ctx context.Context, f FoundFile, from, to string, r *ImportOutcome) error {
	err := checkName(to)
	if err != nil {
		return err
	}
	if sessioncore.IsSessionName(path.Base(from)) {
		c, err := im.total.open(ctx, f.files, from)
		if errors.Is(err, errNoSession) && f.how != nil && f.how.IsSession(from) {
			f.entry = ""
			above, ok := strings.CutSuffix(f.path, f.name)
			if ok { // else only the agent knows the file
				f.path = above + from
			}
			c, err = im.made(ctx, f, from)
		}
		if err == nil {
			defer c.Close()
			err = im.mask(ctx, c, to)
		}
		if err == nil {
			var of ImportOutcome
			err = im.session(ctx, f, c, to, &of, func() error { return nil })
			for _, note := range of.Notes {
				r.note("%s beside it: %s", path.Base(to), note)
			}
			return err
		}
		if errors.Is(err, errEmpty) {
			return nil
		}
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
	if err == nil {
		_, err = im.Writer.Import(ctx, to, writer.Copy{ReaderAt: obj, Size: st.Size, Modified: st.ModTime(), Artifact: true})
	}
	return err
}
