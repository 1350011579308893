package listing

import (
	"bytes"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/program"
	"sessionfs/sessioncore/storage"
)

// pi's list reads every file whole. Here only the beginning and the end of a file are read, which is all of a session
// of piWhole bytes; of longer ones a name in the middle is found once the session was opened, and kept (docs/design.md
// section 5).

const (
	// piPart is how much is read at each end. A name is at the beginning if it was given when the session began (after
	// the prompt and the tools, which take some 20 KB), and at the end if it was given a moment ago.
	piPart  = 64 << 10
	piWhole = 2 * piPart
	// piGrowth is how much a file may have grown for all of the growth to be read.
	piGrowth = 1 << 20
)

// isPi reports whether pi's rules hold for a file that begins with prefix, in which neither a title slot nor the header tells.
func isPi(root program.Program, prefix []byte) bool {
	if root == program.OMP {
		return false
	}
	marks := program.Marks(0)
	for _, v := range prefixValues(prefix) {
		marks |= program.MarksOf(v)
	}
	if _, entry, _ := bytes.Cut(prefix, []byte("\n")); marks == 0 && isSystem(entry) {
		marks = program.MarkPi
	}
	return program.OfSession(root, marks) == program.Pi
}

// isSystem reports whether a line that may be cut is a system message with which pi begins a session.
func isSystem(line []byte) bool {
	line, _, _ = bytes.Cut(line, []byte("\n"))
	role := roleOf.FindSubmatch(line)
	return role != nil && string(role[1]) == "system" && (bytes.Contains(line, []byte(`"sections":{`)) || bytes.Contains(line, []byte(`"toolsAdded":[`)))
}

// piParser reads entries of a session as pi's list does.
type piParser struct {
	name     string // of the last session_info
	first    string
	count    int
	activity int64 // the latest time of a message, ms since the epoch
}

// lines reads whole lines.
func (p *piParser) lines(text []byte) {
	for line := range bytes.Lines(text) {
		line = rawjson.AppendUTF8(nil, bytes.TrimSpace(line))
		if v := rawjson.Value(slices.Clip(line)); v.IsObject() && rawjson.IsValidObject(v) {
			p.entry(v)
		}
	}
}

func (p *piParser) entry(v rawjson.Value) {
	switch typ := v.Member("type"); {
	case typ.Is("session_info"):
		name, _ := v.Member("name").Text()
		p.name = rawjson.TrimSpace(name)
	case typ.Is("message"):
		p.count++
		message := v.Member("message")
		role, content := message.Member("role"), message.Member("content")
		if content == nil || !role.Is("user") && !role.Is("assistant") {
			return
		}
		at := message.Member("timestamp")
		if !at.IsNumber() {
			at = v.Member("timestamp")
		}
		if ms, _, ok := sessioncore.Pi.Time(at); ok {
			p.activity = max(p.activity, ms)
		}
		if p.first == "" && role.Is("user") {
			p.first = contentText(content)
		}
	}
}

// readPi completes the Info of a pi session with what is beyond the prefix. old is what was known of the file; it may
// be nil.
func (l *Listing) readPi(obj storage.Object, st storage.Stat, info, old *Info) error {
	var p piParser
	exact, packed := st.Size <= piWhole, storage.IsPacked(obj)
	head := st.Size
	if packed { // of which the end takes unpacking all of it
		head, exact = min(head, piPart), head <= piPart
	} else if !exact {
		head = piPart
	}
	text, err := readPart(obj, 0, head)
	if err != nil {
		return err
	}
	if !exact {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	p.lines(text)
	if !exact {
		known := !packed && old != nil && old.flags&infoPi != 0 && old.flags&infoNamed != 0 && old.Stat.SameObject(st.Token) && old.Stat.Size <= st.Size
		from := st.Size - piPart
		if packed {
			from = st.Size
		}
		if known && st.Size-old.Stat.Size <= piGrowth {
			from = min(from, max(old.Stat.Size-piPart, head))
			exact, p.name = true, old.Title
		}
		if text, err = readPart(obj, from, st.Size-from); err != nil {
			return err
		}
		p.lines(text[bytes.IndexByte(text, '\n')+1:])
		exact = l.indexed(info.Name(), st, &p) || exact
	}
	p.fill(info, exact)
	return nil
}

func readPart(obj storage.Object, off, size int64) ([]byte, error) {
	b := make([]byte, size)
	return b, storage.ReadFull(obj, b, off)
}

// indexed takes the name and the number of messages from the session's index, if that is there.
func (l *Listing) indexed(file string, st storage.Stat, p *piParser) bool {
	snap := l.store.Known(file, st.Token)
	if snap == nil {
		return false
	}
	defer snap.Release()
	name, err := snap.Title()
	if err != nil {
		return false
	}
	p.name, p.count = name, 0
	for e := range sessioncore.Entry(snap.Len()) {
		if snap.Kind(e) == sessioncore.TypeMessage {
			p.count++
		}
	}
	return true
}

// fill sets what was read. exact reports whether the name is certainly the session's.
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
	info.activity = p.activity
	if info.activity == 0 {
		info.activity = info.created
	}
}
