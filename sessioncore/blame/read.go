package blame

import (
	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
	"sessionfs/sessioncore/message"
)

// Read returns the changes of a file that the calls in an entry have made; is knows the file by its
// path. A call whose result is an error has made none. The error is one of the storage.
func Read(snap *sessioncore.Snapshot, e sessioncore.Entry, is func(path string) bool) (list []Change, err error) {
	text, err := snap.ShownText(e)
	if err != nil {
		return nil, err
	}
	failed := map[string]bool{}
	var calls []message.Members
	m := message.Read(snap.Message(e, text))
	eachCall(m[message.Content], 0, func(b message.Members) { calls = append(calls, b) })
	for _, call := range calls {
		if id, ok := call[message.ID].Text(); ok {
			failed[id] = false
		}
	}
	if err := readResults(snap, e, failed); err != nil {
		return nil, err
	}
	for _, call := range calls {
		id, _ := call[message.ID].Text()
		tool, _ := call[message.Name].Text()
		if !failed[id] {
			list = append(list, Changes(tool, call[message.Arguments], is)...)
		}
	}
	return list, nil
}

// eachCall calls f for each call of a tool in the content of a message.
func eachCall(content rawjson.Value, depth int, f func(message.Members)) {
	for block := range content.EachElement {
		b := message.Read(block)
		if b.Kind() == message.CallKind {
			f(b)
		}
		if depth < maxDepth {
			eachCall(b[message.Block], depth+1, f)
		}
	}
}

// maxBetween is how many entries behind a call are looked at for its result.
const maxBetween = 1000

// readResults notes which calls of an entry have failed.
func readResults(snap *sessioncore.Snapshot, e sessioncore.Entry, failed map[string]bool) error {
	reader := sessioncore.NewEntryReader(snap)
	left := len(failed)
	for next := e + 1; left > 0 && int(next) < snap.Len() && next <= e+maxBetween; next++ {
		if snap.Role(next) != sessioncore.RoleToolResult {
			continue
		}
		text, err := reader.Read(next)
		if err != nil {
			return err
		}
		m := message.Read(snap.Message(next, text))
		if id, ok := m[message.CallID].Text(); ok {
			if _, asked := failed[id]; asked {
				failed[id] = m[message.IsError].Truthy()
				left--
			}
		}
	}
	return nil
}
