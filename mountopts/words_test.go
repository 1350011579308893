package mountopts

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// valueFlags is a set with a flag of each form.
func valueFlags() *pflag.FlagSet {
	f := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.String("to", "", "copy to `DIR`")
	f.StringP("options", "o", "", "mount `OPTIONS`")
	f.IntP("max", "m", 0, "at most `N`")
	f.BoolP("list", "l", false, "list")
	f.Bool("redact", false, "mask")
	return f
}

// TestValuesAreNoOptions: an option in the place of a value is refused, and a value that is joined to its option, or
// no option, is not.
func TestValuesAreNoOptions(t *testing.T) {
	for _, line := range []string{
		"--to --redact", "--to --redact site", "a --to -l", "--redact --to --nosuch", "-o -x", "-lo --to=a", "--max -5", "-m -5",
		"--to -- a", "-o --", "--to a --to -b", "--options=a -m -l",
	} {
		require.ErrorContains(t, CheckValues(valueFlags(), strings.Split(line, " ")), "needs", line)
	}
	for _, line := range []string{
		"", "-", "--to -", "--to=-x", "--to ./-x", "--to=--redact", "-o=-x", "-o-x", "-lo-x", "-m-5", "-l -l --redact -l",
		"-- --to --redact", "a -- -o -x", "--to a --redact", "-o a -l", "--nosuch -x", "-x --redact", "-xo --redact", "--redact=true -l",
		"-lm 5 -l", "--to", "-o", "--to= -l", "-ox -l", "-é -l", "-lé -l",
	} {
		require.NoError(t, CheckValues(valueFlags(), strings.Split(line, " ")), line)
	}
}

// TestMissingValueNamesTheWay: the refusal says how such a value is written.
func TestMissingValueNamesTheWay(t *testing.T) {
	require.EqualError(t, CheckValues(valueFlags(), []string{"--to", "--redact"}),
		"--to needs DIR, but --redact begins with a dash; a DIR of that name is written ./--redact or --to=--redact")
	require.EqualError(t, CheckValues(valueFlags(), []string{"-m", "-5"}),
		"--max needs N, but -5 begins with a dash; such a value is written --max=-5")
	_, err := Parse([]string{"sessionfs", "-o", "-f", "src", "mnt"})
	require.ErrorContains(t, err, "--options needs OPTIONS")
	_, err = Parse([]string{"sessionfs", "--log-file", "--debug", "mnt"})
	require.ErrorContains(t, err, "./--debug")
}

// FuzzCheckValues compares with the parser: what is not refused gives no option a value that is a
// word with a dash.
func FuzzCheckValues(f *testing.F) {
	f.Add("--to --redact site")
	f.Add("-lo -x --to=-x -- -m -5")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		flags := valueFlags()
		refused := CheckValues(flags, args) != nil
		taken := false
		_ = flags.ParseAll(args, func(_ *pflag.Flag, value string) error {
			isWord := len(value) > 1 && value[0] == '-'
			for _, joined := range args {
				if strings.HasPrefix(joined, "-") && joined != value && strings.HasSuffix(joined, value) {
					isWord = false
				}
			}
			taken = taken || isWord
			return nil
		})
		if taken {
			require.True(t, refused, "%q", args)
		}
	})
}
