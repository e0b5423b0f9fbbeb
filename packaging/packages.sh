#!/usr/bin/env bash
# packages.sh MAJOR…: all files of a release, into target/packages: Debian packages, archives for other systems, the
# sources for PGXN, checksums. What is built follows from the commit alone: see packaging/README.md.
. "$(dirname "$0")/../tests/harness/common.sh"

(($# > 0)) || die 'usage: packages.sh MAJOR…'
for program in git dh dpkg-buildpackage; do
  command -v "$program" >/dev/null || die "packages need $program: run make setup as root"
done
find_base

version=$(version_of_tree)
deb_version=$version-1
! grep -m 1 '^## ' CHANGELOG.md | grep -q '(unreleased)' || deb_version=$version~dev-1
# Whatever takes a date takes that of the commit.
commit=$(git rev-parse HEAD) && SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit") ||
  die 'packages are built in a git checkout: their date is that of the commit'
export TZ=UTC LC_ALL=C
arch=$(dpkg --print-architecture)
machine=$(uname -m)

packages="$root/target/packages"
work="$root/target/packaging"
build="$work/build"
source="$build/graph-kernel-$version" # the Debian source folder
rm -rf "$packages" "$build"
mkdir -p "$packages" "$source/stage"
[[ -z $(git status --porcelain --untracked-files=no) ]] || note 'warning: there are changes that are not committed'

stage_program() {
  local program="$root/target/release/graph-kernel" stage="$source/stage/program"
  cargo build --release -p graph_kernel_cli
  mkdir -p "$stage"/{man,completions/{bash,zsh,fish}}
  cp "$program" "$stage/"
  "$program" man --all "$stage/man"
  "$program" completions bash >"$stage/completions/bash/graph-kernel"
  "$program" completions zsh >"$stage/completions/zsh/_graph-kernel"
  "$program" completions fish >"$stage/completions/fish/graph-kernel.fish"
  python3 packaging/copyright.py graph_kernel_cli >"$source/debian/graph-kernel.copyright"
}

# The files of debian/ for these majors.
debian_files() {
  local debian="$source/debian" name
  mkdir -p "$debian"
  cp -r packaging/debian/. "$debian/"
  mv "$debian/control.in" "$debian/control"
  for major in "$@"; do
    name="$debian/postgresql-$major-graph-kernel"
    sed "s/@MAJOR@/$major/g" "$debian/control.major.in" >>"$debian/control"
    sed "s/@MAJOR@/$major/g" "$debian/install.major.in" >"$name.install"
    cp "$debian/graph-kernel.lintian-overrides" "$name.lintian-overrides"
    printf '%s\n' README.md SECURITY.md docs/*.md >"$name.docs"
    printf '%s\n' sql/sample sql/roles >"$name.examples"
  done
  rm "$debian"/*.major.in
  cat >"$debian/changelog" <<CHANGELOG
graph-kernel ($deb_version) unstable; urgency=medium

  * What changed is in changelog.gz.

 -- $(sed -n 's/^Maintainer: //p' "$debian/control")  $(date -R -d "@$SOURCE_DATE_EPOCH")
CHANGELOG
  cp -r README.md SECURITY.md CHANGELOG.md docs "$source/"
  mkdir "$source/sql"
  cp -r sql/sample sql/roles "$source/sql/"
}

# archive NAME: the folder of that name below $build, with fixed dates and owners.
archive() {
  tar --create --directory "$build" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
    --numeric-owner --mode=u=rwX,go=rX "$1" | gzip -n9 >"$packages/$1.tar.gz"
}

# What debhelper has stripped, for systems without dpkg.
archive_extension() {
  local name="graph_kernel-$version-pg$1-linux-$machine" from="$source/debian/postgresql-$1-graph-kernel" folder
  folder="$build/$name"
  mkdir -p "$folder"/{lib,share/extension}
  cp "$from/usr/lib/postgresql/$1/lib/graph_kernel.so" "$folder/lib/"
  cp "$from/usr/share/postgresql/$1/extension/"* "$folder/share/extension/"
  cp -r sql/sample sql/roles "$folder/"
  cp LICENSE "$folder/"
  cp "$source/debian/postgresql-$1-graph-kernel.copyright" "$folder/LICENSES-OF-CRATES"
  sed -e "s/@VERSION@/$version/g" -e "s/@MAJOR@/$1/g" packaging/README.extension.in >"$folder/README"
  archive "$name"
}

archive_program() {
  local name="graph-kernel-$version-linux-$machine" from="$source/debian/graph-kernel/usr" folder
  folder="$build/$name"
  mkdir -p "$folder"
  cp -r "$from/bin" "$source/stage/program/man" "$source/stage/program/completions" "$folder/"
  cp LICENSE "$folder/"
  cp "$source/debian/graph-kernel.copyright" "$folder/LICENSES-OF-CRATES"
  cp /usr/share/common-licenses/Apache-2.0 "$folder/LICENSE-APACHE" # which the former refers to
  sed "s/@VERSION@/$version/g" packaging/README.program.in >"$folder/README"
  archive "$name"
}

debian_files "$@"
for major in "$@"; do
  "$root/packaging/stage.sh" "$major"
  cp -r "$work/stage/$major" "$source/stage/"
  cp "$work/stage/$major/copyright" "$source/debian/postgresql-$major-graph-kernel.copyright"
done
select_server "$(server_of "$1")" # the program needs none; but the build has the flags of the others
stage_program
# Not before: Cargo builds what is of C again when it changes.
export SOURCE_DATE_EPOCH
# The build tools are not Debian's, so their packages are not asked for (-d).
(cd "$source" && dpkg-buildpackage --build=binary --no-sign --no-check-builddeps)
mv "$build"/*.deb "$packages/"
for major in "$@"; do archive_extension "$major"; done
archive_program
packaging/clients.sh
git archive --format=zip --prefix="graph_kernel-$version/" --output "$packages/graph_kernel-$version.zip" "$commit"
rm -rf "$build"
(cd "$packages" && sha256sum -- * >SHA256SUMS)
note "version $deb_version for $arch:"
cat "$packages/SHA256SUMS"
