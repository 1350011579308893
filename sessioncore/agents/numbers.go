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

// next returns the first unused number behind another, and uses it.
func (n numbers) next(id string, after int) int {
	of := n[id]
	switch {
	case of == nil && after == 0:
		return 1
	case of == nil:
		of = &numbersOf{}
		n[id] = of
	}
	at, _ := slices.BinarySearch(of.free, after+1)
	if at < len(of.free) {
		number := of.free[at]
		if at == 0 {
			of.free = of.free[1:]
		} else {
			of.free = slices.Delete(of.free, at, at+1)
		}
		return number
	}
	of.last = max(of.last, after) + 1
	return of.last
}

// release makes the number of an entry's id unused.
func (n numbers) release(id, entry string) {
	suffix, ok := strings.CutPrefix(entry, id+".")
	number, err := strconv.Atoi(suffix)
	of := n[id]
	if !ok || err != nil || of == nil || number > of.last {
		return
	}
	at, isFree := slices.BinarySearch(of.free, number)
	if !isFree {
		of.free = slices.Insert(of.free, at, number)
	}
}

// numbered returns the id of an entry of a record.
func numbered(id string, number int) string {
	if number == 1 {
		return id
	}
	return id + "." + strconv.Itoa(number)
}
