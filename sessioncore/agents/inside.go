package agents

import (
	"bytes"
	"slices"
	"sync"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Inside finds the conversations of subagents in the files of sessions. It caches the result for a
// file, and reads only its growth. It is safe for concurrent use.
type Inside struct {
	// May reports whether lines may have records of subagents. Most files have none, so it must be
	// as fast as reading.
	May func(lines []byte) bool
	// Of returns a function for the records of one file, in their order, to a record's subagent or
	// "".
	Of func() func(record rawjson.Value) string

	mu    sync.Mutex // guards files
	files map[string]*insideFile
}

// maxInside bounds the subagents of a file: a hostile one may name another in each record.
const maxInside = 1000

// insideFile is the result for a file.
type insideFile struct {
	mu    sync.Mutex // guards the fields below; held while the file is read
	token storage.Token
	read  int64 // end of the last complete line
	of    func(rawjson.Value) string
	ids   []string
}

// Subagents returns the ids of the subagents with records in a file, in its order, not to be
// modified.
func (in *Inside) Subagents(files storage.Files, name string) ([]string, error) {
	st, err := files.Stat(name)
	if err != nil {
		return nil, err
	}
	in.mu.Lock()
	if in.files == nil {
		in.files = map[string]*insideFile{}
	}
	f := in.files[name]
	if f == nil {
		f = &insideFile{}
		in.files[name] = f
	}
	in.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.token == st.Token {
		return f.ids, nil
	}
	obj, err := files.Open(name)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	if st, err = obj.Stat(); err == nil {
		err = in.update(f, obj, st)
	}
	return f.ids, err
}

// update reads the growth of a file.
func (in *Inside) update(f *insideFile, obj storage.Object, st storage.Stat) error {
	if !f.token.SameObject(st.Token) || st.Size < f.read {
		f.read, f.of, f.ids = 0, in.Of(), nil
	}
	f.token = storage.Token{}
	var text []byte
	for end := f.read; end < st.Size; {
		n := int(min(st.Size-end, jsonl.ChunkSize))
		text = slices.Grow(text, n)[:len(text)+n]
		added := text[len(text)-n:]
		if err := storage.ReadFull(obj, added, end); err != nil {
			return err
		}
		end += int64(n)
		complete := bytes.LastIndexByte(added, '\n') + 1
		if complete == 0 && end < st.Size {
			continue
		}
		if complete > 0 {
			complete += len(text) - n
		}
		in.find(f, text)
		text = text[:copy(text, text[complete:])]
		f.read = end - int64(len(text))
	}
	f.token = st.Token
	return nil
}

// find adds the subagents in lines. The last line may be incomplete; then it is read once more.
func (in *Inside) find(f *insideFile, lines []byte) {
	if !in.May(lines) {
		return
	}
	eachObject(lines, in.May, func(v rawjson.Value) {
		if id := f.of(v); id != "" && len(f.ids) < maxInside && !slices.Contains(f.ids, id) {
			f.ids = append(f.ids, id)
		}
	})
}
