package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/names"
)

// place is a SOURCE that an argument or an option names.
type place struct {
	mountopts.Options
	mountpoint string // of the mount whose options these are, "" if they are of none
	made       string // a directory that is removed when SOURCE is closed, "" for none
}

// remove removes the files that were made for the place.
func (p *place) remove() {
	if p.made != "" {
		_ = os.RemoveAll(p.made)
	}
}

// placeNamed returns the place that -s names: an agent of this user, all of them, the sample store,
// the source of the mount at a mount point, or an agent directory.
func placeNamed(given string) (p place, err error) {
	switch {
	case given == "demo":
		p.Demo = true
	case given == "all":
		p.Source = mountopts.All
	case given == "omp", given == "pi", agents.Find(given) != nil:
		dirs := agentDirs(os.Getenv)
		i := slices.IndexFunc(dirs, func(a mountopts.AgentDir) bool { return a.Name == given })
		if i < 0 {
			return p, refuse(exitSource, "this user has no sessions of %s: %s is not there; "+
				"./%[1]s is a directory of that name", given, usualDir(given, os.Getenv).Source)
		}
		p.Source, p.State = dirs[i].Source, dirs[i].State
	default:
		for _, realPath := range realPaths(given) {
			if at, err := mountedAt(realPath); at.mountpoint == realPath {
				return at, err
			}
		}
		p.Source = given
	}
	return p, nil
}

// placeOf returns the place of the first argument of a command that lies in one (placeAround), the
// default if none does. Of arguments that are no paths of this machine it is that of the working
// directory.
func placeOf(args []string, are arguments) (p place, err error) {
	if are == words || are == anyWords || are == anySession && len(args) == 0 {
		args = []string{"."}
	}
	for _, arg := range args {
		for _, realPath := range realPaths(arg) {
			if p, err = placeAround(realPath); err != nil || p.mountpoint != "" || p.Source != "" {
				return p, err
			}
		}
		if file, ok := sessionFile(arg); ok && are == anySession {
			return placeOfFile(file)
		}
	}
	if are == anyWords {
		var usual mountopts.Options
		placeSource(&usual, os.Getenv)
		isUsual := func(a mountopts.AgentDir) bool { return isSame(a.Source, usual.Source) }
		for _, m := range toldMounts() {
			if !m.Redact && slices.ContainsFunc(m.Agents, isUsual) {
				return m, nil
			}
		}
	}
	return p, nil
}

// placeAround returns the place in which a path lies, or to which it leads: that of a mount, an
// agent directory of this user, or another certain one. The path is absolute and without links. It
// returns the zero value if there is none.
func placeAround(realPath string) (p place, err error) {
	if p, err = mountedAt(realPath); err != nil || p.mountpoint != "" {
		return p, err
	}
	for _, a := range agentDirs(os.Getenv) {
		if shows(a.Source, realPath) {
			p.Source = a.Source
			return p, nil
		}
	}
	for dir := realPath; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if isCertainAgentDir(dir) && shows(dir, realPath) {
			p.Source = dir
			return p, nil
		}
	}
	return p, nil
}

// shows reports whether a path lies in an agent directory, or in a directory to which one of its
// links leads.
func shows(dir, realPath string) bool {
	resolved, err := filepath.EvalSymlinks(dir)
	_, shown := fs.ShownAs(mountopts.Options{Source: resolved}, realPath)
	return err == nil && (shown || isBelow(realPath, resolved))
}

// isBelow reports whether a path is dir or below it, by their names.
func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// realPaths returns the paths of this machine for which an argument may stand, absolute and without
// links but for the last part; and without that one too. Not all need exist.
func realPaths(arg string) (paths []string) {
	abs, err := absolute(arg)
	if err != nil {
		return nil // the working directory is gone
	}
	dir, rest := filepath.Split(abs)
	for {
		realPath, err := filepath.EvalSymlinks(dir)
		if err == nil {
			paths = append(paths, filepath.Join(realPath, rest))
			break
		}
		up := filepath.Dir(strings.TrimSuffix(dir, "/"))
		if dir == "/" || up == dir {
			return nil
		}
		dir, rest = up, strings.TrimPrefix(abs, strings.TrimSuffix(up, "/")+"/")
	}
	if realPath, err := filepath.EvalSymlinks(abs); err == nil && realPath != paths[0] {
		paths = append(paths, realPath)
	}
	return paths
}

// isCertainAgentDir reports whether a directory cannot be much else than an agent directory.
func isCertainAgentDir(dir string) bool {
	return agents.HasScopes(dir) || agents.Of(dir) != nil || isDir(filepath.Join(dir, "sessions")) && hasAny(dir, clientMarks)
}

// sessionFile returns the session file of this machine that an argument names, with or without an
// entry.
func sessionFile(arg string) (realPath string, ok bool) {
	for _, name := range []string{arg, beforeEntry(arg)} {
		realPath, err := filepath.EvalSymlinks(name)
		if err != nil || !strings.HasSuffix(realPath, layout.SessionSuffix) {
			continue
		}
		if info, err := os.Lstat(realPath); err == nil && info.Mode().IsRegular() {
			realPath, err = filepath.Abs(realPath)
			return realPath, err == nil
		}
	}
	return "", false
}

// placeOfFile returns an agent directory, for reading alone, of a session file and the files beside
// it.
func placeOfFile(file string) (p place, err error) {
	p.ReadOnly = true
	for dir := filepath.Dir(file); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == "sessions" {
			p.Source = filepath.Dir(dir)
			return p, nil
		}
	}
	if p.made, err = os.MkdirTemp("", "sessionfs-file-"); err == nil {
		err = os.Symlink(filepath.Dir(file), filepath.Join(p.made, "sessions"))
	}
	if err != nil {
		p.remove()
	}
	p.Source = p.made
	return p, err
}

// local returns the path in the tree of an argument that is a path of this machine.
func (src *source) local(arg string) (shown string, ok bool) {
	if src.flags.args == noPaths || src.flags.args == words {
		return "", false
	}
	for _, realPath := range realPaths(arg) {
		if at, err := mountedAt(realPath); at.mountpoint != "" {
			shown, _ = filepath.Rel(at.mountpoint, realPath)
			ok = err == nil && at.Source == src.Source
		} else {
			shown, ok = fs.ShownAs(src.Options, realPath)
		}
		if shown = filepath.ToSlash(shown); ok {
			if file, rest, cut := strings.Cut(shown, layout.SessionSuffix+"/"); cut { // a name in a session, behind its file
				shown = file + "/" + rest
			}
			if _, err := src.Lstat(shown); err == nil {
				return shown, true
			}
		}
	}
	return "", false
}

// source is the tree that a mount of SOURCE shows, for a command without a mount.
type source struct {
	*fs.Unmounted
	place
	flags *sourceFlags
	ctx   context.Context // of the command
}

// arguments is the kind of a command's arguments.
type arguments int

const (
	noPaths    arguments = iota // nothing of a mount
	words                       // words; SOURCE is that of the working directory
	treePaths                   // what is in a mount
	anySession                  // sessions, also as files that lie in no agent directory
	// words; SOURCE is that of the working directory, or else of a mount of all agents that has the
	// default
	anyWords
)

// onSource makes a command work on SOURCE: it adds the flags of SOURCE, opens it, and closes it
// afterwards. Where the arguments are paths, SOURCE is the one in which they lie, if any
// (docs/design.md section 8, Commands without a mount).
func onSource(are arguments, cmd *cobra.Command, do func(cmd *cobra.Command, src *source, args []string) error) *cobra.Command {
	writes := cmd.Name() == "write"
	flags := sourceFlags{
		args: are, one: slices.Contains(ofOneAgent, cmd.Name()), ids: are == anySession || writes, writes: writes,
	}
	flags.add(cmd)
	cmd.ValidArgsFunction = flags.complete
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, closeSource, err := flags.open(cmd, args)
		if err != nil {
			return err
		}
		defer closeSource()
		return do(cmd, src, args)
	}
	return cmd
}

// sourceFlags are the flags of the commands that work on SOURCE.
type sourceFlags struct {
	source  string
	options []string
	demo    bool
	debug   bool
	args    arguments
	one     bool // the command is one of ofOneAgent
	ids     bool // ids of sessions are completed
	writes  bool // what takes lines is completed
}

// sourceFlagNames are their names.
var sourceFlagNames = []string{"source", "options", "demo", "debug"}

func (f *sourceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	where := "a PATH"
	if f.args == words || f.args == anyWords {
		where = "."
	}
	flags.StringVarP(&f.source, "source", "s", "", "the agent `DIR`, if not that of "+where+" or the default")
	flags.StringArrayVarP(&f.options, "options", "o", nil, "mount `OPTIONS`, such as redact, separated by commas")
	flags.BoolVar(&f.demo, "demo", false, "work on a built-in sample store; changes are not kept")
	flags.BoolVar(&f.debug, "debug", false, "log to stderr")
	_ = cmd.MarkFlagDirname("source") // the flags exist
	_ = cmd.RegisterFlagCompletionFunc("options", completeOptions)
}

// open opens SOURCE. Callers must call the function that it returns.
func (f *sourceFlags) open(cmd *cobra.Command, args []string) (src *source, closeSource func(), err error) {
	if f.demo && f.source != "" {
		return nil, nil, refuse(exitUsage, "--demo brings its own SOURCE: leave -s out")
	}
	at := place{Options: mountopts.Options{Demo: f.demo}}
	switch {
	case f.source != "":
		at, err = placeNamed(f.source)
	case !f.demo && f.args != noPaths:
		at, err = placeOf(args, f.args)
		if err == nil && at.Source == "" && at.mountpoint == "" && f.looksAtAll(args) {
			at.Source = mountopts.All
		}
	}
	if err != nil {
		return nil, nil, err
	}
	at.Empty = cmd.Name() == "import"
	files, err := at.open(f.options, f.debug, cmd.ErrOrStderr())
	if err != nil {
		at.remove()
		return nil, nil, err
	}
	ctx := cmp.Or(cmd.Context(), context.Background())
	files.FS = files.With(ctx)
	return &source{files, at, f, ctx}, func() {
		files.Close()
		at.remove()
	}, nil
}

// ofOneAgent are the commands that work on the default SOURCE where none is named: they change it,
// or pack its files.
var ofOneAgent = []string{"bundle", "tar", "write"}

// looksAtAll reports whether a command looks at all agents of this user, if there are several.
// Paths below sessions/ are those of the default SOURCE, unless they begin with an agent's name, as
// search prints them.
func (f *sourceFlags) looksAtAll(args []string) bool {
	dirs := agentDirs(os.Getenv)
	if len(dirs) < 2 || f.one {
		return false
	}
	isOfOne := func(arg string) bool {
		below, found := strings.CutPrefix(clean(arg), layout.Sessions+"/")
		name, _, _ := strings.Cut(below, "/")
		return found && !slices.ContainsFunc(dirs, func(a mountopts.AgentDir) bool { return a.Name == name })
	}
	return f.args == words || f.args == anyWords || !slices.ContainsFunc(args, isOfOne)
}

// open opens the place with options of a mount.
func (p *place) open(options []string, debug bool, stderr io.Writer) (files *fs.Unmounted, err error) {
	if p.Options, err = mountopts.ParseOptions(p.Options, options, false); err != nil {
		return nil, refuse(exitUsage, "%s", err)
	}
	if p.mountpoint == "" {
		if err := p.resolve(stderr); err != nil {
			return nil, err
		}
	}
	level := slog.LevelError // what is refused the command says itself
	if debug || p.Debug {
		level = slog.LevelDebug
	}
	files, err = fs.Open(p.Options, slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: level})))
	switch {
	case errors.Is(err, fs.ErrOption):
		return nil, refuse(exitUsage, "%s", err)
	case err != nil:
		return nil, refuse(exitSource, "%s", err)
	}
	return files, nil
}

// sayError prints an error and goes on.
func sayError(cmd *cobra.Command, err error) {
	fmt.Fprintln(cmd.ErrOrStderr(), "sessionfs: "+cmd.Name()+": "+reasonOf(err))
}

// reasonOf words an error as people know it from ls and cat: the path, then the reason. An
// argument, a file name or an id in it cannot control a terminal.
func reasonOf(err error) string {
	text := strings.TrimSpace(err.Error())
	if at, ok := err.(*iofs.PathError); ok { // not one within an error that says more
		text = names.Visible(at.Path) + ": " + at.Err.Error()
	}
	return names.VisibleExcept(mountopts.WithoutPassword(text), "\n") // of a URL that was given where none belongs
}

// eachPath calls do for each path that arguments stand for.
func (src *source) eachPath(cmd *cobra.Command, args []string, do func(path string) error) error {
	paths, err := src.expand(args...)
	if err != nil {
		return err
	}
	return each(cmd, paths, do)
}

// each calls do for each of all. One that fails is reported and the others are still done; the
// status is then 1. An end of the output or an interrupt ends all.
func each[T any](cmd *cobra.Command, all []T, do func(T) error) error {
	failed := false
	for _, it := range all {
		err := do(it)
		switch {
		case err == nil:
			continue
		case errors.Is(err, syscall.EPIPE), cmd.Context().Err() != nil:
			return err
		}
		sayError(cmd, err)
		failed = true
	}
	if failed {
		return ended(exitFailure)
	}
	return nil
}
