package transfer

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/dir"
)

// Census counts the session files in the directory of an agent.
type Census struct {
	Sessions int // without subagents' sessions
	Soon     int // of them those that the agent deletes within a week, by default
}

// ownDirs are the directories of an agent directory with session files of omp and pi.
var ownDirs = []string{"sessions", "archive"}

// Count counts the session files in an agent's directory, which may be a link, by their names and
// times. The agent is nil for omp and pi. No file is opened but a database. The error comes from the first
// directory that cannot be listed, or from ctx.
func Count(ctx context.Context, from string, agent *agents.Agent) (c Census, failed error) {
	store, composed, err := composedIn(agent, from, os.TempDir())
	isComposed := store.Files != nil
	hasFailed := err != nil && !storage.IsMissing(err)
	if isComposed || hasFailed {
		return Census{Sessions: len(composed)}, err
	}
	dirs := ownDirs
	if agent != nil {
		dirs = agent.Dirs
	}
	for _, name := range dirs {
		err := c.addDir(ctx, filepath.Join(from, name), name, agent)
		if failed == nil {
			failed = err
		}
	}
	return c, failed
}

// addDir counts the session files in one of the directories of an agent, which need not exist. The error
// comes from the first directory that cannot be listed, or from ctx; the others are counted.
func (c *Census) addDir(ctx context.Context, path, name string, agent *agents.Agent) (failed error) {
	disk, err := dir.Open(path)
	if storage.IsMissing(err) {
		return nil
	}
	if err != nil {
		return err
	}
	err = filepath.WalkDir(disk.Path(), func(path string, item fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case storage.IsMissing(err): // it was removed meanwhile
		case err != nil:
			if failed == nil {
				failed = err
			}
		case item.Type().IsRegular():
			below, _ := filepath.Rel(disk.Path(), path)
			c.addFile(item, name, filepath.ToSlash(below), agent)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return failed
}

// addFile counts a file, below a directory of the agent with a name, if it is a session's.
func (c *Census) addFile(item fs.DirEntry, name, below string, agent *agents.Agent) {
	if agent == nil {
		if strings.HasSuffix(strings.TrimSuffix(below, ".gz"), ".jsonl") {
			c.Sessions++
		}
		return
	}
	if filepath.Ext(agent.NameOf(name, below)) != ".jsonl" || agents.IsPart(name+"/"+below) {
		return
	}
	c.Sessions++
	info, err := item.Info()
	if err == nil && isSoonDeleted(agent, info.ModTime()) {
		c.Soon++
	}
}

// isSoonDeleted reports whether an agent deletes a session, which was changed last at a time, within
// a week by default.
func isSoonDeleted(agent *agents.Agent, changed time.Time) bool {
	return agent.Deletes > 0 && time.Since(changed) > agent.Deletes-week
}
