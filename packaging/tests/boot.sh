#!/bin/bash
# Boots a bare Debian's systemd in namespaces, installs the package before, and runs check.sh there: boot.sh PACKAGE ROOT FOLDER. The status is
# that of the check. All that happens in ROOT is kept in a tmpfs, and gone at the end. FOLDER is empty; mounts in it end with this.
set -euo pipefail
package=$1 lower=$2 folder=$3
here=$(dirname "$(realpath "$0")")

if [ -z "${RTORB_BOOTS:-}" ]; then
  # systemd sees a control group of its own as the root of all. This shell is in it, so it leaves it before the group can go.
  exec unshare --mount bash -euo pipefail -c '
    mount -t cgroup2 none "$1" && mkdir -p "$1/rtorb-boot"
    echo $$ > "$1/rtorb-boot/cgroup.procs"
    status=0
    log=$(mktemp)
    RTORB_BOOTS=$log unshare --cgroup --mount --net --pid --uts --ipc --fork --kill-child bash "${@:2}" "$1" || status=$?
    cat "$log"
    rm "$log"
    echo $$ > "$1/cgroup.procs"
    find "$1/rtorb-boot" -depth -type d -exec rmdir {} +
    exit $status' boot "$folder" "$(realpath "$0")" "$package" "$lower"
fi

mount -t tmpfs tmpfs "$folder"
mkdir "$folder"/{upper,work,root}
root=$folder/root
mount -t overlay overlay -o "lowerdir=$lower,upperdir=$folder/upper,workdir=$folder/work" "$root"
mount -t proc proc "$root/proc"
# The kernel's variables are the host's.
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 none "$root/sys/fs/cgroup"
for place in run tmp dev; do mount -t tmpfs tmpfs "$root/$place"; done
mkdir "$root"/dev/{shm,pts}
ln -s pts/ptmx "$root/dev/ptmx"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
ip link set lo up

cp "$package" "$root/rtorb.deb"
cp "$here/check.sh" "$root/check.sh"
cat > "$root/etc/systemd/system/check.service" <<UNIT
[Unit]
After=rtorb-naming.service rtorb-events.service
SuccessAction=exit-force
FailureAction=exit-force
[Service]
Type=oneshot
ExecStart=/bin/sh -eux /check.sh
StandardOutput=file:/check.log
StandardError=inherit
[Install]
WantedBy=multi-user.target
UNIT
clean=(env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=rtorb)
chroot "$root" "${clean[@]}" dpkg --no-triggers --install /rtorb.deb
chroot "$root" "${clean[@]}" systemctl enable rtorb-naming rtorb-events check
rm "$root/rtorb.deb"
# What the check prints outlives the root.
touch "$root/check.log"
mount --bind "$RTORB_BOOTS" "$root/check.log"
cd "$root"
pivot_root . mnt
exec chroot . "${clean[@]}" sh -c 'umount -l /mnt; exec /lib/systemd/systemd --unit=multi-user.target --log-target=journal'
