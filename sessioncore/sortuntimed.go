package sessioncore

import (
	"math/bits"
	"slices"
)

// Siblings with an unreadable timestamp compare as equal to all others, and such comparisons do not
// agree with each other: what comes out depends on the algorithm. This is the one of the client's
// engine, as observed: runs that are found or made by binary insertion, merged in the order that their
// powers tell (Munro and Wild, "Nearly-Optimal Mergesorts", 2018). Its galloping is left out; it shows
// in about one of a hundred lists of more than eight siblings of which a fifth have no time.

const (
	insertWhole = 8  // shorter lists are sorted by insertion alone
	shortRun    = 8  // runs up to this length are made longer by insertion
	madeRun     = 64 // up to this length
)

// sortedRun is a sorted stretch of a list.
type sortedRun struct{ start, end, power int }

func sortLikeClient(a []Entry, less func(a, b Entry) bool) {
	if len(a) < insertWhole {
		insertInto(a, 1, less)
		return
	}
	var stack []sortedRun
	mergeTop := func(right sortedRun) sortedRun {
		left := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		mergeRuns(a[left.start:right.end], right.start-left.start, less)
		return sortedRun{start: left.start, end: right.end}
	}
	run := sortedRun{end: nextRun(a, 0, less)}
	for run.end < len(a) {
		next := sortedRun{start: run.end, end: nextRun(a, run.end, less)}
		power := runPower(run.start, next.start, next.end, len(a))
		for len(stack) > 0 && stack[len(stack)-1].power > power {
			run = mergeTop(run)
		}
		run.power = power
		stack = append(stack, run)
		run = next
	}
	for len(stack) > 0 {
		run = mergeTop(run)
	}
}

// insertInto sorts a, of which the first n are sorted.
func insertInto(a []Entry, n int, less func(a, b Entry) bool) {
	for i := n; i < len(a); i++ {
		v, left, right := a[i], 0, i
		for left < right {
			if m := (left + right) / 2; less(v, a[m]) {
				right = m
			} else {
				left = m + 1
			}
		}
		copy(a[left+1:i+1], a[left:i])
		a[left] = v
	}
}

// nextRun finds the run that begins at b, or makes one, and returns its end.
func nextRun(a []Entry, b int, less func(a, b Entry) bool) int {
	e := b + 1
	if e < len(a) && less(a[e], a[b]) {
		for e < len(a) && less(a[e], a[e-1]) {
			e++
		}
		slices.Reverse(a[b:e])
	} else {
		for e < len(a) && !less(a[e], a[e-1]) {
			e++
		}
	}
	if e-b <= shortRun {
		to := min(b+madeRun, len(a))
		insertInto(a[b:to], e-b, less)
		e = to
	}
	for e < len(a) && !less(a[e], a[e-1]) {
		e++
	}
	return e
}

// runPower is the depth in a balanced tree over n elements at which two neighbouring runs meet.
func runPower(start, middle, end, n int) int {
	place := func(sum int) uint64 {
		hi, lo := bits.Mul64(uint64(sum), 1<<62)
		q, _ := bits.Div64(hi, lo, uint64(n))
		return q
	}
	return bits.LeadingZeros64(place(start+middle) ^ place(middle+end))
}

// mergeRuns merges a[:middle] and a[middle:].
func mergeRuns(a []Entry, middle int, less func(a, b Entry) bool) {
	left, right := slices.Clone(a[:middle]), a[middle:]
	for i := range a {
		if len(left) == 0 {
			return // the rest stands where it belongs
		}
		if len(right) > 0 && less(right[0], left[0]) {
			a[i], right = right[0], right[1:]
		} else {
			a[i], left = left[0], left[1:]
		}
	}
}
