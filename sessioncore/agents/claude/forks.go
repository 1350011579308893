package claude

import (
	"bytes"
	"context"
	"hash/maphash"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
	"sessionfs/sessioncore/storage/foreign"
)

// This file finds what a session was forked from where its records do not name it: --fork-session writes the records of a
// branch into a new file as they are (docs/format.md, Claude Code). Sessions of one directory that begin with the same record
// are compared, once.

// maxForks is how many sessions with one beginning are compared: each is read as a whole.
const maxForks = 16

// compared is what came of comparing a session with others.
type compared struct {
	with   string // the names of all
	parent string
}

// parentOf returns the session of which another one, which begins with the record first, is a fork; "" for none. All sessions
// with this beginning are compared at once. A list (listed) has only short ones compared, which it reads as a whole anyway.
func (p *Projects) parentOf(name, first string, listed bool) (parent string) {
	dir := storage.Dir(name)
	in, err := p.project(dir)
	if err != nil {
		return ""
	}
	family := slices.Sorted(slices.Values(p.beginning(in, dir)[first]))
	if len(family) < 2 || len(family) > maxForks+1 {
		return ""
	}
	with := strings.Join(family, "\n")
	p.mu.Lock()
	known, ok := p.forks[name]
	p.mu.Unlock()
	if ok && known.with == with || listed && p.anyLong(dir, family) {
		return known.parent
	}
	times := make([]map[uint64]int64, len(family))
	for i, session := range family {
		times[i] = p.times(path.Join(dir, session+ending))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, session := range family {
		now, most := compared{with: with}, 0
		for j, other := range family {
			if likely := compare(times[i], times[j]); j != i && likely > most {
				most, now.parent = likely, other
			}
		}
		p.forks[path.Join(dir, session+ending)] = now
	}
	return p.forks[name].parent
}

// anyLong reports whether a list does not read all of one of some sessions.
func (p *Projects) anyLong(dir string, sessions []string) bool {
	return slices.ContainsFunc(sessions, func(session string) bool {
		st, err := p.Files.Stat(path.Join(dir, session+ending))
		return err == nil && st.Size > foreign.ShortSize
	})
}

// beginning returns the sessions of a project by the uuid of their first record.
func (p *Projects) beginning(in *project, dir string) map[string][]string {
	in.once.Do(func() {
		in.begin = map[string][]string{}
		for session := range in.agents {
			if uuid := p.first(path.Join(dir, session+ending), "uuid"); uuid != "" {
				in.begin[uuid] = append(in.begin[uuid], session)
			}
		}
	})
	return in.begin
}

// times returns the times in ms of the messages in a session's file, by a hash of their uuids.
func (p *Projects) times(name string) map[uint64]int64 {
	times := map[uint64]int64{}
	obj, err := p.Files.Open(name)
	if err != nil {
		return times
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return times
	}
	_, _ = jsonl.Load(context.Background(), obj, jsonl.Position{}, st.Size, func(u *jsonl.Unit) error {
		if u.Kind != jsonl.ObjectUnit || !bytes.Contains(u.Text, []byte(`"uuid"`)) {
			return nil
		}
		r := foreign.Read(u.Text)
		uuid, _ := r.Member("uuid").Bytes()
		ms, _, timed := rawjson.ReadTimestamp(r.Member("timestamp"))
		if typ := r.Member("type"); timed && len(uuid) > 0 && (typ.Is("user") || typ.Is("assistant")) {
			times[maphash.Bytes(seed, uuid)] = ms
		}
		return nil
	}) // what was read before an error counts
	return times
}

// compare returns how likely the first session is a fork of the second, 0 if it is none: the more so the more messages they
// share. A fork has copies of one branch: what is older than the last copy and only in one of both was there before. Else the
// fork is the one that went on first, as people go on in it at once; but both may be forks of a third one.
func compare(own, theirs map[uint64]int64) (likely int) {
	shared, last := 0, int64(0)
	for uuid, ms := range own {
		if _, ok := theirs[uuid]; ok {
			shared, last = shared+1, max(last, ms)
		}
	}
	ownFirst, ownAlone := firstWithout(own, theirs)
	theirFirst, theirAlone := firstWithout(theirs, own)
	switch {
	case !ownAlone:
		return 0
	case !theirAlone, theirFirst < last && theirFirst < ownFirst:
		return 2*shared + 1
	case ownFirst < last, ownFirst > theirFirst:
		return 0
	}
	return 2 * shared
}

// firstWithout returns the time of the first message that is not in others. ok is false if there is none.
func firstWithout(times, others map[uint64]int64) (first int64, ok bool) {
	for uuid, ms := range times {
		if _, is := others[uuid]; !is && (!ok || ms < first) {
			first, ok = ms, true
		}
	}
	return first, ok
}

// first returns a text member of the first record in a file that has it, "" if there is none at its beginning.
func (p *Projects) first(name, member string) (text string) {
	st, err := p.Files.Stat(name)
	if err != nil {
		return ""
	}
	p.mu.Lock()
	known := p.firsts[name]
	p.mu.Unlock()
	if known.device == st.Device && known.inode == st.Inode {
		return known.text
	}
	obj, err := p.Files.Open(name)
	if err != nil {
		return ""
	}
	defer obj.Close()
	_ = jsonl.LoadFirst(context.Background(), obj, min(st.Size, firstSize), func(u *jsonl.Unit) error {
		if u.Kind == jsonl.ObjectUnit {
			text, _ = rawjson.Value(u.Text).Member(member).Text()
		}
		if text != "" {
			return jsonl.ErrStop
		}
		return nil
	})
	if !isName(text) {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.firsts[name] = firstText{st.Device, st.Inode, text}
	return text
}

// firstIn returns the uuid of the first record in the head of a file that has one, "" if that alone does not tell.
func firstIn(head []byte) string {
	for line, rest, whole := bytes.Cut(head, []byte{'\n'}); whole && rawjson.IsValidObject(line); line, rest, whole = bytes.Cut(rest, []byte{'\n'}) {
		if uuid, _ := rawjson.Value(line).Member("uuid").Text(); uuid != "" {
			return uuid
		}
	}
	return ""
}
