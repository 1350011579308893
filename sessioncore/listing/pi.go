package listing

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// pi's list reads complete files. Here only both ends of a file are read, which is all of a session
// of piWhole bytes; for longer ones a name in the middle is found when the session is opened, and
// kept (docs/design.md section 5).

const (
	// piPart is the size of the read at each end. A name is at the beginning if it is of the
	// session's begin (after the prompt and the tools, some 20 KB), and at the end if it is recent.
	piPart  = 64 << 10
	piWhole = 2 * piPart
	// piGrowth bounds the growth of a file that is read completely.
	piGrowth = 1 << 20
)

// isPi reports whether pi's rules hold for a file, by its directory and prefix.
func isPi(root sessioncore.Program, prefix []byte) bool {
	if root == sessioncore.ByOMP {
		return false
	}
	marks := sessioncore.Marks(0)
	for _, v := range prefixValues(prefix) {
		marks |= sessioncore.MarksOf(v)
	}
	_, entry, _ := bytes.Cut(prefix, []byte("\n"))
	if marks == 0 && isSystem(entry) {
		marks = sessioncore.MarkPi
	}
	return sessioncore.ProgramOfSession(root, marks) == sessioncore.ByPi
}

// isSystem reports whether a line, which may be cut, is a system message that begins pi's session.
func isSystem(line []byte) bool {
	line, _, _ = bytes.Cut(line, []byte("\n"))
	role := rolePattern.FindSubmatch(line)
	if role == nil || string(role[1]) != "system" {
		return false
	}
	hasSections := bytes.Contains(line, []byte(`"sections":{`))
	return hasSections || bytes.Contains(line, []byte(`"toolsAdded":[`))
}

// piParser parses entries like pi's list.
type piParser struct {
	name     string // of the last session_info
	first    string
	asked    string // the words of the first request
	count    int
	activity int64 // the latest time of a message, ms since the epoch
}

// lines parses complete lines.
func (p *piParser) lines(text []byte) {
	for line := range bytes.Lines(text) {
		line = rawjson.AppendUTF8(nil, bytes.TrimSpace(line))
		v := rawjson.Value(slices.Clip(line))
		if v.IsObject() && rawjson.IsValidObject(v) {
			p.entry(v)
		}
	}
}

// entry parses an entry: a name, or a message.
func (p *piParser) entry(v rawjson.Value) {
	typ := v.Member("type")
	switch {
	case typ.Is("session_info"):
		name, _ := v.Member("name").Text()
		p.name = rawjson.TrimSpace(name)
	case typ.Is("message"):
		p.message(v)
	}
}

// message parses an entry with a message.
func (p *piParser) message(entry rawjson.Value) {
	p.count++
	m := entry.Member("message")
	role := m.Member("role")
	content := m.Member("content")
	isSpoken := role.Is("user") || role.Is("assistant")
	if content == nil || !isSpoken {
		return
	}
	at := m.Member("timestamp")
	if !at.IsNumber() {
		at = entry.Member("timestamp")
	}
	ms, _, isTime := sessioncore.Pi.Time(at)
	if isTime {
		p.activity = max(p.activity, ms)
	}
	if p.asked == "" {
		p.asked = requestText(m)
	}
	if p.first == "" && role.Is("user") {
		p.first = contentText(content)
	}
}

// readPi completes the Info of a pi session in the state st with facts beyond the prefix. old is the last Info, or nil. It
// reads all of a short file. Of a longer one it reads the beginning and the end, or, if old has the name up to
// a former size, the beginning and all that came since:
//
//	|-- piPart --|                              |-- piPart --|    nothing is known
//	|-- piPart --|          |-- since old.Size, and piPart before it --|
func (l *Listing) readPi(obj storage.Object, st storage.Stat, info, old *Info) error {
	isPacked := storage.IsPacked(obj)
	whole := int64(piWhole)
	if isPacked { // a read of its end unpacks all of it
		whole = piPart
	}
	var p piParser
	if st.Size <= whole {
		text, err := readPart(obj, 0, st.Size)
		if err != nil {
			return err
		}
		p.lines(text)
		p.fill(info, true)
		return nil
	}
	head, err := readPart(obj, 0, piPart)
	if err != nil {
		return err
	}
	wholeLines := bytes.LastIndexByte(head, '\n') + 1
	p.lines(head[:wholeLines])
	from := st.Size - piPart
	if isPacked {
		from = st.Size // nothing: a read of its end would unpack all of it
	}
	isNamed := !isPacked && old != nil && old.isNamedAt(st)
	if isNamed {
		p.name = old.Title
		from = min(from, max(old.Stat.Size-piPart, piPart))
	}
	tail, err := readPart(obj, from, st.Size-from)
	if err != nil {
		return err
	}
	_, uncut, _ := bytes.Cut(tail, []byte{'\n'}) // the first line is cut
	p.lines(uncut)
	isIndexed := l.readIndexed(info.Name(), st, &p)
	p.fill(info, isNamed || isIndexed)
	return nil
}

// isNamedAt reports whether the Info has the name of a pi session up to its size, and the file has only grown
// since, by at most piGrowth.
func (i *Info) isNamedAt(st storage.Stat) bool {
	isNamed := i.flags&infoPi != 0 && i.flags&infoNamed != 0
	if !isNamed || !i.Stat.SameObject(st.Token) {
		return false
	}
	growth := st.Size - i.Stat.Size
	return growth >= 0 && growth <= piGrowth
}

// readPart reads size bytes from an offset on.
func readPart(obj storage.Object, off, size int64) ([]byte, error) {
	b := make([]byte, size)
	return b, storage.ReadFull(obj, b, off)
}

// readIndexed takes the name and the number of messages from the session's index. It returns false if there
// is none in memory.
func (l *Listing) readIndexed(file string, st storage.Stat, p *piParser) bool {
	snap := l.store.Known(file, st.Token)
	if snap == nil {
		return false
	}
	defer snap.Release()
	name, err := snap.Title()
	if err != nil {
		return false
	}
	p.name = name
	p.count = 0
	for e := range sessioncore.Entry(snap.Len()) {
		if snap.Kind(e) == sessioncore.TypeMessage {
			p.count++
		}
	}
	return true
}

// fill copies the facts to info. exact reports whether the name is certainly the session's.
func (p *piParser) fill(info *Info, exact bool) {
	info.flags |= infoPi
	if exact {
		info.flags |= infoNamed
	}
	info.Title = p.name
	info.MessageCount = p.count
	info.first = p.first
	if p.first == "" {
		info.first = noMessages
	}
	info.asked = p.asked
	info.shareFirst(p.first)
	info.activity = p.activity
	if p.activity == 0 {
		info.activity = info.created
	}
}
