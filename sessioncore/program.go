package sessioncore

import (
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Program is the agent whose formats a directory or a session file has, omp or pi (docs/format.md,
// Whose session it is). It is found by names and single values, without an index.
type Program uint8

const (
	ByUnknown Program = iota
	ByOMP             // omp or xcsh
	// LikelyByPi is by names that omp once used too, for cases that cannot harm omp's files.
	LikelyByPi
	ByPi
)

// PiPath and ompPaths are the ends of the paths of agent directories in a home.
const PiPath = "/.pi/agent"

var ompPaths = []string{"/.omp/agent", "/.xcsh/agent"}

var (
	// ompNames are files that omp creates in its agent directory when it starts, and pi never has.
	ompNames = []string{"agent.db", "history.db", "models.db", "terminal-sessions"}
	// piNames are files that pi has from 0.87 on, and omp never had.
	piNames = []string{"models-store.json", "trust.json"}
	// commonNames are files of pi that older versions of omp had too, but beside ompNames.
	commonNames = []string{"auth.json", "settings.json"}
)

// ProgramOfRoot returns the program of an agent directory by its paths and files, ByUnknown if both
// use it or nothing tells. A path is a surer sign than a file, and each file a surer one than those
// after it.
func ProgramOfRoot(root storage.Files, paths ...string) Program {
	has := func(name string) bool {
		_, err := root.Stat(name)
		return err == nil
	}
	usedByOMP := slices.ContainsFunc(ompNames, has)
	atPi := anyEndsIn(paths, PiPath)
	switch {
	case usedByOMP && atPi:
		return ByUnknown
	case atPi:
		return ByPi
	case usedByOMP, anyEndsIn(paths, ompPaths...):
		return ByOMP
	case slices.ContainsFunc(piNames, has):
		return ByPi
	case slices.ContainsFunc(commonNames, has):
		return LikelyByPi
	case has("blobs"): // omp stores images there
		return ByOMP
	}
	return ByUnknown
}

// anyEndsIn reports whether one of paths, as the system writes them, has one of some ends.
func anyEndsIn(paths []string, ends ...string) bool {
	for _, p := range paths {
		clean := filepath.ToSlash(filepath.Clean(p))
		for _, end := range ends {
			if strings.HasSuffix(clean, end) {
				return true
			}
		}
	}
	return false
}

// Marks are the programs that left something in a session file which the other one never writes.
type Marks uint8

const (
	MarkOMP Marks = 1 << iota
	MarkPi
)

// MarksOf returns the marks of an entry or of a value before the first one, 0 if both programs may
// have written it.
func MarksOf(v rawjson.Value) Marks {
	isPi := false
	typ, _ := v.Member("type").Text()
	switch typ {
	case "title", "title_change", "session_init", "mode_change", "service_tier_change", "ttsr_injection",
		"mcp_tool_selection":
		return MarkOMP
	case "model_change":
		if v.Member("model").IsString() {
			return MarkOMP
		}
	case "session_info":
		isPi = v.Member("name").IsString()
	case "usage":
		isPi = v.Member("kind").IsString() && v.Member("usage").IsObject()
	case "context_edit":
		replacement := v.Member("replacement")
		isReplacement := replacement.IsNull() || replacement.IsObject()
		isPi = v.Member("targetId").IsString() && isReplacement
	case "compaction":
		isPi = v.Member("systemMessage").IsObject() || v.Member("usage").IsObject()
	case "branch_summary":
		isPi = v.Member("usage").IsObject()
	case "message":
		message := v.Member("message")
		hasParts := message.Member("sections").IsObject() || message.Member("toolsAdded").IsArray()
		isPi = message.Member("role").Is("system") && hasParts
	}
	if isPi {
		return MarkPi
	}
	return 0
}

// keepsBlobs reports whether large images of a session go into blobs: only if it certainly is one
// of omp. pi would send a reference to the provider, while omp reads images in lines too.
func keepsBlobs(root Program, marks Marks) bool {
	if root == ByUnknown {
		return marks&MarkOMP != 0
	}
	return root == ByOMP
}

// ProgramOfSession returns the program with the rules for a session: ByOMP or ByPi. omp's own
// marks decide, then the agent directory, then pi's marks. In doubt it is ByOMP: pi ignores lines
// by omp's rules, and a file of omp must not get lines that omp ignores.
func ProgramOfSession(root Program, marks Marks) Program {
	switch {
	case marks&MarkOMP != 0:
		return ByOMP
	case root == ByOMP || root == ByPi:
		return root
	case marks&MarkPi != 0:
		return ByPi
	}
	return ByOMP
}

// ProgramRoot is an agent directory, checked when names in it changed. It is safe for concurrent use.
type ProgramRoot struct {
	files   storage.Files
	paths   []string
	mu      sync.Mutex // guards program; held while files are checked
	program storage.Cached[Program]
}

// NewProgramRoot returns the agent directory files, which has these paths.
func NewProgramRoot(files storage.Files, paths ...string) *ProgramRoot {
	return &ProgramRoot{files: files, paths: paths}
}

// Program returns ProgramOfRoot of the current directory, for any file in it. If the directory cannot
// be read, it returns the last result.
func (r *ProgramRoot) Program(string) Program {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now().UnixNano()
	st, err := r.files.Stat("")
	if err == nil && !r.program.IsOf(st.Token) {
		r.program = storage.Cached[Program]{
			Value:  ProgramOfRoot(r.files, r.paths...),
			Token:  st.Token,
			ReadAt: now,
		}
	}
	return r.program.Value
}
