package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage/sqlite"
	"sessionfs/sessioncore/transfer"
	"sessionfs/source"
)

// countLimit is how long the sessions of the agents are counted at most.
const countLimit = 2 * time.Second

// clientHome is the directory of an agent of this user, with the number of its sessions.
type clientHome struct {
	mountopts.AgentDir
	transfer.Census
	isEmpty bool  // there are certainly no sessions
	failure error // the sessions cannot be read at all
}

// countHomes counts the sessions of the agents of this user that are read, for countLimit at most. getenv has the
// environment, which names the directories.
func countHomes(getenv func(string) string) (homes []clientHome) {
	ctx, cancel := context.WithTimeout(context.Background(), countLimit)
	defer cancel()
	for _, a := range source.AgentDirs(getenv) {
		if source.Unread(a.Source) > 0 {
			continue
		}
		count, err := transfer.Count(ctx, a.Source, agents.Find(a.Name))
		isElsewhere := source.IsDir(fs.PiSessions(a.Source, a.Source, getenv))
		hasNone := err == nil && count.Sessions == 0
		h := clientHome{
			AgentDir: a,
			Census:   count,
			isEmpty:  hasNone && !isElsewhere,
		}
		if errors.Is(err, sqlite.ErrUnreadable) {
			h.failure = err
		}
		homes = append(homes, h)
	}
	return homes
}

// nothingAsked refuses a command line without arguments. The refusal tells which agents have sessions, and the
// commands to type.
func nothingAsked() error {
	homes := countHomes(os.Getenv)
	var found, empty strings.Builder
	for _, h := range homes {
		if h.failure != nil {
			continue // notRead has it
		}
		list := &found
		if h.isEmpty {
			list = &empty
		}
		fmt.Fprintf(list, "  %-8s %s\n", h.Name, names.Visible(h.Source))
	}
	said := "the sessions of these agents are there:\n" + found.String()
	demo := ""
	if found.Len() == 0 {
		said = "no sessions of an agent are found, neither in ~/.omp/agent nor in " +
			agents.OneOf(source.OtherHomes()) + "; try samples.\n"
		demo = " --demo"
	}
	if empty.Len() > 0 {
		said += "there are no sessions yet of:\n" + empty.String()
	}
	said += notRead(homes) + deletedSoon(homes) + howToMount(homes, demo)
	return refuse(exitUsage, "%sTo look without a mount, type:\n  sessionfs pick%s\n  sessionfs ls%[2]s recent\n"+
		"'sessionfs --help' lists all commands.", said, demo)
}

// howToMount returns lines with the command that mounts the sessions at a free directory, or that shows them where
// they are mounted. demo is the option that mounts samples, with a blank before it, or "".
func howToMount(homes []clientHome, demo string) string {
	name := "agent-sessions"
	path := filepath.Join(os.Getenv("HOME"), name)
	for n := 2; !isFree(path); n++ {
		e, isMounted := fs.MountAt(path)
		if isMounted && e.IsOurs() && e.IsSessionfs() {
			return fmt.Sprintf("A mount is at ~/%s. To list its sessions, type:\n  ls ~/%[1]s/recent\n", name)
		}
		name = fmt.Sprintf("agent-sessions-%d", n)
		path = filepath.Join(os.Getenv("HOME"), name)
	}
	option := demo
	if len(homes) > 1 && demo == "" {
		option = " --all"
	}
	return fmt.Sprintf("To mount them, type:\n  mkdir -p ~/%s && sessionfs%s ~/%[1]s\n", name, option)
}

// isFree reports whether a directory can be made at a path, or is there and empty, without a mount.
func isFree(path string) bool {
	_, isMounted := fs.MountAt(path)
	if isMounted {
		return false
	}
	items, err := os.ReadDir(path)
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	return len(items) == 0
}

// willDelete says how many files an agent deletes within a week, of those that a noun names.
func willDelete(agent *agents.Agent, count int, noun string) string {
	return fmt.Sprintf("%s will delete %d of %s within a week, unless you changed %s", agent.Title, count, noun, agent.DeletesBy)
}

// deletedSoon returns lines about the sessions that agents delete within a week, "" for none.
func deletedSoon(homes []clientHome) string {
	var lines strings.Builder
	for _, h := range homes {
		if h.Soon > 0 {
			fmt.Fprintf(&lines, "  %s\n", willDelete(agents.Find(h.Name), h.Soon, "its sessions"))
		}
	}
	if lines.Len() == 0 {
		return ""
	}
	return "sessions that will be deleted:\n" + lines.String() +
		"To keep copies of them, type (--timer: each day):\n  sessionfs keep\n"
}

// notRead returns lines with the agents of this user that are not read, or cannot be, "" for none.
func notRead(homes []clientHome) string {
	var lines strings.Builder
	add := func(title, dir string) {
		fmt.Fprintf(&lines, "  %s, %s\n", title, names.Visible(dir))
	}
	for _, a := range agents.UnreadHomes(os.Getenv) {
		add(a.Title, a.Dir)
	}
	for _, a := range source.AgentDirs(os.Getenv) {
		if source.Unread(a.Source) > 0 && agents.TitleOfUnread(a.Source) == "" {
			add("an agent that is not known", a.Source)
		}
	}
	for _, h := range homes {
		if h.failure != nil {
			add(agents.Find(h.Name).Title, h.Source+": "+h.failure.Error())
		}
	}
	if lines.Len() == 0 {
		return ""
	}
	return "not read are the sessions of:\n" + lines.String()
}

// writeAgents tells about agents that are not read, and of sessions that will be deleted.
func writeAgents(out io.Writer) error {
	homes := countHomes(os.Getenv)
	_, err := io.WriteString(out, notRead(homes)+deletedSoon(homes))
	return err
}
