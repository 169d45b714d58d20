#!/bin/sh
# Builds what the power-cut campaign boots: a small Debian with this checkout installed by deploy/install.sh, its kernel,
# and an empty data disk. Debian is fetched once and kept in the cache folder; nothing of it belongs to the repository.
# Needs mmdebstrap and e2fsprogs, and root, since files of the image belong to several users.
set -eu

usage='Usage: test/power-cut/guest.sh CACHE-FOLDER [MIRROR]'
cache=${1:?$usage}
mirror=${2:-http://deb.debian.org/debian}
here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
packages=linux-image-cloud-amd64,initramfs-tools,systemd-sysv,udev,dbus,kmod,e2fsprogs,libstdc++6,procps,zstd

mkdir -p "$cache"
[ -f "$cache/rootfs.tar" ] || {
  mmdebstrap --variant=minbase --include="$packages" bookworm "$cache/rootfs.new.tar" "$mirror"
  mv "$cache/rootfs.new.tar" "$cache/rootfs.tar"
}

root=$cache/root
rm -rf "$root"
mkdir -p "$root"
tar -C "$root" -xf "$cache/rootfs.tar" --exclude='./dev/*' --exclude='./usr/share/doc/*' --exclude='./usr/share/locale/*'

# Little to unpack: the guest may be emulated.
sed -i 's/^MODULES=.*/MODULES=list/' "$root/etc/initramfs-tools/initramfs.conf"
printf 'virtio_pci\nvirtio_blk\next4\n' >>"$root/etc/initramfs-tools/modules"
chroot "$root" /usr/sbin/update-initramfs -u
cp "$root"/boot/vmlinuz-* "$cache/vmlinuz"
cp "$root"/boot/initrd.img-* "$cache/initrd"
rm -r "$root"/boot/*

"$here/../../deploy/install.sh" --root "$root" --arch x64
chroot "$root" /usr/sbin/useradd --system --user-group --home-dir /var/lib/selvedge --no-create-home selvedge
chroot "$root" /usr/bin/chgrp selvedge /etc/selvedge/selvedge.yaml
mkdir -p "$root/opt/power-cut" "$root/var/lib/selvedge"
cp "$here/guest-check.mjs" "$root/opt/power-cut/check.mjs"

printf '[Journal]\nStorage=volatile\nForwardToConsole=no\n' >"$root/etc/systemd/journald.conf"
echo power-cut >"$root/etc/hostname"
cat >"$root/etc/fstab" <<'TEXT'
LABEL=root / ext4 defaults 0 0
LABEL=data /var/lib/selvedge ext4 defaults 0 2
TEXT
cat >"$root/etc/systemd/network/all.network" <<'TEXT'
[Match]
Name=en* eth*
[Network]
DHCP=ipv4
TEXT

# The gateway listens on loopback, as it does unless told otherwise; these let the host reach it there.
units=$root/etc/systemd/system
for door in 1883 9090; do
  cat >"$units/door-$door.socket" <<TEXT
[Socket]
ListenStream=1$door
[Install]
WantedBy=sockets.target
TEXT
  cat >"$units/door-$door.service" <<TEXT
[Service]
ExecStart=/lib/systemd/systemd-socket-proxyd --connections-max=256 127.0.0.1:$door
TEXT
done
# Waits for port 9090 first, so that it takes no time from a gateway that starts.
cat >"$units/power-cut-check.service" <<'TEXT'
[Unit]
After=selvedge.service
[Service]
Type=oneshot
ExecStartPre=/bin/sh -c 'until grep -q :2382 /proc/net/tcp; do sleep 0.3; done'
ExecStart=/opt/selvedge/node/bin/node /opt/power-cut/check.mjs
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0
[Install]
WantedBy=multi-user.target
TEXT
systemctl --root="$root" --quiet enable systemd-networkd selvedge door-1883.socket door-9090.socket power-cut-check
systemctl --root="$root" --quiet mask getty.target systemd-timesyncd systemd-logind \
  systemd-update-utmp systemd-pstore systemd-random-seed e2scrub_reap e2scrub_all.timer fstrim.timer apt-daily.timer \
  apt-daily-upgrade.timer dpkg-db-backup.timer

rm -f "$cache/root.img" "$cache/empty.img"
truncate -s 1500M "$cache/root.img"
mke2fs -q -t ext4 -L root -d "$root" "$cache/root.img"
truncate -s 768M "$cache/empty.img"
mke2fs -q -t ext4 -L data -E lazy_itable_init=0,lazy_journal_init=0 "$cache/empty.img"
rm -rf "$root"
echo "built in $cache"
