package listing

import (
	"bytes"
	"cmp"
	"math"
	"strings"
	"sync"
	"time"
	"unicode"
	"unique"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/names"
	"sessionfs/sessioncore/storage"
)

const (
	// prefixSize is the part of a file that the client reads to list it (docs/format.md, Listing
	// and resuming). The rest is ignored even if known, so that the lists agree.
	prefixSize = 4 << 10
	// noMessages is the first message of a session without messages.
	noMessages = "(no messages)"
)

// Info has the facts about a session from the first 4 KB of its file, as in the client's list.
// Texts are WTF-8. It is immutable; after a change of the file, Sessions returns a new one.
//
// It takes some 300 bytes plus its texts, usually less than 1 KB. The texts are no longer than the
// part of the file that was read: 4 KB, or 128 KB for pi.
type Info struct {
	file *sessionFile // only its immutable fields are used
	// Stat is the file's, when its prefix was read.
	Stat storage.Stat
	// Size is the raw file's, which differs from Stat's if the session is made of it.
	Size int64
	// ID and CWD are the header's; CWD may be empty.
	ID, CWD string
	// Title is the header's or a title slot's, or a compaction's short summary, or "".
	Title string
	// Parent is the header's parentSession, or "".
	Parent string
	// MessageCount is the number of messages in the prefix.
	MessageCount int

	first    string // the first message
	asked    string // the words of the first request, "" if none was found
	flags    infoFlags
	created  int64 // milliseconds since the epoch; 0 if the header's timestamp cannot be read
	activity int64 // of pi's sessions: the latest time of a message, milliseconds since the epoch, or 0
}

type infoFlags uint16

const (
	infoSlot     infoFlags = 1 << iota // a title slot sets the title, possibly to none
	infoOperator                       // of the operator dialect, with files directly in sessions/
	infoPi                             // of pi
	infoNamed                          // of pi, and Title is certainly the whole file's
	infoAgent                          // of one of several agents
	infoPerson                         // of one of several people
	infoSubagent                       // of a subagent
	infoProgram                        // the first message is the program's, and no request was found
)

// NewInfo returns an Info without facts from the file.
func NewInfo(name string, stat storage.Stat, cwd string) *Info {
	dir := &sessionDir{name: storage.Dir(name)}
	return &Info{file: &sessionFile{dir: dir, name: name}, Stat: stat, Size: stat.Size, CWD: cwd}
}

// Name returns the file's name in the storage.
func (i *Info) Name() string { return i.file.name }

// DirName returns the path of the session's directory below sessions/.
func (i *Info) DirName() string { return strings.TrimSuffix(i.Name(), sessioncore.FileEnding) }

// Path returns the path of the session's directory from the mount's root.
func (i *Info) Path() string { return i.file.dir.shownIn + "/" + i.DirName() }

// Agent returns the agent of the session among several agents, else "".
func (i *Info) Agent() string { return i.topIf(infoAgent) }

// Who returns the name of the session's owner among several people, else "".
func (i *Info) Who() string { return i.topIf(infoPerson) }

// topIf returns the first part of the file's path, which is an agent's or a person's directory, if the session
// has a flag, else "".
func (i *Info) topIf(flag infoFlags) string {
	if i.flags&flag == 0 {
		return ""
	}
	top, _, _ := strings.Cut(i.file.dir.name, "/")
	return top
}

// IsSubagent reports whether it is a subagent's or a reviewer's session, omitted in lists.
func (i *Info) IsSubagent() bool { return i.flags&infoSubagent != 0 }

// Created returns the header's timestamp in ms since the epoch. ok is false if it cannot be read.
func (i *Info) Created() (ms int64, ok bool) { return i.created, i.created != 0 }

// BaseName returns the file's name without its directory and suffix.
func (i *Info) BaseName() string { return strings.TrimSuffix(i.file.base(), sessioncore.FileEnding) }

// modified returns the modification time in nanoseconds since the epoch; in pi, as in its list, the
// time of the last message.
func (i *Info) modified() int64 {
	if i.activity > 0 && i.activity < math.MaxInt64/int64(time.Millisecond) {
		return i.activity * int64(time.Millisecond)
	}
	return i.Stat.Modified
}

// Modified returns the session's modification time, as in the list.
func (i *Info) Modified() time.Time { return time.Unix(0, i.modified()) }

// compare orders the list: the latest modification first, then the greater name of the file.
func (i *Info) compare(other *Info) int {
	order := cmp.Compare(other.modified(), i.modified())
	if order == 0 {
		order = cmp.Compare(other.file.base(), i.file.base())
	}
	if order == 0 {
		order = cmp.Compare(other.Name(), i.Name())
	}
	return order
}

// prefixes recycles buffers: lists read thousands of prefixes at once.
var prefixes = sync.Pool{New: func() any { return new([prefixSize]byte) }}

// readInfo reads the Info of a file, nil if the client does not list it, and the state that it was read in.
// before is the last Info, or nil.
func (l *Listing) readInfo(f *sessionFile, before *Info) (*Info, storage.Stat, error) {
	obj, err := l.store.Storage().Open(f.name)
	if err != nil {
		return nil, storage.Stat{}, err
	}
	defer obj.Close()
	buffer := prefixes.Get().(*[prefixSize]byte)
	defer prefixes.Put(buffer)
	prefix, st, size, err := beginning(obj, buffer[:])
	if err != nil {
		return nil, st, err
	}
	info := parseInfo(prefix[:min(prefixSize, len(prefix))])
	if info == nil && size > prefixSize {
		info, err = parseLong(obj, prefix, size)
	}
	if info == nil || err != nil {
		return nil, st, err
	}
	_, isConverted := obj.(sessioncore.Converted)
	isNameless := info.Title == "" && info.asked == ""
	if isNameless && !isConverted {
		info.asked = requestInCut(obj, prefix, size)
	}
	info.Size = size
	l.complete(info, f, st)
	mayBePi := info.flags&(infoSlot|infoOperator) == 0
	if !mayBePi || !isPi(l.store.Program(f.name), prefix) {
		return info, st, nil
	}
	err = l.readPi(obj, st, info, before)
	if err != nil {
		return nil, st, err
	}
	return info, st, nil
}

// complete sets the facts of an Info that its file's text does not tell.
func (l *Listing) complete(info *Info, f *sessionFile, st storage.Stat) {
	info.file = f
	info.Stat = st
	base := info.BaseName()
	if strings.HasSuffix(base, info.ID) { // as in clients' names; so both share the memory
		info.ID = base[len(base)-len(info.ID):]
	}
	info.CWD = unique.Make(info.CWD).Value() // many sessions share it
	switch {
	case l.nameOf != nil:
		info.flags |= infoPerson
	case l.hasSeveral():
		info.flags |= infoAgent
	}
}

// beginning returns the prefix of a session for a list, converted if necessary, and the size of the text that
// it begins. The prefix of a file is in buffer.
func beginning(obj storage.Object, buffer []byte) (prefix []byte, st storage.Stat, size int64, err error) {
	converted, isConverted := obj.(sessioncore.Converted)
	if isConverted {
		return converted.Beginning()
	}
	st, err = obj.Stat()
	if err != nil {
		return nil, st, 0, err
	}
	prefix = buffer[:min(int64(len(buffer)), st.Size)]
	return prefix, st, st.Size, storage.ReadFull(obj, prefix, 0)
}

// maxHeader bounds a listed header and a slot before it. Lists in it grow.
const maxHeader = 64 << 10

// parseLong is parseInfo for a file of size bytes with a longer header than the prefix. It parses the first
// line alone, or the first two if one is a title slot, so the Info has no messages. head is the beginning of a
// converted session; of another file maxHeader bytes are read.
func parseLong(obj storage.Object, head []byte, size int64) (*Info, error) {
	_, isConverted := obj.(sessioncore.Converted)
	if !isConverted {
		head = make([]byte, min(maxHeader, size))
		err := storage.ReadFull(obj, head, 0)
		if err != nil {
			return nil, err
		}
	}
	end := 0 // behind the lines to parse
	for range 2 {
		end += bytes.IndexByte(head[end:], '\n') + 1
		info := parseInfo(head[:end])
		if info != nil {
			return info, nil
		}
	}
	return nil, nil
}

// maxDisplayName bounds a display name, in characters (docs/format.md, Listing and resuming).
const maxDisplayName = 40

// DisplayName returns the session's name for short lists: the first line of the title, else of the
// first request, else of the first message, else of the id, else the file's name, without control characters. A longer one is
// cut at a word, if that keeps more than half.
func (i *Info) DisplayName() string { return displayText(i.name(), maxDisplayName) }

// WholeName returns the display name as it is before it is cut.
func (i *Info) WholeName() string { return NameLine(i.name()) }

// NameLine returns the display name, not cut, that an unshortened text gives.
func NameLine(full string) string { return displayText(full, math.MaxInt) }

// shareFirst keeps one text of the first message and the first request where they are equal, and
// notes that the first message is no request where there is none.
func (i *Info) shareFirst(first string) {
	if i.asked == first {
		i.asked = first
	}
	i.flags &^= infoProgram
	if first != "" && i.asked == "" {
		i.flags |= infoProgram
	}
}

// name returns the text that DisplayName shortens: the title; else the first request, without the program's
// own messages; else the first message; else the id; else the name of the file. A text without visible
// characters does not count.
func (i *Info) name() string {
	first := i.first
	if first == noMessages || i.flags&infoProgram != 0 {
		first = ""
	}
	for _, text := range [...]string{i.Title, i.asked, first, i.ID} {
		if displayText(text, 1) != "" {
			return text
		}
	}
	return i.BaseName()
}

// ForkOf reports whether the session's parentSession names another one, by id or file name.
func (i *Info) ForkOf(other *Info) bool {
	key := parentKey(i.Parent)
	if key == "" || other == i {
		return false
	}
	return key == other.ID || key == other.file.base()
}

// DisplayName returns the display name of a session, also of one that the client does not list, and
// the unshortened text. By default that is the file's name.
func DisplayName(snap *sessioncore.Snapshot, name string) (short, full string) {
	info := infoOf(snap, name)
	title, err := snap.Title()
	hasEntry := err == nil && snap.Dialect().TitleEntry
	if hasEntry && title != "" {
		info.Title = title
	}
	return info.DisplayName(), info.name()
}

// infoOf returns the Info of a snapshot by its prefix, as far as that can be read.
func infoOf(snap *sessioncore.Snapshot, name string) *Info {
	info := NewInfo(name, storage.Stat{}, "")
	size := snap.Stat().Size
	prefix := make([]byte, min(prefixSize, size))
	err := storage.ReadFull(snap, prefix, 0)
	if err != nil {
		return info
	}
	parsed := parseInfo(prefix)
	if parsed != nil {
		parsed.file = info.file
		info = parsed
	}
	if info.asked == "" {
		info.asked = requestInCut(snap, prefix, size)
	}
	return info
}

// displayText returns the first line of a text without control characters. A line of more than limit
// characters is cut behind its last word that fits, or within a word if that would lose more than half, and
// ends with an ellipsis.
func displayText(text string, limit int) string {
	line, _, _ := strings.Cut(text, "\n")
	var out []byte
	count := 0    // characters of out
	wordEnd := 0  // the end of the last whole word of out
	cutStart := 0 // the end of the part of out before an ellipsis that cuts a word
	rest := []byte(rawjson.TrimSpace(line))
	for len(rest) > 0 {
		r, n := rawjson.DecodeRune(rest)
		char := rest[:n]
		rest = rest[n:]
		isBlank := rawjson.TrimSpace(string(char)) == ""
		isLeading := isBlank && count == 0
		if unicode.IsControl(r) || isLeading {
			continue
		}
		if count == limit {
			end := wordEnd
			if end < cutStart/2 {
				end = cutStart
			}
			kept := rawjson.TrimSpace(string(out[:end]))
			return strings.TrimRight(kept, ",;:.") + "…"
		}
		if isBlank {
			wordEnd = len(out)
		}
		out = append(out, char...)
		if count == limit-2 { // before the last character, which the ellipsis replaces
			cutStart = len(out)
		}
		count++
	}
	return rawjson.TrimSpace(string(out))
}

// indexLine is a line of index.jsonl. Every line has the first ten keys, in this order, for tools that take
// columns from the first line; a missing value is null. With several agents or people, all lines have one
// more key.
type indexLine struct {
	ID            string  `json:"id"`
	Path          string  `json:"path"`
	CWD           string  `json:"cwd"`
	Title         *string `json:"title"`
	Created       *string `json:"created"`
	Modified      string  `json:"modified"`
	MessageCount  int     `json:"messageCount"`
	FirstMessage  string  `json:"firstMessage"`
	ParentSession *string `json:"parentSession"`
	Size          int64   `json:"size"`
	Agent         string  `json:"agent,omitempty"`
	Who           string  `json:"who,omitempty"`
}

// appendLine appends the session's line of index.jsonl. Lone surrogates, which clients leave in cut
// titles, become U+FFFD, as jq stops at their escapes.
func (i *Info) appendLine(dst []byte) []byte {
	written := func(t time.Time) string { return t.UTC().Format(rawjson.TimestampLayout) }
	line := indexLine{
		ID:            names.TextUTF8(i.ID),
		Path:          string(rawjson.AppendUTF8(nil, []byte(i.Path()))),
		CWD:           names.TextUTF8(i.CWD),
		Title:         textOrNull(i.Title),
		Modified:      written(i.Modified()),
		MessageCount:  i.MessageCount,
		FirstMessage:  names.TextUTF8(i.first),
		ParentSession: textOrNull(i.Parent),
		Size:          i.Size,
		Agent:         names.TextUTF8(i.Agent()),
		Who:           names.TextUTF8(i.Who()),
	}
	began, hasBegun := i.Created()
	if hasBegun {
		created := written(time.UnixMilli(began))
		line.Created = &created
	}
	return rawjson.AppendLine(dst, line)
}

// textOrNull returns a text for JSON, null for an empty one.
func textOrNull(text string) *string {
	if text == "" {
		return nil
	}
	text = names.TextUTF8(text)
	return &text
}

// IndexSize returns the size of Index in bytes, which is computed once.
func (s *Sessions) IndexSize() int64 {
	s.indexOnce.Do(func() {
		var line []byte
		for _, info := range s.infos {
			line = info.appendLine(line[:0])
			s.indexSize += int64(len(line))
		}
	})
	return s.indexSize
}

// Index returns index.jsonl: a line for each session, the latest modification first.
func (s *Sessions) Index() []byte {
	index := make([]byte, 0, s.IndexSize())
	for _, info := range s.infos {
		index = info.appendLine(index)
	}
	return index
}
