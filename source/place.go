package source

import (
	"errors"
	iofs "io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/fs"
	"sessionfs/mountopts"
	"sessionfs/nodes/layout"
	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/storage/gzip"
)

// Place is a SOURCE that a command line means. Its Mountpoint is the mount point of the mount with these
// options, with SOURCE as that has it.
type Place struct {
	mountopts.Options
	made string // a directory that Discard removes, "" for none
	// lone has the paths in the tree of session files that lie in no agent directory.
	lone map[string]string
}

// Discard removes the files that were made for the place.
func (p *Place) Discard() {
	if p.made != "" {
		_ = os.RemoveAll(p.made)
	}
}

// Arguments is the kind of a command's arguments.
type Arguments int

// The kinds.
const (
	Elsewhere Arguments = iota // nothing of a mount
	Words                      // words; SOURCE is the working directory's
	Paths                      // paths of a mount
	Sessions                   // sessions, also as files that lie in no agent directory
	// AnyWords are words; SOURCE is the working directory's, or else the one of a mount of all agents
	// that has the default.
	AnyWords
)

// Request is the part of a command line that tells SOURCE.
type Request struct {
	Demo bool   // --demo
	Name string // -s
	Args []string
	Kind Arguments // of Args
	One  bool      // the command changes one agent's sessions, or packs its files
}

// candidates are the ways to tell SOURCE, in their order. One returns nil where it does not apply;
// the first that applies tells SOURCE, or refuses it. Without any it is the default of Prepare.
var candidates = []func(Request) (*Place, error){
	named,        // --demo or -s: the samples, all agents, one, the SOURCE of the mount at a MOUNTPOINT, or SOURCE
	around,       // the mount or the agent directory around an argument
	sharedMount,  // a mount of all agents that has the default, for AnyWords
	severalFound, // all agents of this user if there are several, unless the command is for one
	missingFile,  // refuses a session file that is not there, as the default would be refused in its place
}

// Find returns the place that a command line means. Callers must discard it.
func Find(r Request) (*Place, error) {
	for _, candidate := range candidates {
		p, err := candidate(r)
		if p != nil || err != nil {
			return p, err
		}
	}
	return &Place{}, nil
}

// placeAt returns the place of a SOURCE, without further options.
func placeAt(source string) *Place { return &Place{Options: mountopts.Options{Source: source}} }

// named returns the place that --demo or -s names; nil without these. It refuses the name of an agent without
// sessions of this user, and a MOUNTPOINT if its daemon does not tell its options.
func named(r Request) (*Place, error) {
	switch {
	case r.Demo && r.Name != "":
		return nil, fs.Refuse(fs.ErrUsage, "--demo brings its own SOURCE: leave -s out")
	case r.Demo, r.Name == "demo":
		return &Place{Options: mountopts.Options{Demo: true}}, nil
	case r.Name == "":
		return nil, nil
	case r.Name == "all":
		return placeAt(mountopts.All), nil
	case r.Name == "omp", r.Name == "pi", agents.Find(r.Name) != nil:
		return agentNamed(r.Name)
	}
	for _, realPath := range fs.RealPaths(r.Name) {
		o, err := fs.ShownAt(realPath)
		if o.Mountpoint == realPath {
			return &Place{Options: o}, err
		}
	}
	file, below, ok := sessionFile(r.Name)
	if ok && below == "" {
		return ofFiles([]string{file})
	}
	return placeAt(r.Name), nil
}

// agentNamed returns the place of an agent of this user, or refuses it where the agent has no sessions.
func agentNamed(name string) (*Place, error) {
	for _, a := range AgentDirs(os.Getenv) {
		if a.Name == name {
			return &Place{Options: mountopts.Options{Source: a.Source, State: a.State}}, nil
		}
	}
	return nil, fs.Refuse(fs.ErrSource, "this user has no sessions of %s: %s is not there; "+
		"./%[1]s is a directory of that name", name, Usual(name, os.Getenv).Source)
}

// around returns the place of the first argument that lies in one, nil if none does. Words stand for the working
// directory, and so do no sessions.
func around(r Request) (*Place, error) {
	args := r.Args
	switch r.Kind {
	case Elsewhere:
		return nil, nil
	case Words, AnyWords:
		args = []string{"."}
	case Sessions:
		if len(args) == 0 {
			args = []string{"."}
		}
	}
	for _, arg := range args {
		p, err := aroundPath(arg)
		if p != nil || err != nil {
			return p, err
		}
		file, _, isFile := sessionFile(arg)
		if isFile && (r.Kind == Sessions || r.Kind == Paths) {
			return ofFile(file, args)
		}
		dir := sourceNamed(arg)
		if dir != "" && r.Kind == Paths {
			return placeAt(dir), nil
		}
	}
	return nil, nil
}

// aroundPath returns the mount or the agent directory that a path of this machine lies in or leads to; nil for
// none. A session of another agent that lies in an agent directory is not one of that.
func aroundPath(arg string) (*Place, error) {
	for _, realPath := range fs.RealPaths(arg) {
		o, err := fs.ShownAt(realPath)
		if err != nil || o.Mountpoint != "" {
			return &Place{Options: o}, err
		}
		dir := agentDirAround(realPath)
		if dir != "" && !isForeignIn(dir, realPath) {
			return placeAt(dir), nil
		}
	}
	return nil, nil
}

// isForeignIn reports whether a file in an agent directory is a session of another agent, by its records.
func isForeignIn(dir, realPath string) bool {
	_, below, ok := sessionFile(realPath)
	if !ok || below != "" {
		return false
	}
	agent, _, ok := agents.WriterOfFile(realPath)
	return ok && agent != agents.Of(dir)
}

// sourceNamed returns the directory of this machine that an absolute or relative path names as SOURCE,
// "" if it names none.
func sourceNamed(arg string) string {
	realPath, err := filepath.EvalSymlinks(arg)
	if err != nil || arg == "." || !IsDir(filepath.Join(realPath, layout.Sessions)) {
		return ""
	}
	realPath, err = filepath.Abs(realPath)
	if err != nil {
		return ""
	}
	return realPath
}

// sharedMount returns the mount with the usual SOURCE, for arguments that may be anything; nil if
// there is none.
func sharedMount(r Request) (*Place, error) {
	if r.Kind != AnyWords {
		return nil, nil
	}
	var usual mountopts.Options
	setUsual(&usual, os.Getenv)
	isUsual := func(a mountopts.AgentDir) bool {
		return IsSame(a.Source, usual.Source)
	}
	for _, o := range fs.ShownMounts() {
		if !o.Redact && slices.ContainsFunc(o.Agents, isUsual) {
			return &Place{Options: o}, nil
		}
	}
	return nil, nil
}

// severalFound returns the place of all agents of this user. It returns nil, which leaves the default SOURCE:
//
//  1. for a command that is for one agent, or reads nothing of a mount;
//  2. if this user has no two agents;
//  3. if an argument is a path below sessions/ without an agent's name at its beginning, as the default SOURCE has
//     it. With all agents, as search prints it, such a path begins with an agent's name.
func severalFound(r Request) (*Place, error) {
	if r.One || r.Kind == Elsewhere {
		return nil, nil
	}
	dirs := AgentDirs(os.Getenv)
	if len(dirs) < 2 {
		return nil, nil
	}
	hasPaths := r.Kind == Paths || r.Kind == Sessions
	if !hasPaths {
		return placeAt(mountopts.All), nil
	}
	for _, arg := range r.Args {
		below, isInSessions := strings.CutPrefix(clean(arg), layout.Sessions+"/")
		first, _, _ := strings.Cut(below, "/")
		isAgent := slices.ContainsFunc(dirs, func(a mountopts.AgentDir) bool {
			return a.Name == first
		})
		if isInSessions && !isAgent {
			return nil, nil
		}
	}
	return placeAt(mountopts.All), nil
}

// missingFile refuses an argument that names a session file by its ending where neither that is there nor the
// default SOURCE, as it could be a path in that. It never returns a place.
func missingFile(r Request) (*Place, error) {
	if r.Kind != Sessions && r.Kind != Paths {
		return nil, nil
	}
	var usual mountopts.Options
	setUsual(&usual, os.Getenv)
	if IsDir(usual.Source) {
		return nil, nil
	}
	for _, arg := range r.Args {
		file := beforeEntry(arg)
		hasEnding := func(ending string) bool { return strings.HasSuffix(file, ending) }
		_, err := os.Stat(file)
		if slices.ContainsFunc(loneEndings, hasEnding) && errors.Is(err, iofs.ErrNotExist) {
			return nil, fs.Refuse(fs.ErrSource, "%s does not exist", file)
		}
	}
	return nil, nil
}

// clean returns the path in the tree for one that was typed.
func clean(typed string) string { return path.Clean(strings.TrimLeft(typed, "/")) }

// agentDirAround returns the agent directory that a path lies in, or leads to: one of this
// user, or another certain one; "" for none. The path is absolute and without links.
func agentDirAround(realPath string) string {
	for _, a := range AgentDirs(os.Getenv) {
		if shows(a.Source, realPath) {
			return a.Source
		}
	}
	for dir := realPath; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if isCertainAgentDir(dir) && shows(dir, realPath) {
			return dir
		}
	}
	return ""
}

// shows reports whether a path, which has no links, lies in an agent directory, or in a directory that one of its
// links leads to.
func shows(dir, realPath string) bool {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	_, isShown := fs.ShownAs(mountopts.Options{Source: resolved}, realPath)
	return isShown || fs.IsBelow(realPath, resolved)
}

// isCertainAgentDir reports whether a directory cannot be much else than an agent directory.
func isCertainAgentDir(dir string) bool {
	if agents.HasScopes(dir) || agents.Of(dir) != nil {
		return true
	}
	return IsDir(filepath.Join(dir, "sessions")) && hasAny(dir, clientMarks)
}

// loneEndings end the names of session files that are shown wherever they lie.
var loneEndings = []string{
	layout.SessionSuffix, layout.SessionSuffix + gzip.Ending, layout.SessionSuffix + gzip.ZstdEnding,
	".json", ".json" + gzip.Ending, ".json" + gzip.ZstdEnding,
}

// sessionFile returns the session file of this machine that an argument names, with or without an
// entry, and below, a name in the session behind it as in x.jsonl/title, or "". ok is false if there is no such file.
func sessionFile(arg string) (realPath, below string, ok bool) {
	names := []string{arg, beforeEntry(arg)} // a file may have a # in its name
	for _, ending := range loneEndings {
		file, rest, isBelow := strings.Cut(arg, ending+"/")
		if isBelow {
			names = []string{file + ending}
			below = rest
			break
		}
	}
	for _, name := range names {
		realPath, err := filepath.EvalSymlinks(name)
		if err != nil || !hasFileEnding(realPath) {
			continue
		}
		info, err := os.Lstat(realPath)
		if err == nil && info.Mode().IsRegular() {
			realPath, err = filepath.Abs(realPath)
			return realPath, below, err == nil
		}
	}
	return "", "", false
}

// hasFileEnding reports whether a file may be a session by its ending. A session that is one JSON object
// is one only by its agent's records, which a compressed file does not show yet.
func hasFileEnding(file string) bool {
	plain, ok := gzip.Packed(file)
	if ok {
		return strings.HasSuffix(plain, layout.SessionSuffix) || strings.HasSuffix(plain, ".json")
	}
	if strings.HasSuffix(file, layout.SessionSuffix) {
		return true
	}
	if !strings.HasSuffix(file, ".json") {
		return false
	}
	agent, _, ok := agents.WriterOfFile(file)
	return ok && agent != nil
}

// ofFile returns a place, for reading alone, of a session file: an agent directory of omp with the files beside it,
// if the file and all other ones among the arguments are omp's and in one directory; else of those files alone.
func ofFile(file string, args []string) (*Place, error) {
	all := loneFiles(args)
	if slices.ContainsFunc(all, isPacked) {
		return ofFiles(all)
	}
	agent, _, ok := agents.WriterOfFile(file)
	if !ok {
		return nil, errUnknownFile(file)
	}
	isElsewhere := func(other string) bool {
		return filepath.Dir(other) != filepath.Dir(file)
	}
	if agent != nil || slices.ContainsFunc(all, isElsewhere) {
		return ofFiles(all)
	}
	p, err := besideFile(file)
	if err != nil {
		return p, err
	}
	isOfAgent := agents.Of(p.Source) != nil || agents.Unread(p.Source) > 0
	if !isOfAgent {
		return p, nil
	}
	p.Discard()
	return ofFiles(all)
}

// isPacked reports whether a file is compressed, by its name.
func isPacked(file string) bool {
	_, ok := gzip.Packed(file)
	return ok
}

// besideFile returns an agent directory of omp of a session file and the files beside it, for reading: the one above
// a directory sessions that the file lies in, or else a new one. Callers must discard it.
func besideFile(file string) (*Place, error) {
	for dir := filepath.Dir(file); dir != "/" && dir != "."; dir = filepath.Dir(dir) {
		if filepath.Base(dir) == layout.Sessions {
			return &Place{Options: mountopts.Options{Source: filepath.Dir(dir), ReadOnly: true}}, nil
		}
	}
	made, err := os.MkdirTemp("", "sessionfs-file-")
	if err != nil {
		return nil, err
	}
	p := &Place{Options: mountopts.Options{Source: made, ReadOnly: true}, made: made}
	err = os.Symlink(filepath.Dir(file), filepath.Join(made, layout.Sessions))
	if err != nil {
		p.Discard()
		return nil, err
	}
	return p, nil
}
