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
// branch into a new file unchanged (docs/format-claude.md). Sessions of one directory with
// the same first record are compared, once.

// maxForks bounds the compared sessions, as each is read completely.
const maxForks = 16

// comparison is the result of comparing a session with others that begin with the same record.
type comparison struct {
	with   string // the names of all compared sessions, a line each
	parent string // the id of the original, "" if the session is no copy
}

// parentOf returns the original of a session that begins with the record first, or "" if it is no copy or the
// original is not known. It compares all sessions with that beginning. A list (listed) compares only short ones,
// and else returns what was found before.
func (p *Projects) parentOf(name, first string, listed bool) (parent string) {
	dir := storage.Dir(name)
	in, err := p.project(dir)
	if err != nil {
		return ""
	}
	forks := slices.Sorted(slices.Values(p.sessionsByFirst(in)[first]))
	if len(forks) < 2 || len(forks) > maxForks+1 { // the session itself is one of them
		return ""
	}
	with := strings.Join(forks, "\n")
	known := p.comparisonOf(name)
	if known.with == with {
		return known.parent
	}
	isLong := func(session string) bool {
		st, err := p.Raw.Stat(in.fileOf(session))
		return err == nil && st.Size > agents.ShortSize
	}
	if listed && slices.ContainsFunc(forks, isLong) {
		return known.parent
	}
	p.compareForks(in, forks)
	return p.comparisonOf(name).parent
}

// comparisonOf returns the result for a session, or the zero value.
func (p *Projects) comparisonOf(name string) comparison {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.forks[name]
}

// compareForks compares the sessions of a project that begin with one record, each with all others. The original
// of a session is the most likely one.
func (p *Projects) compareForks(in *project, forks []string) {
	times := make([]messageTimes, len(forks))
	for i, session := range forks {
		times[i] = p.timesIn(in.fileOf(session))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, session := range forks {
		result := comparison{with: strings.Join(forks, "\n")}
		mostLikely := 0
		for j, other := range forks {
			if j == i {
				continue
			}
			likely := forkLikelihood(times[i], times[j])
			if likely > mostLikely {
				mostLikely = likely
				result.parent = other
			}
		}
		p.forks[in.fileOf(session)] = result
	}
}

// fileOf returns the path of a session's file.
func (in *project) fileOf(session string) string { return path.Join(in.name, session+ending) }

// sessionsByFirst returns the sessions of a project by the uuid of their first record. It reads the beginnings
// of all of them, once.
func (p *Projects) sessionsByFirst(in *project) map[string][]string {
	in.once.Do(func() {
		in.byFirst = map[string][]string{}
		for session := range in.agents {
			uuid := p.first(in.fileOf(session), "uuid")
			if uuid != "" {
				in.byFirst[uuid] = append(in.byFirst[uuid], session)
			}
		}
	})
	return in.byFirst
}

// messageTimes has the times of a session's messages, in ms since the epoch, by a hash of their uuids.
type messageTimes map[uint64]int64

// timesIn returns the times of the messages in a session's file, as far as it can be read.
func (p *Projects) timesIn(name string) messageTimes {
	times := messageTimes{}
	p.eachRecord(name, math.MaxInt64, func(u *jsonl.Unit) error {
		r := agents.Object(u.Members)
		if len(r) == 0 { // it is not alone on its line
			r = agents.Read(u.Text)
		}
		typ := r.Member("type")
		if !typ.Is("user") && !typ.Is("assistant") {
			return nil
		}
		uuid, _ := r.Member("uuid").Bytes()
		ms, _, isTimed := rawjson.ReadTimestamp(r.Member("timestamp"))
		if isTimed && len(uuid) > 0 {
			times[maphash.Bytes(seed, uuid)] = ms
		}
		return nil
	})
	return times
}

// eachRecord calls f for the records that end in the first size bytes of a session's file, until f returns an
// error. It stops without one at a place that cannot be read.
func (p *Projects) eachRecord(name string, size int64, f func(u *jsonl.Unit) error) {
	obj, err := p.Open(name)
	if err != nil {
		return
	}
	defer obj.Close()
	st, err := obj.Stat()
	if err != nil {
		return
	}
	ifRecord := func(u *jsonl.Unit) error {
		if u.Kind != jsonl.ObjectUnit {
			return nil
		}
		return f(u)
	}
	end := min(st.Size, size)
	_, _ = jsonl.Records{}.Load(context.Background(), obj, jsonl.Position{}, end, ifRecord)
}

// forkLikelihood returns how likely the first session is a fork of the second, 0 if it is none. It grows with the
// number of shared messages, which counts double, so that a sure sign adds less than another message does.
//
// A fork has copies of one branch: older messages in only one of both sessions were there before the copy, so that
// session is the original. Without such messages the fork is the session that went on first, as people go on in
// it at once; but both may be forks of a third session.
func forkLikelihood(own, theirs messageTimes) int {
	shared := 0
	lastShared := int64(0)
	for uuid, ms := range own {
		_, isShared := theirs[uuid]
		if isShared {
			shared++
			lastShared = max(lastShared, ms)
		}
	}
	ownFirst, hasOwn := firstWithout(own, theirs)
	theirFirst, hasTheirs := firstWithout(theirs, own)
	switch {
	case !hasOwn:
		return 0 // the other session has all of it, so that one is the copy, or both are the same
	case !hasTheirs:
		return 2*shared + 1 // the other session did not go on
	case theirFirst < lastShared && theirFirst < ownFirst:
		return 2*shared + 1 // the other session has a branch that was not copied
	case ownFirst < lastShared || ownFirst > theirFirst:
		return 0
	}
	return 2 * shared
}

// firstWithout returns the time of the first message that is not in others. ok is false if all are.
func firstWithout(times, others messageTimes) (first int64, ok bool) {
	for uuid, ms := range times {
		_, isShared := others[uuid]
		if isShared {
			continue
		}
		if !ok || ms < first {
			first = ms
		}
		ok = true
	}
	return first, ok
}

// firstSize bounds the read of a first record.
const firstSize = 64 << 10

// first returns a text member of the first record that has it, at the beginning of a file. It returns "" if there
// is none, if it cannot be a file's name, or if the record before it names the original of a fork. A text that is
// found is cached; a file has one member for which it is asked.
func (p *Projects) first(name, member string) string {
	text, _ := p.firsts.Get(p.Raw, name, func(st storage.Stat) (string, error) {
		obj, err := p.Raw.Open(name)
		if err != nil {
			return "", err
		}
		defer obj.Close()
		text := textIn(obj, min(st.Size, firstSize), member)
		if !isName(text) {
			return "", errUnknown
		}
		return text, nil
	})
	return text
}

// textIn is first for the first size bytes of an open file, without the check of the text.
func textIn(obj storage.Object, size int64, member string) (text string) {
	_ = jsonl.LoadFirst(context.Background(), obj, size, func(u *jsonl.Unit) error {
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
	return text
}
