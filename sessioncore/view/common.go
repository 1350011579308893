package view

import "slices"

const (
	// maxEdits bounds by how many elements two lists may differ if common is to find all that they
	// share: it takes that many steps for each element, and memory for the square of it.
	maxEdits = 1000
	// maxSteps bounds its steps: of long lists fewer edits are found.
	maxSteps = 1 << 23
)

// listChange is a part of two lists: elements that differ, and then equal ones. The lists a b x and a c x are
// two parts: same a; gone b, come c, same x.
type listChange[T any] struct {
	gone []T // elements of the first list alone
	come []T // elements of the second list alone
	same []T // elements of both, as the first list has them
	also []T // the same elements, as the second list has them
}

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
		isEmpty := len(c.gone)+len(c.come)+same.n == 0 // as at the ends of equal lists
		if !isEmpty {
			list = append(list, c)
		}
	}
	return list
}

// commonRun is n elements that two lists have in common, at a of the one and at b of the other.
type commonRun struct {
	a int
	b int
	n int
}

// common returns the runs of elements that two lists share, in order, as many elements as possible
// (E. W. Myers, "An O(ND) Difference Algorithm"), and an empty run at the ends of the lists. Of
// lists that differ too much it returns the common beginning and end.
func common[T comparable](a, b []T) []commonRun {
	begin := 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		begin++
	}
	endA := len(a)
	endB := len(b)
	for min(endA, endB) > begin && a[endA-1] == b[endB-1] {
		endA--
		endB--
	}
	beginning := commonRun{n: begin}
	ending := commonRun{a: endA, b: endB, n: len(a) - endA}
	list := []commonRun{beginning}
	for _, r := range shared(a[begin:endA], b[begin:endB]) {
		r.a += begin
		r.b += begin
		list = append(list, r)
	}
	list = append(list, ending)
	list = slices.DeleteFunc(list, func(r commonRun) bool {
		return r.n == 0
	})
	endsOfBoth := commonRun{a: len(a), b: len(b)}
	return append(list, endsOfBoth)
}

// shared is common for lists that neither begin nor end alike, without the run at their ends. Some runs may be
// empty. It returns nil for lists that differ too much.
//
// A place (x, y) has x elements of a and y of b behind it, and lies on diagonal x-y. An edit passes one element
// of a or of b alone, and so leads to a neighbouring diagonal. For one edit more at a time, shared finds how far
// each diagonal gets, along equal elements, until one reaches the ends of both lists. trace then goes back.
func shared[T comparable](a, b []T) []commonRun {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	middle := min(maxEdits, maxSteps/(len(a)+len(b))) + 1
	reach := make([]int32, 2*middle+1) // the x that diagonal k has reached, at middle+k
	var before [][]int32               // for each number of edits, reach around diagonal 0 with one edit less
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

// step returns the x on diagonal k after the d-th edit, and the diagonal before that edit: the neighbour that
// has reached more. Diagonal 0 is at middle of reach.
func step(reach []int32, middle, d, k int) (x, from int) {
	below := int(reach[middle+k-1])
	above := int(reach[middle+k+1])
	isFromAbove := below < above
	switch k {
	case -d: // the first diagonal has no neighbour below
		isFromAbove = true
	case d: // the last one has none above
		isFromAbove = false
	}
	if isFromAbove {
		return above, k + 1 // an element of b
	}
	return below + 1, k - 1 // an element of a
}

// trace returns the runs of equal elements on the way back from the ends of the lists, at (x, y).
func trace(before [][]int32, x, y int) (list []commonRun) {
	for d, reach := range slices.Backward(before) {
		k := x - y
		begin, from := step(reach, d+1, d, k)
		list = append(list, commonRun{a: begin, b: begin - k, n: x - begin})
		x = int(reach[d+1+from])
		y = x - from
	}
	slices.Reverse(list)
	return list
}

// EachCommon calls f for each line that two lists of lines share, in order, as many as possible. i and j are
// its indexes in a and b.
func EachCommon(a, b []string, f func(i, j int)) {
	for _, r := range common(a, b) {
		for n := range r.n {
			f(r.a+n, r.b+n)
		}
	}
}
