package mountopts

import (
	"fmt"
	"strings"
)

// Usage is the help text. Flags and options come from the lists that the parser uses.
func Usage() string {
	var b strings.Builder
	b.WriteString(`Usage: sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT
       sessionfs --demo [-o OPTIONS] MOUNTPOINT
       sessionfs -u [-z] MOUNTPOINT
       sessionfs help | version
       sessionfs ls | cat | tree | tar | write | export | check | search |
                 touched ...
                 the same without a mount; sessionfs help ls tells more

Mounts the data directory of a coding agent: each session as a directory of
entries, branches and control files. SOURCE is the agent directory; the default
is $PI_CODING_AGENT_DIR, else $XDG_DATA_HOME/omp if that exists, else
~/.omp/agent, or ~/.pi/agent if there is none of omp. MOUNTPOINT is an empty
directory outside SOURCE. Runs in the background once the mount is ready.

Flags:
`)
	b.WriteString(flags(&flagValues{}, false).FlagUsages())
	b.WriteString("\nMount options (-o); of several values the first is the default:\n")
	var without []string
	for _, k := range options {
		name := k.name
		if k.value != "" {
			name += "=" + k.value
		}
		if k.help == "" {
			without = append(without, k.name)
			continue
		}
		fmt.Fprintf(&b, "  %-24s  %s\n", name, k.help)
	}
	b.WriteString("Accepted from mount(8), fstab and systemd, without effect:\n")
	b.WriteString(wrap(strings.Join(append(without, "x-*"), ", ")))
	b.WriteString(`
With mount(8) and in /etc/fstab:
  mount -t fuse.sessionfs SOURCE MOUNTPOINT
  SOURCE  MOUNTPOINT  fuse.sessionfs  noauto,user  0  0
A link /sbin/mount.sessionfs to this program makes "-t sessionfs" work as well.
The flags that mount(8) gives its helpers are accepted: -n -s -v -t TYPE.
`)
	return b.String()
}

// helpWidth makes the help fit a terminal of 80 columns.
const helpWidth = 78

// wrap breaks text into lines at spaces and indents them by two.
func wrap(text string) string {
	var b strings.Builder
	line := " "
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > helpWidth {
			b.WriteString(line + "\n")
			line = " "
		}
		line += " " + word
	}
	b.WriteString(line + "\n")
	return b.String()
}
