#!/bin/bash
# usage: tarball.sh BINARY FOLDER   creates FOLDER/moongate-VERSION-linux-MACHINE.tar.gz. Requires MOONGATE_VERSION and
# SOURCE_DATE_EPOCH.
set -euo pipefail
umask 022
here=$(cd "$(dirname "$0")" && pwd) top=$(cd "$(dirname "$0")/../.." && pwd)
mkdir -p "$2"; products=$(realpath "$2")
name=moongate-$MOONGATE_VERSION-linux-$(uname -m)
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
to=$work/$name
"$here/stage.sh" "$1" "$to"
mv "$to"/documents/* "$to/LICENSE-third-party.txt"
rmdir "$to/documents"
mv "$to/share/zsh/vendor-completions" "$to/share/zsh/site-functions"
mv "$to/share/fish/vendor_completions.d" "$to/share/fish/completions"
mv "$to/etc/moongate" "$to/config"
rmdir "$to/etc"
install -m 644 "$top/LICENSE" "$top/CHANGELOG.md" "$to"

# The linked libraries with their Debian packages.
needed=$(readelf -d "$to/bin/moongate" | sed -nE 's/.*\(NEEDED\).*\[(.*)\]/\1/p' | LC_ALL=C sort)
{
  sed "s/@VERSION@/$MOONGATE_VERSION/" "$here/README.tarball.md"
  printf '\n| file | package of Debian 12 |\n|---|---|\n'
  for file in $needed; do
    path=$(ldd "$to/bin/moongate" | awk -v file="$file" '$1 == file { print $3 }')
    [ -n "$path" ] || continue
    owner=$(dpkg-query -S "$(realpath "$path")" 2>/dev/null || dpkg-query -S "$path")
    printf '| `%s` | `%s` |\n' "$file" "${owner%%:*}"
  done
} >"$to/README.md"
chmod 644 "$to/README.md"

archive=$products/$name.tar.gz
tar --create --directory "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=gnu "$name" | gzip -9n >"$archive"
echo "$archive"
