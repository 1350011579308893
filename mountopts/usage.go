package mountopts

import (
	"fmt"
	"strings"
)

// Summary is the help that fits a screen.
func Summary() string {
	return `Usage: sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT  mount in the background
       sessionfs --demo MOUNTPOINT                 mount a sample store
       sessionfs -u [-z] MOUNTPOINT                unmount; -z: in use, too
       sessionfs COMMAND ...                       look without a mount

Shows the sessions of a coding agent as directories of entries, branches,
transcripts and control files. SOURCE is the agent directory, ~/.omp/agent by
default; MOUNTPOINT is an empty directory.

  -o OPTIONS       separated by commas: ro, redact, sync, idle=10m, ...
  -f, -d           stay in front; log every request
  --log-file FILE  instead of stderr or syslog

Commands:
  ls cat tree tar write    as those in a mount
  export import bundle     a session as a page; sessions from and for elsewhere
  search touched           find text in all sessions; find who changed a file
  check                    tell what is broken
  status                   the mounts there are, and what they have done
  completion sql-trigger   completions for a shell; a trigger for a database

'sessionfs help mount' lists all options and exit statuses, 'sessionfs help ls'
those of a command; 'man sessionfs' says more. 'sessionfs version': the version.
`
}

// Usage is the help of a mount. Flags and options come from the lists that the parser uses.
func Usage() string {
	var b strings.Builder
	b.WriteString(`Usage: sessionfs [-o OPTIONS] [SOURCE] MOUNTPOINT
       sessionfs --demo [-o OPTIONS] MOUNTPOINT
       sessionfs -u [-z] MOUNTPOINT

Mounts the data directory of a coding agent: each session as a directory of
entries, branches and control files. SOURCE is the agent directory; the default
is $PI_CODING_AGENT_DIR, else $XDG_DATA_HOME/omp if that exists, else
~/.omp/agent, or ~/.pi/agent if there is none of omp. Sessions in PostgreSQL:
SOURCE is postgres://USER@HOST/DATABASE?table=TABLE&prefix=PATH, without a
password. MOUNTPOINT is an empty directory outside SOURCE. Runs in the
background once the mount is ready.

Flags:
`)
	b.WriteString(flags(&flagValues{}, false).FlagUsages())
	b.WriteString("\nMount options (-o); of several values the first is the default:\n")
	for _, k := range options {
		fmt.Fprintf(&b, "  %-24s  %s\n", k, k.help)
	}
	b.WriteString("Accepted without effect, as mount(8), systemd and FUSE have them, and x-*:")
	b.WriteString(acceptedText)
	b.WriteString(`
With mount(8) and in /etc/fstab:
  mount -t fuse.sessionfs SOURCE MOUNTPOINT
  SOURCE  MOUNTPOINT  fuse.sessionfs  noauto,user  0  0
A link /sbin/mount.sessionfs to this program makes "-t sessionfs" work as well.
The flags that mount(8) gives its helpers are accepted: -n -s -v -t TYPE.
`)
	return b.String()
}
