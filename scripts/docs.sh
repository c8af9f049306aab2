#!/usr/bin/env bash
# The documentation as a site, in target/book: the pages of docs/, and the reference of the
# experiment's file, made from its schema. Needs mdbook, and nothing from the network once it is there;
# `docs.sh --pages FOLDER` writes the pages alone, with their links checked, and needs Python only.
set -euo pipefail
cd "$(dirname "$0")/.."
source=target/book-source
if [[ ${1:-} == --pages ]]; then
  source=$2
else
  out=${1:-target/book}
fi
rm -rf "$source"
mkdir -p "$source"
cp -r docs/. "$source"
python3 scripts/experiment_reference.py docs/experiment.schema.json > "$source/experiment.md"
# Pages that live where people look for them in the repository are taken into the book as they are.
for page in ARCHITECTURE CONTRIBUTING CHANGELOG SECURITY ; do
  sed 's|](docs/|](|g' "$page.md" > "$source/$page.md"
done
sed -e 's|](docs/|](|g' -e 's|](../docs/|](|g' python/README.md > "$source/python.md"
cp python/docs/from-leandojo.md "$source/from-leandojo.md"
cp crates/report/assets/glossary.md "$source/words.md"
python3 scripts/book_links.py "$source" .
[[ ${1:-} == --pages ]] && exit
command -v mdbook >/dev/null || {
  echo 'installing mdbook (once; some minutes)'
  cargo install mdbook --locked --no-default-features --features search
}
mdbook build "$source" --dest-dir "$PWD/$out"
echo "$out/index.html"
