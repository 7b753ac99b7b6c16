#!/bin/bash
# usage: build.sh BINARY FOLDER   creates FOLDER/moongate_VERSION-1_ARCHITECTURE.deb. Requires MOONGATE_VERSION and
# SOURCE_DATE_EPOCH; DEB_LEVEL is the compression level of xz, 0 to 9.
set -euo pipefail
umask 022
here=$(cd "$(dirname "$0")" && pwd) top=$(cd "$(dirname "$0")/../.." && pwd)
binary=$1; mkdir -p "$2"; products=$(realpath "$2")
version=${DEBIAN_VERSION:-$MOONGATE_VERSION-1} architecture=$(dpkg --print-architecture)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
stage=$work/stage root=$work/debian/moongate
"$top/Packaging/tools/stage.sh" "$binary" "$stage"

put() { install -D -m "$1" "$2" "$root/$3"; }
for program in moongate moongate-provider; do put 755 "$stage/bin/$program" "usr/bin/$program"; done
mkdir -p "$root/usr" "$root/lib/systemd" "$root/etc"
cp -r "$stage/share" "$root/usr/share"
cp -r "$stage/systemd" "$root/lib/systemd/system"
cp -r "$stage/etc/moongate" "$root/etc/moongate"
put 644 "$here/moongate.default" etc/default/moongate
put 644 "$here/lintian-overrides" usr/share/lintian/overrides/moongate
documents=usr/share/doc/moongate
put 644 "$here/copyright" "$documents/copyright"
put 644 "$here/README.Debian" "$documents/README.Debian"
cp -r "$stage/Documentation" "$stage/Plugins" "$stage/SECURITY.md" "$root/$documents"
gzip -9nc "$stage/documents/third-party-licences" >"$work/licences.gz"
put 644 "$work/licences.gz" "$documents/third-party-licences.gz"
date=$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")
maintainer=$(sed -n 's/^Maintainer: //p' "$here/control")
printf 'moongate (%s) unstable; urgency=medium\n\n  * Moongate %s. See changelog.gz.\n\n -- %s  %s\n' \
  "$version" "$MOONGATE_VERSION" "$maintainer" "$date" >"$work/debian/changelog"
gzip -9nc "$work/debian/changelog" >"$root/$documents/changelog.Debian.gz"
gzip -9nc "$top/CHANGELOG.md" >"$root/$documents/changelog.gz"

# The dependencies are the libraries that the programs are linked against.
cp "$here/control" "$work/debian/control"
mkdir -p "$root/DEBIAN"
(cd "$work" && dpkg-shlibdeps -Tdebian/substvars debian/moongate/usr/bin/moongate*)
printf 'misc:Depends=\n' >>"$work/debian/substvars"
(cd "$root" && find etc -type f -printf '/%p\n' | LC_ALL=C sort) >"$root/DEBIAN/conffiles"
(cd "$root" && find usr lib -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
for script in postinst prerm postrm; do put 755 "$here/$script" "DEBIAN/$script"; done
(cd "$work" && dpkg-gencontrol -pmoongate -v"$version" -Tdebian/substvars -fdebian/files -Pdebian/moongate >/dev/null)
package=$products/moongate_${version}_$architecture.deb
dpkg-deb --root-owner-group -Zxz -z"${DEB_LEVEL:-6}" --build "$root" "$package" >/dev/null
echo "$package"
