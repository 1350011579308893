package view

import "slices"

const (
	// maxEdits bounds by how many elements two lists may differ if common is to find all that they
	// share: it takes that many steps for each element, and memory for the square of it.
	maxEdits = 1000
	// maxSteps bounds its steps: of long lists fewer edits are found.
	maxSteps = 1 << 23
)

// listChange is a part of two lists: elements of the first alone, elements of the second alone, and
// elements of both, as each has them.
type listChange[T any] struct{ gone, come, same, also []T }

// changes returns how one list becomes another, by keys of their elements.
func changes[T any, K comparable](a, b []T, key func(T) K) (list []listChange[T]) {
	keysOf := func(list []T) []K {
		keys := make([]K, len(list))
		for i, element := range list {
			keys[i] = key(element)
		}
		return keys
	}
	i := 0
	j := 0
	for _, same := range common(keysOf(a), keysOf(b)) {
		c := listChange[T]{
			gone: a[i:same.a],
			come: b[j:same.b],
			same: a[same.a : same.a+same.n],
			also: b[same.b : same.b+same.n],
		}
		i = same.a + same.n
		j = same.b + same.n
		if len(c.gone)+len(c.come)+same.n > 0 {
			list = append(list, c)
		}
	}
	return list
}

// commonRun is n elements that two lists have in common, at a of the one and at b of the other.
type commonRun struct{ a, b, n int }

// common returns the runs of elements that two lists share, in order, as many elements as possible
// (E. W. Myers, "An O(ND) Difference Algorithm"), and an empty run at the ends of the lists. Of
// lists that differ too much it returns the common beginning and end.
func common[T comparable](a, b []T) []commonRun {
	begin := 0
	end := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	list := []commonRun{{0, 0, begin}}
	for _, r := range shared(a[begin:len(a)-end], b[begin:len(b)-end]) {
		list = append(list, commonRun{begin + r.a, begin + r.b, r.n})
	}
	list = append(list, commonRun{len(a) - end, len(b) - end, end})
	list = slices.DeleteFunc(list, func(r commonRun) bool {
		return r.n == 0
	})
	return append(list, commonRun{len(a), len(b), 0})
}

// shared is common for lists that neither begin nor end alike. Some runs may be empty.
func shared[T comparable](a, b []T) []commonRun {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	middle := min(maxEdits, maxSteps/(len(a)+len(b))) + 1
	reach := make([]int32, 2*middle+1) // how far into a the diagonal k got, at middle+k
	var before [][]int32               // for each number of edits, that of the diagonals around with one edit less
	for d := range middle {
		before = append(before, slices.Clone(reach[middle-d-1:middle+d+2]))
		for k := -d; k <= d; k += 2 {
			x, _ := step(reach, middle, d, k)
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			reach[middle+k] = int32(x)
			if x >= len(a) && x-k >= len(b) {
				return trace(before, len(a), len(b))
			}
		}
	}
	return nil
}

// step returns the place on diagonal k to which the d-th edit leads, and the diagonal from which it
// comes. Diagonal 0 is at middle of reach.
func step(reach []int32, middle, d, k int) (x, from int) {
	if k == -d || k != d && reach[middle+k-1] < reach[middle+k+1] {
		return int(reach[middle+k+1]), k + 1 // an element of b
	}
	return int(reach[middle+k-1]) + 1, k - 1 // an element of a
}

// trace goes back from the ends of the lists.
func trace(before [][]int32, x, y int) (list []commonRun) {
	for d, reach := range slices.Backward(before) {
		begin, from := step(reach, d+1, d, x-y)
		list = append(list, commonRun{begin, begin - (x - y), x - begin})
		x = int(reach[d+1+from])
		y = x - from
	}
	slices.Reverse(list)
	return list
}

// EachCommon calls f for each line that two lists of lines share, in order, as many as possible:
// with its number in the one and in the other.
func EachCommon(a, b []string, f func(i, j int)) {
	for _, r := range common(a, b) {
		for n := range r.n {
			f(r.a+n, r.b+n)
		}
	}
}
