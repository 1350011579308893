package main

import (
	"math"
	"math/rand/v2"
	"strings"
)

// text makes the usual content of sessions: source code and tool output, as it stands inside a JSON string.
// A reader of JSON is slowed by the bytes that it must look at twice, so their number follows a published
// session (2.4 MB): an escape every 16 bytes (line breaks every 49, quotes every 182, for the rest tabs),
// 0.6 % of the bytes above 0x7f.
type text []string // escaped lines, each with its \n

const textLines = 8192

var words = strings.Fields(`the session entry reader index file line offset size error return if for range func
	type struct string bytes buffer append nil true false import const package context message role user assistant
	tool result content parent branch label leaf value object member update render write open close lookup mount
	daemon kernel cache page token model usage total input output test run build commit change`)

// codeLine makes one line: two tabs on average, about forty bytes of words, now and then a string or a drawn rule.
func codeLine(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString(strings.Repeat(`\t`, rng.IntN(5)))
	for n := 3 + rng.IntN(8); n > 0; n-- {
		b.WriteString(words[rng.IntN(len(words))])
		b.WriteByte(" (.,_=:)"[rng.IntN(8)])
	}
	if rng.IntN(7) == 0 {
		b.WriteString(`\"` + words[rng.IntN(len(words))] + `\"`)
	}
	if rng.IntN(60) == 0 {
		b.WriteString(strings.Repeat("─", 6))
	}
	b.WriteString(`\n`)
	return b.String()
}

// draw returns about n bytes of text: at least a line.
func (t text) draw(rng *rand.Rand, n int) []byte {
	at := rng.IntN(len(t))
	drawn := []byte(t[at])
	for len(drawn) < n {
		at = (at + 1) % len(t)
		drawn = append(drawn, t[at]...)
	}
	return drawn
}

// medianOfMean is the median of sizes as a part of their mean, as in reported stores.
const medianOfMean = 0.4

// sizes draws n sizes, log-normal, that sum up to about total.
func sizes(rng *rand.Rand, n, total int) []int {
	sigma := math.Sqrt(2 * math.Log(1/medianOfMean))
	drawn := make([]float64, n)
	sum := 0.0
	for i := range drawn {
		drawn[i] = math.Exp(sigma * rng.NormFloat64())
		sum += drawn[i]
	}
	out := make([]int, n)
	for i, d := range drawn {
		out[i] = int(d / sum * float64(total))
	}
	return out
}
