package agents

import (
	"slices"
	"strconv"
	"strings"
)

// numbers has the numbers of entries by the id of their record, for ids of more than one entry. So
// the next number costs no look at the earlier ones, also in a file of equal ids.
type numbers map[string]*numbersOf

// numbersOf has the numbers of one id.
type numbersOf struct {
	last int   // all up to it are used
	free []int // but these, in order
}

// next returns the first unused number behind another, and uses it. Most records have one entry, so nothing is kept for
// number 1, and next returns it again for the same id: the caller finds that the entry is there.
func (n numbers) next(id string, after int) int {
	used := n[id]
	if used == nil {
		if after == 0 {
			return 1
		}
		used = &numbersOf{}
		n[id] = used
	}
	at, _ := slices.BinarySearch(used.free, after+1)
	if at == len(used.free) {
		used.last = max(used.last, after) + 1
		return used.last
	}
	number := used.free[at]
	if at == 0 {
		used.free = used.free[1:] // without moving the others
	} else {
		used.free = slices.Delete(used.free, at, at+1)
	}
	return number
}

// release makes the number of an entry of the record id unused. It ignores number 1, as nothing is kept of it.
func (n numbers) release(id, entry string) {
	suffix, hasNumber := strings.CutPrefix(entry, id+".")
	number, err := strconv.Atoi(suffix)
	if !hasNumber || err != nil {
		return
	}
	used := n[id]
	if used == nil || number > used.last {
		return
	}
	at, isFree := slices.BinarySearch(used.free, number)
	if !isFree {
		used.free = slices.Insert(used.free, at, number)
	}
}

// numbered returns the id of an entry of a record: the record's for the first one, else with a dot and its number.
func numbered(id string, number int) string {
	if number == 1 {
		return id
	}
	return id + "." + strconv.Itoa(number)
}
