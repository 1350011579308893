package rawjson

import (
	"encoding/json"
	"math"
)

// AppendNumber appends a double as JavaScript's JSON.stringify writes it: the shortest text that reads
// back as the same double, never -0, and null if it is not finite.
func AppendNumber(dst []byte, f float64) []byte {
	if math.IsInf(f, 0) || math.IsNaN(f) {
		return append(dst, "null"...)
	}
	text, _ := json.Marshal(f + 0) // -0 + 0 is 0; a finite double cannot fail
	return append(dst, text...)
}
