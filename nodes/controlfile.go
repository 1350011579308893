package nodes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"sessionfs/nodes/layout"
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/document"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/report"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/writer"
)

// maxControlLine is the longest line of a control file, in bytes (docs/design.md section 2).
var maxControlLine = writer.MaxLine // tests have a shorter one

// uninterrupted returns the context for a write: it is always finished, so that no line takes
// effect twice because a program got an error after the first. Waits for locks are limited.
func uninterrupted(ctx context.Context) context.Context { return context.WithoutCancel(ctx) }

// applyLines executes lines in order and returns their results. At a bad line it stops and returns
// the number of lines before it, which took effect, with the error.
type applyLines func(ctx context.Context, lines [][]byte) (results []string, done int, err error)

// ControlFile is a file that accepts commands, a line each: in a session's directory append,
// labels, fork, title and cwd, in the root new-session. labels, title and cwd can be read too; the
// others have size 0 (docs/design.md section 2).
type ControlFile struct {
	GeneratedFile // the content for reads
	// sessionName and name tell the file in last-error; sessionName is outside for new-session.
	sessionName, name string
	// probe returns the state of the file or directory that gives it its owner and mode.
	probe func(context.Context) (storage.Stat, error)
	do    applyLines
	// isPartial reports whether a last line without a newline is incomplete. Then a close does not
	// execute it, since the rest may be written through another descriptor. nil means never.
	isPartial func(line []byte) bool
	// makeDurable is for fsync.
	makeDurable func(context.Context) error
	// shown returns the lines of the file, without their newlines, by their first fields. A text
	// with an unchanged one of them replaces the whole file: lines that it lacks are cleared when
	// it is closed. nil for files that are not replaced so.
	shown  func(context.Context) (map[string]string, error)
	copies bool // lines change no existing session
	empty  bool // an empty line has a meaning; otherwise it is ignored
	single bool // each open file accepts one line; if more are written, all are refused
}

// sessionCommand executes a line about a session.
type sessionCommand func(d *SessionDir, ctx context.Context, line string) (result string, err error)

// control returns the node of a control file; r is nil for one of size 0.
func (d *SessionDir) control(name string, do sessionCommand, r render) *ControlFile {
	f := &ControlFile{sessionName: d.session.Name(), name: name}
	f.probe = func(ctx context.Context) (storage.Stat, error) {
		return retryIfMoved(ctx, d, func(d *SessionDir) (storage.Stat, error) {
			return d.session.Probe(ctx)
		})
	}
	f.do = oneByOne(func(ctx context.Context, line string) (string, error) {
		return retryIfMoved(ctx, d, func(d *SessionDir) (string, error) {
			return do(d, ctx, line)
		})
	})
	f.makeDurable = func(ctx context.Context) error {
		_, err := retryIfMoved(ctx, d, func(d *SessionDir) (any, error) {
			return nil, d.view.Writer.Sync(d.session)
		})
		return err
	}
	f.init(&d.Directory, r)
	f.writable = true
	return f
}

// retryIfMoved calls do with d. If the session's file was moved meanwhile, it calls do once more with the
// session's new directory, which it keeps in d.moved: clients rename directories of sessions when they start,
// and open files must go on. Without a new place it returns the result and the error of do.
func retryIfMoved[T any](ctx context.Context, d *SessionDir, do func(*SessionDir) (T, error)) (T, error) {
	result, err := do(d)
	isIDMissing := errors.Is(err, sessioncore.ErrNotFound) // the file is there
	if !errors.Is(err, fs.ErrNotExist) || isIDMissing {
		return result, err
	}
	known := d.moved.Load()
	if known != nil {
		return retryIfMoved(ctx, known, do)
	}
	now, missing := d.view.Listing.Moved(ctx, d.session)
	if missing != nil || now.Name() == d.session.Name() { // another file is missing
		return result, err
	}
	d.session.Drop() // the snapshot under the old name
	dir, file := path.Split(now.Name())
	beside := d.beside.mountedAt(d.beside.Directory, path.Clean(dir))
	to := newSessionDir(beside, strings.TrimSuffix(file, layout.SessionSuffix))
	d.moved.Store(to)
	return retryIfMoved(ctx, to, do)
}

// Stat returns the attributes of the content for reads, or of a file of size 0.
func (f *ControlFile) Stat(ctx context.Context) (Attr, error) {
	if f.render != nil {
		return f.GeneratedFile.Stat(ctx)
	}
	st, err := f.probe(ctx)
	return f.view().writableAttr(st, 0), err
}

// Open returns a handle that accepts lines, or for reading alone one that shows the file. Reads of a file
// without content return the answers to the lines. The handle can seek, as some programs require (Python's a+
// and r+), though the offset has no meaning.
func (f *ControlFile) Open(ctx context.Context, flag int) (Handle, error) {
	h := &controlHandle{
		file:    f,
		hold:    f.view().Memory.Hold(),
		mute:    flag&os.O_WRONLY != 0,
		writes:  writes(flag),
		appends: flag&os.O_APPEND != 0,
	}
	if f.render == nil {
		return h, nil
	}
	if !writes(flag) {
		return f.GeneratedFile.Open(ctx, flag)
	}
	var err error
	if flag&os.O_RDWR != 0 {
		h.shown, err = f.GeneratedFile.Open(ctx, flag)
	}
	return h, err
}

// Sync makes the session's writes durable, through any open file: sync(1) opens it for reading.
func (f *ControlFile) Sync(ctx context.Context) syscall.Errno {
	err := f.makeDurable(uninterrupted(ctx))
	if err != nil {
		return f.Refused(err)
	}
	return 0
}

// Readable reports whether the file is rendered from the session.
func (f *ControlFile) Readable() bool { return f.render != nil }

// Refused is as in Control. An id that does not exist is ENOENT, a session that no longer exists
// ESTALE (docs/design.md section 7).
func (f *ControlFile) Refused(err error) syscall.Errno {
	return f.view().refuse(f.sessionName, f.name, f.in.pathOf(f.name), f.staleError(err))
}

// staleError is staleIfGone for a session's file, but keeps the error for a missing id.
func (f *ControlFile) staleError(err error) error {
	if f.sessionName == outside || errors.Is(err, sessioncore.ErrNotFound) {
		return err
	}
	return staleIfGone(err)
}

// oneByOne calls do for each line until it fails.
func oneByOne(do func(ctx context.Context, line string) (result string, err error)) applyLines {
	return func(ctx context.Context, lines [][]byte) (results []string, done int, err error) {
		for _, line := range lines {
			result, err := do(ctx, string(line))
			if err != nil {
				return results, done, err
			}
			if result != "" {
				results = append(results, result)
			}
			done++
		}
		return results, done, nil
	}
}

// makeAppend makes append, which accepts entries, a JSON object a line. A close does not execute an
// incomplete object, as its line may continue through another descriptor.
func makeAppend(d *SessionDir) Node {
	f := d.control("append", nil, nil)
	f.do = func(ctx context.Context, lines [][]byte) (ids []string, done int, err error) {
		// After a move the lines that took effect at the old path are not repeated.
		done, err = retryIfMoved(ctx, d, func(d *SessionDir) (int, error) {
			more, n, err := d.appendLines(ctx, lines[done:])
			ids = append(ids, more...)
			done += n
			return done, err
		})
		return ids, done, err
	}
	f.isPartial = writer.Unfinished
	return f
}

// appendLines appends entries, a line each, and returns the ids of those that are written and the number of
// lines that took effect. Reading the same open file returns the ids; see answers.
func (d *SessionDir) appendLines(ctx context.Context, lines [][]byte) (ids []string, done int, err error) {
	ids, err = d.view.Writer.Append(ctx, d.session, lines...)
	done = len(ids)
	for i, id := range ids {
		ids[i] = names.TextUTF8(id)
	}
	isUnsynced := err != nil && done == len(lines)
	if isUnsynced {
		done = 0 // all are written, but not durable: the writer must get the error
	}
	return ids, done, err
}

// makeLabels makes labels; its open handles continue with labels that are set later.
func makeLabels(d *SessionDir) Node {
	f := d.control("labels", (*SessionDir).setLabel, atOnce(report.Labels))
	f.growing()
	f.shown = func(ctx context.Context) (map[string]string, error) {
		return retryIfMoved(ctx, d, func(d *SessionDir) (map[string]string, error) {
			return d.shownLabels(ctx)
		})
	}
	return f
}

// shownLabels returns the lines of labels by their ids, as escaped in these.
func (d *SessionDir) shownLabels(ctx context.Context) (map[string]string, error) {
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer snap.Release()
	lines := map[string]string{}
	for _, l := range snap.Labels() {
		fields := names.AppendLabelFields(nil, l.Target, l.Label)
		line := strings.TrimSuffix(string(fields), "\n")
		id, _, _ := strings.Cut(line, "\t")
		lines[id] = line
	}
	return lines, nil
}

// setLabel sets or clears a label: "<id> <label>" sets, "<id>" clears. The id may be the beginning of one. The
// result is always "".
func (d *SessionDir) setLabel(ctx context.Context, line string) (string, error) {
	id, label, err := writer.ParseLabelLine(line)
	if err != nil {
		return "", err
	}
	id, err = d.wholeID(ctx, id)
	if err != nil {
		return "", err
	}
	return "", d.view.Writer.SetLabel(ctx, d.session, id, label)
}

// wholeID returns the id of the entry that begins with text, or text where no id does. The error wraps
// ErrInvalid if several ids do.
func (d *SessionDir) wholeID(ctx context.Context, text string) (string, error) {
	snap, err := d.session.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer snap.Release()
	e, err := snap.FindBeginning(text)
	isLabelled := snap.LabelOf(text) != "" // a label may name an entry that is not there
	if isLabelled || errors.Is(err, sessioncore.ErrNotFound) {
		return text, nil
	}
	if err != nil {
		return "", err
	}
	id, _ := snap.ID(e)
	return id, nil
}

// makeTitle makes title. An empty line clears the title, and the file accepts only one line.
func makeTitle(d *SessionDir) Node {
	set := func(d *SessionDir, ctx context.Context, line string) (string, error) {
		return "", d.view.Writer.SetTitle(ctx, d.session, line)
	}
	f := d.control("title", set, atOnce(renderTitle))
	f.empty = true
	f.single = true
	return f
}

// renderTitle renders title: the title and a newline, or nothing if there is none.
func renderTitle(snap *sessioncore.Snapshot) (*document.Document, error) {
	title, err := snap.Title()
	if err != nil {
		return nil, err
	}
	return lineOf(snap, title), nil
}

// makeCWD makes cwd, which moves the session to a working directory. It accepts one line, as the
// session is then at another path.
func makeCWD(d *SessionDir) Node {
	set := func(d *SessionDir, ctx context.Context, line string) (string, error) {
		return "", d.view.Writer.SetCWD(ctx, d.session, line)
	}
	f := d.control("cwd", set, atOnce(renderCWD))
	f.single = true
	durable := f.makeDurable
	f.makeDurable = func(ctx context.Context) error {
		err := durable(ctx)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil // the move made it durable
	}
	return f
}

// renderCWD renders cwd: the header's working directory and a newline, or nothing.
func renderCWD(snap *sessioncore.Snapshot) (*document.Document, error) {
	header, _, err := snap.ReadHeader()
	if err != nil {
		return nil, err
	}
	cwd, _ := header.Member("cwd").Text()
	return lineOf(snap, cwd), nil
}

// lineOf returns a document of a text and a newline, or an empty one for "". Control characters and
// lone surrogates are escaped as in the file labels.
func lineOf(snap *sessioncore.Snapshot, text string) *document.Document {
	line := names.TitleLine(text)
	if len(line) > 0 {
		line = append(line, '\n')
	}
	return document.OfText(snap, line)
}

// makeFork makes fork. Its lines change no session, so sessions of other agents accept them, too.
func makeFork(d *SessionDir) Node {
	f := d.control("fork", (*SessionDir).fork, nil)
	f.copies = true
	return f
}

// fork creates a session from the path to an entry, for a line "<id>", or "<id> TAB <title>", and returns the
// path of its directory from the mount's root.
func (d *SessionDir) fork(ctx context.Context, line string) (string, error) {
	if !strings.Contains(line, "\t") {
		line += "\t" // so that a space is part of the id
	}
	id, title, err := writer.ParseLabelLine(line)
	if err != nil {
		return "", err
	}
	title, err = writer.ParseTitle(title)
	if err != nil {
		return "", err
	}
	id, err = d.wholeID(ctx, id)
	if err != nil {
		return "", err
	}
	file, err := d.view.Fork(ctx, d.session, id, title)
	return d.view.Listing.PathOf(file), err
}

// NewSessionName is new-session: a working directory, or an object with cwd, title, parentSession
// and agent, makes a session in the directory of the sessions, which may be missing. Reading back
// returns the path of its directory from the mount's root (docs/design.md section 2). The file has
// the mode of the directory above the sessions.
var NewSessionName = Name{Name: "new-session", Kind: storage.KindFile, Make: newSessionFile}

// newSessionFile returns new-session.
func newSessionFile(d *Directory) Node {
	f := &ControlFile{sessionName: outside, name: "new-session", do: oneByOne(d.view.newSession)}
	f.in = d
	f.probe = func(context.Context) (storage.Stat, error) {
		st, err := d.view.Sessions.Storage().Stat("")
		if storage.IsMissing(err) {
			st, err = d.view.rootStat()
		}
		return st, err
	}
	// An incomplete object may continue in another write.
	f.isPartial = func(line []byte) bool {
		return len(line) > 0 && line[0] == '{' && writer.Unfinished(line)
	}
	f.makeDurable = func(context.Context) error { return nil } // its line makes a session durable
	return f
}
