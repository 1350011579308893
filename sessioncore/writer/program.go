package writer

import (
	"context"
	"path"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
)

// This file decides where large images of a session go whose dialect does not tell. omp keeps them in blobs, while pi,
// which has no blobs, would send a reference to one to the model's provider as if it were the image. So, other than for
// the dialect, it is pi in doubt: omp reads images in lines as well.

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

// keepsImages reports whether images of a session of omp's dialect stay in its lines: if it may be one of pi, as its
// agent directory says, else the file itself, else other sessions.
func (w *Writer) keepsImages(name string) bool {
	switch w.store.Program() {
	case program.OMP:
		return false
	case program.Pi, program.LikelyPi:
		return true
	}
	files := w.store.Storage()
	p := programOfFile(files, name)
	if p == program.Unknown {
		p = programOfOthers(files, path.Dir(name))
	}
	return p == program.Pi
}

// programOfFile returns the program that wrote a session, by its first value that the two write differently. For a
// file that cannot be read it returns program.Unknown.
func programOfFile(root storage.Files, name string) program.Program {
	obj, err := root.Open(name)
	if err != nil {
		return program.Unknown
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return program.Unknown
	}
	found, seen := program.Unknown, 0
	err = jsonl.LoadFirst(context.Background(), obj, min(st.Size, programBytes), func(u *jsonl.Unit) error {
		if found = programOfValue(rawjson.Value(u.Text)); found != program.Unknown || seen == programEntries {
			return jsonl.ErrStop
		}
		seen++
		return nil
	})
	if err != nil {
		return program.Unknown
	}
	return found
}

// programOfValue returns the program that wrote a header or an entry. A model in two members is pi's, or omp's of old,
// which had no blobs either.
func programOfValue(v rawjson.Value) program.Program {
	switch marks := program.MarksOf(v); {
	case marks&program.MarkOMP != 0:
		return program.OMP
	case marks&program.MarkPi != 0, v.Member("modelId").IsString() && (v.Member("type").Is("session") || v.Member("type").Is("model_change")):
		return program.Pi
	}
	return program.Unknown
}

// programOfOthers returns the program that wrote the newest sessions of a directory or, if they do not tell, of other
// directories.
func programOfOthers(root storage.Files, dir string) program.Program {
	dirs := []string{dir}
	items, err := storage.List(root, "")
	if err != nil {
		return program.Unknown
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
		files, err := storage.List(root, dir)
		if err != nil {
			continue
		}
		looked := 0
		for _, file := range slices.Backward(files) { // names begin with the time
			if file.Kind != storage.KindFile || !sessioncore.IsSessionName(file.Name) {
				continue
			}
			if p := programOfFile(root, path.Join(dir, file.Name)); p != program.Unknown {
				return p
			}
			if looked++; looked == programFiles {
				break
			}
		}
	}
	return program.Unknown
}
