package view

import "slices"

const (
	// maxEdits is by how many elements two lists may differ for common to look for all that they share: it takes that many steps for
	// each element, and memory for the square of it.
	maxEdits = 1000
	// maxSteps is how many steps it takes at most: of long lists less edits are found.
	maxSteps = 1 << 23
)

// common returns the pairs of indexes of what two lists have in common, in order, as many as there can be (E. W. Myers, "An
// O(ND) Difference Algorithm"). Of lists that differ too much it returns how they begin and end.
func common[T comparable](a, b []T) (pairs [][2]int) {
	begin, end := 0, 0
	for begin < min(len(a), len(b)) && a[begin] == b[begin] {
		pairs = append(pairs, [2]int{begin, begin})
		begin++
	}
	for end < min(len(a), len(b))-begin && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	for _, p := range shared(a[begin:len(a)-end], b[begin:len(b)-end]) {
		pairs = append(pairs, [2]int{begin + p[0], begin + p[1]})
	}
	for ; end > 0; end-- {
		pairs = append(pairs, [2]int{len(a) - end, len(b) - end})
	}
	return pairs
}

// shared is common for lists that neither begin nor end alike.
func shared[T comparable](a, b []T) (pairs [][2]int) {
	if len(a) == 0 || len(b) == 0 {
		return nil
	}
	middle := min(maxEdits, maxSteps/(len(a)+len(b))) + 1
	reach := make([]int32, 2*middle+1) // how far into a the diagonal k got, at middle+k
	var before [][]int32               // for each number of edits, that of the diagonals around with one edit less
	for d := range middle {
		before = append(before, slices.Clone(reach[middle-d-1:middle+d+2]))
		for k := -d; k <= d; k += 2 {
			x := int(reach[middle+k+step(reach, middle+k, d, k)])
			if step(reach, middle+k, d, k) < 0 {
				x++
			}
			for x < len(a) && x-k < len(b) && a[x] == b[x-k] {
				x++
			}
			if reach[middle+k] = int32(x); x >= len(a) && x-k >= len(b) {
				return trace(before, len(a), len(b))
			}
		}
	}
	return nil
}

// step returns from which side of diagonal k, at reach[at], its d-th edit comes: 1 for an element of b, -1 for one of a.
func step(reach []int32, at, d, k int) int {
	if k == -d || k != d && reach[at-1] < reach[at+1] {
		return 1
	}
	return -1
}

// trace goes back from the ends of the lists.
func trace(before [][]int32, x, y int) (pairs [][2]int) {
	for d, reach := range slices.Backward(before) {
		k := x - y
		side := step(reach, d+1+k, d, k)
		fromX := int(reach[d+1+k+side])
		fromY := fromX - k - side
		if d == 0 {
			fromX, fromY = 0, 0
		}
		for x > fromX && y > fromY {
			x, y = x-1, y-1
			pairs = append(pairs, [2]int{x, y})
		}
		x, y = fromX, fromY
	}
	slices.Reverse(pairs)
	return pairs
}
