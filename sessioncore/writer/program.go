package writer

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Program is the agent that a directory or file belongs to, among those that use the omp dialect. They treat large
// images differently: omp keeps them in blobs, while pi, which has no blobs, would send a reference to one to the
// model's provider as if it were the image.
type Program uint8

const (
	ProgramUnknown Program = iota
	ProgramOMP
	ProgramPi
)

// piDir is the end of the path of pi's agent directory.
const piDir = "/.pi/agent"

var (
	// ompNames are files that omp creates in its agent directory when it starts, and pi never has.
	ompNames = []string{"agent.db", "history.db", "models.db", "terminal-sessions"}
	// piNames are files in pi's agent directory. omp once had some of them too, but always beside ompNames.
	piNames = []string{"auth.json", "settings.json", "models-store.json", "trust.json"}
	// blobsNames are where images are stored.
	blobsNames = []string{"blobs"}
)

// ProgramOfRoot returns the program that an agent directory belongs to, by its paths or else by its files.
func ProgramOfRoot(root storage.Storage, paths ...string) Program {
	for _, p := range paths {
		if strings.HasSuffix(filepath.ToSlash(filepath.Clean(p)), piDir) {
			return ProgramPi
		}
	}
	has := func(name string) bool {
		_, err := root.Stat(name)
		return err == nil
	}
	switch {
	case slices.ContainsFunc(ompNames, has):
		return ProgramOMP
	case slices.ContainsFunc(piNames, has):
		return ProgramPi
	case slices.ContainsFunc(blobsNames, has):
		return ProgramOMP
	}
	return ProgramUnknown
}

const (
	// programEntries and programBytes bound how much of a file is examined: both programs write the model near the
	// beginning.
	programEntries = 64
	programBytes   = 256 << 10
	// programDirs and programFiles bound how many directories, and files of each, are examined if a file itself does
	// not tell.
	programDirs  = 8
	programFiles = 4
)

// programOfFile returns the program that wrote a session, by its first value that the two write differently. For a
// file that cannot be read it returns ProgramUnknown.
func programOfFile(root storage.Storage, name string) Program {
	obj, err := root.Open(name)
	if err != nil {
		return ProgramUnknown
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return ProgramUnknown
	}
	found, seen := ProgramUnknown, 0
	err = jsonl.LoadFirst(context.Background(), obj, min(st.Size, programBytes), func(u *jsonl.Unit) error {
		if found = programOfValue(rawjson.Value(u.Text)); found != ProgramUnknown || seen == programEntries {
			return jsonl.ErrStop
		}
		seen++
		return nil
	})
	if err != nil {
		return ProgramUnknown
	}
	return found
}

// programOfValue returns the program that wrote a header or an entry.
func programOfValue(v rawjson.Value) Program {
	typ, _ := v.Member("type").Text()
	switch typ {
	case "session": // of version 1
		if v.Member("modelId").IsString() {
			return ProgramPi
		}
	case "model_change":
		if v.Member("model").IsString() {
			return ProgramOMP
		}
		if v.Member("modelId").IsString() {
			return ProgramPi
		}
	case "session_info", "usage", "context_edit":
		return ProgramPi
	case sessioncore.TitleType, "title_change", "session_init", "mode_change", "service_tier_change", "ttsr_injection", "mcp_tool_selection":
		return ProgramOMP
	}
	return ProgramUnknown
}

// programOfOthers returns the program that wrote the newest sessions of a directory or, if they do not tell, of other
// directories.
func programOfOthers(root storage.Storage, dir string) Program {
	dirs := []string{dir}
	items, err := root.List("")
	if err != nil {
		return ProgramUnknown
	}
	for _, item := range slices.Backward(items) {
		if item.Kind == storage.KindDir && item.Name != dir && len(dirs) < programDirs {
			dirs = append(dirs, item.Name)
		}
	}
	for _, dir := range dirs {
		if dir == "." {
			dir = ""
		}
		files, err := root.List(dir)
		if err != nil {
			continue
		}
		looked := 0
		for _, file := range slices.Backward(files) { // names begin with the time
			if file.Kind != storage.KindFile || !sessioncore.IsSessionName(file.Name) {
				continue
			}
			if p := programOfFile(root, path.Join(dir, file.Name)); p != ProgramUnknown {
				return p
			}
			if looked++; looked == programFiles {
				break
			}
		}
	}
	return ProgramUnknown
}
