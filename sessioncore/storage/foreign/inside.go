package foreign

import (
	"bytes"
	"slices"
	"sync"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Inside finds the conversations of subagents in the files of sessions. It keeps the result for a
// file, and reads only the part that was added since. It is safe for concurrent use.
type Inside struct {
	// May reports whether there may be records of subagents in lines. It decides at the speed of
	// reading: most files have none.
	May func(lines []byte) bool
	// Of returns a function of the records of one file, in their order. It returns the id of the
	// subagent that has the record, "" for none.
	Of func() func(record rawjson.Value) string

	mu    sync.Mutex // guards files
	files map[string]*insideFile
}

// maxInside is how many subagents of a file are found: a hostile one may name another in each record.
const maxInside = 1000

// insideFile is the result for a file.
type insideFile struct {
	mu    sync.Mutex // guards the fields below; held while the file is read
	token storage.Token
	read  int64 // the end of the last whole line
	of    func(rawjson.Value) string
	ids   []string
}

// Subagents returns the ids of the subagents with records in a file, in the order of the file. Callers
// must not modify it.
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

// update reads the part of a file that is new.
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
		whole := bytes.LastIndexByte(added, '\n') + 1
		if whole == 0 && end < st.Size {
			continue
		}
		if whole > 0 {
			whole += len(text) - n
		}
		in.note(f, text)
		text = text[:copy(text, text[whole:])]
		f.read = end - int64(len(text))
	}
	f.token = st.Token
	return nil
}

// note notes the subagents in lines. The last line may not be whole: then it comes again.
func (in *Inside) note(f *insideFile, lines []byte) {
	if !in.May(lines) {
		return
	}
	for line := range bytes.Lines(lines) {
		v := rawjson.Value(bytes.TrimSpace(line))
		if !in.May(line) || len(v) == 0 || v[0] != '{' || !rawjson.IsValidObject(v) {
			continue
		}
		if id := f.of(v); id != "" && len(f.ids) < maxInside && !slices.Contains(f.ids, id) {
			f.ids = append(f.ids, id)
		}
	}
}
