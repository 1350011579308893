package report

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// UnmarshalJSON lets tests read what was written.
func (d *Decimal) UnmarshalJSON(text []byte) error {
	var f float64
	err := json.Unmarshal(text, &f)
	*d = decimalOf(f)
	return err
}

// TestDecimals: numbers are printed as people write them, and null where they are no numbers.
func TestDecimals(t *testing.T) {
	for want, f := range map[string]float64{
		"0": 1e-13, "-0.1": -0.1, "0.65683485": 0.6568348500000001, "0.71463995": 0.7146399499999999, "1e-12": 1e-12, "12345.678": 12345.678,
		"-9007199254740993.5": -9007199254740993.5, "9000000000000000000": 9e18, "null": 1 << 63, "0.000001": 1e-6,
	} {
		text, err := decimalOf(f).MarshalJSON()
		require.NoError(t, err)
		var number any
		require.NoError(t, json.Unmarshal([]byte(want), &number))
		again, err := json.Marshal(number)
		require.NoError(t, err)
		require.Equal(t, string(again), string(text))
	}
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1 << 63} {
		require.Equal(t, tooLarge, decimalOf(f))
	}
}

// TestDecimalSums: a sum is that of its parts in any order, also over 64 bits and below 0.
func TestDecimalSums(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 1))
	for _, most := range []float64{1, 1e4, 1e9, 9e18} {
		parts := make([]Decimal, 200)
		for i := range parts {
			parts[i] = decimalOf((rnd.Float64()*2 - 1) * most)
		}
		add := func() (sum Decimal) {
			for _, p := range parts {
				sum = sum.Add(p)
			}
			return sum
		}
		sum := add()
		for range 20 {
			rnd.Shuffle(len(parts), func(a, b int) { parts[a], parts[b] = parts[b], parts[a] })
			require.Equal(t, sum, add())
		}
		for _, p := range parts {
			sum = sum.minus(p)
		}
		require.Equal(t, Decimal{}, sum)
	}
	large := decimalOf(9e18)
	sum := large
	for range 24 {
		sum = sum.Add(sum)
	}
	require.InEpsilon(t, 9e18*(1<<24), sum.Float(), 1e-15)
	require.InEpsilon(t, -9e18*(1<<24), sum.negative().Float(), 1e-15)
	require.Equal(t, tooLarge, sum.Add(sum))
	require.Equal(t, tooLarge, tooLarge.Add(large.negative()))
	require.Equal(t, tooLarge, large.minus(tooLarge))
	require.True(t, tooLarge.isPositive() && large.isPositive() && large.negative().isNegative())
	require.False(t, tooLarge.isNegative() || Decimal{}.isPositive() || Decimal{}.isNegative())
	require.True(t, math.IsInf(tooLarge.Float(), 1))
}
