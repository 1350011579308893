package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// Kept counts the copies that Keep made in the directory of an agent.
type Kept struct {
	Dir               string
	Copied, Unchanged int // files
	Beside            int // of Copied those that are kept beside an earlier copy
	Bytes             int64
	// Soon is the number of session files that have not been changed for so long that the agent deletes
	// them within a week.
	Soon int
}

// FromName is the file in a directory of kept sessions that has the path of the agent's directory.
const FromName = ".from"

// maxFrom bounds the size of FromName in bytes: a path and a newline.
const maxFrom = 4 << 10

// fromOf returns the path in FromName of a directory. In a directory that is shared anybody may have
// made that file, so a link, a pipe and a large file are errors.
func fromOf(at string) (from string, err error) {
	text, err := storage.ReadRegular(filepath.Join(at, FromName), maxFrom)
	return strings.TrimSuffix(string(text), "\n"), err
}

// HasKept reports whether a directory is one with kept sessions.
func HasKept(at string) bool {
	_, err := fromOf(at)
	return err == nil
}

// KeptIn returns the directory below dir for the sessions of an agent's directory from. Each one
// that settings name has its own, also after it was moved and a link is in its place.
func KeptIn(dir, agent, from string) string {
	at := filepath.Join(dir, agent)
	number := 0
	for {
		owner, err := fromOf(at)
		if err != nil || owner == from { // it is free or from's
			return at
		}
		moved, _ := filepath.EvalSymlinks(owner)
		if moved == from {
			return at
		}
		number++
		at = filepath.Join(dir, fmt.Sprintf("%s.%d", agent, number))
	}
}

// Keep copies the files in the Dirs of an agent's directory from, which may be links, to KeptIn, or the texts of
// its Composed sessions: those that are new or longer than their copy. Nothing is removed: a file that became shorter, or
// was written anew, is kept beside its copy, as X.1.jsonl. The error is about the first file that
// is not kept.
func Keep(ctx context.Context, from string, agent *agents.Agent, kept string) (k Kept, err error) {
	to := KeptIn(kept, agent.Name, from)
	err = os.MkdirAll(to, 0o700)
	if err != nil {
		return k, err
	}
	unlock, err := lockDir(to)
	if err != nil {
		return k, err
	}
	if KeptIn(kept, agent.Name, from) != to { // the run of another directory was faster
		unlock()
		return Keep(ctx, from, agent, kept)
	}
	defer unlock()
	copies := keeper{
		Kept:  Kept{Dir: to},
		agent: agent,
		parts: filepath.Join(to, ".parts"),
	}
	err = copies.begin(from, to)
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(copies.parts)
	err = copies.keepAll(ctx, from)
	return copies.Kept, err
}

// keepAll keeps the files or the composed sessions of an agent's directory. The error is that of ctx, else
// of a directory that cannot be listed, else of a file.
func (k *keeper) keepAll(ctx context.Context, from string) error {
	k.work.SetLimit(keepsAtOnce)
	store, composed, failed := composedIn(k.agent, from, k.parts)
	dirs := k.agent.Dirs
	isComposed := store.Files != nil
	if isComposed || failed != nil {
		dirs = nil
	}
	for _, dir := range dirs {
		err := k.keepDir(ctx, from, dir)
		if failed == nil {
			failed = err
		}
	}
	for _, name := range composed {
		k.keepComposed(ctx, store.Files, name)
	}
	err := k.work.Wait()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return failed
	}
	return err
}

// keepDir has the files in one of the agent's Dirs kept, in the background. The error is about the first
// directory that cannot be listed.
func (k *keeper) keepDir(ctx context.Context, from, name string) (failed error) {
	disk, err := dir.Open(filepath.Join(from, name))
	if storage.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	_ = filepath.WalkDir(disk.Path(), func(path string, item fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return fs.SkipAll
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
		case err != nil: // the rest of a directory is left out
			if failed == nil {
				failed = err
			}
		case item.Type().IsRegular(): // no link is followed
			k.walked++
			storage.Progress(ctx, k.walked, 0)
			below, _ := filepath.Rel(disk.Path(), path)
			found := k.keptFile(disk, name, below)
			k.work.Go(func() error { return k.keep(ctx, found) })
		}
		return nil
	})
	return failed
}

// keptFile returns a file to keep, at a path below one of the agent's Dirs.
func (k *keeper) keptFile(disk *dir.Storage, name, below string) keptFile {
	return keptFile{
		disk:      disk,
		name:      filepath.ToSlash(below),
		to:        filepath.Join(k.Dir, name, below),
		isSession: filepath.Ext(k.agent.NameOf(name, below)) == ".jsonl",
	}
}

// keepComposed has the text of a session kept, and the texts of its subagents.
func (k *keeper) keepComposed(ctx context.Context, files storage.Files, name string) {
	keep := func(name, _ string) error {
		k.walked++
		storage.Progress(ctx, k.walked, 0)
		k.work.Go(func() error { return k.keepText(ctx, files, name) })
		return nil
	}
	_ = keep(name, "")
	_ = eachArtifact(files, strings.TrimSuffix(name, ".jsonl"), "", keep) // without a directory there are none
}

// keepText keeps the text of a session, unless a copy has its time.
func (k *keeper) keepText(ctx context.Context, files storage.Files, name string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	to := filepath.Join(k.Dir, agents.KeptTexts, filepath.FromSlash(name))
	obj, err := files.Open(name)
	if storage.IsMissing(err) { // it was removed meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	defer obj.Close()
	brief, isBrief := obj.(agents.Brief) // which has the time without a conversion
	if isBrief && isKeptAt(to, brief.State().ModTime()) {
		const size = 0 // of no account, as nothing is copied
		const isSame = true
		k.count(to, to, size, isSame)
		return nil
	}
	st, err := obj.Stat()
	if storage.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	text := keptContent{
		in:       io.NewSectionReader(obj, 0, st.Size),
		name:     name,
		size:     st.Size,
		modified: st.ModTime(),
	}
	at, isSame, err := k.place(text, to)
	if err != nil {
		return err
	}
	k.count(to, at, st.Size, isSame)
	return nil
}

// isKeptAt reports whether a copy, or one that is kept beside it, has a time.
func isKeptAt(to string, at time.Time) bool {
	n := 0
	info, err := os.Lstat(to)
	for err == nil {
		if info.Mode().IsRegular() && info.ModTime().Equal(at) {
			return true
		}
		n++
		info, err = os.Lstat(versionOf(to, n))
	}
	return false
}

// versionOf returns the path of the nth copy that is kept beside the first, number 0.
func versionOf(to string, n int) string {
	if n == 0 {
		return to
	}
	ext := filepath.Ext(to)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(to, ext), n, ext)
}

// keptFile is a file that is to be kept. Until it is opened, anything may be put into its place.
type keptFile struct {
	disk      *dir.Storage
	name      string // in disk
	to        string // the path of its first copy
	isSession bool
}

// keptContent is a content that is copied: of a file, or the text of a session.
type keptContent struct {
	in       io.Reader
	name     string // for errors
	size     int64
	modified time.Time
}

// lockDir locks a directory of kept sessions: two processes that keep at once would miss each
// other's copies.
func lockDir(dir string) (unlock func(), err error) {
	f, err := storage.CreateRegular(filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("another sessionfs keep is at work in %s: %w", dir, err)
	}
	return func() { f.Close() }, nil
}

// keepsAtOnce is the number of files that are kept at a time: most of the time goes into waiting for the
// disk, which writes several files as fast as one.
const keepsAtOnce = 8

// keeper keeps files, several at a time.
type keeper struct {
	agent  *agents.Agent
	parts  string // the directory of unfinished copies
	walked int    // the number of files that were found
	work   errgroup.Group
	// versions has the names under way. A file and those that are kept beside it have one.
	versions storage.FIFOMutexes

	mu sync.Mutex // guards the fields below
	Kept
}

// begin removes files of a killed run, and writes FromName.
func (k *keeper) begin(from, to string) error {
	err := os.RemoveAll(k.parts)
	if err != nil {
		return err
	}
	err = os.Mkdir(k.parts, 0o700)
	if err != nil {
		return err
	}
	before, err := fromOf(to)
	if err == nil && before == from {
		return nil
	}
	part := filepath.Join(k.parts, FromName)
	err = os.WriteFile(part, []byte(from+"\n"), 0o600)
	if err != nil {
		return err
	}
	return os.Rename(part, filepath.Join(to, FromName))
}

// week is the time before its deletion from which on a session counts as soon deleted.
const week = 7 * 24 * time.Hour

// keep keeps a file, and counts it. One that was removed or replaced meanwhile is no error.
func (k *keeper) keep(ctx context.Context, file keptFile) error {
	name, _, _ := strings.Cut(filepath.Base(file.to), ".")
	_, leave, err := k.versions.Lock(ctx, filepath.Join(filepath.Dir(file.to), name))
	if err != nil {
		return err
	}
	defer leave()
	in, err := file.disk.OpenFile(file.name)
	if storage.IsMissing(err) || errors.Is(err, storage.ErrNotRegular) { // it was removed or replaced meanwhile
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	content := keptContent{
		in:       in,
		name:     in.Name(),
		size:     info.Size(),
		modified: info.ModTime(),
	}
	at, isSame, err := k.place(content, file.to)
	if err != nil {
		return err
	}
	k.count(file.to, at, info.Size(), isSame)
	k.mu.Lock()
	defer k.mu.Unlock()
	if file.isSession && isSoonDeleted(k.agent, info.ModTime()) {
		k.Soon++
	}
	return nil
}

// count counts a file of size bytes that is kept at the path at; the path of its first copy is to. isSame
// reports whether it was kept there before.
func (k *keeper) count(to, at string, size int64, isSame bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if isSame {
		k.Unchanged++
		return
	}
	k.Copied++
	if at != to {
		k.Beside++
	}
	k.Bytes += size
}

// place copies a content to the path to, or over an earlier copy that it continues, or beside those that it
// does not. isSame reports whether a copy was there already. The content is copied before it is compared, as
// it may change.
func (k *keeper) place(content keptContent, to string) (path string, isSame bool, err error) {
	made := ""
	defer func() {
		if made != "" {
			os.Remove(made) // unless it was renamed
		}
	}()
	number := 0
	for {
		path = versionOf(to, number)
		number++
		kept, err := os.Lstat(path)
		isNew := errors.Is(err, fs.ErrNotExist)
		if err != nil && !isNew {
			return "", false, err
		}
		if !isNew && content.isAt(kept) {
			return path, true, nil
		}
		if !isNew && !content.mayContinue(kept) {
			continue
		}
		if made == "" {
			made, err = k.copy(content)
			if err != nil {
				return "", false, err
			}
		}
		if isNew {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
			if err != nil {
				return path, false, err
			}
			return path, false, os.Rename(made, path)
		}
		isRewritten := filepath.Ext(to) == ".json" && kept.Size() < content.size // an object that grew
		continues := isRewritten
		if !isRewritten {
			continues, err = beginsLike(made, path, kept.Size())
			if err != nil {
				return "", false, err
			}
		}
		if continues {
			return path, false, os.Rename(made, path)
		}
	}
}

// isAt reports whether a copy has the content, by size and time.
func (c keptContent) isAt(kept fs.FileInfo) bool {
	return kept.Mode().IsRegular() && kept.Size() == c.size && kept.ModTime().Equal(c.modified)
}

// mayContinue reports whether the content may begin with a copy's, by its size.
func (c keptContent) mayContinue(kept fs.FileInfo) bool {
	return kept.Mode().IsRegular() && kept.Size() <= c.size
}

// beginsLike reports whether a file begins with the content of another one, which has that size.
func beginsLike(path, other string, size int64) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	kept, _, err := storage.OpenRegular(other)
	if err != nil {
		return false, err
	}
	defer kept.Close()
	return storage.SameBytes(file, 0, kept, 0, size)
}

// copy returns the path of a whole and durable copy of a content, with its time, among the unfinished ones.
// On an error it leaves none, and the path is "".
func (k *keeper) copy(content keptContent) (path string, err error) {
	made, err := os.CreateTemp(k.parts, "") // mode 0600
	if err != nil {
		return "", err
	}
	n, err := io.Copy(made, io.LimitReader(content.in, content.size)) // the kernel does it for a file
	if err == nil && n < content.size {
		err = fmt.Errorf("%s: %w: it became shorter", content.name, storage.ErrStale)
	}
	if err == nil {
		err = made.Sync()
	}
	err = errors.Join(err, made.Close())
	if err == nil {
		err = os.Chtimes(made.Name(), content.modified, content.modified)
	}
	if err != nil {
		os.Remove(made.Name())
		return "", err
	}
	return made.Name(), nil
}
