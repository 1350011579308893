package main

import "fmt"

// nfsOptions are those of a mount. With sync write(2) has the error of a line, and soft ends the
// wait for a server that was killed.
const nfsOptions = "vers=3,proto=tcp,mountproto=tcp,nolock,sync,soft,actimeo=1,lookupcache=positive,nosuid,nodev"

// mountNFS returns the command that mounts an exported path.
func mountNFS(port int, path, mountpoint string) []string {
	options := fmt.Sprintf("%s,port=%d,mountport=%[2]d", nfsOptions, port)
	return []string{"sudo", "mount", "-t", "nfs", "-o", options, "127.0.0.1:" + path, mountpoint}
}
