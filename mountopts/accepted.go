package mountopts

import (
	"maps"
	"slices"
	"strings"
)

// Options that people and programs pass because they do so for other file systems are accepted where a mount that does
// not obey them is what they want all the same, and refused with a reason where it would not be.

// accepted are the options that are accepted without effect, whatever their value. First those that mount(8), fstab and
// systemd pass: the kernel keeps no access times for FUSE; nosuid, nodev and default_permissions are always on; mount.fuse3
// adds suid and dev by itself. Then those of other FUSE file systems. What is about caches and sizes of requests changes
// nothing that can be seen: what the kernel may remember is part of what the mount promises (docs/design.md section 6), and
// the sizes are the largest. A mount that a signal ends is unmounted without auto_unmount; after kill -9 the next mount at
// the same place cleans up.
var accepted = strings.Fields(acceptedText)

// acceptedText is how the help shows them.
const acceptedText = `
  defaults default_permissions nosuid suid nodev dev atime noatime relatime
  norelatime strictatime nostrictatime diratime nodiratime lazytime nolazytime
  auto noauto nofail _netdev user nouser users nousers owner noowner group
  nogroup comment silent loud mand nomand dirsync iversion noiversion subtype
  auto_unmount entry_timeout attr_timeout negative_timeout ac_attr_timeout
  kernel_cache auto_cache noauto_cache direct_io max_read max_write
  max_readahead max_background congestion_threshold async_read sync_read
  big_writes large_read hard_remove use_ino readdir_ino intr
`

// refused are options that users may try, with the reason why they are not supported. Ignoring them silently
// would suggest that they have an effect.
var refused = map[string]string{
	"uid":             "files have the owner of the file behind them; leave it out",
	"gid":             "files have the group of the file behind them; leave it out",
	"umask":           "files have the mode of the file behind them; leave it out",
	"fmask":           "files have the mode of the file behind them; leave it out",
	"dmask":           "files have the mode of the file behind them; leave it out",
	"allow_other":     "each user mounts SOURCE for himself, so that the system checks what he may read there; for root alone there is allow_root",
	"remount":         "unmount (sessionfs -u) and mount again",
	"bind":            "use mount --bind on the mounted directory",
	"setuid":          "run sessionfs as that user (mount -t fuse.sessionfs understands setuid=)",
	"drop_privileges": "run sessionfs as an ordinary user instead",
}

// OptionNames returns the names of the options of -o that have an effect, that are accepted without, and that are
// refused.
func OptionNames() (effect, without, refusals []string) {
	for _, k := range options {
		effect = append(effect, k.name)
	}
	return effect, accepted, slices.Collect(maps.Keys(refused))
}
