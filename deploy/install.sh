#!/bin/sh
# Installs or upgrades Selvedge on a board with systemd, from a checkout after `npm ci` or an unpacked release.
# Lays out the bundle, the Node it was made for and only this board's database binary under /opt/selvedge.
# Running it again is an upgrade: settings and data stay as they are. It downloads nothing.
set -eu

usage() {
  cat <<'TEXT'
Usage: deploy/install.sh [options]

  --root DIR       stage below DIR instead of /, for an image; creates no user, starts nothing
  --arch x64|arm64 architecture of the board (default: this machine's)
  --node FILE      Node binary to install (default: node_modules/node/bin/node)
  --no-start       install, but leave the service as it is
  --help           this text

Layout: /opt/selvedge (program), /etc/selvedge/selvedge.yaml (settings), /var/lib/selvedge (data),
/etc/systemd/system/selvedge.service, /usr/local/bin/selvedge.
TEXT
}

fail() {
  echo "install.sh: $1" >&2
  exit "${2:-1}"
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
root=
arch=
node=$here/node_modules/node/bin/node
start=yes

while [ $# -gt 0 ]; do
  case $1 in
    --root | --arch | --node) [ $# -ge 2 ] || fail "$1 needs a value" 64 ;;
  esac
  case $1 in
    --root) root=${2%/} && shift 2 ;;
    --arch) arch=$2 && shift 2 ;;
    --node) node=$2 && shift 2 ;;
    --no-start) start=no && shift ;;
    --help | -h) usage && exit 0 ;;
    *) usage >&2 && fail "unknown option $1" 64 ;;
  esac
done

machine_arch() {
  case $(uname -m) in
    x86_64) echo x64 ;;
    aarch64) echo arm64 ;;
    *) fail "$(uname -m) is not supported: a 64-bit system is needed (x86_64 or aarch64)" ;;
  esac
}

# The word at byte 18 of an ELF file says which processor it is for.
binary_arch() {
  case $(od -An -tx1 -j18 -N2 "$1" 2>/dev/null | tr -d ' ') in
    3e00) echo x64 ;;
    b700) echo arm64 ;;
    *) echo unknown ;;
  esac
}

check() {
  [ -n "$arch" ] || arch=$(machine_arch)
  sqlite=$here/node_modules/better-sqlite3
  prebuilt=$sqlite/prebuilds/linux-$arch.node
  onnx=$here/node_modules/onnxruntime-node
  onnx_binary=$onnx/bin/napi-v6/linux/$arch
  case $arch in
    x64 | arm64) ;;
    *) fail "--arch is x64 or arm64, not $arch" 64 ;;
  esac
  [ -x "$node" ] || fail "$node is missing: run npm ci in $here, or name one by --node"
  [ "$(binary_arch "$node")" = "$arch" ] || fail "$node is not for $arch: name one that is by --node"
  [ -f "$prebuilt" ] || fail "$prebuilt is missing: run npm ci in $here"
  [ -d "$onnx_binary" ] || fail "$onnx_binary is missing: run npm ci in $here"
  [ -n "$root" ] || [ "$(id -u)" -eq 0 ] || fail "run as root, or stage with --root DIR" 77
}

bundle() {
  if [ -f "$here/scripts/build.ts" ] && [ -d "$here/node_modules/esbuild" ]; then
    "$here/node_modules/.bin/node" "$here/scripts/build.ts"
  fi
  [ -f "$here/dist/main.js" ] || fail "$here/dist/main.js is missing: run npm run build"
}

# The new program is complete before it takes the old one's place.
lay_out() {
  new=$root/opt/selvedge.new
  rm -rf "$new"
  mkdir -p "$new/bin" "$new/dist" "$new/node/bin" "$new/node_modules/better-sqlite3/prebuilds"
  cp "$here/bin/selvedge" "$new/bin/selvedge"
  cp "$here/dist/"*.js "$new/dist/"
  [ ! -d "$here/dist/pages" ] || cp -R "$here/dist/pages" "$new/dist/pages"
  cp "$here/package.json" "$here/LICENSE" "$here/deploy/config/selvedge.example.yaml" "$new/"
  cp "$here/dist/THIRD-PARTY-NOTICES.txt" "$new/"
  cp "$here/README.md" "$new/"
  mkdir -p "$new/docs" "$new/firmware-bridges/json"
  cp -R "$here/docs/guides" "$here/docs/reference" "$new/docs/"
  cp "$here/firmware-bridges/json/README.md" "$new/firmware-bridges/json/"
  cp "$node" "$new/node/bin/node"
  cp -R "$sqlite/package.json" "$sqlite/LICENSE" "$sqlite/lib" "$new/node_modules/better-sqlite3/"
  cp "$prebuilt" "$new/node_modules/better-sqlite3/prebuilds/"
  new_onnx=$new/node_modules/onnxruntime-node
  common=node_modules/onnxruntime-common
  mkdir -p "$new_onnx/dist" "$new_onnx/bin/napi-v6/linux" "$new/$common/dist/cjs"
  cp "$onnx/package.json" "$new_onnx/"
  cp "$onnx/dist/"*.js "$new_onnx/dist/"
  cp -R "$onnx_binary" "$new_onnx/bin/napi-v6/linux/"
  cp "$here/$common/package.json" "$new/$common/"
  cp "$here/$common/dist/cjs/"*.js "$here/$common/dist/cjs/package.json" "$new/$common/dist/cjs/"
  for model in "$here/models/"*/model.json; do
    [ -f "$model" ] || continue
    mkdir -p "$new/models"
    cp -R "${model%/model.json}" "$new/models/"
  done
  chmod -R u=rwX,go=rX "$new"
  chmod 755 "$new/bin/selvedge" "$new/node/bin/node"
  [ -n "$root" ] || chown -R root:root "$new"
  rm -rf "$root/opt/selvedge.old"
  [ ! -d "$root/opt/selvedge" ] || mv "$root/opt/selvedge" "$root/opt/selvedge.old"
  mv "$new" "$root/opt/selvedge"
  rm -rf "$root/opt/selvedge.old"
}

add_user() {
  id selvedge >/dev/null 2>&1 ||
    useradd --system --user-group --home-dir /var/lib/selvedge --no-create-home --shell /usr/sbin/nologin selvedge
}

settings() {
  file=$root/etc/selvedge/selvedge.yaml
  mkdir -p "$root/etc/selvedge"
  if [ ! -e "$file" ]; then
    cp "$here/deploy/config/selvedge.yaml" "$file"
    chmod 640 "$file"
    [ -n "$root" ] || chgrp selvedge "$file"
  fi
}

unit_and_command() {
  mkdir -p "$root/etc/systemd/system" "$root/usr/local/bin"
  cp "$here/deploy/systemd/selvedge.service" "$root/etc/systemd/system/selvedge.service"
  chmod 644 "$root/etc/systemd/system/selvedge.service"
  ln -sfn /opt/selvedge/bin/selvedge "$root/usr/local/bin/selvedge"
}

start_service() {
  systemctl daemon-reload
  systemctl enable --quiet selvedge.service
  systemctl restart selvedge.service
}

check
bundle
lay_out
[ -n "$root" ] || add_user
settings
unit_and_command
if [ -n "$root" ]; then
  echo "staged for $arch below $root; the image needs a system user named selvedge, and the unit enabled"
  exit 0
fi
[ "$start" = no ] || start_service
cat <<'TEXT'
Installed. Look at it:  selvedge status        journalctl -u selvedge
Settings:               /etc/selvedge/selvedge.yaml, then systemctl restart selvedge; all there are, with
                        their defaults: /opt/selvedge/selvedge.example.yaml
Remove:                 systemctl disable --now selvedge
                        rm -r /opt/selvedge /etc/systemd/system/selvedge.service /usr/local/bin/selvedge
                        (settings in /etc/selvedge and data in /var/lib/selvedge stay until you remove them;
                        /var/cache/selvedge holds nothing of worth)
TEXT
