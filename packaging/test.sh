#!/usr/bin/env bash
# test.sh MAJOR…: tests what packages.sh has put into target/packages. The part with a bare Debian root needs root.
. "$(dirname "$0")/../tests/harness/common.sh"
. "$root/packaging/tools.sh"

(($# > 0)) || die 'usage: test.sh MAJOR…'
majors=("$@")
find_base
packages="$root/target/packages"
work="$root/target/packaging"
logs="$work/logs"
unpacked="$work/unpacked"
arch=$(dpkg --print-architecture)
version=$(version_of_tree)
newest_glibc=2.36 # Debian 12's
anchor=a9ad8365-bc0a-5da2-93e6-e37e99d95d9c
slice_id=aa4ddb424fcdabb9 # the sample's at that turn, on every machine: docs/reference.md has it too
no_root='it needs root'
passed=0 failed=0
rm -rf "$logs" "$unpacked"
mkdir -p "$logs" "$unpacked"

# check NAME COMMAND…: one test. Never in a condition: bash would then run COMMAND without set -e.
check() {
  local name=$1 log status start=$SECONDS
  log="$logs/${name//[^a-zA-Z0-9]/-}.log"
  shift
  printf 'test %s ... ' "$name"
  set +e
  (set -e && "$@") >"$log" 2>&1 </dev/null
  status=$?
  set -e
  if ((status == 0)); then
    passed=$((passed + 1))
    note "ok ($((SECONDS - start)) s)"
  else
    failed=$((failed + 1))
    note 'FAILED'
    tail -n 40 "$log"
  fi
}

# skip NAME REASON: a test that cannot run here. In CI that is a failure, but for the lack of root, which no set-up
# mends.
skip() {
  if [[ -n ${CI:-}${STRICT:-} && $2 != "$no_root" ]]; then
    failed=$((failed + 1))
    note "test $1 ... FAILED: $2"
  else
    passed=$((passed + 1)) # test.sh of the harness takes what is skipped off again
    note "SKIPPED: $1: $2"
  fi
}

deb_of() { compgen -G "$packages/$1_*_$arch.deb"; }
extension_package() { note "postgresql-$1-graph-kernel"; }
package_names() {
  local number
  note graph-kernel
  for number in "${majors[@]}"; do extension_package "$number"; done
}

# same WHAT EXPECTED FOUND
same() {
  [[ $2 == "$3" ]] || {
    diff <(note "$2") <(note "$3") || true
    die "$1 differs: < expected, > found"
  }
}

check_complete() {
  local name
  for name in $(package_names); do
    deb_of "$name"
    deb_of "$name-dbgsym"
  done
  (cd "$packages" && sha256sum --check --strict SHA256SUMS)
  same 'the list of files' "$(cd "$packages" && compgen -G '*.*' | sort)" \
    "$(sed 's/^[0-9a-f]*  //' "$packages/SHA256SUMS" | sort)"
}

check_control() {
  local name=$1 deb depends
  deb=$(deb_of "$name")
  dpkg-deb --info "$deb"
  depends=$(dpkg-deb --field "$deb" Depends)
  same section database "$(dpkg-deb --field "$deb" Section)"
  same version "$version" "$(dpkg-deb --field "$deb" Version | sed -E 's/(~dev)?-1$//')"
  same libraries 'libc6 libgcc-s1' "$(tr ',' '\n' <<<"$depends" | sed -nE 's/^ *(lib[^ ]*).*/\1/p' | sort | xargs)"
  if [[ $name == postgresql-* ]]; then
    grep -qE "(^|, )postgresql-${name//[^0-9]/}(,|$)" <<<"$depends" || die "it does not depend on its server: $depends"
  fi
}

check_contents_of_extension() {
  local number=$1 name expected
  name=$(extension_package "$number")
  expected=$(printf '%s\n' "usr/lib/postgresql/$number/lib/graph_kernel.so" \
    "usr/share/postgresql/$number/extension/graph_kernel--$version.sql" \
    "usr/share/postgresql/$number/extension/graph_kernel.control" &&
    cd sql && compgen -G 'graph_kernel--*--*.sql' | sed "s|^|usr/share/postgresql/$number/extension/|" || true)
  same files "$(sort <<<"$expected")" \
    "$(cd "$unpacked/$name" && find . -type f ! -path './usr/share/doc/*' ! -path './usr/share/lintian/*' |
      sed 's|^\./||' | sort)"
  cd "$unpacked/$name/usr/share/doc/$name"
  ls -R
  test -s copyright && test -s README.md* && test -s changelog.gz && test -s examples/sample/load.sql &&
    test -s examples/sample/memory_turns.csv && test -s examples/roles/supabase.sql
}

check_contents_of_program() {
  local command commands
  cd "$unpacked/graph-kernel/usr"
  commands=$(bin/graph-kernel help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
  [[ $commands == *verify* ]]
  # `help` prints the pages of the others.
  for command in ${commands//help/}; do
    zcat "share/man/man1/graph-kernel-$command.1.gz" | grep -q '^\.SH'
  done
  same version "graph-kernel $version" "$(bin/graph-kernel --version)"
  zcat share/man/man1/graph-kernel.1.gz | man --warnings -l - >/dev/null
  bash -n share/bash-completion/completions/graph-kernel
  test -s share/zsh/vendor-completions/_graph-kernel && test -s share/fish/vendor_completions.d/graph-kernel.fish
}

# The debug symbols are those of the file that is installed.
check_symbols() {
  local file=$1 id
  id=$(readelf -n "$file" | sed -n 's/.*Build ID: //p')
  cd "$unpacked/$2-dbgsym/usr/lib/debug/.build-id"
  [[ $(readelf --debug-dump=decodedline "${id:0:2}/${id:2}.debug" 2>/dev/null | grep -c '\.rs ') -gt 1000 ]]
}

# check_library FILE EXPORTS LIBRARIES: each a pattern for whole names.
check_library() {
  local file=$1 glibc odd
  odd=$(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vxE "$3" || true)
  [[ -z $odd ]] || die "it needs $odd"
  odd=$(nm -D --defined-only "$file" | awk '{ print $3 }' | grep -vxE "$2" || true)
  [[ -z $odd ]] || die "it exports $odd"
  glibc=$(objdump -T "$file" | grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1)
  note "newest symbol: $glibc"
  printf '%s\n' "$glibc" "GLIBC_$newest_glibc" | sort -CV || die "$glibc is newer than $newest_glibc"
  ! readelf -d "$file" | grep -E 'RPATH|RUNPATH'
}
libraries='libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux-[a-z0-9-]*\.so\.[0-9]'
# The functions that the server calls, and those of src/pg/reporting.rs.
exports='Pg_magic_func|_PG_init|pg_finfo_[a-z0-9_]+|[a-z0-9_]+_wrapper|graph_kernel_(errstart|errfinish|copy_error_data)'

check_one_script() {
  local number
  for number in "${majors[@]}"; do
    (cd "$unpacked/$(extension_package "$number")/usr/share/postgresql/$number/extension" && sha256sum -- *)
  done | sort | uniq -c | tee "$logs/scripts"
  awk -v majors=${#majors[@]} '$1 != majors { bad = 1 } END { exit bad || !NR }' "$logs/scripts" ||
    die 'scripts differ between majors'
}

# The wheel holds what the repository has of the package, and the version of the others.
check_python_client() {
  local wheel="$packages/graph_kernel_client-$version-py3-none-any.whl" package=graph_kernel_client
  rm -rf "$unpacked/python"
  python3 -m zipfile -e "$wheel" "$unpacked/python"
  mkdir -p "$unpacked/python-sources"
  git archive "HEAD:clients/python/src" | tar -x -C "$unpacked/python-sources"
  diff -r "$unpacked/python-sources/$package" "$unpacked/python/$package"
  grep -qx "Version: $version" "$unpacked/python/$package-$version.dist-info/METADATA"
  # Extras aside, it needs psycopg alone.
  same requirements psycopg "$(sed -n '/extra ==/d; s/^Requires-Dist: \([a-z-]*\).*/\1/p' \
    "$unpacked/python/$package-$version.dist-info/METADATA")"
  test -s "$unpacked/python/$package-$version.dist-info/licenses/LICENSE"
  tar -tzf "$packages/$package-$version.tar.gz" | grep -x "$package-$version/tests/test_spec_003.py" >/dev/null
}

# The archive for npm holds what was compiled, with its types and its source, and nothing else.
check_typescript_client() {
  same files "$(printf 'package/%s\n' LICENSE dist/index.d.ts dist/index.js package.json src/index.ts)" \
    "$(tar -tzf "$packages/graph-kernel-client-$version.tgz" | sort)"
}

# No file names a folder of this machine. Debug symbols are compressed: they are looked at uncompressed.
check_paths() {
  local file odd folders
  folders=(-e "$root/" -e "${HOME%/}/" -e "$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")/")
  folders+=(-e "$(rustc --print sysroot)/")
  while read -r file; do
    objcopy --decompress-debug-sections "$file"
  done < <(find "$unpacked" -name '*.debug')
  odd=$(grep -ralF "${folders[@]}" "$unpacked" || true)
  [[ -z $odd ]] || die "these name folders of this machine: $odd"
}

check_lintian() {
  local as=()
  ((EUID != 0)) || as=(--allow-root)
  # The project has no mail address: reports go through the repository (SECURITY.md). Debian's format demands one, and
  # packages of symbols can bring no override.
  lintian "${as[@]}" --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
    --tag-display-limit 0 "$packages"/*.deb
}

check_archives() {
  local number name machine
  machine=$(uname -m)
  for number in "${majors[@]}"; do
    name="graph_kernel-$version-pg$number-linux-$machine"
    tar -xzf "$packages/$name.tar.gz" -C "$unpacked"
    cmp "$unpacked/$name/lib/graph_kernel.so" \
      "$unpacked/$(extension_package "$number")/usr/lib/postgresql/$number/lib/graph_kernel.so"
    diff -r "$unpacked/$name/share/extension" \
      "$unpacked/$(extension_package "$number")/usr/share/postgresql/$number/extension"
    (cd "$unpacked/$name" && test -s LICENSE && test -s LICENSES-OF-CRATES && grep -q 'pg_config --pkglibdir' README)
  done
  name="graph-kernel-$version-linux-$machine"
  tar -xzf "$packages/$name.tar.gz" -C "$unpacked"
  cmp "$unpacked/$name/bin/graph-kernel" "$unpacked/graph-kernel/usr/bin/graph-kernel"
}

check_sources() {
  local name="graph_kernel-$version"
  python3 -m zipfile -e "$packages/$name.zip" "$unpacked"
  same files "$(git ls-tree -r --name-only HEAD | sort)" \
    "$(cd "$unpacked/$name" && find . -type f | sed 's|^\./||' | sort)"
  same version "$version" "$(sed -n 's/^  "version": "\(.*\)",/\1/p' "$unpacked/$name/META.json")"
}

# PGXN's own program, from crates.io.
check_pgxn() { "$tools/bin/pgxn_meta" "$unpacked/graph_kernel-$version/META.json"; }

# psql's commands that load the sample and take a slice; $1 names the folder with the sample.
slice_sample() {
  cat <<SQL
\set ON_ERROR_STOP on
CREATE EXTENSION graph_kernel;
SELECT graph_kernel.create_tables('public');
\cd '$1'
\i load.sql
SQL
}

# The other majors: the files of the package in the private copy of their server.
check_in_server() {
  local number=$1 name found
  name=$(extension_package "$number")
  select_server "$(server_of "$number")"
  rm -f "$("$pg_config" --pkglibdir)/graph_kernel.so" "$("$pg_config" --sharedir)"/extension/graph_kernel[-.]*
  install -m 755 "$unpacked/$name/usr/lib/postgresql/$number/lib/graph_kernel.so" "$("$pg_config" --pkglibdir)/"
  install -m 644 "$unpacked/$name/usr/share/postgresql/$number/extension/"* "$("$pg_config" --sharedir)/extension/"
  "$root/tests/harness/server.sh" start packages
  trap '"$root/tests/harness/server.sh" stop packages' EXIT
  use_server packages
  slice_sample "$unpacked/$name/usr/share/doc/$name/examples/sample" | "$bindir/psql" -X -q
  found=$("$bindir/psql" -X -At -c "SELECT graph_slice('$anchor') ->> 'slice_id'")
  same slice_id "$slice_id" "$found"
  "$bindir/psql" -X -q -c 'SET client_min_messages = warning' -c 'DROP EXTENSION graph_kernel CASCADE'
}

# The rest runs in a bare Debian 12. The pristine root is kept; a test gets a copy.
suite=bookworm
pristine="$work/$suite"
bare="$work/root"
in_bare() { chroot "$bare" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }

debian_sources() {
  # shellcheck disable=SC2016 # apt's own fields
  apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(CODENAME)' 'Created-By: Packages' 2>/dev/null |
    awk -v suite="$suite" '$1 == "Debian" && $3 ~ "^" suite && !seen[$0]++ { print "deb", $2, $3, "main" }'
}

make_pristine() {
  local site
  [[ ! -x $pristine/usr/bin/apt ]] || return 0
  site=$(debian_sources | awk -v suite="$suite" '$3 == suite { print $2; exit }')
  rm -rf "$pristine" "$pristine.new"
  debootstrap --variant=minbase "$suite" "$pristine.new" "${site:-http://deb.debian.org/debian}"
  mv "$pristine.new" "$pristine"
}

make_bare() {
  rm -rf "$bare"
  cp -a "$pristine" "$bare"
  debian_sources >"$bare/etc/apt/sources.list"
  [[ -s $bare/etc/apt/sources.list ]] ||
    note "deb http://deb.debian.org/debian $suite main" >"$bare/etc/apt/sources.list"
  cp -L /etc/resolv.conf "$bare/etc/" 2>/dev/null || true
  apt-config dump Acquire | grep -i '::proxy ' >"$bare/etc/apt/apt.conf.d/99proxy" || true
  # No service starts by itself in it.
  printf '#!/bin/sh\nexit 101\n' >"$bare/usr/sbin/policy-rc.d"
  chmod 755 "$bare/usr/sbin/policy-rc.d"
  mkdir -p "$bare/dev/shm" "$bare/packages"
  chmod 1777 "$bare/dev/shm"
}

psql_in_bare() { in_bare runuser -u postgres -- psql -X "$@"; }
start_in_bare() {
  in_bare pg_conftool 15 main set listen_addresses ''
  # pg_ctlcluster would look for the process in /proc, which is not mounted.
  bare_data=/var/lib/postgresql/15/main
  trap 'in_bare runuser -u postgres -- /usr/lib/postgresql/15/bin/pg_ctl stop -s -m immediate -D "$bare_data"' EXIT
  in_bare pg_ctlcluster 15 main start
}

check_apt_install() {
  local deb program name=postgresql-15-graph-kernel doc file left=0
  doc="/usr/share/doc/$name"
  deb=$(deb_of "$name") program=$(deb_of graph-kernel)
  make_bare
  cp "$deb" "$program" "$bare/packages/"
  in_bare apt-get update
  in_bare sh -c 'apt install -y --no-install-recommends /packages/postgresql-15-graph-kernel*.deb'
  in_bare dpkg --status "$name" postgresql-15 | grep '^Status: install ok installed'
  start_in_bare
  slice_sample "$doc/examples/sample" | psql_in_bare -q
  psql_in_bare -At -c "SELECT graph_slice('$anchor')" >"$bare/slice.json"
  printf '%s\n' '\set slice `cat /slice.json`' "SELECT graph_proof(:'slice');" | psql_in_bare -At >"$bare/proof.json"
  psql_in_bare -At -c "SELECT public_key FROM graph_kernel.proof_keys WHERE state = 'active'" >"$bare/key.pem"
  same slice_id "$slice_id" "$(sed -n 's/.*"slice_id":"\([0-9a-f]*\)".*/\1/p' "$bare/slice.json")"
  in_bare sh -c 'apt install -y --no-install-recommends /packages/graph-kernel*.deb'
  # psql has added a newline, which is none of the slice.
  in_bare sh -c 'printf %s "$(cat /slice.json)" > /signed.json'
  same 'what the program says' valid "$(in_bare graph-kernel verify /signed.json --proof /proof.json --key /key.pem)"
  # A slice that somebody has changed is refused.
  sed -i 's/"planning"/"synthesis"/' "$bare/signed.json"
  ! in_bare graph-kernel verify /signed.json --proof /proof.json --key /key.pem || die 'a changed slice verifies'
  psql_in_bare -q -c 'SET client_min_messages = warning' -c 'DROP EXTENSION graph_kernel CASCADE'
  in_bare dpkg --listfiles "$name" graph-kernel | grep graph.kernel >"$logs/installed-files"
  in_bare apt purge -y "$name" graph-kernel
  while read -r file; do
    [[ ! -e $bare$file ]] || { note "left behind: $file" && left=1; }
  done <"$logs/installed-files"
  ((left == 0)) && [[ $(wc -l <"$logs/installed-files") -gt 20 ]]
  same 'files with that name' '' "$(cd "$bare" && find . -xdev -iname '*graph[-_]kernel*' ! -path './packages/*')"
}

# dockerfile_steps FILE COPY|RUN: the arguments of its steps, variables of ARG filled in from the environment.
dockerfile_steps() {
  awk -v step="$2" '
    continued { text = text "\n" $0 }
    !continued && $1 == step { text = substr($0, length(step) + 2); active = 1 }
    { continued = active && /\\$/ }
    active && !continued { printf "%s%c", text, 0; active = 0; text = "" }' "$1"
}

# run_dockerfile FILE: its COPY and RUN steps in the bare root, as they stand in the file, under the defaults of the
# variables that are set here.
run_dockerfile() {
  local step words source target found=0
  while IFS= read -r -d '' step; do
    read -ra words <<<"$(PG_MAJOR=15 TARGETARCH=$arch envsubst <<<"$step")"
    target=${words[-1]}
    for source in "${words[@]:0:${#words[@]}-1}"; do
      compgen -G "$packages/$source" | xargs -I{} cp {} "$bare$target"
    done
    found=1
  done < <(dockerfile_steps "$1" COPY)
  ((found == 1)) || die "$1 copies nothing"
  found=0
  while IFS= read -r -d '' step; do
    in_bare env PG_MAJOR=15 TARGETARCH="$arch" PATH=/usr/lib/postgresql/15/bin:/usr/sbin:/usr/bin:/sbin:/bin \
      sh -c "$step"
    found=1
  done < <(dockerfile_steps "$1" RUN)
  ((found == 1)) || die "$1 runs nothing"
}

# create_and_slice DATABASE: with what a Dockerfile has installed.
create_and_slice() {
  start_in_bare
  rm -rf "$bare/packages/sample"
  cp -r sql/sample "$bare/packages/sample"
  in_bare runuser -u postgres -- createdb "$1"
  slice_sample /packages/sample | psql_in_bare -q -d "$1"
  same slice_id "$slice_id" "$(psql_in_bare -At -d "$1" -c "SELECT graph_slice('$anchor') ->> 'slice_id'")"
}

# The images have a server from their start. So has the root in which the package was installed and purged.
check_dockerfile() {
  run_dockerfile docker/Dockerfile
  same 'what is left in /tmp' '' "$(ls "$bare/tmp")"
  create_and_slice image
  in_bare apt-get purge -y postgresql-15-graph-kernel
}

# A stand-in for Supabase's `postgres`, which names another folder for libraries than pg_config does.
check_supabase_dockerfile() {
  local lib=/nix/store/stand-in/lib
  mkdir -p "$bare$lib"
  printf "#!/bin/sh\nexport NIX_PGLIBDIR='%s'\nexec /usr/lib/postgresql/15/bin/postgres \"\$@\"\n" "$lib" \
    >"$bare/usr/bin/postgres"
  run_dockerfile docker/supabase.Dockerfile
  same 'what is left in /tmp' '' "$(ls "$bare/tmp")"
  test ! -e "$bare/usr/lib/postgresql/15/lib/graph_kernel.so"
  # Debian's server does not ask NIX_PGLIBDIR.
  mv "$bare$lib/graph_kernel.so" "$bare/usr/lib/postgresql/15/lib/"
  create_and_slice supabase
}

bare_checks() {
  local name reason=''
  local names=('apt install in a bare Debian 12' 'docker/Dockerfile' 'docker/supabase.Dockerfile, with a stand-in')
  [[ " ${majors[*]} " == *' 15 '* ]] || return 0
  if ((EUID != 0)); then
    reason=$no_root
  elif ! command -v debootstrap >/dev/null; then
    reason='there is no debootstrap: run make setup as root'
  elif ! make_pristine >"$logs/debootstrap.log" 2>&1; then
    reason="debootstrap failed: $(tail -n 1 "$logs/debootstrap.log")"
  fi
  if [[ -n $reason ]]; then
    for name in "${names[@]}"; do skip "$name" "$reason"; done
    return
  fi
  check "${names[0]}" check_apt_install
  check "${names[1]}" check_dockerfile
  check "${names[2]}" check_supabase_dockerfile
  rm -rf "$bare"
}

[[ -f $packages/SHA256SUMS ]] || die 'there are no packages: run make packages'
check 'all files are there, with checksums' check_complete
for deb in "$packages"/*_"$arch".deb; do
  name=${deb##*/}
  dpkg-deb --extract "$deb" "$unpacked/${name%%_*}"
done
for name in $(package_names); do check "control fields of $name" check_control "$name"; done
check 'contents of graph-kernel' check_contents_of_program
check 'symbols of graph-kernel' check_symbols "$unpacked/graph-kernel/usr/bin/graph-kernel" graph-kernel
check 'libraries of graph-kernel' check_library "$unpacked/graph-kernel/usr/bin/graph-kernel" '.*' "$libraries"
for number in "${majors[@]}"; do
  name=$(extension_package "$number")
  library="$unpacked/$name/usr/lib/postgresql/$number/lib/graph_kernel.so"
  check "contents of $name" check_contents_of_extension "$number"
  check "symbols of $name" check_symbols "$library" "$name"
  check "libraries and exports of $name" check_library "$library" "$exports" "$libraries"
done
check 'one script for all majors' check_one_script
check 'archives for other systems' check_archives
check 'sources for PGXN' check_sources
if compgen -G "$packages/graph_kernel_client-*.whl" >/dev/null; then
  check 'client for Python' check_python_client
else
  skip 'client for Python' 'it was not built'
fi
if [[ -f $packages/graph-kernel-client-$version.tgz ]]; then
  check 'client for TypeScript' check_typescript_client
else
  skip 'client for TypeScript' 'it was not built'
fi
if cargo_tool pgxn_meta 0.7.0 >"$logs/pgxn_meta.log" 2>&1; then
  check "META.json by PGXN's checker" check_pgxn
else
  skip "META.json by PGXN's checker" "cargo install pgxn_meta failed: $(tail -n 1 "$logs/pgxn_meta.log")"
fi
if command -v lintian >/dev/null; then
  check lintian check_lintian
else
  skip lintian 'it is not installed: run make setup as root'
fi
check 'no file names a folder of this machine' check_paths
for number in "${majors[@]}"; do
  if ((number != 15)); then
    check "PostgreSQL $number: create the extension and take a slice" check_in_server "$number"
  fi
done
bare_checks

note "test result: $( ((failed == 0)) && note ok || note FAILED). $passed passed; $failed failed"
((failed == 0))
