package writer

import (
	"path"
	"slices"

	"sessionfs/sessioncore"
	"sessionfs/sessioncore/internal/rawjson"
)

// previousFilesKey is the member of omp's header with the paths that the file had before it was moved. Clients write it
// from 18 on.
const previousFilesKey = "previousSessionFiles"

// previousFilesRules are the rules for that member.
var previousFilesRules = []fieldRule{{key: previousFilesKey, kinds: rawjson.Array, elements: rawjson.String}}

// cwdMembers returns the members of the header that change when the session gets a working directory and its file the
// name to.
func (c *change) cwdMembers(header, slot rawjson.Value, cwd, to string) (set []objectMember) {
	if old, isText := header.Member("cwd").Text(); isText && old == cwd && to == c.s.Name() {
		return nil // it is there
	} else if !isText || old != cwd {
		set = append(set, objectMember{"cwd", string(rawjson.AppendQuoted(nil, cwd))})
	}
	if c.snap.Dialect() != sessioncore.OMP {
		return set
	}
	if to != c.s.Name() && (slot != nil || !header.Member(previousFilesKey).Missing()) {
		if m, ok := addPrevious(header, path.Join(c.w.opts.Root, c.s.Name())); ok {
			set = append(set, m)
		}
	}
	if m, ok := withoutDirectory(header, cwd); ok {
		set = append(set, m)
	}
	return set
}

// addPrevious adds a path to the previous ones, unless it is among them.
func addPrevious(header rawjson.Value, file string) (objectMember, bool) {
	var files []string
	if check(header, "", previousFilesRules) == nil {
		files = texts(header.Member(previousFilesKey))
	}
	return objectMember{previousFilesKey, quotedList(append(files, file))}, !slices.Contains(files, file)
}

// withoutDirectory removes the working directory from the further ones, and these if none is left: the client does so
// at each move.
func withoutDirectory(header rawjson.Value, cwd string) (objectMember, bool) {
	if check(header, "", directoriesRules) != nil {
		return objectMember{}, false // there are none, or the client cannot open the session
	}
	all := texts(header.Member(directoriesKey))
	rest := slices.DeleteFunc(slices.Clone(all), func(dir string) bool { return dir == cwd })
	m := objectMember{key: directoriesKey}
	if len(rest) > 0 {
		m.json = quotedList(rest)
	}
	return m, len(rest) == 0 || len(rest) < len(all)
}

// texts returns the strings in an array.
func texts(array rawjson.Value) (all []string) {
	array.EachElement(func(v rawjson.Value, _ int) bool {
		text, _ := v.Text()
		all = append(all, text)
		return true
	})
	return all
}

// quotedList returns an array of strings as JSON.
func quotedList(all []string) string {
	list := []byte{'['}
	for i, text := range all {
		if i > 0 {
			list = append(list, ',')
		}
		list = rawjson.AppendQuoted(list, text)
	}
	return string(append(list, ']'))
}
