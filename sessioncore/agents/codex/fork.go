package codex

import (
	"io"
	"path"
	"strings"
	"time"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/storage"
)

// This file makes a fork: a new rollout with the lines of another one up to an entry. A rollout is a
// log, so that lines in it roll back turns and compact in the fork as they did in the original
// (docs/format.md, Forks of other agents). Codex 0.171.0 and 0.142.3 were driven.

const (
	// fileTime is the form of the time in a rollout's name, which is local.
	fileTime = "2006-01-02T15-04-05"
	// dayDir is the form of the directory of a day.
	dayDir = "2006/01/02"
)

// Fork implements agents.Forker. The origin is the rollout that has the entry: the session's own, or one that the
// session goes on from.
func (h *Home) Fork(request *agents.ForkRequest, out io.Writer) (agents.ForkPlace, error) {
	place := newPlace(request.ID, request.Time)
	if request.Title != "" {
		return place, agents.NoFork("Codex keeps names in a file of its own, which is not written: leave the name out")
	}
	obj, err := h.openOrigin(request)
	if err != nil {
		return place, err
	}
	defer obj.Close()
	isFirst := true
	var numbers numbering
	request.InnerKey = "payload"
	err = agents.CopyRecords(obj, request, out, func(record *agents.Record) (rawjson.Value, error) {
		numbers.add(record.Object, record.Inner, record.Line, int64(len(record.Value)))
		if !isFirst {
			return record.Value, nil
		}
		isFirst = false
		return forkMeta(record.Value, request)
	})
	if err != nil {
		return place, err
	}
	why := numbers.refusal()
	if why != "" {
		return place, agents.NoFork("Codex would not resume it: %s", why)
	}
	return place, nil
}

// newPlace returns the place of a new rollout.
func newPlace(id string, at time.Time) agents.ForkPlace {
	local := at.Local()
	base := prefix + local.Format(fileTime) + "-" + id + ending
	return agents.ForkPlace{Dir: sessionsDir, File: path.Join(local.Format(dayDir), base)}
}

// openOrigin opens the rollout that has the last entry of a fork.
func (h *Home) openOrigin(request *agents.ForkRequest) (storage.Object, error) {
	file := request.Last().File
	if file == "" {
		return h.Open(request.Name)
	}
	root := strings.TrimSuffix(h.root, "/") + "/"
	name, isBelow := strings.CutPrefix(file, root)
	if !isBelow {
		return nil, agents.NoFork("the entry is in %s, outside this directory of Codex", file)
	}
	return h.Raw.Open(name)
}

// forkMeta returns the first line of a fork: the first line of its origin with another id, as a rollout that a
// person began, since the client's picker shows no others.
func forkMeta(line rawjson.Value, request *agents.ForkRequest) (rawjson.Value, error) {
	payload := line.Member("payload")
	old, _ := payload.Member("id").Text()
	if !line.Member("type").Is("session_meta") || old == "" {
		return nil, agents.NoFork("the rollout does not begin with its session_meta")
	}
	if payload.Member("source").IsObject() {
		return nil, agents.NoFork("a subagent's session cannot be resumed")
	}
	id := string(rawjson.AppendQuoted(nil, request.ID))
	now := `"` + request.Time.UTC().Format(rawjson.TimestampLayout) + `"`
	fields := []rawjson.Field{
		{Key: "id", JSON: id},
		{Key: "forked_from_id", JSON: string(rawjson.AppendQuoted(nil, old))},
		{Key: "timestamp", JSON: now},
		{Key: "source", JSON: `"cli"`},
		{Key: "originator", JSON: `"codex-tui"`},
	}
	if !payload.Member("session_id").Missing() {
		fields = append(fields, rawjson.Field{Key: "session_id", JSON: id})
	}
	changed := rawjson.SetMembers(payload, fields)
	return rawjson.SetMembers(line, []rawjson.Field{
		{Key: "timestamp", JSON: now},
		{Key: "payload", JSON: string(changed)},
	}), nil
}

var _ agents.Forker = (*Home)(nil)
