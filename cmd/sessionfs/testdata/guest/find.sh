# GNU find asks for the attributes of directories alone, that of busybox for those of each file. README is the first file that
# is read. $options and $path are those of the mount.
echo
mount -i -t nfs -o addr=10.0.2.2,$options 10.0.2.2:$path /mnt || exit 1
cd /mnt/sessions/--guest--
find . | wc -l | sed 's/^/found /'
find . -type f | wc -l | sed 's/^/files /'
find ../../by-id -type l | wc -l | sed 's/^/links /'
cat ../../README >/tmp/readme
cd ./*_find0
ls -l transcript.md | awk '{ print "size " $5 }'
cat transcript.md >/tmp/all
(i=0; while [ $i -lt 50 ]; do find . -name 'x*'; i=$((i+1)); done) &
i=0; while [ $i -lt 100 ]; do cmp transcript.md /tmp/all || echo failed; i=$((i+1)); done
wait
cd ../*_find1
busybox find . -type f | wc -l | sed 's/^/busybox /'
