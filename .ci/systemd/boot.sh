#!/usr/bin/env bash
# Boots this machine's own systemd as the first process of fresh namespaces; its
# root is an overlay over the machine's, so that nothing outside changes. Runs
# until systemd powers off, or is killed as by a power cut. What was written is
# there at the next boot, which has another boot id. Needs root and cgroup v2.
#
#   boot.sh DIR      DIR/units are its units; DIR/cgroup names its cgroup; DIR/disk,
#                    a mounted file system, has what was written
set -euo pipefail
dir=$(realpath "$1")
mkdir -p "$dir/root"
cgroup=$(findmnt -nt cgroup2 -o TARGET | head -n 1)/sglaunch-check.$$
mkdir "$cgroup"
echo "$cgroup" >"$dir/cgroup"
echo $$ >"$cgroup/cgroup.procs"
export dir
exec unshare --mount --pid --ipc --uts --cgroup --net --fork --kill-child bash -euc '
mount --make-rprivate /
root=$dir/root
first=1
if [ -d "$dir/disk/upper" ]; then first=; fi
mkdir -p "$dir/disk/upper" "$dir/disk/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/disk/upper,workdir=$dir/disk/work" "$root"
mount -t proc proc "$root/proc"
cat /proc/sys/kernel/random/uuid >"$dir/disk/boot_id"
mount --bind "$dir/disk/boot_id" "$root/proc/sys/kernel/random/boot_id"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for n in null zero full random urandom tty; do
	touch "$root/dev/$n"
	mount --bind "/dev/$n" "$root/dev/$n"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs tmpfs "$root/tmp"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
if [ "$first" ]; then
	rm -rf "$root/etc/machine-id" "$root/var/lib/sglaunch" # a machine on which sglaunch has never run
	tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
fi
mkdir -p "$root/run/systemd/system"
printf "[Unit]\nRequires=basic.target\nAfter=basic.target\nAllowIsolate=yes\n" >"$root/run/systemd/system/check.target"
cp -r "$dir/units/." "$root/run/systemd/system/"
cd "$root"
mkdir -p .old
pivot_root . .old
umount -l /.old
exec env -i container=check PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
	/lib/systemd/systemd --show-status=no --unit=check.target
'
