package report

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"sessionfs/sessioncore/internal/rawjson"
)

// Decimal is a number of dollars or requests, in units of 10^-12: an integer of 128 bits. A sum of
// Decimals is exact, and so the same in any order of its parts. The zero value is 0.
type Decimal struct {
	high int64
	low  uint64
}

const (
	// unitsOfOne is how many units 1 has.
	unitsOfOne = 1_000_000_000_000
	// maxWhole is the least number that becomes tooLarge.
	maxWhole = 1 << 63
)

// tooLarge stands for a number that is not finite, or that no Decimal holds. Each sum with it is it.
var tooLarge = Decimal{high: math.MinInt64}

// decimalOf returns the Decimal next to a double, tooLarge for one that is not finite.
func decimalOf(f float64) Decimal {
	if math.IsNaN(f) || math.Abs(f) >= maxWhole {
		return tooLarge
	}
	whole, part := math.Modf(math.Abs(f))
	units := uint64(math.Round(part * unitsOfOne))
	high, low := bits.Mul64(uint64(whole), unitsOfOne)
	low, carry := bits.Add64(low, units, 0)
	d := Decimal{high: int64(high + carry), low: low}
	if f < 0 {
		return d.negative()
	}
	return d
}

// Add returns the sum of d and other.
func (d Decimal) Add(other Decimal) Decimal {
	if d == tooLarge || other == tooLarge {
		return tooLarge
	}
	low, carry := bits.Add64(d.low, other.low, 0)
	high := d.high + other.high + int64(carry)
	isSameSign := (d.high < 0) == (other.high < 0)
	hasTurned := (high < 0) != (d.high < 0) // only an overflow turns the sign of two numbers with the same
	overflows := isSameSign && hasTurned
	if overflows {
		return tooLarge
	}
	return Decimal{high: high, low: low}
}

// minus returns the difference of d and other.
func (d Decimal) minus(other Decimal) Decimal { return d.Add(other.negative()) }

// share returns a part of d, from 0 to 1.
func (d Decimal) share(part float64) Decimal { return decimalOf(d.Float() * part) }

// negative returns -d.
func (d Decimal) negative() Decimal {
	if d == tooLarge {
		return d
	}
	low, borrow := bits.Sub64(0, d.low, 0)
	return Decimal{high: -d.high - int64(borrow), low: low}
}

// isNegative reports whether d is below 0. A number that is too large is not.
func (d Decimal) isNegative() bool { return d.high < 0 && d != tooLarge }

// isPositive reports whether d is above 0.
func (d Decimal) isPositive() bool { return d != Decimal{} && !d.isNegative() }

// Float returns the double next to d, positive infinity if d is too large.
func (d Decimal) Float() float64 {
	switch {
	case d == tooLarge:
		return math.Inf(1)
	case d.isNegative():
		return -d.negative().Float()
	case d.high >= unitsOfOne: // where Div64 would overflow
		units := math.Ldexp(float64(d.high), 64) + float64(d.low)
		return units / unitsOfOne
	}
	whole, part := bits.Div64(uint64(d.high), d.low, unitsOfOne)
	digits := fmt.Sprintf("%d.%012d", whole, part) // parsed as a decimal, so that it is rounded once
	f, _ := strconv.ParseFloat(digits, 64)
	return f
}

// MarshalJSON implements json.Marshaler: the number without noise, null if it is too large.
func (d Decimal) MarshalJSON() ([]byte, error) { return rawjson.AppendNumber(nil, d.Float()), nil }
