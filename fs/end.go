package fs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path"
	"path/filepath"

	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// What was written to a new session is never dropped: it is put on disk when the mount ends, if not before
// (docs/design.md section 2, new-session).

// unsavedDir is where End writes sessions that cannot be written to SOURCE, below the user's state directory.
const unsavedDir = "sessionfs/unsaved"

// end puts on disk the new sessions that are in memory and were written to; later writes go to disk at once. The error
// says that some sessions could not be written to SOURCE; the log says where they are instead.
func (t *tree) end(log *slog.Logger) error {
	if len(t.parts) > 0 {
		var lost []error
		for _, part := range t.parts {
			lost = append(lost, part.end(log))
		}
		return errors.Join(lost...)
	}
	failed := t.view.Writer.End(context.Background())
	for _, f := range failed {
		file := path.Join(t.place, f.Name)
		if t.pathOf != nil {
			file = t.pathOf(f.Name)
		}
		if !t.waiting.Has(f.Name) {
			log.Error("a new session is on disk but may not survive a crash", "file", file, "err", f.Err)
			continue
		}
		kept, err := t.saveElsewhere(f.Name)
		if err != nil {
			log.Error("a new session could not be written and is lost", "file", file, "err", f.Err, "elsewhere", err)
			continue
		}
		log.Error("a new session could not be written; copy it to its place when that is possible again",
			"file", file, "err", f.Err, "saved", kept)
	}
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("new sessions that could not be written to SOURCE: %d (%s: %w); the log says where they are",
		len(failed), failed[0].Name, failed[0].Err)
}

// saveElsewhere writes a session that is in memory below the user's state directory, and returns the path.
func (t *tree) saveElsewhere(name string) (file string, err error) {
	place, err := stateDir()
	if err != nil {
		return "", err
	}
	place = filepath.Join(place, filepath.FromSlash(unsavedDir))
	if err := os.MkdirAll(place, 0o700); err != nil {
		return "", err
	}
	to, err := dir.Open(place)
	if err != nil {
		return "", err
	}
	defer to.Close()
	from, err := t.waiting.Open(name)
	if err != nil {
		return "", err
	}
	defer from.Close()
	st, err := from.Stat()
	if err != nil {
		return "", err
	}
	_, err = to.Replace(name, storage.Replacement{Write: func(out io.Writer) error {
		_, err := io.Copy(out, io.NewSectionReader(from, 0, st.Size))
		return err
	}})
	return filepath.Join(place, filepath.FromSlash(name)), err
}

// stateDir returns the user's state directory, as the XDG Base Directory Specification says.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return dir, nil
	}
	home, err := os.UserHomeDir()
	if err == nil && !filepath.IsAbs(home) {
		err = errors.New("$HOME is not an absolute path")
	}
	return filepath.Join(home, ".local", "state"), err
}
