package claude

import (
	"strconv"

	"sessionfs/sessioncore/agents"
	"sessionfs/sessioncore/internal/rawjson"
)

// record is a value of the file. It is valid as long as its agents.Record.
type record struct {
	agents.Object
	message  agents.Object
	line     int64
	typ      rawjson.Value
	uuid     string        // "" if no record can hang on it
	parent   string        // the uuid of its parent, or ""; set by setParent
	copyOf   string        // the id of the entry that it is a copy of: the uuid of a record, or the id in a handover
	copyTime rawjson.Value // the time of that entry, nil if it is the record's
	lines    []int64       // of all records of a queued prompt, its own as the last one; else nil
	follows  bool          // it names no parent, as in files of other programs: it hangs on the entry before it
}

// read sets all of an empty record but its parent.
func (r *record) read(of *agents.Record) {
	r.Object = of.Object
	r.message = of.Inner
	r.line = of.Line
	r.typ = r.Member("type")
	r.uuid, _ = r.Member("uuid").Text()
	r.copyOf, r.copyTime = agents.EntryIn(r.Object)
	if r.copyOf == "" {
		r.copyOf, _ = r.Member("forkedFrom").Member("messageUuid").Text()
	}
}

// id returns the id of a record's first entry. A copy in a fork has the original's id.
func (r *record) id() string {
	switch {
	case r.uuid == "":
		return "l" + strconv.FormatInt(r.line, 10)
	case r.copyOf != "":
		return r.copyOf
	}
	return r.uuid
}

// time returns the time of a record's entries.
func (r *record) time() rawjson.Value {
	if r.copyTime.IsString() {
		return r.copyTime
	}
	return r.Member("timestamp")
}
