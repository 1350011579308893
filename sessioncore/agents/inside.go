package agents

import (
	"container/list"
	"context"
	"sync"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// Inside finds the conversations of subagents in the files of sessions, and shares out the records
// of a file in one pass. It caches the result for a file, and reads only its growth. It is safe for
// concurrent use.
type Inside struct {
	// May reports whether lines may have records of subagents. Most files have none, so it must be
	// as fast as reading.
	May func(lines []byte) bool
	// InnerKey is the key of the member for Record.Inner.
	InnerKey string
	// RawControls is as in the Builder of the sessions.
	RawControls bool
	// Share returns a function for the records of one file, in their order, that gives each one to
	// the subagents that need it. The record is valid until it returns.
	Share func() func(r *Record, at RecordPlace, give Give)

	mu     sync.Mutex // guards the fields below
	files  map[string]*insideFile
	kept   list.List // of *insideFile: those with places, the one used last at the end
	places int       // their number
}

// Give gives the record at a place to a subagent, behind the records that it has. A subagent begins
// with the first record that it is given.
type Give func(subagent string, at RecordPlace)

const (
	// maxInside bounds the subagents of a file: a hostile one may name another in each record.
	maxInside = 1000
	// maxPlaces bounds the places of records that are kept for files but the one used last.
	maxPlaces = 1 << 16
)

// insideFile is the result for a file. Its places can be dropped; then the next pass begins anew.
type insideFile struct {
	kept   *list.Element // in Inside.kept; Inside.mu guards it and places
	places int

	mu      sync.Mutex // guards the fields below; held while the file is read
	token   storage.Token
	ids     []string
	hasID   map[string]bool
	free    int64 // end of the text that has no records of subagents, as May says
	isSome  bool  // the text behind it may have them
	isKept  bool  // the fields below are valid for token
	at      jsonl.Position
	share   func(r *Record, at RecordPlace, give Give)
	parts   map[string]*subagentPart
	members recordMembers
}

// file returns the result for a file, a new one if there is none.
func (in *Inside) file(name string) *insideFile {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.files == nil {
		in.files = map[string]*insideFile{}
	}
	f := in.files[name]
	if f == nil {
		f = &insideFile{}
		in.files[name] = f
	}
	return f
}

// Subagents returns the ids of the subagents with records in a file, in its order, not to be
// modified.
func (in *Inside) Subagents(files storage.Files, name string) ([]string, error) {
	f, err := in.current(files, name)
	if err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	return f.ids, nil
}

// Has reports whether a subagent has records in a file.
func (in *Inside) Has(files storage.Files, name, subagent string) (bool, error) {
	f, err := in.current(files, name)
	if err != nil {
		return false, err
	}
	defer f.mu.Unlock()
	return f.hasID[subagent], nil
}

// current returns the result for the present state of a file. The caller must unlock its mu.
func (in *Inside) current(files storage.Files, name string) (*insideFile, error) {
	st, err := files.Stat(name)
	if err != nil {
		return nil, err
	}
	f := in.file(name)
	f.mu.Lock()
	if f.token == st.Token {
		return f, nil
	}
	obj, err := files.Open(name)
	if err == nil {
		defer obj.Close()
		_, err = in.update(f, obj)
	}
	if err != nil {
		f.mu.Unlock()
		return nil, err
	}
	return f, nil
}

// Part returns the object with the records of a subagent. It closes the file.
func (in *Inside) Part(name, subagent string, file storage.Object) storage.Object {
	return &partObject{
		Object:   file,
		in:       in,
		name:     name,
		subagent: subagent,
	}
}

// part returns the records of a subagent in the present state of a file, none if it has no such subagent, and that
// state.
func (in *Inside) part(name, subagent string, obj storage.Object) (subagentPart, storage.Stat, error) {
	f := in.file(name)
	f.mu.Lock()
	defer f.mu.Unlock()
	st, err := in.update(f, obj)
	part := f.parts[subagent]
	if err != nil || part == nil {
		return subagentPart{}, st, err
	}
	return *part, st, nil
}

// update reads the growth of a file, and returns its state. Callers must hold f.mu.
func (in *Inside) update(f *insideFile, obj storage.Object) (storage.Stat, error) {
	st, err := obj.Stat()
	if err != nil {
		return st, err
	}
	defer in.count(f)
	if f.isKept && f.token == st.Token {
		return st, nil
	}
	isReplaced := !f.token.SameObject(st.Token) || st.Size < f.free
	if isReplaced {
		f.free = 0
		f.isSome = false
		f.ids = nil
		f.hasID = nil
		f.drop()
	}
	known := f.token
	f.token = storage.Token{} // if an error ends the pass
	if !f.isSome {
		err := in.findSome(f, obj, st.Size)
		if err != nil {
			return st, err
		}
	}
	if f.isSome {
		err = in.pass(f, obj, known, st)
	}
	if err == nil {
		f.token = st.Token
		f.isKept = true
	}
	return st, err
}

// findSome searches the text of a file from f.free on for words of records of subagents, and sets f.isSome and f.free.
// Callers must hold f.mu.
func (in *Inside) findSome(f *insideFile, obj storage.Object, size int64) error {
	buffer := make([]byte, min(size-f.free, jsonl.ChunkSize))
	for at := f.free; at < size && !f.isSome; {
		text := buffer[:min(size-at, int64(len(buffer)))]
		err := storage.ReadFull(obj, text, at)
		if err != nil {
			return err
		}
		f.isSome = in.May(text)
		if at+int64(len(text)) == size { // an incomplete word may stand at the end
			f.free = max(f.free, size-reach)
			break
		}
		at += int64(max(len(text)-reach, 1)) // a word may be cut at the end of text
		f.free = at
	}
	return nil
}

// reach is longer than any word that May finds, with blanks in it. Reads overlap by it.
const reach = 256

// pass shares out the records of a file to st, or of its growth since the state known. Callers must hold f.mu.
func (in *Inside) pass(f *insideFile, obj storage.Object, known storage.Token, st storage.Stat) error {
	hasGrown := f.hasGrown(known, st)
	if hasGrown && f.at.MidLine && st.Size > f.at.Off {
		next, isLine, err := lineEnd(obj, f.at)
		if err != nil {
			return err
		}
		f.at = next
		hasGrown = isLine
	}
	if !hasGrown {
		f.drop()
		f.ids = nil
		f.hasID = map[string]bool{}
		f.share = in.Share()
		f.parts = map[string]*subagentPart{}
	}
	for _, p := range f.parts {
		p.fixed = len(p.spans) // open objects have copies of the slice
	}
	records := jsonl.Records{Limit: maxLine, Inner: in.InnerKey, RawControls: in.RawControls}
	emit := func(u *jsonl.Unit) error {
		isLong := u.Kind == jsonl.SkippedUnit && u.Reason == jsonl.ReasonTooLong
		if isLong {
			u.Text = shortened(obj, u)
		}
		if rawjson.Value(u.Text).IsObject() {
			record := f.members.readUnit(u, in.InnerKey)
			f.share(&record, placeOf(u), f.give)
		}
		return nil
	}
	at, err := records.Load(context.Background(), obj, f.at, st.Size, emit)
	if err != nil {
		f.drop()
		return err
	}
	f.at = at
	return nil
}

// hasGrown reports whether a file in the state st begins with the lines that were shared out before.
func (f *insideFile) hasGrown(known storage.Token, st storage.Stat) bool {
	if f.share == nil || f.at.Guessed {
		return false
	}
	return known.SameObject(st.Token) && st.Size >= f.at.Off
}

// give gives the record at a place to a subagent, which it begins if there are not too many.
func (f *insideFile) give(subagent string, at RecordPlace) {
	p := f.parts[subagent]
	if p == nil {
		if len(f.ids) == maxInside {
			return
		}
		p = &subagentPart{}
		f.parts[subagent] = p
		f.ids = append(f.ids, subagent)
		f.hasID[subagent] = true
	}
	p.add(at)
}

// drop drops the places. The next pass begins anew.
func (f *insideFile) drop() {
	f.isKept = false
	f.share = nil
	f.parts = nil
	f.at = jsonl.Position{}
	f.members = recordMembers{}
}

// count counts the places of a file anew, and makes it the one used last. Places of other files beyond maxPlaces are
// dropped. Callers must hold f.mu.
func (in *Inside) count(f *insideFile) {
	places := 0
	for _, p := range f.parts {
		places += len(p.spans)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.uncount(f)
	if places == 0 {
		return
	}
	in.places += places
	in.evict() // f is not in in.kept, and keeps its own
	f.places = places
	f.kept = in.kept.PushBack(f)
}

// evict drops the places of files until there are at most maxPlaces, of the file used least recently first. Callers must
// hold in.mu. A file's own mutex is locked before that, so evict waits for none: a file in use keeps its places, and its
// next update counts them again.
func (in *Inside) evict() {
	for in.places > maxPlaces && in.kept.Len() > 0 {
		oldest := in.kept.Front().Value.(*insideFile)
		in.uncount(oldest)
		isFree := oldest.mu.TryLock()
		if isFree {
			oldest.drop()
			oldest.mu.Unlock()
		}
	}
}

// uncount removes a file from those with places. Callers must hold in.mu.
func (in *Inside) uncount(f *insideFile) {
	if f.kept != nil {
		in.kept.Remove(f.kept)
		in.places -= f.places
	}
	f.kept = nil
	f.places = 0
}
