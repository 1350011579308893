package listing

import (
	"cmp"
	"hash/maphash"
	"path"
	"strings"
	"unicode"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

const (
	// prefixSize is how much of a file the client reads to list it, in bytes (docs/format.md, Listing and resuming).
	// What lies behind is not looked at, also where we could: the lists agree.
	prefixSize = 4 << 10
	// maxKeptFirst is how much of a first message is kept in memory in any case, in bytes, and maxKeptLong is
	// how much is kept beyond that, of all sessions together. What is not kept is read again when somebody
	// reads it, so that ten thousand long ones do not fill the memory.
	maxKeptFirst = 1 << 10
	maxKeptLong  = 8 << 20
	// noMessages is the first message of a session without one.
	noMessages = "(no messages)"
)

// firstSeed is drawn anew in each process, so that no first message can be made to look like another one.
var firstSeed = maphash.MakeSeed()

// Info is what the list of sessions tells of one: what the client's list tells of it, from the
// first 4 KB of its file. Texts are WTF-8. It does not change; a later look makes a new one.
//
// It takes about 400 bytes and its texts, in all less than 1 KB for a usual session. Since the texts come
// from 4 KB, it is 14 KB at the very most.
type Info struct {
	// Name is the file's name in the storage.
	Name string
	// Stat is the file's when its prefix was read.
	Stat storage.Stat
	// ID and CWD are those of the header; CWD may be empty.
	ID, CWD string
	// Title is the header's, a title slot's, or a compaction's short summary; "" also where there is none.
	Title string
	// Parent is the header's parentSession; "" also where there is none.
	Parent string
	// MessageCount counts the messages of the prefix.
	MessageCount int

	first    string // the first message, or its beginning
	firstSum uint64 // hash of the whole of it
	lineSize int    // of the line in index.jsonl, in bytes
	created  int64  // ms since the epoch
	flags    infoFlags
}

type infoFlags uint8

const (
	infoTitle    infoFlags = 1 << iota // there is a title, if an empty one
	infoParent                         // likewise
	infoCreated                        // the header's timestamp is a time
	infoCut                            // first is a beginning
	infoSlot                           // a title slot tells the title, or that there is none
	infoSearched                       // the header was found by a search of the text: it may be none
	infoOperator                       // of the operator dialect, whose files lie directly in sessions/
)

// DirName is the path below sessions/ of the directory that shows the session.
func (i *Info) DirName() string { return strings.TrimSuffix(i.Name, sessioncore.FileEnding) }

// BaseName is the file's name without directory and suffix.
func (i *Info) BaseName() string { return path.Base(i.DirName()) }

// compare is the order of the list: most recently modified first. Of those modified in the same moment the
// one with the later name is first, since names begin with the time when the session began.
func (i *Info) compare(other *Info) int {
	return cmp.Or(
		cmp.Compare(other.Stat.Modified, i.Stat.Modified),
		cmp.Compare(path.Base(other.Name), path.Base(i.Name)),
		cmp.Compare(other.Name, i.Name),
	)
}

// readPrefix reads what the client's list looks at of a file. buf has room for prefixSize bytes.
func readPrefix(files storage.Storage, name string, buf []byte) ([]byte, storage.Stat, error) {
	obj, err := files.Open(name)
	if err != nil {
		return nil, storage.Stat{}, err
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return nil, storage.Stat{}, err
	}
	buf = buf[:min(prefixSize, st.Size)]
	return buf, st, storage.ReadFull(obj, buf, 0)
}

// readInfo reads the info of a file; nil where the client does not list it.
func readInfo(files storage.Storage, name string, buf []byte) (*Info, storage.Stat, error) {
	prefix, st, err := readPrefix(files, name, buf)
	if err != nil {
		return nil, st, err
	}
	info := parseInfo(prefix)
	if info == nil || path.Dir(name) == "." && info.flags&infoOperator == 0 {
		return nil, st, nil // omp's sessions lie in directories, and its list does not look elsewhere
	}
	info.Name, info.Stat = name, st
	info.lineSize = len(info.appendLine(nil))
	info.firstSum = maphash.String(firstSeed, info.first)
	return info, st, nil
}

// long is how much is kept of a first message beyond maxKeptFirst, in bytes.
func (i *Info) long() int {
	if i == nil {
		return 0
	}
	return max(0, len(i.first)-maxKeptFirst)
}

// cut keeps no more than the beginning of a long first message. Only for an info that nobody else has yet.
func (i *Info) cut() {
	if i.long() > 0 {
		i.first = strings.Clone(i.first[:maxKeptFirst])
		i.flags |= infoCut
	}
}

// maxDisplayName is how long a display name is, in characters (docs/format.md, Listing and resuming).
const maxDisplayName = 40

// DisplayName is what the session is called in short lists: the title, else the first prompt, else the
// id, else the file's name; of those the first line, without control characters.
func (i *Info) DisplayName() string {
	first := i.first
	if first == noMessages {
		first = ""
	}
	for _, text := range [...]string{i.Title, first, i.ID} {
		if name := displayed(text); name != "" {
			return name
		}
	}
	return displayed(i.BaseName())
}

func displayed(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	out := make([]byte, 0, min(len(line), 4*maxDisplayName))
	room := maxDisplayName
	for b := []byte(strings.TrimSuffix(line, "\r")); len(b) > 0 && room > 0; {
		r, n := rawjson.DecodeRune(b)
		blank := len(out) == 0 && rawjson.TrimSpace(string(b[:n])) == ""
		if !unicode.IsControl(r) && !blank {
			out = append(out, b[:n]...)
			room--
		}
		b = b[n:]
	}
	return rawjson.TrimSpace(string(out))
}
