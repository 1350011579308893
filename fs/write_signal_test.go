package fs_test

import (
	"strings"
	"testing"
)

// TestWriteIsNotInterrupted: a signal that the writer handles does not fail its write: programs do not
// expect EINTR of a file. Perl's syswrite does not try again by itself.
func TestWriteIsNotInterrupted(t *testing.T) {
	w := newWriting(t)
	run(t, "perl", "-MTime::HiRes=setitimer,ITIMER_REAL", "-e", `
open my $append, ">>", $ARGV[0] or die $!;
my $signals = 0;
$SIG{ALRM} = sub { $signals++ };
setitimer(ITIMER_REAL, 0.0002, 0.0002);
for (my $n = 0; $n < 300 || $signals < 300; $n++) { syswrite($append, "$ARGV[1]\n") // die "write $n: $!" }
setitimer(ITIMER_REAL, 0);
`, w.in("append"), message(strings.Repeat("x", 100)))
}
