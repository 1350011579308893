package claude

import (
	"context"
	"hash/maphash"
	"math"
	"path"
	"slices"
	"strings"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/jsonl"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file finds the original of a fork whose records do not name it: --fork-session copies a
// branch into a new file unchanged (docs/format.md, Claude Code). Sessions of one directory with
// the same first record are compared, once.

// maxForks bounds the compared sessions, each of which is read completely.
const maxForks = 16

// comparison is the result of comparing a session with others.
type comparison struct {
	with   string // the names of all
	parent string
}

// parentOf returns the original of a session that begins with the record first, or "". It compares
// all sessions with that beginning. A list (listed) compares only short ones.
func (p *Projects) parentOf(name, first string, listed bool) (parent string) {
	dir := storage.Dir(name)
	in, err := p.project(dir)
	if err != nil {
		return ""
	}
	forks := slices.Sorted(slices.Values(p.sessionsByFirst(in, dir)[first]))
	if len(forks) < 2 || len(forks) > maxForks+1 {
		return ""
	}
	with := strings.Join(forks, "\n")
	p.mu.Lock()
	known, ok := p.forks[name]
	p.mu.Unlock()
	isLong := func(session string) bool {
		st, err := p.Raw.Stat(path.Join(dir, session+ending))
		return err == nil && st.Size > agents.ShortSize
	}
	if ok && known.with == with || listed && slices.ContainsFunc(forks, isLong) {
		return known.parent
	}
	times := make([]map[uint64]int64, len(forks))
	for i, session := range forks {
		times[i] = p.times(path.Join(dir, session+ending))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, session := range forks {
		now := comparison{with: with}
		most := 0
		for j, other := range forks {
			if likely := compare(times[i], times[j]); j != i && likely > most {
				most = likely
				now.parent = other
			}
		}
		p.forks[path.Join(dir, session+ending)] = now
	}
	return p.forks[name].parent
}

// sessionsByFirst returns the sessions of a project by the uuid of their first record.
func (p *Projects) sessionsByFirst(in *project, dir string) map[string][]string {
	in.once.Do(func() {
		in.byFirst = map[string][]string{}
		for session := range in.agents {
			if uuid := p.first(path.Join(dir, session+ending), "uuid"); uuid != "" {
				in.byFirst[uuid] = append(in.byFirst[uuid], session)
			}
		}
	})
	return in.byFirst
}

// times returns the times in ms of the messages in a session's file, by a hash of their uuids.
func (p *Projects) times(name string) map[uint64]int64 {
	times := map[uint64]int64{}
	p.eachRecord(name, math.MaxInt64, func(u *jsonl.Unit) error {
		r := agents.Object(u.Members)
		if len(r) == 0 { // it is not alone on its line
			r = agents.Read(u.Text)
		}
		uuid, _ := r.Member("uuid").Bytes()
		ms, _, timed := rawjson.ReadTimestamp(r.Member("timestamp"))
		if typ := r.Member("type"); timed && len(uuid) > 0 && (typ.Is("user") || typ.Is("assistant")) {
			times[maphash.Bytes(seed, uuid)] = ms
		}
		return nil
	})
	return times
}

// eachRecord calls f for the records in the first bytes of a session's file, until an error.
func (p *Projects) eachRecord(name string, size int64, f func(u *jsonl.Unit) error) {
	obj, err := p.Open(name)
	if err != nil {
		return
	}
	defer obj.Close()
	if st, err := obj.Stat(); err == nil {
		_, _ = jsonl.Records{}.Load(context.Background(), obj, jsonl.Position{}, min(st.Size, size), func(u *jsonl.Unit) error {
			if u.Kind != jsonl.ObjectUnit {
				return nil
			}
			return f(u)
		})
	}
}

// compare returns how likely the first session is a fork of the second, 0 if it is none: it grows
// with the number of shared messages. A fork has copies of one branch: older messages in only one
// of both were there before the copy. Else the fork is the first to continue, as people continue in
// it at once; but both may be forks of a third session.
func compare(own, theirs map[uint64]int64) (likely int) {
	shared := 0
	last := int64(0)
	for uuid, ms := range own {
		if _, ok := theirs[uuid]; ok {
			shared++
			last = max(last, ms)
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

// firstWithout returns the time of the first message that is not in others, if any.
func firstWithout(times, others map[uint64]int64) (first int64, ok bool) {
	for uuid, ms := range times {
		if _, is := others[uuid]; !is && (!ok || ms < first) {
			first = ms
			ok = true
		}
	}
	return first, ok
}

// first returns a text member of the first record that has it, at the beginning of a file, or "".
func (p *Projects) first(name, member string) string {
	text, _ := p.firsts.Get(p.Raw, name, func(st storage.Stat) (text string, err error) {
		obj, err := p.Raw.Open(name)
		if err != nil {
			return "", err
		}
		defer obj.Close()
		_ = jsonl.LoadFirst(context.Background(), obj, min(st.Size, firstSize), func(u *jsonl.Unit) error {
			record := rawjson.Value(u.Text)             // nil for text that is no object
			if record.Member("forkedFrom").IsObject() { // a fork that names its original is compared with none
				return jsonl.ErrStop
			}
			text, _ = record.Member(member).Text()
			if text != "" {
				return jsonl.ErrStop
			}
			return nil
		})
		if !isName(text) {
			return "", errUnknown
		}
		return text, nil
	})
	return text
}
