#!/bin/bash
# usage: stage.sh BINARY FOLDER   collects the contents of both packages: the program with moongate-provider, which lies
# beside it, manual pages, completions and a configuration.
set -euo pipefail
binary=$1 to=$2 scratch=$(dirname "$(dirname "$1")") here=$(cd "$(dirname "$0")/../.." && pwd)
moongate=$to/bin/moongate
help=$(mktemp); trap 'rm -f "$help"' EXIT
complete() { mkdir -p "$(dirname "$to/share/$3")"; "$1" --generate-completion-script "$2" | sed '1{/^#!/d}' >"$to/share/$3"; }
for name in moongate moongate-provider; do
  program=$to/bin/$name
  install -D -m 755 "$(dirname "$binary")/$name" "$program"
  strip --strip-unneeded "$program"
  # Attack: a library in a writable folder beside the program is loaded in place of the system's.
  chrpath --delete "$program" >/dev/null
  # The page moongate-provider(1) of the program replaces that of the command `moongate provider`.
  "$program" --experimental-dump-help >"$help"
  python3 "$here/Packaging/tools/manual.py" "$help" "$to/share/man/man1" "$MOONGATE_VERSION" "$(date -u -d "@$SOURCE_DATE_EPOCH" +%F)"
  complete "$program" bash "bash-completion/completions/$name"
  complete "$program" zsh "zsh/vendor-completions/_$name"
  complete "$program" fish "fish/vendor_completions.d/$name.fish"
done
gzip -9n "$to"/share/man/man1/*.1

# The output of `moongate init` for production. Its four answers are placeholders that the operator changes.
"$moongate" init "$to/etc/moongate" --public-url https://auth.example.com --upstream http://127.0.0.1:3000 --store sqlite \
  --messages smtp://localhost --state /var/lib/moongate </dev/null >/dev/null
for unit in "$here"/Packaging/systemd/*.{service,socket}; do install -D -m 644 "$unit" "$to/systemd/$(basename "$unit")"; done
# Messages and manual pages name its guides.
python3 "$here/Packaging/tools/documents.py" "$to"
# The licences of linked packages require it.
mkdir -p "$to/documents"
python3 "$here/Packaging/tools/sbom.py" --licences "$scratch" "$to/documents/third-party-licences"
chmod -R u=rwX,go=rX "$to"
