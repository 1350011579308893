package message

import "sessionfs/sessioncore/internal/rawjson"

// EachNested calls f for each call that a tool made while it ran, as its result records it: the
// Name, Arguments, IsError, ErrorMessage, and Truncated if the arguments are not all recorded. pi
// records such calls beside the result (docs/format-pi.md), omp's eval the events of its cells.
func EachNested(result *Members, f func(*Members)) {
	details := result[Details]
	var previews map[string]rawjson.Value // of the arguments, by call
	nested := result[NestedCalls].Member("calls")
	for v := range nested.EachElement {
		call := Read(v)
		if call[Arguments].Missing() {
			if previews == nil {
				previews = previewsIn(details)
			}
			id, _ := call[ID].Text()
			call[Arguments] = previews[id]
			delete(previews, id) // each serves one call, whatever ids repeat
			call[Truncated] = rawjson.Value("true")
		}
		if v.Member("status").Is("error") {
			call[IsError] = rawjson.Value("true")
		}
		call[ErrorMessage] = v.Member("error")
		f(&call)
	}
	eachEvent(details, f)
}

// MayNest reports whether the details of a result may have calls that a tool made while it ran.
func MayNest(details rawjson.Value) bool {
	for m := range details.EachMember {
		if m.KeyIs("statusEvents") || m.KeyIs("cells") {
			return true
		}
	}
	return false
}

// eachEvent calls f for each event in the details of a result. The cells of the tool have the same
// events again.
func eachEvent(details rawjson.Value, f func(*Members)) {
	events := details.Member("statusEvents")
	if !events.Missing() {
		eachEventIn(events, f)
		return
	}
	for cell := range details.Member("cells").EachElement {
		eachEventIn(cell.Member("statusEvents"), f)
	}
}

// eachEventIn calls f for each event of a list. An event has the name of the tool, and its arguments
// as members.
func eachEventIn(events rawjson.Value, f func(*Members)) {
	for event := range events.EachElement {
		var call Members
		arguments := []byte{'{'}
		for m := range event.EachMember {
			switch {
			case m.KeyIs("op"):
				call[Name] = m.Value
			case m.KeyIs("error"):
				call[ErrorMessage] = m.Value
				call[IsError] = rawjson.Value("true")
			case m.KeyIs("hasError"):
				call[IsError] = m.Value
			default:
				if len(arguments) > 1 {
					arguments = append(arguments, ',')
				}
				arguments = append(arguments, m.Key...)
				arguments = append(arguments, ':')
				arguments = append(arguments, m.Value...)
			}
		}
		if call[Name].IsString() {
			call[Arguments] = append(arguments, '}')
			f(&call)
		}
	}
}

// previewsIn returns the beginnings of the arguments of calls in the details of a result, by call: each an object, or nil
// for one that tells nothing.
func previewsIn(details rawjson.Value) map[string]rawjson.Value {
	previews := map[string]rawjson.Value{}
	for call := range details.Member("calls").EachElement {
		id, _ := call.Member("id").Text()
		text, ok := call.Member("args").Bytes()
		if ok {
			previews[id] = wholeMember(text)
		}
	}
	return previews
}

// wholeMember returns a text if it is an object. Of an object that is cut off it returns one with the
// first member, if that is a whole string, else nil.
func wholeMember(text []byte) rawjson.Value {
	if rawjson.IsValidObject(text) {
		return text
	}
	keyEnd, hasKey := skipStringBehind(text, 0, '{')
	if !hasKey {
		return nil
	}
	end, hasValue := skipStringBehind(text, keyEnd, ':')
	if !hasValue {
		return nil
	}
	object := append(text[:end:end], '}') // a copy, as the text goes on
	if !rawjson.IsValidObject(object) {
		return nil
	}
	return object
}

// skipStringBehind returns the end of the string that follows a sign at an offset of a JSON text. ok is false if the text
// does not go on so, or ends within the string.
func skipStringBehind(text []byte, at int, sign byte) (end int, ok bool) {
	at = rawjson.SkipSpace(text, at)
	if at >= len(text) || text[at] != sign {
		return 0, false
	}
	quote := rawjson.SkipSpace(text, at+1)
	if quote >= len(text) || text[quote] != '"' {
		return 0, false
	}
	var s rawjson.Scanner
	end, status := s.SkipString(text, quote+1)
	return end, status == rawjson.OK
}
